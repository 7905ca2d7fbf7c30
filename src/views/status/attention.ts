/**
 * Lists what needs attention in a mirror, worst first: what its status shows, what fails now, and
 * what only the process notices that serves or shows it. All functions are pure.
 */
import type { Trouble } from '../../config/schema/notices-schema.ts';
import { guardNames, guardRows, type GuardClass } from '../../domain/guard-classes.ts';
import { decideUnmanaged, sayUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { sayHeld } from '../../engine/erasure/pending/unfinished-erasures.ts';
import {
  sayPending,
  approving,
  approvingUndo,
  countWords,
  sayEnd,
} from '../../engine/report/guard-text.ts';
import { isExpected } from '../../domain/errors.ts';
import { refusedTooMany } from '../../engine/context/circuit-breaker.ts';
import { clockFix } from '../../engine/context/platform-knowledge.ts';
import type { OutagePart } from '../../store/health-file.ts';
import { range } from '../../compose/output/format-values.ts';
import { exitCode, explain } from '../../compose/output/failure-report.ts';
import type { CurrentStatus, ToldOutage } from './status-document.ts';

/**
 * A cause: the trouble under which notices report it, and what its beginning and end are called.
 * `present`: a process may notice it itself, and have recorded it. `null` is not sent: it resolves
 * itself, somebody chose it, or another trouble reports it.
 */
type Cause = readonly [Trouble, begins: string, ends: string, is?: 'present'] | null;

/**
 * The causes by their codes, worst first: what stops the opt-outs of everybody stands above what
 * stops those of some. The codes stay the same even if the wording changes. */
const table = {
  snapshot_unreadable: ['failed', 'the snapshot cannot be read', 'the snapshot can be read again'],
  ledger: ['failed', 'the memory is refused', 'the memory is in order'],
  opt_outs_refused: ['failed', 'opt-outs could not be applied', 'every opt-out is applied'],
  worker_dead: ['failed', 'no worker serves it', 'a worker serves it again'],
  disk_full: ['failed', 'the disk is full', 'the disk has space again', 'present'],
  redis_away: ['failed', 'Redis does not answer', 'Redis answers again', 'present'],
  redis_evicts: ['failed', 'Redis may lose what waits in it', 'Redis keeps what waits in it'],
  key_refused: [
    'failed',
    'the platform refuses the API key',
    'the platform accepts the API key again',
    'present',
  ],
  platform_away: [
    'failed',
    'the platform does not answer',
    'the platform answers again',
    'present',
  ],
  source_away: ['failed', 'the CRM cannot be read', 'the CRM can be read again', 'present'],
  opt_outs_unreadable: [
    'unreadable',
    'an opt-out of the CRM may be waiting',
    'every opt-out of the CRM can be read again',
  ],
  templates_away: [
    'failed',
    'the templates cannot be read',
    'the templates can be read again',
    'present',
  ],
  clock_differs: ['failed', 'the clocks differ', 'the clocks agree again', 'present'],
  no_snapshot: null,
  returns_stuck: [
    'failed',
    'opt-outs cannot be reported to the CRM',
    'opt-outs are reported to the CRM again',
  ],
  returns_rejected: ['failed', 'the CRM refused opt-outs', 'the CRM has every opt-out'],
  erasure_unfinished: ['failed', 'an erasure is not finished', 'every erasure is finished'],
  channel_lost: ['failed', 'a channel lost most of its people', 'the channel is as it was'],
  snapshot_replaced: [
    'failed',
    'a damaged snapshot was replaced',
    'a backup is restored, or the damaged snapshot is moved away',
  ],
  held: ['held', 'changes await approval', 'no changes await approval any more'],
  opt_outs_many: ['opt_outs', 'more opt-outs than usual', 'no more opt-outs than usual'],
  paused: null,
  never_proven: null,
  stale: ['stale', 'runs are overdue', 'no run is overdue any more', 'present'],
  run_failed: ['failed', 'the last run failed', 'runs end well again'],
  run_interrupted: null,
  alert_refused: ['alert', 'a run refused too much', 'no run refuses too much any more'],
  alert_run_time: ['alert', 'a run took too long', 'no run takes too long any more'],
  alert_deviation: ['alert', 'a run changed too much', 'no run changes too much any more'],
  outcomes_unknown: null,
  quarantined: ['quarantined', 'only opt-outs are sent', 'all changes are sent again'],
  restored: null,
  unmanaged: null,
  audit_log: ['failed', 'the audit log is not as it was', 'the audit log is in order again'],
} as const satisfies Record<string, Cause>;
type MendingPage = 'approvals' | 'problems' | 'runs' | 'audit';

/** The pages of the console on which a person mends a cause; others have none. */
export const mendingPages: Readonly<Record<string, MendingPage | undefined>> = {
  opt_outs_unreadable: 'problems',
  opt_outs_refused: 'problems',
  returns_rejected: 'problems',
  held: 'approvals',
  opt_outs_many: 'approvals',
  stale: 'runs',
  run_failed: 'runs',
  run_interrupted: 'runs',
  alert_refused: 'runs',
  alert_run_time: 'runs',
  alert_deviation: 'runs',
  audit_log: 'audit',
};

/** The causes, also for a code that none of them has. */
export const causes: Readonly<Record<string, Cause>> = table;

export interface Attention {
  code: keyof typeof table;
  text: string;
  fix: string;
  /** Since when, if that is known. */
  since: string | null;
  /** When what has failed since then failed for the last time, if that is known. */
  lastAt?: string | null;
  /** Reported daily instead of once, because it changes without waiting for a person. */
  isDaily?: true;
}

const ranks: readonly string[] = Object.keys(table);

/** Sorts lines, and keeps one of those about the present that say the same. */
export function worstFirst(all: readonly Attention[]): Attention[] {
  const kept = all.filter(
    ({ code }, at) => !isPresent(code) || all.findIndex((one) => one.code === code) === at,
  );
  return kept.toSorted((a, b) => rank(a.code) - rank(b.code));
}

/** Returns whether a code is about the present, and not about what a run has left. */
export function isPresent(code: string): boolean {
  return causes[code]?.[3] === 'present';
}

/** Returns how bad a line is: 0 is the worst. */
export function rank(code: Attention['code']): number {
  return ranks.indexOf(code);
}

/** Formats how long ago something began. */
export function ago(since: string | null, at: string): string {
  return since === null ? 'unknown' : range(Math.max(0, Date.parse(at) - Date.parse(since)));
}

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
      : '`crm-mirror backfill` makes it; if there was one, mount its folder, or restore a backup';
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
            : `see \`crm-mirror undo ${undoes} --dry-run\`; ${approvingUndo({ undoes, plan, signs: Boolean(signatures) })}`,
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

/** Says how far a first full run came that was stopped. */
export function stoppedWords(load: NonNullable<CurrentStatus['firstLoad']>): string {
  return `first load stopped at ${withCommas(load.done)} of ${counted(load.total, 'change')}`;
}

/** A run in progress, or of the other record type, changes no line of a run that failed. */
function runLines(standing: CurrentStatus): Attention[] {
  const { proven, lastRuns, failedRuns, alerts, lease, at, paused, firstLoad } = standing;
  const { full, fast } = lastRuns;
  const found: Attention[] = [];
  if (proven?.stale) {
    const text = `the last full run that ended well began ${ago(proven.startedAt, at)} ago`;
    const fix = '`crm-mirror runs` lists the runs since';
    found.push({ code: 'stale', text, fix, since: proven.startedAt });
  } else if (!proven && full?.status !== 'running' && !paused) {
    const text = `no full run that ended well is recorded${firstLoad ? `: ${stoppedWords(firstLoad)}` : ''}`;
    const fix = firstLoad ? 'the next run goes on from there' : 'run `crm-mirror sync`';
    found.push({ code: 'never_proven', text, fix, since: null });
  }
  for (const { run, mode, startedAt, endedAt: lastAt, reasons, failing } of failedRuns) {
    const why = reasons[0] ?? 'no reason is recorded';
    const { runs, since } = failing;
    const which =
      runs > 1
        ? `the last ${runs} ${mode} runs, since ${since} (${ago(since, at)}),`
        : `the last ${mode} run (${ago(startedAt, at)} ago)`;
    found.push({
      code: 'run_failed',
      text: `${which} failed: ${why}`,
      fix: `\`crm-mirror runs ${run}\` shows what it did`,
      since,
      lastAt,
    });
  }
  // The last full run counts, and the last fast run if no full run followed it.
  const last = full ? [full] : [];
  if (fast && fast.startedAt >= (full?.startedAt ?? '')) last.push(fast);
  for (const { status, mode, startedAt, endedAt } of last) {
    // A pause that ends says so, and may have stopped the run.
    if (status !== 'interrupted' || lease.held || paused) continue;
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
  const { at, open, lease, quarantine, paused, restored, setAside, unmanaged, memory } = standing;
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
      text: `quarantined ${when(since)}: ${refusedTooMany}; ${now}`,
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
  if (setAside) {
    found.push({
      code: 'snapshot_replaced',
      text:
        `the snapshot was damaged, and a new one began ${when(setAside.at)}: it does not know whose ` +
        'contacts are ours, who is missing for how long, what the CRM had stated, nor what awaited ' +
        `approval or was approved; the damaged one is ${setAside.file}`,
      fix: 'restore a backup, or go on with the new one: then move that file away, or delete it',
      since: setAside.at,
    });
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

const byItself = 'nothing, if it ends soon: the next run goes on from there; else ';
const mend =
  'mend what the reason names, a file or the answer of the CRM, and run `crm-mirror sync`; ' +
  '`crm-mirror check` says more';

/** The attention code of each part, what is said of it, and what to do. */
const outageWords: Readonly<
  Record<OutagePart, { code: Attention['code']; text: string; fix: string }>
> = {
  disk: {
    code: 'disk_full',
    text: 'the disk of the snapshot is full, so nothing can be recorded and no run begins',
    fix: 'free some space there',
  },
  redis: {
    code: 'redis_away',
    text: 'Redis is away: no run of the schedule starts, and no event is accepted',
    fix: 'start Redis again, or correct `redis` in the configuration; the worker then goes on by itself',
  },
  key: {
    code: 'key_refused',
    text: 'the platform refuses the API key, so nothing is sent, no opt-out either',
    fix: 'write a valid key where platform.apiKey is read from, and run `crm-mirror sync`',
  },
  platform: {
    code: 'platform_away',
    text: 'the platform does not answer, so nothing is sent, no opt-out either',
    fix: `${byItself}see whether platform.url is right and can be reached from this machine`,
  },
  contacts: {
    code: 'source_away',
    text: 'the contacts of the CRM cannot be read, so no new opt-out is known',
    fix: mend,
  },
  templates: {
    code: 'templates_away',
    text: 'the templates of the CRM cannot be read',
    fix: mend,
  },
  schedule: {
    code: 'stale',
    text: 'runs are overdue, and the worker has not been given them',
    fix:
      'see the log of the worker; if it says nothing, delete the keys crm-mirror:runs-NAME:* and ' +
      'crm-mirror:sentinel-NAME:* of this mirror in Redis: its worker stores the schedule again',
  },
  clock: { code: 'clock_differs', text: 'the clocks differ', fix: clockFix },
};

/** Returns the lines for the outages that go on. `at` is the time of the status. */
export function outageLines(outages: readonly ToldOutage[], at: string): Attention[] {
  return outages
    .filter(({ endedAt }) => endedAt === null)
    .map(({ part, since, reason, fix }) => {
      const { code, text, fix: usual } = outageWords[part];
      return {
        code,
        text: `${text}, since ${since} (${ago(since, at)}): ${reason}`,
        fix: fix === '' ? usual : fix,
        since,
      };
    });
}

/** Returns why runs fail, or what cannot be reached now; undefined if that is not the cause. */
export function shortReason({ outages, failedRuns, paused }: CurrentStatus, code: string) {
  if (code === 'paused') return paused?.reason || undefined;
  if (code === 'run_failed') return failedRuns[0]?.reasons[0];
  return outages.find(({ part, endedAt }) => endedAt === null && outageWords[part].code === code)
    ?.reason;
}

/** Returns whether runs failed because of an outage, even one that is over, at this time. */
export function isExplained(outages: readonly ToldOutage[], failedAt: string): boolean {
  const at = Date.parse(failedAt);
  return outages.some(({ part, since, endedAt }) => {
    if (part === 'schedule') return false;
    const end = endedAt === null ? Number.POSITIVE_INFINITY : Date.parse(endedAt) + slackMs;
    return at >= Date.parse(since) - slackMs && at <= end;
  });
}

/** Returns what needs attention, without runs that failed because of an outage that is told. */
export function unexplained({ outages }: CurrentStatus, all: readonly Attention[]): Attention[] {
  const ends = ['disk', 'key', 'platform', 'contacts'];
  const going = outages.filter(({ part, endedAt }) => endedAt === null && ends.includes(part));
  return all.filter(({ lastAt = null }) => lastAt === null || !isExplained(going, lastAt));
}

/** A run ends some time after what made it fail. */
const slackMs = 60_000;

/** Returns the line about Redis; `why` says that it is away. */
export function redisAway(why: string, since: string | null): Attention {
  const text = `${why}: no run of the schedule starts, and no event is accepted`;
  return { since, code: 'redis_away', text, fix: outageWords.redis.fix };
}

/** Returns the line about a Redis that drops keys when its memory is full. */
export function redisEvicts(policy: string): Attention {
  return {
    since: null,
    code: 'redis_evicts',
    text:
      `Redis throws away what waits in it when its memory is full (maxmemory-policy ${policy}): ` +
      'runs of the schedule and events can be lost',
    fix: 'set maxmemory-policy noeviction, or give the worker a Redis of its own',
  };
}

/** Undefined if the error is a bug, or another process has the snapshot locked now. */
export function unreadable(error: unknown): Attention | undefined {
  const { problem, code, text } = explain(error);
  const isBug = !isExpected(error) && text.includes('this is a bug');
  if (isBug || code === exitCode('busy')) return undefined;
  const { reason, fix = 'look at the file, its disk and its permissions' } = problem;
  const what = `the snapshot cannot be read, so nothing is known of this mirror: ${reason}`;
  return { code: 'snapshot_unreadable', text: what, fix, since: null };
}
