/** What `init` has to know of a source: its first records, and what its columns hold. */
import { isRecord, textOf, wordOf } from '../../domain/values/record-field.ts';
import { isAddress } from '../../records/contact/values/email-address.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import type { Flaw } from '../../sources/shared/read-certificate.ts';
import type { Certificate, Source, SourceRecord } from '../../sources/source.ts';

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
  isList: boolean;
  /** The number of records in which it holds an email address. */
  addresses: number;
  /** The most frequent first. */
  values: readonly Value[];
  others: number;
}

/** What is known of a source before its records are read. */
interface Origin {
  /** The options of the source for the configuration, without the path of a file. */
  options: Readonly<Record<string, unknown>> & { type: string };
  /** The absolute path of the export; undefined: the source is no file. */
  file?: string;
  /** What messages call the source: the path of a file, the name of a host. */
  origin: string;
  /** The source as a command line may show it; undefined: as it was given. */
  named?: string;
  /** The columns whose purpose the CRM itself defines. */
  standard?: { id: string; email: string; deleted: string; unsubscribed: string };
  /** Variables that the configuration names, with the values that were used here. */
  env?: Readonly<Record<string, string>>;
  /** What was found out about the source, for people. */
  notes?: readonly string[];
}

export interface Sample extends Origin {
  records: number;
  columns: readonly Column[];
  first: readonly { where: string; value: Record<string, unknown> }[];
  /** Why the reading is not complete; undefined: it is. */
  flaw: string | undefined;
  /** Why most records, or all below some place in a file, cannot be read; undefined: they can. */
  unread: Flaw | undefined;
  isWhole: boolean;
}

export interface SourceRequest {
  source: string;
  table?: string | undefined;
  header?: readonly string[] | undefined;
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
}

export interface PlatformChannel {
  id: string;
  name: string;
}

/** The address of the local emulator, which is the platform if no other is named. */
export const localPlatform = 'http://127.0.0.1:4010';

/** How many records of a source that is no file are read. */
export const mostSampled = 1_000;

const mostPreviewed = 20;

/** Reads at most `most` records of a source. */
export async function sampleOf(
  source: Source,
  from: Origin,
  {
    fields = [],
    most = mostSampled,
    signal,
  }: { fields?: readonly string[]; most?: number; signal: AbortSignal },
): Promise<Sample> {
  const columns = countColumns();
  const first: Sample['first'][number][] = [];
  let [records, broken] = [0, 0];
  let firstBroken: Extract<SourceRecord, { broken: string }> | undefined;
  let certificate: Certificate | undefined;
  const reading = source.read({ fields, signal });
  while (!certificate && records < most) {
    const step = await reading.next();
    if (step.done) {
      certificate = step.value;
      break;
    }
    for (const record of step.value) {
      if ('broken' in record) {
        firstBroken ??= record;
        broken += 1;
        continue;
      }
      records += 1;
      if (first.length < mostPreviewed) first.push(record);
      columns.add(record.value);
    }
  }
  if (!certificate) await reading.return({ complete: false, reading: '', why: '', fix: '' });
  const flaw = certificate?.complete === false ? certificate : undefined;
  let unread: Flaw | undefined = flaw?.isCut ? flaw : undefined;
  if (!unread && firstBroken && broken > records) {
    const some = `${withCommas(broken)} of ${counted(records + broken, 'record')}`;
    const example = `the first at ${firstBroken.where}: it ${firstBroken.broken}`;
    unread = { why: `${some} cannot be read, ${example}`, fix: firstBroken.fix };
  }
  const read = { records, columns: columns.all(), first, flaw: flaw?.why, unread };
  return { ...from, ...read, isWhole: certificate !== undefined };
}

/** Counts the values of all columns. By default, no column is left out, and no long value. */
export function countColumns({
  mostColumns = Infinity,
  mostValues = 100_000,
  longest = Infinity,
} = {}) {
  const begin = (name: string) => {
    const byWord = new Map<string, Value>();
    return { name, filled: 0, lists: 0, addresses: 0, others: 0, byWord };
  };
  const tallies = new Map<string, ReturnType<typeof begin>>();
  return {
    add(record: Record<string, unknown>): void {
      for (const [name, value] of fieldsOf(record)) {
        const tally = tallies.get(name) ?? begin(name);
        if (!tallies.has(name) && tallies.size >= mostColumns) continue;
        tallies.set(name, tally);
        const texts = new Set([value].flat().flatMap((one) => textOf(one) || []));
        if (texts.size === 0) continue;
        tally.filled += 1;
        if (Array.isArray(value)) tally.lists += 1;
        else if ([...texts].some(isMail)) tally.addresses += 1;
        for (const text of texts) {
          const word = wordOf(text);
          const known = tally.byWord.get(word);
          if (known) known.records += 1;
          else if (tally.byWord.size >= mostValues || text.length > longest) tally.others += 1;
          else tally.byWord.set(word, { text, records: 1 });
        }
      }
    },
    all: (): Column[] =>
      [...tallies.values()].map(({ lists, byWord, ...tally }) => {
        const values = [...byWord.values()].toSorted((a, b) => b.records - a.records);
        return { ...tally, isList: tally.filled > 0 && lists === tally.filled, values };
      }),
  };
}

/** Returns whether a value is an email address. */
export function isMail(value: unknown): value is string {
  return typeof value === 'string' && value.includes('@') && isAddress(contactKey(value));
}

const deepest = 4;

/** Yields the fields of a record; those of nested objects, and of lists, by their dotted paths. */
function* fieldsOf(
  value: Record<string, unknown>,
  path = '',
  depth = 1,
): Generator<[name: string, value: unknown]> {
  for (const [name, inner] of Object.entries(value)) {
    const whole = path === '' ? name : `${path}.${name}`;
    const isNested = depth < deepest && [inner].flat().some(isRecord);
    if (!isNested) yield [whole, inner];
    else if (isRecord(inner)) yield* fieldsOf(inner, whole, depth + 1);
    else if (Array.isArray(inner)) yield* fieldsIn(inner, whole, depth);
  }
}

/** Returns the fields of the objects in a list with what all of them hold, and other elements. */
function fieldsIn(list: readonly unknown[], path: string, depth: number): Map<string, unknown[]> {
  const fields = new Map<string, unknown[]>();
  const note = (name: string, value: unknown): void => {
    fields.set(name, [...(fields.get(name) ?? []), ...[value].flat()]);
  };
  for (const element of list) {
    if (!isRecord(element)) note(path, element);
    else for (const [name, value] of fieldsOf(element, `${path}[]`, depth + 1)) note(name, value);
  }
  return fields;
}
