/** What needs attention, everything else, the progress of a run, and what guards withhold. */
import {
  countWords,
  sayPending,
  waitWords,
  canaryWords,
  sliceWords,
} from '../../engine/report/guard-text.ts';
import { limitWords } from '../../engine/report/duration-forecast.ts';
import { renderProblem } from '../../domain/errors.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { canaryBounds } from '../../domain/guards/canary.ts';
import { sayUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { tickWords } from '../../config/schema/cron-pattern.ts';
import {
  byWords,
  changeName,
  instant,
  lasting,
  size,
  range,
} from '../../compose/output/format-values.ts';
import { progressForms } from '../../compose/run-progress.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { missingWords } from '../lookup/missing-people.ts';
import { heldReason } from '../lookup/standing-problems.ts';
import type { Item, Section, Span, Text, Tone } from '../sections.ts';
import { type Attention, endOf, heldWords } from './attention.ts';
import type { NextRuns } from './next-runs.ts';
import type { CurrentStatus } from './status-document.ts';
import type { ToldRun } from './run-history.ts';
import { statusWords, tookWords } from './run-sections.ts';

/** A line that says how many of something names the first of them in its notes. */
export function attentionSection(status: CurrentStatus, attention: readonly Attention[]): Section {
  const { mirror, optOutsUnreadable, optOutsRefused, returns, held } = status;
  if (attention.length === 0) return { title: `${mirror}: ${calmWords(status)}`, none: '' };
  const notes: Partial<Record<Attention['code'], string[]>> = {
    opt_outs_unreadable: peopleNotes(optOutsUnreadable),
    opt_outs_refused: peopleNotes(optOutsRefused),
    returns_rejected: returns ? peopleNotes(returns.rejected) : [],
    held: held.flatMap(({ plan, changes, more }) => [
      ...changes.map(({ key, op, part }) => {
        return `${plan}: ${changeName(op, false)} ${key}${part === '' ? '' : ` in ${part}`}`;
      }),
      ...(more > 0 ? [`… and ${counted(more, 'more change')}`] : []),
    ]),
  };
  return {
    title: `${mirror} NEEDS ATTENTION`,
    lines: attention.map((one) => ({ ...attentionItem(one), notes: notes[one.code] ?? [] })),
  };
}

/** Returns a line that needs attention, with what to do. Its id is its code. */
export function attentionItem({ code, text, fix }: Attention): Item {
  return { id: code, text: renderProblem({ reason: text, fix }), notes: [] };
}

interface ListedPerson {
  key: string;
  channel?: string;
  reason: string;
  fix: string;
  since: string;
  attempts?: number;
  retryAt?: string | null;
}

function peopleNotes({ count, people }: { count: number; people: readonly ListedPerson[] }) {
  const lines = people.map(({ key, channel, reason, fix, since, attempts, retryAt }) => {
    const where = channel === undefined ? '' : ` in ${channel}`;
    const again = `tried ${attempts} ${attempts === 1 ? 'time' : 'times'}, again from ${retryAt}`;
    const next = attempts === 0 ? 'the next run tries it' : again;
    const tries = attempts === undefined ? '' : ` (${next})`;
    return `${key}${where} since ${since}: ${renderProblem({ reason, fix })}${tries}`;
  });
  const more = count - people.length;
  return more > 0 ? [...lines, `… and ${more} more`] : lines;
}

/** Returns everything else. `isVerbose`: with the ids of runs and processes. */
export function statusSection(
  standing: CurrentStatus,
  next: NextRuns,
  isVerbose: boolean,
): Section {
  const { recorded, conflicts, rejected, invalid, parked, open, paused, quarantine } = standing;
  const { unmanaged, returns, snapshot, memory } = standing;
  const skipped = parked.contacts + parked.templates;
  const skips = renderProblem({
    reason: `; ${counted(skipped, 'record')} skipped until ${skipped === 1 ? 'it changes' : 'they change'}, the oldest since ${parked.since}`,
    fix: '`crm-mirror retry` tries them again',
  });
  const facts: Fact[] = [
    ...runFacts(standing, next, isVerbose),
    [
      'paused',
      paused ? `yes, since ${paused.since}${byOf({ ...paused, reason: null })}` : quiet('no'),
    ],
    ['quarantined', quarantine ? `yes, until ${quarantine.until}` : quiet('no')],
    ['recorded', perKind(recorded)],
    ['missing', missingWords(standing.missing)],
    ...named('not managed', unmanaged ? sayUnmanaged(unmanaged) : []),
    ['conflicts', perKind(conflicts)],
    ['rejected', parked.since === null ? perKind(rejected) : [perKind(rejected), skips]],
    ['invalid', perKind(invalid)],
    ...decisionFacts(standing),
    [
      'outcome unknown',
      open.since === null
        ? quiet('nothing')
        : `${open.unknown} of unknown outcome, ${open.sent} sent; the oldest since ${open.since}`,
    ],
    [
      'write-back',
      returns ? returnWords(returns) : 'not configured; `crm-mirror optouts` lists the opt-outs',
    ],
    ...named(
      'rate limits',
      standing.limits.map((seen) => `${seen.route} ${limitWords(seen, lasting)} (${seen.at})`),
    ),
    [
      'snapshot',
      snapshot.bytes === null
        ? quiet(`none yet at ${snapshot.file}`)
        : `${snapshot.file} (${size(snapshot.bytes)})`,
    ],
    ['memory', memory.fault === null ? memory.file : `cannot be used: ${memory.fault.reason}`],
  ];
  return { facts };
}

type Fact = readonly [name: string, value: Text];

/** Marks a value that says that there is none. */
const quiet = (text: string) => ({ tone: 'quiet', text }) as const;

function named(name: string, values: readonly string[]): Fact[] {
  return values.map((value, at) => [at === 0 ? name : '', value]);
}

function runFacts(standing: CurrentStatus, next: NextRuns, isVerbose: boolean): Fact[] {
  const { at, proven, lastRuns, lease, running, worker, paused } = standing;
  const runWords = (run: ToldRun | null): Text => {
    if (!run) return quiet('none is recorded');
    const took = run.ms === null ? '' : `, took ${tookWords(run)}`;
    return `${statusWords(run)} (${isVerbose ? `${run.run}, ` : ''}began ${run.startedAt}${took})`;
  };
  let complete = 'unknown: no full run that ended well is recorded';
  if (proven) {
    const { ageMs, run, startedAt } = proven;
    const age = ageMs === null ? "in the future, by this machine's clock" : `${range(ageMs)} ago`;
    complete = `${age} (${isVerbose ? `${run}, ` : ''}began ${startedAt})`;
  }
  let due = next.due.map((one) => `${tickWords(one.run)} ${one.at}`).join(', ');
  if (paused) due = 'nothing, while it is paused';
  else if (next.unknown !== undefined) due = `unknown: ${next.unknown}`;
  else if (due === '') {
    const isServed = worker?.is === 'alive';
    due = isServed ? 'nothing is scheduled' : 'nothing: no worker serves this mirror';
  }
  const idle = lease.held
    ? 'a process has the mirror; no full or fast run is in progress'
    : quiet('no run is in progress');
  return [
    ['last complete run', complete],
    ['last full run', runWords(lastRuns.full)],
    ['last fast run', runWords(lastRuns.fast)],
    ['next', due],
    ['right now', running ? progressWords({ at, running }, isVerbose) : idle],
  ];
}

/** Formats the progress of a run. `at` is the time of the status. */
export function progressWords(
  { at: now, running }: { at: string; running: NonNullable<CurrentStatus['running']> },
  isVerbose = false,
): string {
  const { mode, command, pid, since, at, limit } = running;
  const quietMs = Math.max(0, Date.parse(now) - Date.parse(at));
  const [line] = progressForms({ ...running, quietMs }, Date.parse(now), instant);
  const by = command === '' ? '' : ` by \`${command}\``;
  const seen = limit
    ? `; ${limit.route} allows ${limitWords({ ...limit, others: 0 }, lasting)}`
    : '';
  return `a ${mode} run${by}${isVerbose ? ` (process ${pid})` : ''} since ${since}: ${line}${seen}`;
}

const canaryEnds = {
  approved: 'approved',
  replaced: 'ended by another mapping',
  unwanted: 'ended, because no run plans the rest any more,',
};

function decisionFacts(standing: CurrentStatus): Fact[] {
  const { signatures, canaries, lastCanary: end, waiting } = standing;
  const held = standing.held.map((one) => {
    const all = heldWords(one, one.undoes);
    const open = heldWords(one.undecided, one.undoes);
    const some = open === all ? '' : ` (all but ${open} approved)`;
    return `${all}${one.approved ? ' (approved)' : some}${endOf(one.optOutsUntil)}`;
  });
  const pending = signatures?.pending.map((one) => `${one.part}: ${sayPending(one)}`) ?? [];
  const approved = standing.approvals.map(({ plan, part, until, ...who }) => {
    const what = part === null ? plan : `a part of ${plan}`;
    return `${what}, until the next full run has ended well or ${until}${byOf(who)}`;
  });
  const rejected = standing.rejections.map(({ part, until, by, reason, ...counts }) => {
    const what = `${heldWords(counts)}, until ${until}${byOf({ by, reason })}`;
    return `${what}: \`crm-mirror approve ${part}\` takes it back`;
  });
  const rows: Fact[] = [['awaiting approval', [...held, ...pending].join('; ') || quiet('nobody')]];
  if (canaries) {
    const told = canaries.map((one) => {
      const { class: of, run, counts } = one;
      if (!counts) return canaryWords(one);
      const all = canaryBounds.map((bound) => `${bound} ${withCommas(counts[bound])}`).join(', ');
      const isPeople = guardRows[of].recordType === 'contact';
      const explains = isPeople ? ', `crm-mirror explain PERSON` says what became of one' : '';
      return `${canaryWords(one)} (${all}): \`crm-mirror runs ${run}\` lists the slice${explains}`;
    });
    rows.push(['canary', told.join('; ') || quiet('none is under way')]);
  }
  if (end) {
    const how =
      end.ended === 'passed'
        ? `within bounds at ${end.at}`
        : `out of bounds: ${end.found}; ${canaryEnds[end.ended]} at ${end.at}`;
    rows.push(['last canary', `${sliceWords(end)} was ${how}`]);
  }
  if (waiting)
    rows.push(['windows', windowWords(waiting).join('; ') || quiet('nobody waits for one')]);
  return [
    ...rows,
    ['approved', approved.join('; ') || quiet('nothing')],
    ['rejected by hand', rejected.join('; ') || quiet('nothing')],
  ];
}

/** Formats what waits: `12 people to be created or opted in wait for Thu 09:00 UTC` */
export function windowWords(waiting: NonNullable<CurrentStatus['waiting']>): string[] {
  return waiting.map(({ class: of, records, opens }) =>
    waitWords(of, records, opens ?? 'the next run in their window'),
  );
}

function byOf(who: { by: string | null; reason: string | null }): string {
  const words = byWords(who);
  return words === '' ? '' : `,${words}`;
}

function perKind(of: CurrentStatus['recorded']): Span {
  if (!of) return 'unknown';
  const text = `${counted(of.contacts, 'contact')}, ${counted(of.templates, 'template')}`;
  return of.contacts + of.templates === 0 ? quiet(text) : text;
}

function returnWords({ waiting, since, rejected }: NonNullable<CurrentStatus['returns']>): string {
  if (waiting + rejected.count === 0) return 'every opt-out is reported';
  const sinceWhen = since === null ? '' : `, the oldest since ${since}`;
  return `${waiting} not reported to the CRM yet${sinceWhen}; ${rejected.count} refused by it`;
}

/** How a mirror stands, worst first, and the words for it among others. */
export const mirrorStates = {
  attention: 'Needs attention',
  paused: 'Paused',
  first: 'First run',
  approved: 'Approved',
  running: 'Running',
  well: 'In sync',
} as const;

export type MirrorState = keyof typeof mirrorStates;

/** Returns how a mirror stands: for its own page, and in short. */
export function stateWord(
  status: CurrentStatus,
  attention: readonly Attention[],
): { is: MirrorState; tone: Tone; text: string; short: string } {
  const { paused, running, held, lease, firstLoad } = status;
  const say = (is: MirrorState, tone: Tone, text: string, short: string = mirrorStates[is]) => {
    return { is, tone, text, short };
  };
  // A pause begins no run, and ends none unless it is told to.
  const halted = running ? 'Paused, a run still sends' : 'Paused';
  if (paused && attention.every(({ code }) => code === 'paused'))
    return say('paused', 'busy', halted, halted);
  // A snapshot that is away may be lost, unless the first run is just making it.
  const isFirst = attention.every(
    ({ code }) => code === 'never_proven' || (code === 'no_snapshot' && lease.held),
  );
  if (attention.length > 0 && !isFirst) {
    if (!paused) return say('attention', 'bad', 'Needs attention');
    const text = `${halted}, and needs attention`;
    return say('attention', 'bad', text, text);
  }
  if (status.worker?.reopens)
    return say('running', 'busy', 'Opened anew: its file has changed', 'Opened anew');
  if (running) return say('running', 'busy', 'A run is in progress');
  if (attention.length > 0) {
    const text = firstLoad ? 'Waits to go on with its first run' : 'Waits for its first run';
    return say('first', 'busy', text);
  }
  // Some of what a plan withheld is approved, and no run has sent it yet.
  const isApproved = held.some(({ ready }) => guardNames.some((of) => ready[of] > 0));
  if (isApproved) return say('approved', 'busy', 'Approved changes await a run');
  const but = exceptions(status);
  return but === ''
    ? say('well', 'good', 'In sync')
    : say('well', 'busy', `In sync, but ${but}`, 'In sync, but');
}

/** Names the records that are not as the source states them, and need nobody at once. */
export function exceptions(status: CurrentStatus): string {
  return exceptionLinks(status)
    .map(({ text }) => text)
    .join(', ');
}

/** Returns the same, each with the page of the console that shows them. */
export function exceptionLinks(status: CurrentStatus): { page: string; text: string }[] {
  const { conflicts, rejected, invalid, rejections } = status;
  const link = (page: string, n: number | undefined, type: RecordTypeName, words: string) =>
    n ? [{ page, text: `${countWords(type, n)} ${words}` }] : [];
  const both = (
    of: CurrentStatus['invalid'],
    people: string,
    templates: string,
    page = 'problems',
  ) => [
    ...link('problems', of?.contacts, 'contact', people),
    ...link(page, of?.templates, 'template', templates),
  ];
  const differs = conflicts?.templates === 1 ? 'differs' : 'differ';
  return [
    ...both(conflicts, 'in conflict', differs, 'templates?show=differs'),
    ...both(rejected, 'refused by the platform', 'refused by the platform'),
    ...both(invalid, 'with a record that cannot be used', 'that cannot be used'),
    ...rejections.flatMap((held) => {
      const words = heldWords(held);
      return words === '' ? [] : [{ page: 'approvals', text: `${words} rejected by hand` }];
    }),
  ];
}

/** Counts what awaits a decision, as problemCount counts what has a problem. */
export function openCount(status: CurrentStatus): number {
  return heldRecords(status).reduce((sum, { open }) => sum + open, 0);
}

/** Returns what a run has left for somebody to look at, each with its page. */
export function openLinks(status: CurrentStatus): { page: string; text: string }[] {
  const open = openCount(status);
  const waits =
    open === 0 ? [] : [{ page: 'approvals', text: `${withCommas(open)} await a decision` }];
  return [...waits, ...exceptionLinks(status)];
}

export function problemCount({ conflicts, rejected, invalid }: CurrentStatus): number {
  const counts = [conflicts, rejected, invalid];
  return counts.reduce((sum, of) => sum + (of ? of.contacts + of.templates : 0), 0);
}

/** Mentions records with problems, which require no action. */
export function calmWords({ invalid, rejected, conflicts, waiting = [] }: CurrentStatus): string {
  const all = { invalid, rejected, 'in conflict': conflicts };
  const found = Object.entries(all).flatMap(([word, of]) => {
    const n = (of?.contacts ?? 0) + (of?.templates ?? 0);
    return n === 0 ? [] : [`${withCommas(n)} ${word}`];
  });
  const waits = windowWords(waiting).map((words) => `; ${words} (windows)`);
  if (found.length === 0) return `nothing needs attention${waits.join('')}`;
  const fix = '`crm-mirror problems` lists them, `crm-mirror explain PERSON` says why';
  return renderProblem({
    reason: `nothing needs attention except single records (${found.join(', ')})${waits.join('')}`,
    fix,
  });
}

/** What a guard withholds. */
export interface HeldRecords {
  guard: GuardClass;
  /** The records about which nobody has decided, and those that are approved and wait for a run. */
  open: number;
  approved: number;
  /** From when on held opt-outs are applied without approval; null for other changes. */
  until: string | null;
}

export function heldRecords({ held }: CurrentStatus): HeldRecords[] {
  return guardNames.flatMap((guard) => {
    const open = Math.max(0, ...held.map(({ undecided }) => undecided[guard]));
    const approved = Math.max(0, ...held.map(({ ready }) => ready[guard]));
    const ends = held.flatMap(({ optOutsUntil }) => optOutsUntil ?? []).toSorted();
    const until = timedGuards.has(guard) ? (ends[0] ?? null) : null;
    return open + approved === 0 ? [] : [{ guard, open, approved, until }];
  });
}

export function heldSections(snapshot: Snapshot, held: readonly HeldRecords[]): Section[] {
  return held.map(({ guard, open, approved, until }) => {
    const { recordType, words } = guardRows[guard];
    const parts = [
      ...(open === 0 ? [] : [`${countWords(recordType, open)} awaiting a decision`]),
      ...(approved === 0
        ? []
        : [`${countWords(recordType, approved)} approved, waiting for a run`]),
    ];
    const why = open === 0 ? undefined : heldReason(snapshot, guard);
    const passes = `From ${until} on, what the CRM still states is applied without approval.`;
    return {
      id: 'held',
      title: `${words.heading} · ${parts.join(', ')}`,
      lines: [...(why ? [why.reason] : []), ...(until === null ? [] : [passes])],
      none: '',
    };
  });
}
