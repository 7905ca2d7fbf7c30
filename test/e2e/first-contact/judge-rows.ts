/**
 * Judges the rows of an export by the rules for values, once more and independently: what each row
 * states, which rows cannot count, and what every person wants in the end.
 */
import type { Expected, Wish } from './expected-outcome.ts';
import type { ExportRow } from './read-export.ts';

type Settings = Pick<Expected, 'columns' | 'words'>;
type Use = 'subscription' | 'unsubscribed' | 'deleted';
type Wishes = Record<string, Wish>;

/** What came of one row. */
interface JudgedRow {
  line: number;
  id: string;
  /** As it stands there, in lower case; '[]' for a list or an object. */
  address: string;
  isAddress: boolean;
  /** An unknown word counts as none. */
  wishes: Wishes;
  isDeleted: boolean;
  faults: string[];
}

/** What came of an export, in the terms of expected.json. */
export interface Judgement {
  people: ReadonlyMap<string, Wishes>;
  /** Those of whom every row is flagged as deleted. */
  deleted: ReadonlyMap<string, Wishes>;
  /** How many addresses have a row without a fault. */
  desired: number;
  skipped: number[];
  invalid: { line: number; why: string }[];
}

/** Judges all rows of an export together. */
export function judge(rows: readonly ExportRow[], settings: Settings): Judgement {
  const judged = rows.map((row) => judgeRow(row, settings));
  const withAddress = judged.filter(({ address }) => address !== '');
  for (const same of Map.groupBy(withAddress, ({ id }) => id).values()) {
    const isSplit = new Set(same.map(({ address }) => address)).size > 1;
    for (const { id, faults } of isSplit && same[0]?.id !== '' ? same : []) {
      faults.push(`${settings.columns.id} ${id} stands with several addresses`);
    }
  }
  const byAddress = Map.groupBy(
    withAddress.filter(({ isAddress }) => isAddress),
    ({ address }) => address,
  );
  const wishes = [...byAddress].map(([address, same]) => ({
    address,
    wishes: strictest(same),
    isGone: same.every(({ isDeleted, faults }) => isDeleted && faults.length === 0),
    isDesired: same.some(({ faults }) => faults.length === 0),
  }));
  const mapped = (isGone: boolean) =>
    new Map(wishes.filter((one) => one.isGone === isGone).map((one) => [one.address, one.wishes]));
  return {
    people: mapped(false),
    deleted: mapped(true),
    desired: wishes.filter(({ isDesired }) => isDesired).length,
    skipped: judged.filter(({ address }) => address === '').map(({ line }) => line),
    invalid: withAddress
      .filter(({ faults }) => faults.length > 0)
      .map(({ line, faults }) => ({ line, why: faults.join('; ') })),
  };
}

/** An out of any row wins; a row that cannot count keeps the others from any in. */
function strictest(rows: readonly JudgedRow[]): Wishes {
  const isBlocked = rows.some(({ faults }) => faults.length > 0);
  const living = rows.filter(({ isDeleted }) => !isDeleted);
  const channels = Object.keys(rows[0]?.wishes ?? {});
  const wishOf = (channel: string): Wish => {
    if (rows.some(({ wishes }) => wishes[channel] === 'out')) return 'out';
    return !isBlocked && living.some(({ wishes }) => wishes[channel] === 'in') ? 'in' : 'none';
  };
  return Object.fromEntries(channels.map((channel) => [channel, wishOf(channel)]));
}

function judgeRow({ line, values }: ExportRow, { columns, words }: Settings): JudgedRow {
  const faults: string[] = [];
  const read = (column: string | null, use: Use): Wish => {
    if (column === null) return 'none';
    const meaning = meaningOf(values[column], use, words[column]);
    if (meaning !== undefined) return meaning;
    faults.push(`${column} holds ${JSON.stringify(values[column])}, which is no known word`);
    return 'none';
  };
  const id = textOf(values[columns.id]) ?? '';
  const address = textOf(values[columns.email])?.toLowerCase() ?? '[]';
  if (id === '') faults.push(`${columns.id} is empty`);
  if (!isAddress(address)) faults.push(`${columns.email} holds no single valid address`);
  const isDeleted = read(columns.deleted, 'deleted') === 'out';
  const isOut = read(columns.unsubscribed, 'unsubscribed') === 'out';
  const wishes = Object.entries(columns.channels).map(([channel, column]): [string, Wish] => {
    const wish = read(column, 'subscription');
    return [channel, isOut ? 'out' : wish];
  });
  const row = { line, id, address, isAddress: isAddress(address), isDeleted, faults };
  return { ...row, wishes: Object.fromEntries(wishes) };
}

const yes = ['true', 'yes', 'y', 't', '1', 'on'];
const no = ['false', 'no', 'n', 'f', '0', 'off'];

/**
 * What a value means: in or out for a subscription; out, if somebody is unsubscribed or deleted.
 * Undefined: nobody knows.
 */
export function meaningOf(
  value: unknown,
  use: Use,
  own: Settings['words'][string] = {},
): Wish | undefined {
  const word = textOf(value)?.toLowerCase().normalize();
  const isIn = (list: readonly string[] | undefined) =>
    word !== undefined && list?.some((one) => one.toLowerCase().normalize() === word) === true;
  if (isIn(own.in)) return 'in';
  if (isIn(own.out) || isIn(own.yes)) return 'out';
  if (word === '' || isIn(own.none) || isIn(own.no)) return 'none';
  if (isIn(yes)) return use === 'subscription' ? 'in' : 'out';
  if (isIn(no)) return use === 'subscription' ? 'out' : 'none';
  if (use === 'subscription' && isIn(['opt_in', 'subscribed'])) return 'in';
  if (use !== 'deleted' && isIn(['opt_out', 'unsubscribed'])) return 'out';
  if (use === 'subscription') return undefined;
  if (word?.startsWith('0000-00-00')) return 'none';
  return word !== undefined && isDate(word) ? 'out' : undefined;
}

/** A date from 2019 to 2025, as any program writes it: all dates of the exports lie there. */
function isDate(word: string): boolean {
  const time = String.raw`(?:[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:\d\d)?)?`;
  const day = String.raw`20(?:19|2[0-5])-\d\d-\d\d|\d{1,2}([./])\d{1,2}\1(?:20(?:19|2[0-5]))`;
  return new RegExp(`^(?:${day})${time}$`).test(word);
}

/** One address and nothing else. */
function isAddress(text: string): boolean {
  return /^[^\s@"(),:;<>[\]]+@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}$/u.test(text);
}

/** A value without the spaces around it; undefined: a list or an object. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value === null || value === undefined ? '' : undefined;
}
