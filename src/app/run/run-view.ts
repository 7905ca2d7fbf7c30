/**
 * Collects what a run is shown with: samples of its changes, what awaits approval, and what cannot
 * be undone.
 */
import { aheadOf } from '../../engine/context/platform-knowledge.ts';
import { guardNames, guardRows, type GuardClass, timedGuards } from '../../domain/guard-classes.ts';
import {
  type PlannedRecord,
  type PlanView,
  heldIn,
  type Summary,
  type CannotUndo,
} from '../../engine/report/run-summary.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import {
  doneGroups,
  inShownOrder,
  type NamedRecord,
  sampleRows,
  sampleTitle,
  type CountedChanges,
} from '../../compose/output/change-groups.ts';
import { counted } from '../../domain/values/counted.ts';
import { commandLine } from '../../compose/output/printed-commands.ts';
import { type Line, styled } from '../../compose/output/text-style.ts';
import { renderSummary } from '../../compose/output/summary-text.ts';
import type { Config } from '../../config/config.ts';
import { pendingApprovals } from '../../engine/guard/signed-approvals.ts';
import { sayPending, signing, sayEnd } from '../../engine/report/guard-text.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import type { Names } from '../../views/lookup/person-names.ts';
import { changeName } from '../../compose/output/change-words.ts';

const mostSamples = 10;
/** How many records are aligned as one table if all are named. */
const rowsAtOnce = 500;

/** The first records of a group. */
export interface Sample {
  group: CountedChanges;
  records: PlannedRecord[];
}

/** A run that has ended. */
export interface Ended {
  config: Config;
  mirror: Mirror;
  summary: Summary;
}

interface Shown {
  /** The configuration as the user named it. */
  config: string;
  writes: boolean;
  /** Whether every record of a plan is named. */
  all: boolean;
  verbose?: true;
  /** Further lines, below the counts. */
  adds: readonly Line[];
  names: Names;
}

/** What people read of a plan. */
export interface Viewed {
  plan: PlanView | undefined;
  samples: Sample[];
}

/** Yields the lines for people: counts, sizes and samples, or all changes of a plan. */
export async function* runLines(
  { config, mirror, summary, view }: Ended & { view: Viewed },
  { writes, names, ...shown }: Shown,
): AsyncGenerator<Line> {
  const { snapshot } = mirror;
  const groups = writes ? doneGroups(summary) : (view.plan?.groups ?? []);
  yield* renderSummary(summary, {
    writes,
    groups,
    approvals: approvalLines(summary, mirror, shown.config),
    policy: {
      optIns: config.policy.optIns === 'off',
      protect: config.contacts?.protect !== undefined,
    },
    isVerbose: shown.verbose === true,
  });
  yield* shown.adds;
  if (shown.all) {
    if (view.plan) yield* allLines(view.plan, names);
    return;
  }
  const samples = writes
    ? doneOf(view.samples, { groups, run: summary.run, snapshot })
    : view.samples;
  yield* sampleLines(samples, { names, isDone: writes });
  const again = summary.undoes === undefined ? 'plan --all' : `undo ${summary.undoes} --plan --all`;
  const isAll = samples.every(
    ({ group: { n }, records }) => n <= mostSamples || records.length < mostSamples,
  );
  if (writes || isAll) return;
  yield '';
  yield styled('dim', `All of them: ${commandLine(again, shown.config)}`);
}

/** Returns the first records of each group of a plan, after those of the rounds before it. */
export async function samplesOf(view: PlanView, before: readonly Sample[] = []): Promise<Sample[]> {
  const nameOf = ({ kind, op, held }: CountedChanges): string => `${kind} ${op} ${held}`;
  const known = new Map(before.map(({ group, records }) => [nameOf(group), records]));
  const all = [...before.map(({ group }) => group), ...view.groups];
  const groups = new Map(all.map((group) => [nameOf(group), group]));
  const samples: Sample[] = [];
  for (const group of inShownOrder([...groups.values()])) {
    const records = new Map(known.get(nameOf(group))?.map((record) => [record.key, record]));
    for await (const record of view.records(group, mostSamples)) {
      if (records.size < mostSamples) records.set(record.key, record);
    }
    samples.push({ group, records: [...records.values()] });
  }
  return samples;
}

/** Returns the samples that the run has done, with the numbers of all that it has done. */
export function doneOf(
  samples: readonly Sample[],
  { groups, run, snapshot }: { groups: readonly CountedChanges[]; run: string; snapshot: Snapshot },
): Sample[] {
  const isDone = ({ kind, key, op }: PlannedRecord): boolean =>
    snapshot.recordHistory
      .changes(kind, key, 50)
      .some((change) => change.run === run && change.op === op && change.state === 'acked');
  return samples.flatMap(({ group: planned, records }) => {
    const { kind, op, held } = planned;
    const group = groups.find((one) => one.kind === kind && one.op === op);
    const done = records.filter(isDone);
    return held || !group || done.length === 0 ? [] : [{ group, records: done }];
  });
}

/** Renders samples, each under its title. */
export function sampleLines(
  samples: readonly Sample[],
  { names, isDone }: { names: Names; isDone: boolean },
): Line[] {
  return samples.flatMap(({ group, records }) => {
    const parts = records.reduce((sum, one) => sum + Math.max(1, one.parts.length), 0);
    const title = sampleTitle(group, { records: records.length, parts, isDone });
    return ['', title, ...sampleRows(records.map((record) => namedRecord(record, names)))];
  });
}

async function* allLines(view: PlanView, names: Names): AsyncGenerator<Line> {
  for (const group of inShownOrder(view.groups)) {
    yield '';
    yield sampleTitle(group, { records: group.own, parts: group.n });
    let rows: NamedRecord[] = [];
    for await (const record of view.records(group, Infinity)) {
      rows.push(namedRecord(record, names));
      if (rows.length < rowsAtOnce) continue;
      yield* sampleRows(rows);
      rows = [];
    }
    yield* sampleRows(rows);
  }
}

function namedRecord({ key, ...record }: PlannedRecord, names: Names): NamedRecord {
  return { ...record, name: names({ kind: record.kind, key }) };
}

/** Says what awaits approval, and which command approves it: only one that will be accepted. */
export function approvalLines(summary: Summary, mirror: Mirror, config: string): string[] {
  const held = heldIn(summary);
  return guardNames
    .filter((guard) => held[guard] > 0)
    .map((guard) => {
      const { recordType, words } = guardRows[guard];
      const isPerson = recordType === 'contact';
      const [one, many] = isPerson ? ['person', 'people'] : ['template', 'templates'];
      const awaits = held[guard] === 1 ? 'awaits' : 'await';
      const who = `${counted(held[guard], one ?? '', many)} ${awaits} approval (${words.counted})`;
      const how = howToApprove(guard, summary, mirror, config);
      const { snapshot, guards, clock } = mirror;
      const { holdForMs } = guards[guard];
      if (!timedGuards.has(guard) || holdForMs === undefined || summary.undoes !== undefined)
        return `${who}: ${how}`;
      // From then on, held opt-outs are applied without approval.
      const by = clock.now() - holdForMs;
      const since = snapshot.awaitingApproval.oldest(guard, { by, aheadMs: aheadOf(mirror) });
      return `${who}: ${how}; ${sayEnd((since ?? clock.now()) + holdForMs)}`;
    });
}

function howToApprove(
  guard: GuardClass,
  summary: Summary,
  { snapshot, approvers, clock }: Mirror,
  config: string,
): string {
  const { undoes } = summary;
  const current = snapshot.awaitingApproval
    .current()
    .filter((one) => one.held[guard] > 0 && (one.undoes === null) === (undoes === undefined));
  const { heldAs = summary.plan } = summary;
  const own = current.find((one) => one.plan === heldAs);
  const largest = current.toSorted((a, b) => b.held[guard] - a.held[guard])[0];
  const plan = (own ?? largest)?.plan;
  const pending = pendingApprovals(snapshot, { approvers, now: clock.now() });
  const signed = pending.filter((one) => one.plan === plan);
  if (signed.length > 0)
    return signed
      .map((one) => `${sayPending(one)}: ${commandLine(signing(one.part), config)}`)
      .join('; ');
  if (undoes !== undefined) {
    if (!approvers) return commandLine(`undo ${undoes} --approve ${summary.plan}`, config);
    if (own === undefined)
      return `a run will ask for approval: ${commandLine(`undo ${undoes}`, config)}`;
    const then = commandLine(`undo ${undoes} --yes`, config);
    return `${commandLine(signing(own.plan), config)}, then ${then}`;
  }
  if (plan !== undefined) return commandLine(approvers ? signing(plan) : `approve ${plan}`, config);
  if (approvers) return 'a run will ask for approval';
  const now = commandLine(`sync --approve ${heldAs}`, config);
  return `a run will ask for approval; to run and approve: ${now}`;
}

/** Returns the groups with the records under the names that may be shown. */
export function namedCannot(groups: readonly CannotUndo[], names: Names): CannotUndo[] {
  return groups.map((group) => ({
    ...group,
    records: group.records.map(({ key, channel }) => ({
      key: names({ kind: group.kind, key }),
      channel,
    })),
  }));
}

/** Returns the lines for people: each reason with its number, and a few records. */
export function cannotLines(groups: readonly CannotUndo[], names: Names): string[] {
  if (groups.length === 0) return [];
  const all = groups.reduce((sum, { count }) => sum + count, 0);
  const lines = namedCannot(groups, names).flatMap(({ op, rule, reason, count, records }) => {
    const some = records.map(({ key, channel }) => (channel === '' ? key : `${key} (${channel})`));
    const more = count > records.length ? ` and ${count - records.length} more` : '';
    return [
      `  ${counted(count, 'change')} (${changeName(op, true)}): ${reason} [${rule}]`,
      `    ${some.join(', ')}${more}`,
    ];
  });
  return [`Cannot be undone: ${counted(all, 'change')}`, ...lines];
}

/** Returns the groups of a plan with their first records under the names that may be shown. */
export function namedSamples(samples: readonly Sample[], names: Names) {
  return samples.map(({ group: { kind, op, held, n: count }, records }) => ({
    kind,
    op,
    held,
    count,
    records: records.map(({ key, parts: channels, reason }) => ({
      key: names({ kind, key }),
      channels,
      reason,
    })),
  }));
}
