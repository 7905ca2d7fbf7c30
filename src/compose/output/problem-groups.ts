/** Shows problems grouped by cause, as data for --json and as lines. All functions are pure. */
import { renderProblem } from '../../domain/errors.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import { isPlain, maskedNote, shownValue } from '../../domain/unknown-words.ts';
import type { ProblemGroup } from '../../engine/report/problem-groups.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { type Line, lineOf, styled } from './text-style.ts';

/** A group as --json prints it. Addresses and values are shown only if that is allowed. */
export interface ShownGroup extends Pick<ProblemGroup, 'class' | 'kind' | 'cause' | 'count'> {
  /** The unknown values, most frequent first, or only their form. */
  values: { value: string; count: number }[];
  samples: { key: string; place: string | null }[];
  reason: string;
  fix: string;
}

type NamedRecord = Pick<RecordProblem, 'kind' | 'key'>;

interface ShowOptions {
  names: (record: NamedRecord) => string;
  /** Whether values may be shown as they are. */
  addresses: boolean;
  /** What stands for a value that may not be shown; by default, its form. */
  hidden?: string;
}

/** Returns the groups as they may be shown. */
export function shownGroups(
  groups: readonly ProblemGroup[],
  { names, addresses, hidden }: ShowOptions,
): ShownGroup[] {
  return groups.map((group) => {
    const { class: of, kind, cause, count, fix } = group;
    const samples = group.samples.map(({ key, place }) => ({ key: names({ kind, key }), place }));
    const counts = new Map<string, number>();
    for (const value of group.values) {
      const isHidden = hidden !== undefined && !addresses && !isPlain(value);
      const name = isHidden ? hidden : shownValue(value, addresses);
      counts.set(name, (counts.get(name) ?? 0) + value.records);
    }
    const values = [...counts]
      .map(([value, count]) => ({ value, count }))
      .toSorted((a, b) => b.count - a.count);
    const isMasked =
      hidden === undefined && !addresses && group.values.some((value) => !isPlain(value));
    const reason = `${reasonOf(group, values, hidden)}${isMasked ? maskedNote : ''}`;
    return { class: of, kind, cause, count, values, samples, reason, fix };
  });
}

const mostNamed = 8;

const says: Partial<Record<ProblemCause, [one: string, many: string]>> = {
  'opt-out-unreadable': [
    'cannot be read, and may say that a subscribed person wants no mail',
    'cannot be read, and may say that subscribed people want no mail',
  ],
  'unknown-word': ['is no known word', 'are no known words'],
  'date-in-future': ['is a date in the future', 'are dates in the future'],
};

function reasonOf(
  { option, cause, reason, others }: ProblemGroup,
  values: ShownGroup['values'],
  hidden: string | undefined,
): string {
  const place = option === undefined ? '' : `${option}: `;
  const words = says[cause];
  if (!words || values.length === 0) return `${place}${reason}`;
  const named = values.slice(0, mostNamed);
  const rest = values.slice(mostNamed).reduce((sum, { count }) => sum + count, others);
  const [one] = named;
  const inQuotes = (value: string): string => (value === hidden ? value : JSON.stringify(value));
  if (one && named.length === 1 && rest === 0) {
    return `${place}${inQuotes(one.value)} ${words[0]}`;
  }
  const list = [
    ...named.map(({ value, count }) => `${inQuotes(value)} (${withCommas(count)})`),
    ...(rest > 0 ? [`other values (${withCommas(rest)})`] : []),
  ];
  return `${place}${list.join(', ')} ${words[1]}`;
}

/** The classes as they are called in text. */
export const classWords: Readonly<Record<ShownGroup['class'], string>> = {
  held: 'awaiting approval',
  rejected: 'rejected',
  invalid: 'invalid',
  conflict: 'conflict',
};

const colors = { held: 'magenta', rejected: 'red', invalid: 'yellow', conflict: 'yellow' } as const;

/** Renders the groups: for each its count and reason, up to three records, and how to fix it. */
export function renderGroups(groups: readonly ShownGroup[]): Line[] {
  if (groups.length === 0) return [];
  const records = groups.reduce((sum, { count }) => sum + count, 0);
  const counts = groups.map(({ count }) => withCommas(count));
  const width = Math.max(...counts.map(({ length }) => length));
  const title = `Problems (${counted(groups.length, 'cause')}, ${counted(records, 'record')})`;
  const classWidth = Math.max(...groups.map((group) => classWords[group.class].length), 8);
  const space = ' '.repeat(width + classWidth + 8);
  const lines = groups.flatMap((group, at): Line[] => {
    const { class: of, kind, reason, fix, samples } = group;
    const about = kind === 'template' ? 'templates: ' : '';
    const named = sampleText(group);
    return [
      lineOf(
        `  ${(counts[at] ?? '').padStart(width)} × `,
        styled(colors[of], classWords[of].padEnd(classWidth)),
        `   ${about}${reason}`,
      ),
      ...(samples.length > 0 ? [lineOf(space, styled('dim', named))] : []),
      ...(fix === '' ? [] : [`${space}${renderProblem({ reason: '', fix }).trim()}`]),
    ];
  });
  return ['', styled('bold', title), ...lines];
}

/** Names the records by their lines in a file, otherwise by their keys: `lines 3, 12, 19 …`. */
function sampleText({ samples, count }: ShownGroup): string {
  const more = count > samples.length ? ' …' : '';
  const lines = samples.map(({ place }) => /^line (\d+)$/.exec(place ?? '')?.[1]);
  if (lines.every((line) => line !== undefined)) {
    return `${lines.length === 1 && more === '' ? 'line' : 'lines'} ${lines.join(', ')}${more}`;
  }
  const names = samples.map(({ key, place }) =>
    place === null || place === key ? key : `${key} (${place})`,
  );
  return `${names.join(', ')}${more}`;
}
