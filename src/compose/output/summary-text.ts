/** Renders a plan or a run as lines of text: what changes, and what it is based on. */
import { type FullReason, heldIn, type Summary } from '../../engine/report/run-summary.ts';
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
  const people = (n: number): string => (n === 0 ? 'nobody' : counted(n, 'person', 'people'));
  const { contacts, templates, only, mode } = summary;
  const { optIns, protect } = contacts.prevented;
  const isAsked = only !== 'templates' && (contacts.desired > 0 || mode === 'single');
  const changes = [...styledTable(counts, { indent: 2, right: [2] }), ...approvals];
  return [
    styled('bold', titleOf(summary, view)),
    ...apart(changes),
    ...apart([
      ...sizeLine(`CRM ${counted(contacts.desired, 'person', 'people')}`, contacts, isAsked),
      ...sizeLine(`source ${counted(templates.desired, 'template')}`, templates, false),
      ...sayUnmanaged(contacts.unmanaged).map((line) => `  ${line}`),
      // What settings prevent is stated also if that is nothing.
      ...(view.policy.optIns
        ? [`  optIns is off: ${people(optIns)} would have been opted in`]
        : []),
      ...(view.policy.protect ? [`  protected: ${people(protect)} would have been changed`] : []),
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

type Sizes = Record<'desired' | 'observed' | 'conflicts' | 'rejected' | 'invalid', number> & {
  skipped?: number;
};

/** Renders what both sides contain of a record type; no line if neither side has any. */
function sizeLine(first: string, sizes: Sizes, isAsked: boolean): Line[] {
  const { desired, observed, conflicts, rejected, invalid, skipped = 0 } = sizes;
  const isAny = desired + observed + conflicts + rejected + invalid + skipped > 0;
  if (!isAsked && !isAny) return [];
  const rest: [word: string, n: number, why?: string][] = [
    ['skipped', skipped, ' (no address)'],
    ['invalid', invalid],
    ['conflicts', conflicts],
    ['rejected', rejected],
  ];
  const some = rest.filter(([, n]) => n > 0);
  const parts = some.map(([word, n, why = '']) => `${word} ${withCommas(n)}${why}`);
  return [`  ${[first, `platform ${withCommas(observed)}`, ...parts].join(' · ')}`];
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
