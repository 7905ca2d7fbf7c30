/**
 * Reads a source completely, by the steps of a run, so that its counts are those of a plan. The
 * records are staged in temporary tables beside the snapshot, which is only read. Points out
 * columns that look like an opt-out, and that the configuration does not use.
 */
import { isUnsubscribedOption } from '../../domain/values/decisive-options.ts';
import { Invalid } from '../../domain/errors.ts';
import type { DesiredRow, RecordTypeName } from '../../domain/record.ts';
import type { Certificate } from '../../sources/source.ts';
import type { MirrorContacts } from '../../engine/context/mirror-context.ts';
import { readSource, type SourceRead } from '../../engine/read/source-read.ts';
import { systemClock } from '../../http/system-clock.ts';
import type { MappedColumn } from '../../records/contact/observe/column-meanings.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { createProgress, outletsOf } from '../../compose/progress/progress-line.ts';
import { countColumns, keepPeople } from './mapped-columns.ts';
import { type Found, type Finding, note } from './surroundings.ts';
import { isNamedLikeOptOut } from '../../domain/opt-out-names.ts';
import { isTextOfEach, saysOptOut } from '../init/column-words.ts';
import { countColumns as countUnused } from '../init/sample.ts';
import { cell } from '../../compose/output/visible-text.ts';

interface SourceToCheck {
  contacts: MirrorContacts;
  /** The columns whose values are counted. */
  columns: readonly MappedColumn[];
  /** The snapshot; an empty one if none exists yet. */
  snapshot: Snapshot;
  shell: Shell;
  each(row: DesiredRow): void;
}

/** UTF-8 that was read as windows-1252: Ã¤ for ä, â€“ for –. */
const garbledText = /Ã[\u00a0-\u00bf\u0178\u0152-\u0161\u017d\u017e\u2013-\u203a]|â€/;

export type SourceCheck = Awaited<ReturnType<typeof checkSource>>;

/** Reads a source completely. Throws as `readSource` does. */
export async function checkSource(of: SourceToCheck) {
  const { contacts, columns, snapshot, shell, each } = of;
  const { source } = contacts;
  const counter = countColumns(columns);
  const people = keepPeople();
  const unused = findUnusedOptOuts(contacts.fields);
  const optsOut = columns.map(({ option }) => isUnsubscribedOption(option));
  let [records, garbled] = [0, 0];
  let sample: DesiredRow | undefined;
  const note = (value: Record<string, unknown>, row: DesiredRow): void => {
    const values = counter.add(value);
    const texts = Object.values(value);
    if (texts.some((one) => typeof one === 'string' && garbledText.test(one))) garbled += 1;
    if (row.id !== '') sample ??= row;
    each(row);
    unused.add(value);
    // What these become shows only when the whole column was read.
    if (row.asDates) return;
    const unknown = columns.flatMap(({ channel }, nth) =>
      channel !== undefined && values[nth]?.means === 'unknown' ? [channel] : [],
    );
    const isOut = values.some(({ means }, nth) => optsOut[nth] === true && means === 'yes');
    people.add(row, { isUnsubscribed: isOut, unknown });
  };
  const watched: MirrorContacts = {
    ...contacts,
    desire(value, where) {
      const row = contacts.desire(value, where);
      note(value, row);
      return row;
    },
    source: {
      ...source,
      async *read(request) {
        const reading = source.read(request);
        let step = await reading.next();
        for (; !step.done; step = await reading.next()) {
          records += step.value.length;
          yield step.value;
        }
        return step.value;
      },
    },
  };
  const limits = { clock: systemClock, limits: () => ({}), reserve: 0 };
  const { progress, close } = createProgress(outletsOf(shell), limits);
  const run = { snapshot, clock: systemClock, stop: shell.stop, progress };
  const read = await readSource(run, watched).finally(close);
  const { valid: desired, wanted, skipped, invalid, missing, unknown, dateColumns } = read.sizes;
  const duplicates = snapshot.duplicates.count({ kind: 'contact' });
  /**
   * The counts of one reading, as a plan has them: all records, keys with a valid one, keys whose
   * records request something, records that identify no person or are invalid, and recorded ones
   * that this reading is the first to lack.
   */
  const counts = { records, desired, wanted, skipped, invalid, missing, duplicates };
  return {
    columns: counter.counts(dateColumns),
    people,
    /** The number of records with a text that was decoded as another encoding. */
    garbled,
    /** Columns that are named like an opt-out, and that the configuration does not use. */
    unusedOptOuts: unused.names(),
    unknown,
    counts,
    found: await judge(of, read, counts, sample),
  };
}

/** Judges a reading. `sample` is a record with an id, which is read alone. */
async function judge(
  { contacts: { source, fields }, snapshot, shell }: SourceToCheck,
  read: SourceRead,
  counts: { records: number; invalid: number; skipped: number },
  sample: DesiredRow | undefined,
): Promise<Found> {
  const judged = judgeCounts('contact', snapshot, read, counts);
  if (!read.complete) return judged;
  const { skipped } = counts;
  const without = skipped > 0 ? `, ${withCommas(skipped)} without an address` : '';
  let single = '';
  if (sample && source.one) {
    // If a listed record were not found by its id, people would be mistaken for removed.
    if (!(await source.one(sample.id, { fields, signal: shell.stop }))) {
      throw new Invalid('a record of the list is not found by its id', {
        fix: 'correct one of the source',
      });
    }
    single = ', and one of them was read by its id';
  }
  return { ...judged, found: `${judged.found}${without}${single}` };
}

/** Judges a reading by whether it is complete, and by how many records are invalid. */
export function judgeCounts(
  kind: RecordTypeName,
  { staging }: Snapshot,
  read: Certificate,
  { records, invalid }: { records: number; invalid: number },
): Found {
  if (!read.complete) return { level: 'fail', found: read.why, fix: read.fix };
  const [first] = staging.invalid(kind, 0, 1);
  const example = first ? `, the first at ${first.place}: ${first.invalid?.reason}` : '';
  const found = `${counted(records, 'record')}, ${withCommas(invalid)} of them invalid${example}`;
  // A single record proves nothing about a column.
  if (invalid < 2 || invalid * 2 <= records) return { level: 'ok', found };
  const fix = 'correct the columns and words of the configuration: see below what they hold';
  return { level: 'fail', found: `most are invalid: ${found}`, fix };
}

const bounds = { mostColumns: 10_000, mostValues: 100, longest: 200 };

/** Creates a collector; `used` are the fields that the configuration names. */
export function findUnusedOptOuts(used: readonly string[]) {
  const columns = countUnused(bounds);
  let records = 0;
  // A condition may look into the elements of a list.
  const isUsed = (path: string): boolean =>
    used.some((name) => path === name || path.startsWith(`${name}[`));
  return {
    add(record: Record<string, unknown>): void {
      records += 1;
      columns.add(record);
    },
    names: () =>
      columns.all().flatMap(({ name, values, others }) => {
        const all = others > 0 ? [...values, { text: '\0others', records: others }] : values;
        const isNamed = isNamedLikeOptOut(name) && !isTextOfEach({ values: all }, records);
        return !isUsed(name) && (isNamed || values.some(saysOptOut)) ? [name] : [];
      }),
  };
}

const mostShown = 5;

/** Warns of such columns: a person who opted out only there is opted in. */
export function tellUnused(names: readonly string[]): Finding[] {
  if (names.length === 0) return [];
  const some = names.slice(0, mostShown).map((name) => JSON.stringify(cell(name)));
  const rest = names.length > mostShown ? ` and ${withCommas(names.length - mostShown)} more` : '';
  const look = names.length === 1 ? 'looks like an opt-out' : 'look like opt-outs';
  const reason = `${some.join(', ')}${rest} ${look}, and the configuration does not use ${names.length === 1 ? 'it' : 'them'}: who opted out only there is opted in`;
  const fix = 'if it says who must not be mailed, name it in contacts.unsubscribed';
  return [note('contacts.unsubscribed', reason, fix)];
}
