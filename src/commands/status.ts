import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { dueAfter } from '../config/schema/cron-pattern.ts';
import { limitWords } from '../engine/report/forecast-text.ts';
import { table } from '../engine/report/summary-text.ts';
import type { MirrorStatus } from '../server/status-page.ts';
import { dueIn, type Tick } from '../worker/queues/run-schedule.ts';
import { attentionOf, heldWords, type Attention } from '../cli/status/attention-list.ts';
import { statusWords, tookWords, type ToldRun } from '../cli/status/run-history.ts';
import {
  look,
  namingOptions,
  see,
  type LookFlags,
  type Seen,
} from '../cli/lookup/snapshot-command.ts';
import { missingWords } from '../cli/status/missing-people.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { standingOf, type Standing } from '../cli/status/mirror-status.ts';
import { counted, instant, lasting, size, span } from '../cli/output/format-values.ts';

export function options(command: Command): void {
  namingOptions(command).addHelpText(
    'after',
    '\nLooks at the snapshot alone, takes no lease and changes nothing: ask whenever you like.\n' +
      'The exit code is 0 however the mirror is; with --json, `ok` is false and `attention` says\n' +
      'why when somebody should see to it.',
  );
}

/** What a person wants to see at three in the morning: what is wrong first, then how all stands. */
export async function run(command: Command, shell: Shell): Promise<number> {
  return look(command.opts<LookFlags>(), shell, (seen) => {
    const standing = standingOf(seen);
    const attention = attentionOf(standing);
    const due = dueOf(seen);
    const { mirror, at, ...rest } = standing;
    return {
      document: { mirror, at, ok: attention.length === 0, attention, ...rest, due },
      lines: [...headOf(standing, attention), '', ...table(rowsOf(standing, due))],
    };
  });
}

interface Due {
  run: Tick;
  at: string;
}

/** When a worker runs it next, by the schedule; the soonest first. */
function dueOf({ config: { schedule }, now }: Pick<Seen, 'config' | 'now'>): Due[] {
  const times = schedule ? dueIn(schedule) : [];
  return times
    .map(({ tick, pattern }) => ({ tick, at: dueAfter(pattern, schedule?.timezone ?? 'UTC', now) }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ tick: run, at }) => ({ run, at: instant(at) }));
}

/** How a mirror stands now; nobody is named by an address. */
export function standingNow(config: Config): Standing {
  const seen = see(config, false);
  try {
    return standingOf(seen);
  } finally {
    seen.snapshot?.close();
  }
}

/** The same in words: what needs a look, and all the rest. */
export function statusNow(config: Config): MirrorStatus {
  const standing = standingNow(config);
  const { mirror, at } = standing;
  const due = dueOf({ config, now: Date.parse(at) });
  const attention = attentionOf(standing);
  return { mirror, at, attention, calm: calmOf(standing), rows: rowsOf(standing, due) };
}

function headOf(standing: Standing, attention: readonly Attention[]): string[] {
  if (attention.length === 0) return [`${standing.mirror}: ${calmOf(standing)}`];
  return [
    `${standing.mirror} NEEDS A LOOK`,
    ...attention.flatMap(({ code, text, fix }) => [
      `  ${text} → ${fix}`,
      ...(code === 'opt_outs_refused' ? refusedOf(standing) : []),
      ...(code === 'returns_rejected' ? notTakenOf(standing) : []),
      ...(code === 'held' ? heldOf(standing) : []),
    ]),
  ];
}

/** Single records wake nobody up, and are not passed over in silence either. */
function calmOf({ invalid, rejected, conflicts }: Standing): string {
  const of = (counts: Standing['invalid'], word: string): string[] => {
    const n = (counts?.contacts ?? 0) + (counts?.templates ?? 0);
    return n === 0 ? [] : [`${n.toLocaleString('en')} ${word}`];
  };
  const faulty = [...of(invalid, 'invalid'), ...of(rejected, 'rejected')];
  const found = [...faulty, ...of(conflicts, 'in conflict')];
  if (found.length === 0) return 'nothing needs a look';
  const lists =
    faulty.length === 0 ? '' : '`crm-mirror plan` lists those that are invalid or rejected, ';
  const fix = `${lists}\`crm-mirror explain PERSON\` tells why`;
  return `nothing needs a look but single records (${found.join(', ')}) → ${fix}`;
}

function refusedOf({ optOutsRefused: { count, people } }: Standing): string[] {
  const lines = people.map(({ key, channel, reason, fix, since, attempts, retryAt }) => {
    const tries =
      attempts === 0
        ? 'the next run tries it'
        : `tried ${attempts} ${attempts === 1 ? 'time' : 'times'}, again from ${retryAt}`;
    return `    ${key} in ${channel} since ${since}: ${reason}${fix ? ` → ${fix}` : ''} (${tries})`;
  });
  const more = count - people.length;
  return more > 0 ? [...lines, `    … and ${more} more`] : lines;
}

function notTakenOf({ returns }: Standing): string[] {
  const { count = 0, people = [] } = returns?.rejected ?? {};
  const lines = people.map(
    ({ key, channel, reason, fix, since }) =>
      `    ${key} in ${channel} since ${since}: ${reason}${fix ? ` → ${fix}` : ''}`,
  );
  const more = count - people.length;
  return more > 0 ? [...lines, `    … and ${more} more`] : lines;
}

function returnedWords(returns: Standing['returns']): string {
  if (!returns) return 'not told to the CRM; `crm-mirror optouts` lists them';
  const { waiting, since, rejected } = returns;
  if (waiting + rejected.count === 0) return 'the CRM was told of all';
  const sinceWhen = since === null ? '' : `, the oldest since ${since}`;
  return `${waiting} not told to the CRM yet${sinceWhen}; ${rejected.count} not taken by it`;
}

function heldOf({ held }: Standing): string[] {
  return held.flatMap((plan) => {
    const lines = plan.changes.map(
      ({ key, op, part }) => `    ${plan.plan}: ${op} ${key}${part === '' ? '' : ` in ${part}`}`,
    );
    return plan.more > 0 ? [...lines, `    … and ${counted(plan.more, 'more change')}`] : lines;
  });
}

function heldRow({ held }: Standing): string {
  const told = held.map((one) => `${heldWords(one)}${one.approved ? ' (approved)' : ''}`);
  return told.join('; ') || 'nobody';
}

function approvedWords({ approvals }: Standing): string {
  if (approvals.length === 0) return 'nothing';
  return approvals
    .map(({ plan, until }) => `${plan}, until the next full run has ended well or ${until}`)
    .join('; ');
}

function rowsOf(standing: Standing, due: readonly Due[]): string[][] {
  const { proven, lastRuns, recorded, conflicts, rejected, invalid } = standing;
  const { parked, open, paused, quarantine, lease, snapshot } = standing;
  return [
    ['last proven', provenWords(proven)],
    ['last full run', runWords(lastRuns.full)],
    ['last fast run', runWords(lastRuns.fast)],
    ['next', due.map(({ run, at }) => `${run} ${at}`).join(', ') || 'nothing is scheduled'],
    ['right now', lease.held ? 'another process holds the mirror' : 'nobody is at it'],
    ['paused', paused ? `yes, since ${paused.since}` : 'no'],
    ['quarantined', quarantine ? `yes, until ${quarantine.until}` : 'no'],
    ['recorded', perKind(recorded)],
    ['missing', missingWords(standing.missing)],
    ['conflicts', perKind(conflicts)],
    ['rejected', `${perKind(rejected)}${parkedWords(parked)}`],
    ['invalid', perKind(invalid)],
    ['held', heldRow(standing)],
    ['approved', approvedWords(standing)],
    ['unanswered', openWords(open)],
    ['who left', returnedWords(standing.returns)],
    ...standing.limits.map((seen, at) => [
      at === 0 ? 'limits seen' : '',
      `${seen.route} ${limitWords(seen, lasting)} (${seen.at})`,
    ]),
    ['snapshot', snapshotWords(snapshot)],
  ];
}

function provenWords(proven: Standing['proven']): string {
  if (!proven) return 'unknown: no full run that ended well is remembered';
  const { ageMs, run, startedAt } = proven;
  const age = ageMs === null ? "in the future, by this machine's clock" : `${span(ageMs)} ago`;
  return `${age} (${run}, began ${startedAt})`;
}

function runWords(run: ToldRun | null): string {
  if (!run) return 'none is remembered';
  const took = run.ms === null ? '' : `, took ${tookWords(run)}`;
  return `${statusWords(run)} (${run.run}, began ${run.startedAt}${took})`;
}

function perKind(of: Standing['recorded']): string {
  if (!of) return 'unknown';
  return `${counted(of.contacts, 'contact')}, ${counted(of.templates, 'template')}`;
}

function parkedWords({ contacts, templates, since }: Standing['parked']): string {
  if (since === null) return '';
  return `; ${contacts + templates} parked, the oldest since ${since} → \`crm-mirror retry\` has them tried again`;
}

function openWords({ unknown, sent, since }: Standing['open']): string {
  if (since === null) return 'nothing';
  return `${unknown} of unknown outcome, ${sent} sent; the oldest since ${since}`;
}

function snapshotWords({ file, bytes }: Standing['snapshot']): string {
  return bytes === null ? `none yet at ${file}` : `${file} (${size(bytes)})`;
}
