/** Lists what needs attention in a mirror's status, worst first. All functions are pure. */
import { guardNames, guardRows, type GuardClass } from '../../domain/guard-classes.ts';
import { sayPending, signing } from '../../engine/report/approval-rules.ts';
import { approvingUndo, countWords, sayEnd } from '../../engine/report/guard-text.ts';
import type { ToldRun } from './run-history.ts';
import { ago, type Attention, worstFirst } from './attention.ts';
import { outageLines, workerLines } from './mirror-health.ts';
import type { CurrentStatus } from './mirror-status.ts';
import { sayHeld } from '../../engine/erasure/pending/erasure-text.ts';
import { decideUnmanaged, sayUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted } from '../../domain/values/counted.ts';

/**
 * Decides what needs attention in a mirror, worst first. Every place that shows the state of a
 * mirror shows these lines. `faults` is what only the process notices that serves or shows it.
 */
export function attentionOf(
  standing: CurrentStatus,
  faults: readonly Attention[] = [],
): Attention[] {
  const { outages, at } = standing;
  const now = [...ledger(standing), ...workerLines(standing), ...outageLines(outages, at)];
  if (!standing.snapshot.exists) return worstFirst([...faults, ...now, noSnapshot(standing)]);
  return worstFirst([
    ...faults,
    ...now,
    ...unreadable(standing),
    ...optOuts(standing),
    ...returns(standing),
    ...erasures(standing),
    ...lostChannels(standing),
    ...held(standing),
    ...manyOptOuts(standing),
    ...unproven(standing),
    ...failedRuns(standing),
    ...interruptedRuns(standing),
    ...crossed(standing),
    ...unanswered(standing),
    ...halted(standing),
    ...unmanagedPeople(standing),
    ...auditLog(standing),
  ]);
}

function ledger({ ledger: { fault } }: CurrentStatus): Attention[] {
  if (fault === null) return [];
  const { reason, fix = 'correct it' } = fault;
  return [{ code: 'ledger', text: `every run is refused: ${reason}`, fix, since: null }];
}

function auditLog({ audit: { fault } }: CurrentStatus): Attention[] {
  if (fault === null) return [];
  const fix = 'restore it from a backup, or see docs/audit.md; `crm-mirror audit verify` says more';
  return [
    { code: 'audit_log', text: `the audit log is not as it was: ${fault}`, fix, since: null },
  ];
}

function noSnapshot({ snapshot, lease }: CurrentStatus): Attention {
  return {
    code: 'no_snapshot',
    text: `there is no snapshot at ${snapshot.file}: nothing is known of this mirror`,
    fix: lease.held
      ? 'its first run has just begun, look again in a moment'
      : '`crm-mirror backfill` makes it; if there was one, restore a backup',
    since: null,
  };
}

function unreadable({ optOutsUnreadable: { count, since }, at }: CurrentStatus): Attention[] {
  if (count === 0) return [];
  const isOne = count === 1;
  return [
    {
      code: 'opt_outs_unreadable',
      text:
        `${counted(count, 'opt-out')} of the CRM may be waiting: a value or an address of ` +
        `${isOne ? 'the record' : 'the records'} cannot be read, ` +
        `the oldest since ${since} (${ago(since, at)})`,
      fix:
        'correct it in the CRM, or name its meaning in the configuration ' +
        '(`crm-mirror problems`), and run `crm-mirror sync`',
      since,
    },
  ];
}

function optOuts({ optOutsRefused: { count, since }, at }: CurrentStatus): Attention[] {
  if (count === 0) return [];
  return [
    {
      code: 'opt_outs_refused',
      text:
        `${counted(count, 'opt-out')} could not be applied, the oldest since ` +
        `${since} (${ago(since, at)}): ${count === 1 ? 'this person is' : 'these people are'} still written to`,
      fix: 'opt them out on the platform by hand, or correct the reason and run `crm-mirror retry`',
      since,
    },
  ];
}

function returns({ returns: back, at }: CurrentStatus): Attention[] {
  if (!back) return [];
  const found: Attention[] = [];
  const { stuck, waiting, rejected } = back;
  if (stuck) {
    const { reason, fix = 'the next run tries again' } = stuck;
    const many = `${counted(waiting, 'opt-out')} of the platform`;
    const text = `${many} cannot be reported to the CRM, since ${stuck.since} (${ago(stuck.since, at)}): ${reason}`;
    found.push({ code: 'returns_stuck', text, fix, since: stuck.since });
  }
  if (rejected.count > 0) {
    const many = counted(rejected.count, 'opt-out');
    const since = `${rejected.since} (${ago(rejected.since, at)})`;
    const text = `the CRM refused ${many} made on the platform, the oldest since ${since}`;
    const fix = 'enter it in the CRM by hand, or correct the reason and run `crm-mirror retry`';
    found.push({ code: 'returns_rejected', text, fix, since: rejected.since });
  }
  return found;
}

function erasures({ erasuresUnfinished: unfinished, at }: CurrentStatus): Attention[] {
  const { count, held: waiting, since, people } = unfinished;
  if (count === 0) return [];
  const who = count === 1 ? 'this person' : 'each';
  const again = waiting > 0 ? '' : ' again';
  return [
    {
      code: 'erasure_unfinished',
      text:
        `${counted(count, 'erasure')} not finished${sayHeld(waiting)}, ` +
        `the oldest since ${since} (${ago(since, at)}): ` +
        'somebody who was to be forgotten is still in the snapshot, or on the platform',
      fix:
        `run \`crm-mirror forget\`${again} for ${who}: ${people.map((hash) => `'${hash}'`).join(', ')}` +
        `${count > people.length ? ' and more' : ''}; or \`allow\` takes it back`,
      since,
    },
  ];
}

function lostChannels({ channelsLost, at }: CurrentStatus): Attention[] {
  return channelsLost.map(({ channel, reason, fix, since }) => ({
    code: 'channel_lost',
    text: `${channel}, since ${since} (${ago(since, at)}): ${reason}`,
    fix,
    since,
  }));
}

function held({ held: plans, signatures, at }: CurrentStatus): Attention[] {
  return plans
    .filter(({ approved }) => !approved)
    .map(({ plan, since, optOutsUntil, undecided, undoes }) => ({
      code: 'held',
      text:
        `${heldWords(undecided, undoes)}: awaiting approval since ${since} (${ago(since, at)}), ` +
        `under the plan ${plan}${signedWords(plan, signatures)}${endOf(optOutsUntil)}`,
      fix:
        undoes === undefined
          ? `see \`crm-mirror plan\`; if it is right, ` +
            `\`crm-mirror ${approving(plan, signatures)}\``
          : fixOfUndo(undoes, plan, signatures),
      since,
      ...(optOutsUntil === null ? {} : { isDaily: true }),
    }));
}

function fixOfUndo(undoes: string, plan: string, signatures: CurrentStatus['signatures']): string {
  const how = approvingUndo({ undoes, plan, signs: Boolean(signatures) });
  return `see \`crm-mirror undo ${undoes} --plan\`; ${how}`;
}

function signedWords(plan: string, signatures: CurrentStatus['signatures']): string {
  const pending = signatures?.pending.filter((one) => one.plan === plan) ?? [];
  return pending.map((one) => `; ${sayPending(one)}`).join('');
}

/** Returns the command that approves a plan, or signs what others have signed of it. */
function approving(plan: string, signatures: CurrentStatus['signatures']): string {
  if (!signatures) return `approve ${plan}`;
  return signing(signatures.pending.find((one) => one.plan === plan)?.part ?? plan);
}

/** States from when on held opt-outs are applied without approval; '' if none are held. */
export function endOf(until: string | null): string {
  return until === null ? '' : `; ${sayEnd(Date.parse(until))}`;
}

/** Returns a line for opt-outs that no guard withholds but that a person should check. */
function manyOptOuts({ optOutsByEvents: seen }: CurrentStatus): Attention[] {
  if (!seen) return [];
  const { people, most, at } = seen;
  return [
    {
      code: 'opt_outs_many',
      text:
        `${countWords('contact', people)} were opted out in seven days because the CRM says so, with those ` +
        `of events, which await no approval: more than ${most} (${at})`,
      fix: 'look at these people in the CRM; a run takes back what is wrong there once it is corrected',
      since: at,
    },
  ];
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

function unproven({ proven, lastRuns, at }: CurrentStatus): Attention[] {
  if (proven?.stale) {
    const text = `the last full run that ended well began ${ago(proven.startedAt, at)} ago`;
    const fix = '`crm-mirror runs` lists the runs since';
    return [{ code: 'stale', text, fix, since: proven.startedAt }];
  }
  if (proven || lastRuns.full?.status === 'running') return [];
  return [
    {
      code: 'never_proven',
      text: 'no full run that ended well is recorded',
      fix: 'run `crm-mirror sync`',
      since: null,
    },
  ];
}

/**
 * Returns a line for each last run of a record type that failed. Neither a run that is in progress
 * nor one of the other record type changes it.
 */
function failedRuns({ failedRuns: runs, at }: CurrentStatus): Attention[] {
  return runs.map(({ run, mode, startedAt, endedAt, reasons }) => ({
    code: 'run_failed',
    text: `${whenOf({ mode, startedAt }, at)} failed: ${reasons[0] ?? 'no reason is recorded'}`,
    fix: `\`crm-mirror runs ${run}\` shows what it did`,
    since: endedAt,
  }));
}

function whenOf({ mode, startedAt }: Pick<ToldRun, 'mode' | 'startedAt'>, at: string): string {
  return `the last ${mode} run (${ago(startedAt, at)} ago)`;
}

/** Returns a line for the last full run, and for the last fast run if no full run followed it. */
function interruptedRuns({ lastRuns: { full, fast }, at, lease }: CurrentStatus): Attention[] {
  const runs = full ? [full] : [];
  if (fast && fast.startedAt >= (full?.startedAt ?? '')) runs.push(fast);
  return runs.flatMap((run): Attention[] => {
    if (run.status !== 'interrupted' || lease.held) return [];
    const how =
      run.endedAt === null
        ? 'has not written down that it ended: it was killed, or could write no more'
        : 'was interrupted';
    const text = `${whenOf(run, at)} ${how}`;
    const fix = 'the next run goes on from there';
    return [{ code: 'run_interrupted', text, fix, since: run.endedAt ?? run.startedAt }];
  });
}

const alertCodes = {
  refused: 'alert_refused',
  runTime: 'alert_run_time',
  deviation: 'alert_deviation',
} as const;

function crossed({ alerts }: CurrentStatus): Attention[] {
  return alerts.map(({ threshold, text, fix }) => ({
    code: alertCodes[threshold],
    text,
    fix,
    since: null,
  }));
}

/** Returns a line for unanswered changes. Those of a run in progress are not counted. */
function unanswered({ open: { unknown, sent, since }, lease, at }: CurrentStatus): Attention[] {
  const count = unknown + (lease.held ? 0 : sent);
  if (count === 0) return [];
  return [
    {
      code: 'outcomes_unknown',
      text: `the outcome of ${counted(count, 'change')} is unknown, sent since ${since} (${ago(since, at)})`,
      fix: 'the next run reads it from the platform',
      since,
    },
  ];
}

function halted({ quarantine, paused, restored, at }: CurrentStatus): Attention[] {
  const found: Attention[] = [];
  if (quarantine) {
    const { since, until } = quarantine;
    const isOver = until <= at;
    const now = isOver ? 'the next run tries again' : `only opt-outs are sent until ${until}`;
    const text = `quarantined since ${since} (${ago(since, at)}): the platform refused most changes; ${now}`;
    const fix = 'correct what it refuses (`crm-mirror runs`), then `crm-mirror retry`';
    found.push({ code: 'quarantined', text, fix, since });
  }
  if (paused) {
    const { since, reason, by } = paused;
    const why = `${by === null ? '' : ` by ${by}`}${reason === '' ? '' : `: ${reason}`}`;
    const text = `paused since ${since} (${ago(since, at)})${why}`;
    found.push({ code: 'paused', text, fix: '`crm-mirror resume` ends it', since });
  }
  if (restored) {
    const text = `restored from a backup of ${restored.backupOf}, and no full run since`;
    found.push({
      code: 'restored',
      text,
      fix: 'run `crm-mirror sync`; each is full until one ends well',
      since: null,
    });
  }
  return found;
}

/** Returns a line for deleted people who are still written to. */
function unmanagedPeople({ unmanaged }: CurrentStatus): Attention[] {
  const deleted = unmanaged?.deleted ?? 0;
  return sayUnmanaged({ deleted, outOfScope: 0 }).map((text) => ({
    code: 'unmanaged',
    text,
    fix: decideUnmanaged,
    since: null,
  }));
}
