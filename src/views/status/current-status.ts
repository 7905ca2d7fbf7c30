/**
 * Reads the current status of a mirror, as data and as text for the console and the terminal.
 */
import { sayPending } from '../../engine/report/approval-rules.ts';
import { renderProblem } from '../../domain/errors.ts';
import type { Config } from '../../config/config.ts';
import { limitWords } from '../../engine/report/forecast-text.ts';
import { tickWords } from '../../compose/queues/run-schedule.ts';
import type { NextRuns } from './mirror-health.ts';
import { endOf, heldWords } from './attention-list.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import {
  progressWords,
  canaryEndWords,
  canaryRow,
  windowWords,
  type CurrentStatus,
  currentStatusOf,
} from './mirror-status.ts';
import { statusWords, type ToldRun, tookWords } from './run-history.ts';
import { see } from '../lookup/seen-mirror.ts';
import { missingWords } from '../lookup/missing-people.ts';
import { sayUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { isLeased } from '../../store/database/writer-lease.ts';
import { lasting, size, range } from '../../compose/output/format-values.ts';

/**
 * Reads the status of a mirror. It names no person by address. `timeoutMs`: how long a lock of the
 * snapshot is waited for.
 */
export function readCurrentStatus(config: Config, timeoutMs?: number): CurrentStatus {
  const seen = see(config, false, timeoutMs);
  try {
    return currentStatusOf(seen);
  } finally {
    seen.snapshot?.close();
  }
}

/** Returns what is known of a mirror without its snapshot. */
export function statusWithoutSnapshot(config: Config): CurrentStatus {
  const names = () => '';
  const leased = isLeased(config.snapshot);
  return currentStatusOf({ config, snapshot: undefined, names, leased, now: Date.now() });
}

/**
 * Returns the rows of the status table as pairs of a name and a value. `isVerbose`: with the ids of
 * runs and processes.
 */
export function rowsOf(standing: CurrentStatus, next: NextRuns, isVerbose: boolean): string[][] {
  const { proven, lastRuns, recorded, conflicts, rejected, invalid } = standing;
  const { parked, open, paused, quarantine, snapshot } = standing;
  return [
    ['last complete run', provenWords(proven, isVerbose)],
    ['last full run', runWords(lastRuns.full, isVerbose)],
    ['last fast run', runWords(lastRuns.fast, isVerbose)],
    ['next', dueWords(standing, next)],
    ['right now', nowWords(standing, isVerbose)],
    ['paused', paused ? `yes, since ${paused.since}${byOf({ ...paused, reason: null })}` : 'no'],
    ['quarantined', quarantine ? `yes, until ${quarantine.until}` : 'no'],
    ['recorded', perKind(recorded)],
    ['missing', missingWords(standing.missing)],
    ...unmanagedRows(standing),
    ['conflicts', perKind(conflicts)],
    ['rejected', `${perKind(rejected)}${parkedWords(parked)}`],
    ['invalid', perKind(invalid)],
    ['awaiting approval', heldRow(standing)],
    ...(standing.canaries ? [['canary', canaryRow(standing.canaries)]] : []),
    ...(standing.lastCanary ? [['last canary', canaryEndWords(standing.lastCanary)]] : []),
    ...(standing.waiting
      ? [['windows', windowWords(standing.waiting).join('; ') || 'nobody waits for one']]
      : []),
    ['approved', approvedWords(standing)],
    ['rejected by hand', rejectedByHand(standing)],
    ['outcome unknown', openWords(open)],
    ['write-back', returnedWords(standing.returns)],
    ...standing.limits.map((seen, at) => [
      at === 0 ? 'rate limits' : '',
      `${seen.route} ${limitWords(seen, lasting)} (${seen.at})`,
    ]),
    ['snapshot', snapshotWords(snapshot)],
  ];
}

function dueWords({ worker }: CurrentStatus, { due, unknown }: NextRuns): string {
  if (unknown !== undefined) return `unknown: ${unknown}`;
  if (due.length > 0) return due.map(({ run, at }) => `${tickWords(run)} ${at}`).join(', ');
  return worker?.is === 'alive' ? 'nothing is scheduled' : 'nothing: no worker serves this mirror';
}

function nowWords({ at, lease, running }: CurrentStatus, isVerbose: boolean): string {
  if (running) return progressWords({ at, running }, isVerbose);
  return lease.held
    ? 'a process has the mirror; no full or fast run is in progress'
    : 'no run is in progress';
}

function unmanagedRows({ unmanaged }: CurrentStatus): string[][] {
  const told = unmanaged ? sayUnmanaged(unmanaged) : [];
  return told.map((text, at) => [at === 0 ? 'not managed' : '', text]);
}

function heldRow({ held, signatures }: CurrentStatus): string {
  const told = [
    ...held.map(
      (one) => `${heldWords(one, one.undoes)}${decidedWords(one)}${endOf(one.optOutsUntil)}`,
    ),
    ...(signatures?.pending.map((one) => `${one.part}: ${sayPending(one)}`) ?? []),
  ];
  return told.join('; ') || 'nobody';
}

function decidedWords(one: CurrentStatus['held'][number]): string {
  if (one.approved) return ' (approved)';
  const open = heldWords(one.undecided, one.undoes);
  return open === heldWords(one, one.undoes) ? '' : ` (all but ${open} approved)`;
}

function approvedWords({ approvals }: CurrentStatus): string {
  if (approvals.length === 0) return 'nothing';
  return approvals
    .map(({ plan, part, until, ...who }) => {
      const what = part === null ? plan : `a part of ${plan}`;
      return `${what}, until the next full run has ended well or ${until}${byOf(who)}`;
    })
    .join('; ');
}

function rejectedByHand({ rejections }: CurrentStatus): string {
  if (rejections.length === 0) return 'nothing';
  return rejections
    .map(({ part, until, by, reason, ...held }) => {
      const what = `${heldWords(held)}, until ${until}${byOf({ by, reason })}`;
      return `${what}: \`crm-mirror approve ${part}\` takes it back`;
    })
    .join('; ');
}

function byOf(who: { by: string | null; reason: string | null }): string {
  const words = byWords(who);
  return words === '' ? '' : `,${words}`;
}

function provenWords(proven: CurrentStatus['proven'], isVerbose: boolean): string {
  if (!proven) return 'unknown: no full run that ended well is recorded';
  const { ageMs, run, startedAt } = proven;
  const age = ageMs === null ? "in the future, by this machine's clock" : `${range(ageMs)} ago`;
  return `${age} (${isVerbose ? `${run}, ` : ''}began ${startedAt})`;
}

function runWords(run: ToldRun | null, isVerbose: boolean): string {
  if (!run) return 'none is recorded';
  const took = run.ms === null ? '' : `, took ${tookWords(run)}`;
  return `${statusWords(run)} (${isVerbose ? `${run.run}, ` : ''}began ${run.startedAt}${took})`;
}

function perKind(of: CurrentStatus['recorded']): string {
  if (!of) return 'unknown';
  return `${counted(of.contacts, 'contact')}, ${counted(of.templates, 'template')}`;
}

function parkedWords({ contacts, templates, since }: CurrentStatus['parked']): string {
  if (since === null) return '';
  const n = contacts + templates;
  const reason = `; ${counted(n, 'record')} skipped until ${n === 1 ? 'it changes' : 'they change'}, the oldest since ${since}`;
  return renderProblem({ reason, fix: '`crm-mirror retry` tries them again' });
}

function openWords({ unknown, sent, since }: CurrentStatus['open']): string {
  if (since === null) return 'nothing';
  return `${unknown} of unknown outcome, ${sent} sent; the oldest since ${since}`;
}

function snapshotWords({ file, bytes }: CurrentStatus['snapshot']): string {
  return bytes === null ? `none yet at ${file}` : `${file} (${size(bytes)})`;
}

function returnedWords(returns: CurrentStatus['returns']): string {
  if (!returns) return 'not configured; `crm-mirror optouts` lists the opt-outs';
  const { waiting, since, rejected } = returns;
  if (waiting + rejected.count === 0) return 'every opt-out is reported';
  const sinceWhen = since === null ? '' : `, the oldest since ${since}`;
  return `${waiting} not reported to the CRM yet${sinceWhen}; ${rejected.count} refused by it`;
}

/**
 * Returns the line for a mirror that needs no attention. It mentions records with problems, which
 * require no action.
 */
export function calmOf({ invalid, rejected, conflicts, waiting = [] }: CurrentStatus): string {
  const of = (counts: CurrentStatus['invalid'], word: string): string[] => {
    const n = (counts?.contacts ?? 0) + (counts?.templates ?? 0);
    return n === 0 ? [] : [`${withCommas(n)} ${word}`];
  };
  const found = [
    ...of(invalid, 'invalid'),
    ...of(rejected, 'rejected'),
    ...of(conflicts, 'in conflict'),
  ];
  const waits = windowWords(waiting).map((words) => `; ${words} (windows)`);
  if (found.length === 0) return `nothing needs attention${waits.join('')}`;
  const fix = '`crm-mirror problems` lists them, `crm-mirror explain PERSON` says why';
  return renderProblem({
    reason: `nothing needs attention except single records (${found.join(', ')})${waits.join('')}`,
    fix,
  });
}
