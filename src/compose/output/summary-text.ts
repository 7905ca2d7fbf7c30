/** Renders a plan or a run as lines of text: what changes, and what it is based on. */
import type { FullReason } from '../../engine/report/full-reasons.ts';
import { heldIn, type Summary } from '../../engine/report/run-summary.ts';
import { adoptedRows, countRows, type CountedChanges } from './change-groups.ts';
import { sayUnmanaged } from '../../domain/unmanaged-people.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { lasting } from './format-values.ts';
import { styledTable } from './table.ts';
import { type Line, lineOf, styled } from './text-style.ts';

/** What a run is shown with, in addition to its summary. */
export interface RunView {
  writes: boolean;
  groups: readonly CountedChanges[];
  /** What awaits approval, and how to approve it, one line each. */
  approvals: readonly string[];
  /** The settings that prevent changes, if the configuration has them. */
  policy: Readonly<Record<'optIns' | 'protect', boolean>>;
  isVerbose: boolean;
}

/** Renders the title, the counts of changes and the sizes of both sides. */
export function renderSummary(summary: Summary, view: RunView): Line[] {
  const counts = [...countRows(view.groups, view.writes), ...adoptedRows(summary)];
  const approvals = view.approvals.map((text) => lineOf('  ', styled('magenta', '!'), ` ${text}`));
  const changes = [...styledTable(counts, { indent: 2, right: [2] }), ...approvals];
  return [
    styled('bold', titleOf(summary, view)),
    ...apart(changes),
    ...apart([
      ...sizeLines(summary),
      ...sayUnmanaged(summary.contacts.unmanaged).map((line) => `  ${line}`),
      ...policyLines(summary, view.policy),
      ...writeBackLine(summary.returns, view.writes),
    ]),
    ...apart(view.isVerbose ? internalLines(summary) : []),
  ];
}

/** Puts an empty line before lines, if there are any. */
export function apart(lines: readonly Line[]): Line[] {
  return lines.length === 0 ? [] : ['', ...lines];
}

const modes: Record<Summary['mode'], string> = {
  full: 'full comparison',
  fast: 'compared with what is recorded',
  single: 'one person',
  undo: 'undoes an earlier run',
};

function titleOf(summary: Summary, { writes, groups }: RunView): string {
  const { mirror, mode, status, ms } = summary;
  const n = groups.reduce((sum, group) => sum + (group.held ? 0 : group.n), 0);
  const what = `${writes ? 'Run' : 'Plan'} for ${mirror} (${modes[mode]}): `;
  if (!writes) {
    const changes = n === 0 ? 'nothing to do' : counted(n, 'change');
    if (status !== 'failed') return `${what}${changes}. Nothing is sent.`;
    return `${what}failed${n === 0 ? '' : `, incomplete with ${changes}`}. Nothing is sent.`;
  }
  const changes = n === 0 ? 'nothing was changed' : counted(n, 'change');
  const left = status === 'interrupted' ? remaining(summary) : 0;
  const rest = left > 0 ? ` ${counted(left, 'change')} ${left === 1 ? 'remains' : 'remain'}.` : '';
  return `${what}${changes} in ${lasting(ms)}. ${endings[status]}${rest}`;
}

/** Returns how many planned changes were neither made nor await approval. */
function remaining(summary: Summary): number {
  const planned = [summary.contacts, summary.templates].flatMap(({ changes, applied }) =>
    Object.entries(applied).map(([op, done]) => (changes[op] ?? 0) - done),
  );
  const held = Object.values(heldIn(summary)).reduce((sum, n) => sum + n, 0);
  return planned.reduce((sum, n) => sum + n, 0) - held;
}

const endings: Record<Summary['status'], string> = {
  done: 'Done.',
  held: 'Done, except for what awaits approval.',
  rejected: 'Done, but some records have problems.',
  failed: 'It failed.',
  interrupted: 'It was interrupted; the next run goes on from there.',
};

type Sizes = Pick<
  Summary['contacts'],
  'desired' | 'observed' | 'conflicts' | 'rejected' | 'invalid' | 'skipped'
>;

/** Renders what both sides contain; a record type that neither side has is left out. */
function sizeLines({ contacts, templates, only, mode }: Summary): Line[] {
  const people = counted(contacts.desired, 'person', 'people');
  const found = counted(templates.desired, 'template');
  const isAsked = only !== 'templates' && (contacts.desired > 0 || mode === 'single');
  return [
    ...(isAsked || isAny(contacts) ? [sizeLine(`CRM ${people}`, contacts)] : []),
    ...(isAny({ ...templates, skipped: 0 })
      ? [sizeLine(`source ${found}`, { ...templates, skipped: 0 })]
      : []),
  ];
}

function isAny({ desired, observed, conflicts, rejected, invalid, skipped }: Sizes): boolean {
  return desired + observed + conflicts + rejected + invalid + skipped > 0;
}

function sizeLine(first: string, sizes: Sizes): Line {
  const { observed, conflicts, rejected, invalid, skipped } = sizes;
  const rest: [word: string, n: number, why?: string][] = [
    ['skipped', skipped, ' (no address)'],
    ['invalid', invalid],
    ['conflicts', conflicts],
    ['rejected', rejected],
  ];
  const some = rest.filter(([, n]) => n > 0);
  const parts = some.map(([word, n, why = '']) => `${word} ${withCommas(n)}${why}`);
  return `  ${[first, `platform ${withCommas(observed)}`, ...parts].join(' · ')}`;
}

/** States what settings prevent, also if that is nothing. */
function policyLines({ contacts }: Summary, policy: RunView['policy']): Line[] {
  const people = (n: number): string => (n === 0 ? 'nobody' : counted(n, 'person', 'people'));
  const { optIns, protect } = contacts.prevented;
  return [
    ...(policy.optIns ? [`  optIns is off: ${people(optIns)} would have been opted in`] : []),
    ...(policy.protect ? [`  protected: ${people(protect)} would have been changed`] : []),
  ];
}

/** Returns no line if all counts are 0. */
function writeBackLine(returns: Summary['returns'], writes: boolean): string[] {
  if (!returns || Object.values<number>({ ...returns }).every((n) => n === 0)) return [];
  const { told, waiting, rejected, leftOut, doubtful } = returns;
  const parts = [
    ...(writes
      ? [
          `${withCommas(told)} reported to the CRM`,
          ...(waiting > 0 ? [`${withCommas(waiting)} wait`] : []),
        ]
      : [`${withCommas(waiting)} to be reported to the CRM`]),
    ...(rejected > 0 ? [`${withCommas(rejected)} refused by it`] : []),
    ...(leftOut > 0
      ? [`${withCommas(leftOut)} of channels that write-back is not configured for`]
      : []),
    ...(doubtful > 0 ? [`${withCommas(doubtful)} doubtful and not reported (\`optouts\`)`] : []),
  ];
  return [`  opt-outs made on the platform: ${parts.join(', ')}`];
}

function internalLines({ run, plan, requests, certificate, ...summary }: Summary): Line[] {
  const routes = Object.entries(requests.byRoute).map(([route, n]) => `${route} ${withCommas(n)}`);
  const { source, platform } = certificate;
  return [
    `  run ${run}${plan === '' ? '' : `, plan ${plan}`}`,
    `  requests ${withCommas(requests.total)}${routes.length > 0 ? ` (${routes.join(', ')})` : ''}, ` +
      `delayed by a rate limit ${withCommas(requests.rateLimited)}`,
    `  complete readings: source ${yesNo(source)}, platform ${yesNo(platform)}`,
    ...fullWords(summary).map((text) => `  ${text}`),
  ].map((text) => styled('dim', text));
}

/** Returns a line for each reason why the run compared, or read, everything. */
export function fullWords({
  mode,
  fullBecause,
}: {
  mode: string;
  fullBecause: readonly FullReason[];
}): string[] {
  const what = mode === 'fast' ? 'the whole source is read' : 'everything is compared';
  return fullBecause.map(({ reason }) => `${what}: ${reason}`);
}

function yesNo(value: boolean | null): string {
  if (value === null) return 'not read';
  return value ? 'yes' : 'no';
}
