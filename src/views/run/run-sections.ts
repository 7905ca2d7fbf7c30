/** Shows a plan or a run: what changes, what awaits approval, and the first records. */
import { aheadOf } from '../../engine/context/platform-knowledge.ts';
import { guardNames, guardRows, type GuardClass, timedGuards } from '../../domain/guard-classes.ts';
import {
  changeCount,
  type FullReason,
  heldIn,
  type PlanView,
  type Summary,
} from '../../engine/report/run-summary.ts';
import { sayUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { lasting } from '../../compose/output/format-values.ts';
import { commandLine } from '../../compose/command-options.ts';
import type { Config } from '../../config/config.ts';
import { pendingApprovals } from '../../engine/judge/plan-decisions.ts';
import {
  approving,
  countWords,
  sayPending,
  signing,
  sayEnd,
} from '../../engine/report/guard-text.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import type { Names } from '../lookup/person-names.ts';
import { present, type Section } from '../sections.ts';
import { sectionLines } from '../render/text.ts';
import type { Line } from '../../compose/output/text-style.ts';
import {
  bang,
  cannotSection,
  type CountedChanges,
  countsTable,
  doneGroups,
  inShownOrder,
  type Sample,
  sampleSection,
} from './change-groups.ts';

const mostSamples = 10;
/** How many records of each group the document of a plan names. */
export const mostDocumented = 100;
/** How many records are aligned as one table if all are named. */
const rowsAtOnce = 500;

export interface Ended {
  config: Config;
  mirror: Mirror;
  summary: Summary;
}

/** What is shown of a plan besides its summary. */
export interface Viewed {
  plan: PlanView | undefined;
  samples: Sample[];
}

interface Shown {
  config: string;
  writes: boolean;
  verbose?: true | undefined;
  names: Names;
  most?: number;
}

/** Returns the counts and sizes, further sections, then the first records of each group. */
export function runSections(
  { config, mirror, summary, view }: Ended & { view: Viewed },
  { writes, names, config: file, verbose, most = mostSamples }: Shown,
  adds: readonly Section[] = [],
): Section[] {
  const groups = writes ? doneGroups(summary) : (view.plan?.groups ?? []);
  const samples = writes ? doneOf(view.samples, groups, { summary, mirror }) : view.samples;
  const { undoes } = summary;
  const again = undoes === undefined ? 'plan --all' : `undo ${undoes} --dry-run --all`;
  const agree = commandLine(`undo ${undoes} --agree ${summary.plan}`, file);
  const agreeing = undoes === undefined ? [] : [`To send exactly this plan: \`${agree}\``];
  // What awaits approval names the command that approves it only if that will be accepted.
  const held = heldIn(summary);
  return [
    { title: titleOf(summary, writes, groups), none: '' },
    { table: countsTable(groups, summary, writes) },
    {
      lines: guardNames
        .filter((guard) => held[guard] > 0)
        .map((guard) => {
          const { recordType, words } = guardRows[guard];
          const awaits = held[guard] === 1 ? 'awaits' : 'await';
          const who = `${countWords(recordType, held[guard])} ${awaits} approval (${words.counted})`;
          const how = howToApprove(guard, summary, mirror, file);
          const { snapshot, guards, clock } = mirror;
          const { holdForMs } = guards[guard];
          if (!timedGuards.has(guard) || holdForMs === undefined || summary.undoes !== undefined)
            return `${who}: ${how}`;
          // From then on, held opt-outs are applied without approval.
          const by = clock.now() - holdForMs;
          const since = snapshot.holds.oldest(guard, { by, aheadMs: aheadOf(mirror) });
          return `${who}: ${how}; ${sayEnd((since ?? clock.now()) + holdForMs)}`;
        })
        .map((text) => [bang, ` ${text}`]),
    },
    { lines: sizeLines(summary, config, writes) },
    { lines: verbose ? internalLines(summary).map((text) => ({ tone: 'quiet', text })) : [] },
    ...(writes ? [] : [cannotSection(summary.cannot ?? [], names)]),
    ...adds,
    ...samples.map(({ records, ...group }) =>
      sampleSection({ ...group, records: records.slice(0, most) }, { who: names, isDone: writes }),
    ),
    ...(writes ? [] : restSection(samples, `\`${commandLine(again, file)}\``)),
    { lines: writes || changeCount(summary) === 0 ? [] : agreeing },
  ];
}

/** Names the command that names all records, if some group has more than the `most` named. */
export function restSection(
  samples: readonly Sample[],
  command: string,
  most = mostSamples,
): Section[] {
  const isCut = samples.some(({ n, records }) => n > most && records.length >= most);
  return isCut ? [{ lines: [{ tone: 'quiet', text: `All of them: ${command}` }] }] : [];
}

/** Yields every record of a plan, a page at a time. */
export async function* allLines(
  view: PlanView,
  names: Names,
  width: number | undefined,
): AsyncGenerator<Line> {
  for (const group of inShownOrder(view.groups)) {
    let records: Sample['records'][number][] = [];
    let below = 0;
    const linesOf = () => {
      const shown = { who: names, isDone: false, isWhole: true };
      return sectionLines([sampleSection({ ...group, records }, shown)], { width }).slice(below);
    };
    yield '';
    for await (const record of view.records(group, Infinity)) {
      records.push(record);
      if (records.length < rowsAtOnce) continue;
      yield* linesOf();
      records = [];
      // The next page goes on below the title.
      below = 1;
    }
    yield* linesOf();
  }
}

/** Returns the first records of each group of a plan, after those of the rounds before it. */
export async function samplesOf(
  view: PlanView,
  before: readonly Sample[] = [],
  most = mostSamples,
): Promise<Sample[]> {
  const nameOf = ({ kind, op, held }: CountedChanges): string => `${kind} ${op} ${held}`;
  const known = new Map(before.map((group) => [nameOf(group), group.records]));
  const groups = new Map([...before, ...view.groups].map((group) => [nameOf(group), group]));
  const samples: Sample[] = [];
  for (const { kind, op, held, n, own } of inShownOrder([...groups.values()])) {
    const group = { kind, op, held, n, own };
    const records = new Map(known.get(nameOf(group))?.map((record) => [record.key, record]));
    for await (const record of view.records(group, most)) {
      if (records.size < most) records.set(record.key, record);
    }
    samples.push({ ...group, records: [...records.values()] });
  }
  return samples;
}

function doneOf(
  samples: readonly Sample[],
  groups: readonly CountedChanges[],
  { summary: { run }, mirror: { snapshot } }: { summary: Summary; mirror: Mirror },
): Sample[] {
  return samples.flatMap(({ records, ...planned }) => {
    const { kind, op, held } = planned;
    const group = groups.find((one) => one.kind === kind && one.op === op);
    const done = records.filter(({ key }) =>
      snapshot.recordHistory
        .changes(kind, key, 50)
        .some((change) => change.run === run && change.op === op && change.state === 'acked'),
    );
    return held || !group || done.length === 0 ? [] : [{ ...group, records: done }];
  });
}

const modes: Record<Summary['mode'], string> = {
  full: 'full comparison',
  fast: 'compared with what is recorded',
  single: 'one person',
  undo: 'undoes an earlier run',
};

function titleOf(summary: Summary, writes: boolean, groups: readonly CountedChanges[]): string {
  const { mirror, mode, status, ms } = summary;
  const n = groups.reduce((sum, group) => sum + (group.held ? 0 : group.n), 0);
  const what = `${writes ? 'Run' : 'Plan'} for ${mirror} (${modes[mode]}): `;
  if (!writes) {
    const changes = n === 0 ? 'nothing to do' : counted(n, 'change');
    if (status !== 'failed') return `${what}${changes}. Nothing is sent.`;
    return `${what}failed${n === 0 ? '' : `, incomplete with ${changes}`}. Nothing is sent.`;
  }
  const changes = n === 0 ? 'nothing was changed' : counted(n, 'change');
  const planned = [summary.contacts, summary.templates].flatMap(({ changes, applied }) =>
    Object.entries(applied).map(([op, done]) => (changes[op] ?? 0) - done),
  );
  const sum = (counts: readonly number[]): number => counts.reduce((all, n) => all + n, 0);
  // Those that were neither made nor await approval.
  const missing = sum(planned) - sum(Object.values(heldIn(summary)));
  const left = status === 'interrupted' ? missing : 0;
  const rest = left > 0 ? ` ${counted(left, 'change')} ${left === 1 ? 'remains' : 'remain'}.` : '';
  return `${what}${changes} in ${lasting(ms)}. ${endings[status]}${rest}`;
}

const endings: Record<Summary['status'], string> = {
  done: 'Done.',
  held: 'Done, except for what awaits approval.',
  rejected: 'Done, but some records have problems.',
  failed: 'It failed.',
  interrupted: 'It was interrupted; the next run goes on from there.',
};

type Sizes = Pick<Summary, 'contacts' | 'templates' | 'only' | 'mode'> &
  Partial<Pick<Summary, 'returns' | 'status' | 'certificate'>>;

/**
 * Returns what both sides hold, but not a side that a failed run did not get to; what settings
 * prevent, and what was reported to the CRM.
 */
export function sizeLines(
  { contacts, templates, only, mode, returns = null, status, certificate }: Sizes,
  { policy, contacts: configured }: Config,
  writes: boolean,
): string[] {
  const people = (n: number): string => (n === 0 ? 'nobody' : counted(n, 'person', 'people'));
  const { optIns, protect } = contacts.prevented;
  const isAsked = only !== 'templates' && (contacts.desired > 0 || mode === 'single');
  const isRead = (side: 'source' | 'platform') =>
    status !== 'failed' || certificate?.[side] !== null;
  const sizeLine = (source: string, counts: Counts, isAsked: boolean): string[] => {
    const { desired, observed, conflicts, rejected, invalid, skipped = 0 } = counts;
    const isAny = desired + observed + conflicts + rejected + invalid + skipped > 0;
    const parts = present(
      isRead('source') && source,
      isRead('platform') && `platform ${withCommas(observed)}`,
      skipped > 0 && `skipped ${withCommas(skipped)} (no address)`,
      invalid > 0 && `invalid ${withCommas(invalid)}`,
      conflicts > 0 && `conflicts ${withCommas(conflicts)}`,
      rejected > 0 && `rejected ${withCommas(rejected)}`,
    );
    return (isAsked || isAny) && parts.length > 0 ? [parts.join(' · ')] : [];
  };
  return present(
    ...sizeLine(`CRM ${counted(contacts.desired, 'person', 'people')}`, contacts, isAsked),
    ...sizeLine(`source ${counted(templates.desired, 'template')}`, templates, false),
    ...sayUnmanaged(contacts.unmanaged),
    // What settings prevent is stated also if that is nothing.
    policy.optIns === 'off' && `optIns is off: ${people(optIns)} would have been opted in`,
    configured?.protect && `protected: ${people(protect)} would have been changed`,
    ...writeBackLine(returns, writes),
  );
}

/** Says that a run about one person found nobody; undefined for any other. */
export function nobodyWords({ mode, status, contacts }: RunCounts): string | undefined {
  if (mode !== 'single' || status === 'failed' || contacts.desired + contacts.invalid > 0)
    return undefined;
  return contacts.observed > 0
    ? 'The CRM does not name this person, so nothing is asked of the platform.'
    : 'Neither the CRM nor the platform knows this person: there is nothing to do.';
}
type RunCounts = Pick<Summary, 'mode' | 'status'> & {
  contacts: Record<'desired' | 'invalid' | 'observed', number>;
};

type Counts = Record<'desired' | 'observed' | 'conflicts' | 'rejected' | 'invalid', number> & {
  skipped?: number;
};

function writeBackLine(returns: Summary['returns'], writes: boolean): string[] {
  if (!returns || Object.values<number>({ ...returns }).every((n) => n === 0)) return [];
  const { told, waiting, rejected, leftOut, doubtful } = returns;
  const parts = present(
    writes && `${withCommas(told)} reported to the CRM`,
    writes && waiting > 0 && `${withCommas(waiting)} wait`,
    !writes && `${withCommas(waiting)} to be reported to the CRM`,
    rejected > 0 && `${withCommas(rejected)} refused by it`,
    leftOut > 0 && `${withCommas(leftOut)} of channels that write-back is not configured for`,
    doubtful > 0 && `${withCommas(doubtful)} doubtful and not reported (\`optouts\`)`,
  );
  return [`opt-outs made on the platform: ${parts.join(', ')}`];
}

function internalLines(summary: Summary): string[] {
  const { run, plan, requests, certificate } = summary;
  const routes = Object.entries(requests.byRoute).map(([route, n]) => `${route} ${withCommas(n)}`);
  const { source, platform } = certificate;
  const isNothing = summary.status === 'failed' && changeCount(summary) === 0;
  return [
    `run ${run}${plan === '' || isNothing ? '' : `, plan ${plan}`}`,
    `requests ${withCommas(requests.total)}${routes.length > 0 ? ` (${routes.join(', ')})` : ''}, ` +
      `delayed by a rate limit ${withCommas(requests.rateLimited)}`,
    `complete readings: source ${yesNo(source)}, platform ${yesNo(platform)}`,
    ...fullWords(summary),
  ];
}

/** Returns a line for each reason why the run compared, or read, everything. */
export function fullWords(run: { mode: string; fullBecause: readonly FullReason[] }): string[] {
  const { mode, fullBecause } = run;
  const what = mode === 'fast' ? 'the whole source is read' : 'everything is compared';
  return fullBecause.map(({ reason }) => `${what}: ${reason}`);
}

function yesNo(value: boolean | null): string {
  if (value === null) return 'not read';
  return value ? 'yes' : 'no';
}

function howToApprove(
  guard: GuardClass,
  summary: Summary,
  { snapshot, approvers, clock }: Mirror,
  config: string,
): string {
  const { undoes } = summary;
  // What stands in backticks is not broken at the end of a line.
  const quoted = (words: string): string => `\`${commandLine(words, config)}\``;
  const current = snapshot.holds
    .current()
    .filter((one) => one.held[guard] > 0 && (one.undoes === null) === (undoes === undefined));
  const { heldAs = summary.plan } = summary;
  const own = current.find((one) => one.plan === heldAs);
  const largest = current.toSorted((a, b) => b.held[guard] - a.held[guard])[0];
  const plan = (own ?? largest)?.plan;
  const pending = pendingApprovals(snapshot, { approvers, now: clock.now() });
  const signed = pending.filter((one) => one.plan === plan);
  if (signed.length > 0)
    return signed.map((one) => `${sayPending(one)}: ${quoted(signing(one.part))}`).join('; ');
  if (undoes !== undefined) {
    if (!approvers) return quoted(`undo ${undoes} --approve ${summary.plan}`);
    if (own === undefined) return `a run will ask for approval: ${quoted(`undo ${undoes}`)}`;
    return `${quoted(signing(own.plan))}, then ${quoted(`undo ${undoes} --yes`)}`;
  }
  if (plan !== undefined) return quoted(approving(plan, approvers !== undefined));
  if (approvers) return 'a run will ask for approval';
  return `a run will ask for approval; to run and approve: ${quoted(`sync --approve ${heldAs}`)}`;
}
