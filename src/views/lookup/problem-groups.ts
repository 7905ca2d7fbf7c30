/** Shows problems grouped by cause, as data for --json and as a section. All functions are pure. */
import { basename } from 'node:path';
import { z } from 'zod';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import { isPlain, maskedNote, shownValue } from '../../domain/unknown-words.ts';
import type { ProblemGroup } from '../../engine/report/problem-groups.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Config } from '../../config/config.ts';
import type { Section, Span } from '../sections.ts';
import type { Names } from './person-names.ts';

/** A group as --json prints it. Addresses and values are shown only if that is allowed. */
export interface ShownGroup {
  class: ProblemGroup['class'];
  kind: ProblemGroup['kind'];
  cause: ProblemGroup['cause'];
  count: number;
  /** The unknown values, most frequent first, or only their form. */
  values: { value: string; count: number }[];
  samples: { key: string; place: string | null }[];
  reason: string;
  fix: string;
}

/**
 * Returns the groups as they may be shown. `hidden` stands for a value that may not be shown; by
 * default, its form does.
 */
export function shownGroups(
  groups: readonly ProblemGroup[],
  { names, addresses, hidden }: { names: Names; addresses: boolean; hidden?: string },
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

export const classWords: Readonly<Record<ShownGroup['class'], string>> = {
  held: 'awaiting approval',
  rejected: 'rejected',
  invalid: 'invalid',
  conflict: 'conflict',
};

const tones = { held: 'busy', rejected: 'bad', invalid: 'busy', conflict: 'busy' } as const;

/**
 * Returns the groups: for each its count and reason, how to solve it, and up to three records. The
 * id of a row is its place. `found`: the groups themselves, for links.
 */
export function problemsSection(
  groups: readonly ShownGroup[],
  { found = [], config }: { found?: readonly ProblemGroup[]; config?: Config } = {},
): Section {
  const records = groups.reduce((sum, { count }) => sum + count, 0);
  const rows = groups.map((group, at) => {
    const { class: of, kind, cause, count, reason } = group;
    const { option, samples = [] } = found[at] ?? {};
    const about = kind === 'template' ? 'templates: ' : '';
    const remedy = remedyOf(group, option, config);
    const place = /^contacts\.channels\[(\d+)\]/.exec(option ?? '')?.[1];
    const channel = config?.contacts?.channels[Number(place)];
    // The channel stands in front of an option of it.
    const why: Span[] =
      option === undefined || !channel
        ? [reason]
        : [{ channel: channel.id }, ` (\`${option}\`): ${reason.slice(option.length + 2)}`];
    const what = cause === 'crm-refused' ? 'refused by the CRM' : classWords[of];
    const cells = [
      [`${withCommas(count)} × `, { tone: tones[of], text: what }],
      [about, ...why],
    ];
    const notes = [samplesText(group, samples), ...(remedy === '' ? [] : [`→ ${remedy}`])];
    return { id: `${at}`, cells, notes: notes.filter((note) => note.length > 0) };
  });
  const columns = ['Records', 'Reason'];
  return {
    title: `Problems (${counted(groups.length, 'cause')}, ${counted(records, 'record')})`,
    table: { columns, rows, isBare: true },
  };
}

/** Returns the names of records with their places; of many, that there are more. */
function samplesText({ samples, kind, count }: ShownGroup, known: ProblemGroup['samples']): Span[] {
  const spans = samples.flatMap(({ key: name, place }, at): Span[] => {
    const key = known[at]?.key ?? name;
    const where = place === null || place === name ? '' : ` (${place})`;
    // A record without an address is known by its id in the CRM only, and has no page.
    const hasPage = kind === 'template' || key.includes('@');
    return [at === 0 ? '' : ', ', hasPage ? { record: { kind, key }, name } : name, where];
  });
  const more = count - samples.length;
  return spans.length > 0 && more > 0 ? [...spans, ` … and ${withCommas(more)} more`] : spans;
}

/** Returns what to do, in the CRM or in the configuration; '' if nothing is known. */
function remedyOf(
  { cause, values, fix }: ShownGroup,
  option: string | undefined,
  config: Config | undefined,
): string {
  if (cause !== 'unknown-word' || option === undefined || !config) return fix;
  const [value, ...more] = values;
  const [one, other] = wordsOf(config, option);
  const which = value === undefined || more.length > 0 ? 'these values' : `“${value.value}”`;
  return (
    `in the CRM, change ${which} to “${one}” or “${other}”; or let the maintainer of ` +
    `${basename(config.file)} ${fix}`
  );
}

const list = z.union([z.string(), z.array(z.string())]).optional();
const stated = z.object({ in: list, out: list, yes: list, no: list });
const folder = z.record(z.string(), z.unknown()).or(z.array(z.unknown()));

/** Returns a word for yes and one for no, as the configuration names them or as they always are. */
function wordsOf(config: Config, option: string): [yes: string, no: string] {
  let at: unknown = config;
  for (const step of option.split(/[.[\]]+/).filter((part) => part !== '')) {
    const inside = folder.safeParse(at);
    at = inside.success
      ? Object.entries(inside.data).find(([name]) => name === step)?.[1]
      : undefined;
  }
  const own = stated.safeParse(at);
  const first = (words: z.infer<typeof list>): string | undefined => [words ?? []].flat()[0];
  if (!own.success) return ['yes', 'no'];
  const { in: into, out, yes, no } = own.data;
  return [first(into ?? yes) ?? 'yes', first(out ?? no) ?? 'no'];
}
