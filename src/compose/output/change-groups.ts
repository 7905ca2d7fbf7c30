/**
 * Renders the changes of a plan or a run like a diff: counts, then samples. All functions are pure.
 */
import type { Op } from '../../domain/change.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { PlannedRecord, Summary } from '../../engine/report/run-summary.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { changeName } from './change-words.ts';
import { styledTable } from './table.ts';
import { type Line, lineOf, styled } from './text-style.ts';

/** Changes that are shown together: how many, and the records to name. */
export interface CountedChanges {
  kind: RecordTypeName;
  op: Op;
  held: boolean;
  /** The number of changes, and without those that complete a creation. */
  n: number;
  own: number;
}

/** A record with its name for people. */
export type NamedRecord = Omit<PlannedRecord, 'key'> & { name: string };

interface Sort {
  kind: RecordTypeName;
  op: Op;
  mark: Line;
  noun: readonly [one: string, many: string];
  more?: string;
}

const plus = styled('green', '+');
const tilde = styled('yellow', '~');
const minus = styled('red', '-');
const bang = styled('magenta', '!');

const person = ['person', 'people'] as const;
const subscription = ['subscription', 'subscriptions'] as const;
const template = ['template', 'templates'] as const;
const onPlatform = ' of people who are on the platform';

/** The sorts of changes in the order in which they are shown. */
const sorts: readonly Sort[] = [
  { kind: 'contact', op: 'create', mark: plus, noun: person },
  {
    kind: 'contact',
    op: 'opt_in',
    mark: tilde,
    noun: subscription,
    more: onPlatform,
  },
  {
    kind: 'contact',
    op: 'opt_out',
    mark: minus,
    noun: subscription,
  },
  { kind: 'contact', op: 'delete', mark: minus, noun: person },
  { kind: 'template', op: 'create', mark: plus, noun: template },
  { kind: 'template', op: 'update', mark: tilde, noun: template },
  { kind: 'template', op: 'archive', mark: minus, noun: template },
];

/** Returns what a run has done, in the groups of a plan. */
export function doneGroups({ contacts, templates }: Summary): CountedChanges[] {
  const { furtherOptIns: further } = contacts;
  const extra: Record<string, number> = { create: further, opt_in: -further };
  return sorts.map(({ kind, op }) => {
    const isPerson = kind === 'contact';
    const own = (isPerson ? contacts : templates).applied[op] ?? 0;
    const more = isPerson ? (extra[op] ?? 0) : 0;
    return { kind, op, held: false, n: own + more, own: op === 'create' ? own : own + more };
  });
}

/** Returns the rows of counts: a mark, what is done, how many, of what. */
export function countRows(groups: readonly CountedChanges[], writes: boolean): Line[][] {
  return sorts.flatMap((sort): Line[][] => {
    const group = find(groups, sort);
    if (!group || group.n === 0) return [];
    const { n, own, op } = group;
    const isCreation = op === 'create';
    const count = isCreation ? own : n;
    const isMore = isCreation && sort.kind === 'contact' && n > own;
    const also = isMore ? `, in ${counted(n, ...subscription)}` : (sort.more ?? '');
    const what = `${count === 1 ? sort.noun[0] : sort.noun[1]}${also}`;
    return [[sort.mark, changeName(sort.op, writes), withCommas(count), what]];
  });
}

/** Returns the rows of what is found on the platform and managed from now on. */
export function adoptedRows({ contacts, templates }: Summary): Line[][] {
  const row = (n: number, [one, many]: readonly [string, string]): Line[][] => {
    const what = `${n === 1 ? one : many} on the platform already; managed from now on`;
    return n === 0 ? [] : [['=', 'adopt', withCommas(n), what].map((cell) => styled('dim', cell))];
  };
  const { adopt: people = 0 } = contacts.changes;
  const { adopt: found = 0 } = templates.changes;
  return [...row(people, person), ...row(found, template)];
}

/** Returns the title of the samples of a group, which may be all of its records. */
export function sampleTitle(
  group: CountedChanges,
  shown: { records: number; parts: number; isDone?: boolean },
): Line {
  const sort = sorts.find(({ kind, op }) => kind === group.kind && op === group.op);
  const isCounted = group.op === 'create' || group.kind === 'template' || group.op === 'delete';
  const all = isCounted ? group.own : group.n;
  const some = isCounted ? shown.records : shown.parts;
  const number = some < all ? `${withCommas(some)} of ${withCommas(all)}` : withCommas(all);
  // The lines below are people, and one of them may have several subscriptions.
  const isUneven = !isCounted && shown.parts !== shown.records;
  const people = counted(shown.records, ...person);
  const count = isUneven ? `${number} ${subscription[1]}, of ${people}` : number;
  const word = group.held ? 'awaiting approval: ' : '';
  const what = changeName(group.op, shown.isDone === true);
  const name = `${word}${what}${group.kind === 'template' ? ' templates' : ''}`;
  return styled('bold', lineOf(group.held ? bang : (sort?.mark ?? ''), ` ${name} (${count})`));
}

/** Renders records: a mark, the name, the parts that change, and the reason. */
export function sampleRows(records: readonly NamedRecord[]): Line[] {
  return styledTable(
    records.map(({ kind, op, held, name, parts, reason }) => {
      const mark = sorts.find((sort) => sort.kind === kind && sort.op === op)?.mark ?? '';
      return [held ? bang : mark, name, parts.join(', '), styled('dim', reason)];
    }),
    { indent: 4 },
  );
}

/** Sorts groups as they are shown; what awaits approval comes last. */
export function inShownOrder<G extends Pick<CountedChanges, 'kind' | 'op' | 'held'>>(
  groups: readonly G[],
): G[] {
  const rank = ({ kind, op, held }: G): number =>
    sorts.findIndex((sort) => sort.kind === kind && sort.op === op) + (held ? sorts.length : 0);
  return groups.toSorted((a, b) => rank(a) - rank(b));
}

function find(groups: readonly CountedChanges[], { kind, op }: Sort): CountedChanges | undefined {
  return groups.find((group) => group.kind === kind && group.op === op && !group.held);
}
