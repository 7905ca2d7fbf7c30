/** Shows the changes of a plan or a run: how many of each sort, and the first records. */
import type { Op } from '../../domain/change.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { CannotUndo, Summary } from '../../engine/report/run-summary.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { changeName } from '../../compose/output/format-values.ts';
import { names, numbers, type Section, type Span, type Table, type Text } from '../sections.ts';

/** Changes that are shown together: how many, and the records to name. */
export interface CountedChanges {
  kind: RecordTypeName;
  op: Op;
  held: boolean;
  /** The number of changes, and without those that complete a creation. */
  n: number;
  own: number;
}

export interface Sample extends CountedChanges {
  records: readonly { key: Key; parts: readonly string[]; reason: string }[];
}

export type Who = (record: { kind: RecordTypeName; key: Key }) => Span;

interface Sort {
  kind: RecordTypeName;
  op: Op;
  mark: Span;
  noun: readonly [one: string, many: string];
  more?: string;
}

const plus = { tone: 'good', text: '+' } as const;
const tilde = { tone: 'busy', text: '~' } as const;
const minus = { tone: 'bad', text: '-' } as const;
/** The mark of what awaits approval. */
export const bang = { tone: 'busy', text: '!' } as const;

const person = ['person', 'people'] as const;
const subscription = ['subscription', 'subscriptions'] as const;
const template = ['template', 'templates'] as const;
const onPlatform = ' of people who are on the platform';

const sorts: readonly Sort[] = [
  { kind: 'contact', op: 'create', mark: plus, noun: person },
  { kind: 'contact', op: 'opt_in', mark: tilde, noun: subscription, more: onPlatform },
  { kind: 'contact', op: 'opt_out', mark: minus, noun: subscription },
  { kind: 'contact', op: 'delete', mark: minus, noun: person },
  { kind: 'template', op: 'create', mark: plus, noun: template },
  { kind: 'template', op: 'update', mark: tilde, noun: template },
  { kind: 'template', op: 'archive', mark: minus, noun: template },
];

type Counts = Pick<Summary, 'contacts' | 'templates'>;

/** Returns what a run has done, in the groups of a plan. */
export function doneGroups({ contacts, templates }: Counts): CountedChanges[] {
  const { furtherOptIns: further } = contacts;
  const extra: Record<string, number> = { create: further, opt_in: -further };
  return sorts.map(({ kind, op }) => {
    const isPerson = kind === 'contact';
    const own = (isPerson ? contacts : templates).applied[op] ?? 0;
    const more = isPerson ? (extra[op] ?? 0) : 0;
    return { kind, op, held: false, n: own + more, own: op === 'create' ? own : own + more };
  });
}

/** Returns the counts: what is done, how often, to what; then what is managed from now on. */
export function countsTable(
  groups: readonly CountedChanges[],
  { contacts, templates }: Counts,
  isDone: boolean,
): Table {
  const changes = sorts.flatMap(({ kind, op, mark, noun, more = '' }): Text[][] => {
    const group = groups.find((one) => one.kind === kind && one.op === op && !one.held);
    if (!group || group.n === 0) return [];
    const count = op === 'create' ? group.own : group.n;
    const isMore = op === 'create' && kind === 'contact' && group.n > count;
    const also = isMore ? `, in ${counted(group.n, ...subscription)}` : more;
    const what = `${count === 1 ? noun[0] : noun[1]}${also}`;
    return [[mark, changeName(op, isDone), withCommas(count), what]];
  });
  const found = [
    [contacts.changes['adopt'] ?? 0, person],
    [templates.changes['adopt'] ?? 0, template],
  ] as const;
  const adopted = found.flatMap(([n, [one, many]]): Text[][] => {
    const what = `${n === 1 ? one : many} on the platform already; managed from now on`;
    const cells = ['=', 'adopt', withCommas(n), what];
    return n === 0 ? [] : [cells.map((text) => ({ tone: 'quiet', text }))];
  });
  return {
    columns: [mark, names('Change'), numbers('Number'), 'Of what'],
    rows: [...changes, ...adopted],
    isBare: true,
  };
}

const mark = { title: '', holds: 'marks' } as const;

/** Returns the first records of a group. `isWhole`: the others are in further sections. */
export function sampleSection(
  { kind, op, held, n, own, records }: Sample,
  { who, isDone, isWhole = false }: { who: Who; isDone: boolean; isWhole?: boolean },
): Section {
  const sort = sorts.find((one) => one.kind === kind && one.op === op);
  const people = isWhole ? own : records.length;
  const parts = isWhole ? n : sumOf(records.map((one) => Math.max(1, one.parts.length)));
  const isCounted = op === 'create' || kind === 'template' || op === 'delete';
  const all = isCounted ? own : n;
  const some = isCounted ? people : parts;
  const number = some < all ? `${withCommas(some)} of ${withCommas(all)}` : withCommas(all);
  // The lines below are people, and one of them may have several subscriptions.
  const isUneven = !isCounted && parts !== people;
  const of = isUneven ? ` ${subscription[1]}, of ${counted(people, ...person)}` : '';
  const what = `${changeName(op, isDone)}${kind === 'template' ? ' templates' : ''} (${number}${of})`;
  const hasWhy = records.some(({ reason }) => reason !== '');
  return {
    title: held ? `Awaiting approval: ${what}` : `${what.charAt(0).toUpperCase()}${what.slice(1)}`,
    table: {
      columns: [mark, names('Who'), 'Channel', ...(hasWhy ? ['Why'] : [])],
      rows: records.map(({ key, parts: channels, reason }) => [
        held ? bang : (sort?.mark ?? ''),
        who({ kind, key }),
        joined(channels.map((channel) => [{ channel }])),
        ...(hasWhy ? [{ tone: 'quiet', text: reason } as const] : []),
      ]),
      isBare: true,
    },
  };
}

/** Sorts groups as they are shown; what awaits approval comes last. */
export function inShownOrder<G extends { kind: CountedChanges['kind']; op: string; held: boolean }>(
  groups: readonly G[],
): G[] {
  const rank = ({ kind, op, held }: G): number =>
    sorts.findIndex((sort) => sort.kind === kind && sort.op === op) + (held ? sorts.length : 0);
  return groups.toSorted((a, b) => rank(a) - rank(b));
}

/** Returns what cannot be undone: each reason with its number, and a few records. */
export function cannotSection(groups: readonly CannotUndo[], who: Who): Section {
  const all = sumOf(groups.map(({ count }) => count));
  const lines = groups.map(({ kind, op, reason, count, records }): Text => {
    const some = records.map(({ key, channel }): Span[] => [
      who({ kind, key }),
      ...(channel === '' ? [] : [' (', { channel }, ')']),
    ]);
    const more = count > records.length ? ` and ${withCommas(count - records.length)} more` : '';
    const what = `${counted(count, 'change')} (${changeName(op, true)}): ${reason}. `;
    return [what, ...joined(some), more];
  });
  return { title: `Cannot be undone: ${counted(all, 'change')}`, lines, isList: true };
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, n) => sum + n, 0);
}

export function joined(texts: readonly (readonly Span[])[], between = ', '): Span[] {
  return texts.flatMap((spans, at) => (at === 0 ? spans : [between, ...spans]));
}
