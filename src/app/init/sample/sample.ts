/**
 * What `init` has to know of a source: its first records, and what its columns hold; and the
 * refusal of what cannot be decided without a guess, which becomes a question on a terminal.
 */
import { textOf, wordOf } from '../../../domain/values/record-field.ts';
import { isAddress } from '../../../records/contact/values/email-address.ts';
import { counted, withCommas } from '../../../domain/values/counted.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import type { Flaw } from '../../../sources/shared/read-certificate.ts';
import type { Source, SourceRecord } from '../../../sources/source.ts';
import { Invalid } from '../../../domain/errors.ts';
import type { Use } from '../../../records/contact/values/value-vocabulary.ts';

/** Where the data is, and what is needed to read it. */
export interface SourceRequest {
  source: string;
  table?: string | undefined;
  header?: readonly string[] | undefined;
  /** The environment variables, for secrets. */
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
}

/** One value of a column, in the spelling of its first record. */
export interface Value {
  text: string;
  records: number;
}

/** A column of the export, or the dotted path of a field in JSON. */
export interface Column {
  name: string;
  /** The number of records in which it is not empty. */
  filled: number;
  /** Whether it holds lists, and nothing else: its values are their elements. */
  isList?: true;
  /** The number of records in which it holds an email address. */
  addresses: number;
  /** Its different values, the most frequent first; at most 100,000. */
  values: readonly Value[];
}

/** What a column can be for, other than a channel. */
export type Role = 'id' | 'email' | 'unsubscribed' | 'deleted';

/** The first records of a source, and the options to read it. */
export interface Sample {
  /** The options of the source for the configuration, without the path of a file. */
  options: Readonly<Record<string, unknown>> & { type: string };
  /** The absolute path of the export; undefined: the source is no file. */
  file?: string;
  /** What messages call the source: the path of a file, the name of a host. */
  origin: string;
  /** The source as a command line may show it; undefined: as it was given. */
  named?: string;
  /** The columns whose purpose the CRM itself defines. */
  standard?: Readonly<Partial<Record<Role, string>>>;
  /** Variables that the configuration names, with the values that were used here. */
  env?: Readonly<Record<string, string>>;
  /** What was found out about the source, for people. */
  notes?: readonly string[];
  records: number;
  columns: readonly Column[];
  /** The first records, for the preview. */
  first: readonly { where: string; value: Record<string, unknown> }[];
  /** Why the reading is not complete; undefined: it is. */
  flaw: string | undefined;
  /** Why most records, or all below some place in a file, cannot be read; undefined: they can. */
  unread?: Flaw | undefined;
  /** Whether all records of the source were read. */
  isWhole: boolean;
}

/** How many records of a source that is no file are read. */
export const mostSampled = 1_000;
const mostValues = 100_000;
const mostPreviewed = 20;
const deepest = 4;

/** Reads at most `most` records of a source. */
export async function sampleOf(
  source: Source,
  { fields, most, signal }: { fields: readonly string[]; most: number; signal: AbortSignal },
): Promise<Omit<Sample, 'options' | 'origin'>> {
  const reading = source.read({ fields, signal });
  const collected = collecting();
  let step = await reading.next();
  while (!step.done) {
    collected.add(step.value);
    if (collected.records() >= most) {
      await reading.return({ complete: false, reading: '', why: '', fix: '' });
      return { ...collected.end(), flaw: undefined, isWhole: false };
    }
    step = await reading.next();
  }
  const { value } = step;
  const found = { ...collected.end(), isWhole: true };
  if (value.complete) return { ...found, flaw: undefined };
  return { ...found, flaw: value.why, ...(value.isCut && { unread: value }) };
}

/** Returns what the work yields, and closes the connection that it used. */
export async function closing<T>(
  connection: { close(): Promise<void> },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } finally {
    await connection.close();
  }
}

/** Collects records into columns. */
export function collecting() {
  const columns = new Map<string, Tally>();
  const first: Sample['first'][number][] = [];
  let [records, broken] = [0, 0];
  let firstBroken: Extract<SourceRecord, { broken: string }> | undefined;
  return {
    add(batch: readonly SourceRecord[]): void {
      for (const record of batch) {
        if ('broken' in record) {
          firstBroken ??= record;
          broken += 1;
          continue;
        }
        records += 1;
        if (first.length < mostPreviewed) first.push(record);
        for (const [name, value] of fieldsOf(record.value)) add(columns, name, value);
      }
    },
    records: () => records,
    end(): Omit<Sample, 'options' | 'origin' | 'flaw' | 'isWhole'> {
      const found = [...columns].map(([name, { filled, lists, addresses, values }]): Column => {
        const isList = filled > 0 && lists === filled;
        const all = [...values.values()].toSorted((a, b) => b.records - a.records);
        return { name, filled, ...(isList && { isList }), addresses, values: all };
      });
      if (!firstBroken || broken <= records) return { records, columns: found, first };
      const { where, broken: why, fix } = firstBroken;
      const some = `${withCommas(broken)} of ${counted(records + broken, 'record')}`;
      const flaw = `${some} cannot be read, the first at ${where}: it ${why}`;
      return { records, columns: found, first, unread: { why: flaw, fix } };
    },
  };
}

/** Yields the fields of a record; those of nested objects, and of lists, by their dotted paths. */
export function* fieldsOf(
  value: Record<string, unknown>,
  path = '',
  depth = 1,
): Generator<[name: string, value: unknown]> {
  for (const [name, inner] of Object.entries(value)) {
    const whole = path === '' ? name : `${path}.${name}`;
    const isObject = typeof inner === 'object' && inner !== null;
    const isNested = isObject && depth < deepest && [inner].flat().some(isRecord);
    if (!isNested) yield [whole, inner];
    else if (isRecord(inner)) yield* fieldsOf(inner, whole, depth + 1);
    else if (Array.isArray(inner)) yield* fieldsIn(inner, whole, depth);
  }
}

/** Returns the fields of the objects in a list with what all of them hold, and other elements. */
function fieldsIn(list: readonly unknown[], path: string, depth: number): Map<string, unknown[]> {
  const fields = new Map<string, unknown[]>();
  const note = (name: string, value: unknown): void => {
    fields.set(name, fields.get(name) ?? []);
    fields.get(name)?.push(...[value].flat());
  };
  for (const element of list) {
    if (!isRecord(element)) note(path, element);
    else for (const [name, value] of fieldsOf(element, `${path}[]`, depth + 1)) note(name, value);
  }
  return fields;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Tally {
  filled: number;
  lists: number;
  addresses: number;
  values: Map<string, Value>;
}

function add(columns: Map<string, Tally>, name: string, value: unknown): void {
  const values = new Map<string, Value>();
  const tally = columns.get(name) ?? { filled: 0, lists: 0, addresses: 0, values };
  columns.set(name, tally);
  const texts = (Array.isArray(value) ? value : [value]).map(textOf);
  const filled = new Set(texts.flatMap((text) => text || []));
  if (filled.size === 0) return;
  tally.filled += 1;
  if (Array.isArray(value)) tally.lists += 1;
  else if ([...filled].some((text) => isAddress(contactKey(text)))) tally.addresses += 1;
  for (const text of filled) {
    const word = wordOf(text);
    const known = tally.values.get(word);
    if (known) known.records += 1;
    else if (tally.values.size < mostValues) tally.values.set(word, { text, records: 1 });
  }
}

/** What is to be decided: the column for a purpose, or the words of a column. */
export type Question =
  | {
      about: Exclude<Role, 'unsubscribed'> | 'channels' | 'table';
      /** The columns or tables that come into question; empty: any. */
      among: readonly string[];
    }
  | { about: 'flags'; among: readonly Column[] }
  | {
      about: 'words';
      use: Use;
      /** Whether the column is the opt-out of a channel, not of all mail. */
      ofChannel?: true;
      column: Column;
      unknown: readonly Value[];
    }
  /** What a yes means in a channel's column that is named like an opt-out. */
  | { about: 'polarity'; column: Column };

/** Flags that decide something, each with its value, and what they state about the data. */
export interface FlagAnswer extends Partial<
  Record<'id' | 'email' | 'deleted' | 'channel' | 'optOut' | 'words', string>
> {
  /** The name of a column of which only the user knows whether it says who wants no mail. */
  unused?: string;
  unsubscribed?: string;
  states: string;
}

/** Thrown with the option that decides it, and with the question. */
export class Undecided extends Invalid {
  readonly question: Question;
  /** The flags that are most likely right, for each problem. */
  readonly answers: readonly FlagAnswer[];
  constructor(
    reason: string,
    { fix, question, answer, others = [] }: Given & { others?: readonly Undecided[] },
  ) {
    super([{ code: 'invalid', reason, fix }, ...others.flatMap(({ problems }) => problems)]);
    this.question = question;
    this.answers = [...(answer ? [answer] : []), ...others.flatMap(({ answers }) => answers)];
  }
  /** Returns the same refusal with the problems of others. */
  with(others: readonly Undecided[]): Undecided {
    const [{ reason, fix = '' }] = this.problems;
    const [answer] = this.answers;
    return new Undecided(reason, { fix, question: this.question, answer, others });
  }
}

interface Given {
  fix: string;
  question: Question;
  answer?: FlagAnswer | undefined;
}
