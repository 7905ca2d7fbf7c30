/** Lists what needs attention in a mirror's status, worst first. All functions are pure. */
import { guardNames, guardRows, type GuardClass } from '../../domain/guard-classes.ts';
import { decideUnmanaged, sayUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted } from '../../domain/values/counted.ts';
import { sayHeld } from '../../engine/erasure/pending/unfinished-erasures.ts';
import {
  sayPending,
  approving,
  approvingUndo,
  countWords,
  sayEnd,
} from '../../engine/report/guard-text.ts';
import { ago, type Attention, worstFirst } from './attention.ts';
import { outageLines } from './mirror-health.ts';
import type { CurrentStatus } from './status-document.ts';

/**
 * Decides what needs attention in a mirror, worst first. Every place that shows the state of a
 * mirror shows these lines. `faults` is what only the process notices that serves or shows it.
 */
export function attentionOf(
  standing: CurrentStatus,
  faults: readonly Attention[] = [],
): Attention[] {
  const { memory, outages, at, snapshot, lease } = standing;
  const found = [...faults];
  if (memory.fault) {
    const { reason, fix = 'correct it' } = memory.fault;
    found.push({ code: 'ledger', text: `every run is refused: ${reason}`, fix, since: null });
  }
  found.push(...workerLines(standing), ...outageLines(outages, at));
  if (!snapshot.exists) {
    const fix = lease.held
      ? 'its first run has just begun, look again in a moment'
      : '`crm-mirror backfill` makes it; if there was one, restore a backup';
    const text = `there is no snapshot at ${snapshot.file}: nothing is known of this mirror`;
    return worstFirst([...found, { code: 'no_snapshot', text, fix, since: null }]);
  }
  return worstFirst([
    ...found,
    ...optOutLines(standing),
    ...approvalLines(standing),
    ...runLines(standing),
    ...stateLines(standing),
  ]);
}

function optOutLines(standing: CurrentStatus): Attention[] {
  const { at, optOutsUnreadable: unread, optOutsRefused: refused, returns } = standing;
  const { erasuresUnfinished: erasures } = standing;
  const found: Attention[] = [];
  const when = (since: string | null) => `since ${since} (${ago(since, at)})`;
  if (unread.count > 0) {
    found.push({
      code: 'opt_outs_unreadable',
      text:
        `${counted(unread.count, 'opt-out')} of the CRM may be waiting: a value or an address of ` +
        `${unread.count === 1 ? 'the record' : 'the records'} cannot be read, ` +
        `the oldest ${when(unread.since)}`,
      fix:
        'correct it in the CRM, or name its meaning in the configuration ' +
        '(`crm-mirror problems`), and run `crm-mirror sync`',
      since: unread.since,
    });
  }
  if (refused.count > 0) {
    const who = refused.count === 1 ? 'this person is' : 'these people are';
    found.push({
      code: 'opt_outs_refused',
      text:
        `${counted(refused.count, 'opt-out')} could not be applied, the oldest ` +
        `${when(refused.since)}: ${who} still written to`,
      fix: 'opt them out on the platform by hand, or correct the reason and run `crm-mirror retry`',
      since: refused.since,
    });
  }
  if (returns?.stuck) {
    const { reason, since, fix = 'the next run tries again' } = returns.stuck;
    const many = `${counted(returns.waiting, 'opt-out')} of the platform`;
    const text = `${many} cannot be reported to the CRM, ${when(since)}: ${reason}`;
    found.push({ code: 'returns_stuck', text, fix, since });
  }
  if (returns && returns.rejected.count > 0) {
    const { count, since } = returns.rejected;
    found.push({
      code: 'returns_rejected',
      text: `the CRM refused ${counted(count, 'opt-out')} made on the platform, the oldest ${when(since)}`,
      fix: 'enter it in the CRM by hand, or correct the reason and run `crm-mirror retry`',
      since,
    });
  }
  if (erasures.count > 0) {
    const { count, held, since, people } = erasures;
    const who = count === 1 ? 'this person' : 'each';
    const hashes = people.map((hash) => `'${hash}'`).join(', ');
    found.push({
      code: 'erasure_unfinished',
      text:
        `${counted(count, 'erasure')} not finished${sayHeld(held)}, the oldest ${when(since)}: ` +
        'somebody who was to be forgotten is still in the snapshot, or on the platform',
      fix:
        `run \`crm-mirror forget\`${held > 0 ? '' : ' again'} for ${who}: ` +
        `${hashes}${count > people.length ? ' and more' : ''}; or \`allow\` takes it back`,
      since,
    });
  }
  for (const { channel, reason, fix, since } of standing.channelsLost) {
    found.push({ code: 'channel_lost', text: `${channel}, ${when(since)}: ${reason}`, fix, since });
  }
  return found;
}

function approvalLines({ held, signatures, optOutsByEvents, at }: CurrentStatus): Attention[] {
  const found = held
    .filter(({ approved }) => !approved)
    .map(({ plan, since, optOutsUntil, undecided, undoes }): Attention => {
      const pending = signatures?.pending.filter((one) => one.plan === plan) ?? [];
      const signed = pending.map((one) => `; ${sayPending(one)}`).join('');
      // Either approves the plan, or signs what others have signed of it.
      const how = approving(pending[0]?.part ?? plan, signatures !== null);
      return {
        code: 'held',
        text:
          `${heldWords(undecided, undoes)}: awaiting approval since ${since} ` +
          `(${ago(since, at)})${signed}${endOf(optOutsUntil)}`,
        fix:
          undoes === undefined
            ? `see \`crm-mirror plan\`; if it is right, \`crm-mirror ${how}\``
            : `see \`crm-mirror undo ${undoes} --plan\`; ${approvingUndo({ undoes, plan, signs: Boolean(signatures) })}`,
        since,
        ...(optOutsUntil === null ? {} : { isDaily: true }),
      };
    });
  if (optOutsByEvents) {
    const { people, most, at: since } = optOutsByEvents;
    // No guard withholds them, but a person should check them.
    found.push({
      code: 'opt_outs_many',
      text:
        `${countWords('contact', people)} were opted out in seven days because the CRM says so, with those ` +
        `of events, which await no approval: more than ${most} (${since})`,
      fix: 'look at these people in the CRM; a run takes back what is wrong there once it is corrected',
      since,
    });
  }
  return found;
}

/** States from when on held opt-outs are applied without approval; '' if none are held. */
export function endOf(until: string | null): string {
  return until === null ? '' : `; ${sayEnd(Date.parse(until))}`;
}

/** Formats what guards withhold: 3 people to be created or opted in. `undoes`: the run undone. */
export function heldWords(held: Record<GuardClass, number>, undoes?: string): string {
  return guardNames
    .filter((guard) => held[guard] > 0)
    .map((guard) => {
      const { recordType, words } = guardRows[guard];
      const done = undoes === undefined ? words.planned : words.undone;
      return `${countWords(recordType, held[guard])} ${done}`;
    })
    .join(', ');
}

const alertCodes = {
  refused: 'alert_refused',
  runTime: 'alert_run_time',
  deviation: 'alert_deviation',
} as const;

/** A run in progress, or of the other record type, changes no line of a run that failed. */
function runLines({ proven, lastRuns, failedRuns, alerts, lease, at }: CurrentStatus): Attention[] {
  const { full, fast } = lastRuns;
  const found: Attention[] = [];
  if (proven?.stale) {
    const text = `the last full run that ended well began ${ago(proven.startedAt, at)} ago`;
    const fix = '`crm-mirror runs` lists the runs since';
    found.push({ code: 'stale', text, fix, since: proven.startedAt });
  } else if (!proven && full?.status !== 'running') {
    const text = 'no full run that ended well is recorded';
    found.push({ code: 'never_proven', text, fix: 'run `crm-mirror sync`', since: null });
  }
  for (const { run, mode, startedAt, endedAt, reasons } of failedRuns) {
    const why = reasons[0] ?? 'no reason is recorded';
    found.push({
      code: 'run_failed',
      text: `the last ${mode} run (${ago(startedAt, at)} ago) failed: ${why}`,
      fix: `\`crm-mirror runs ${run}\` shows what it did`,
      since: endedAt,
    });
  }
  // The last full run counts, and the last fast run if no full run followed it.
  const last = full ? [full] : [];
  if (fast && fast.startedAt >= (full?.startedAt ?? '')) last.push(fast);
  for (const { status, mode, startedAt, endedAt } of last) {
    if (status !== 'interrupted' || lease.held) continue;
    const how =
      endedAt === null
        ? 'has not written down that it ended: it was killed, or could write no more'
        : 'was interrupted';
    found.push({
      code: 'run_interrupted',
      text: `the last ${mode} run (${ago(startedAt, at)} ago) ${how}`,
      fix: 'the next run goes on from there',
      since: endedAt ?? startedAt,
    });
  }
  for (const { threshold, text, fix } of alerts) {
    found.push({ code: alertCodes[threshold], text, fix, since: null });
  }
  return found;
}

function stateLines(standing: CurrentStatus): Attention[] {
  const { at, open, lease, quarantine, paused, restored, unmanaged, memory } = standing;
  const found: Attention[] = [];
  const when = (since: string | null) => `since ${since} (${ago(since, at)})`;
  // Those of a run in progress are not counted.
  const unanswered = open.unknown + (lease.held ? 0 : open.sent);
  if (unanswered > 0) {
    found.push({
      code: 'outcomes_unknown',
      text: `the outcome of ${counted(unanswered, 'change')} is unknown, sent ${when(open.since)}`,
      fix: 'the next run reads it from the platform',
      since: open.since,
    });
  }
  if (quarantine) {
    const { since, until } = quarantine;
    const now = until <= at ? 'the next run tries again' : `only opt-outs are sent until ${until}`;
    found.push({
      code: 'quarantined',
      text: `quarantined ${when(since)}: the platform refused most changes; ${now}`,
      fix: 'correct what it refuses (`crm-mirror runs`), then `crm-mirror retry`',
      since,
    });
  }
  if (paused) {
    const { since, reason, by } = paused;
    const why = `${by === null ? '' : ` by ${by}`}${reason === '' ? '' : `: ${reason}`}`;
    const text = `paused ${when(since)}${why}`;
    found.push({ code: 'paused', text, fix: '`crm-mirror resume` ends it', since });
  }
  if (restored) {
    const text = `restored from a backup of ${restored.backupOf}, and no full run since`;
    const fix = 'run `crm-mirror sync`; each is full until one ends well';
    found.push({ code: 'restored', text, fix, since: null });
  }
  // Deleted people who are still written to.
  for (const text of sayUnmanaged({ deleted: unmanaged?.deleted ?? 0, outOfScope: 0 })) {
    found.push({ code: 'unmanaged', text, fix: decideUnmanaged, since: null });
  }
  if (memory.auditFault !== null) {
    const text = `the audit log is not as it was: ${memory.auditFault}`;
    const fix =
      'restore it from a backup, or see docs/audit.md; `crm-mirror audit verify` says more';
    found.push({ code: 'audit_log', text, fix, since: null });
  }
  return found;
}

/** Returns the line for a mirror whose schedule nobody serves. */
function workerLines({ worker, at, lease, snapshot }: CurrentStatus): Attention[] {
  if (!worker || worker.is === 'alive') return [];
  const { seenAt: since, is } = worker;
  const when = `since ${since} (${ago(since, at)})`;
  if (is === 'silent' && lease.held) {
    const text = `the worker has given no sign of life ${when}, although a process has the mirror`;
    const fix = 'look at its log and at its disk, and start it again';
    return [{ code: 'worker_dead', text, fix, since }];
  }
  const how = is === 'left' ? 'it was stopped' : 'it died, or its machine did';
  const text = `no worker serves this mirror ${when}: ${how}; nothing of the schedule is run`;
  const fix = `start the worker again; if \`sync\` runs from cron instead, delete ${snapshot.file}-health`;
  return [{ code: 'worker_dead', text, fix, since }];
}
