/**
 * Reads a source completely, by the steps of a run, so that its counts are those of a plan. The
 * records are staged in temporary tables beside the snapshot, which is only read.
 */
import { isUnsubscribedOption } from '../../domain/values/decisive-options.ts';
import type { UnknownWords } from '../../domain/unknown-words.ts';
import { Invalid, renderProblem } from '../../domain/errors.ts';
import type { DesiredRow } from '../../domain/record.ts';
import type { MirrorPart } from '../../engine/context/mirror-context.ts';
import { readSource, type SourceRead } from '../../engine/read/source-read.ts';
import { systemClock } from '../../http/system-clock.ts';
import type { MappedColumn } from '../../records/contact/observe/column-meanings.ts';
import type { DuplicateCounts } from '../../store/staging/desired-records.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { createProgress, outletsOf } from '../../compose/progress/progress-line.ts';
import { type ColumnCount, countColumns } from './column-values.ts';
import type { Found } from './finding.ts';
import { keepPeople } from './mapped-people.ts';
import { findUnusedOptOuts } from './unused-opt-outs.ts';

/** The counts of one reading, as a plan has them. */
export interface SourceCounts {
  /** All records, whatever becomes of them. */
  records: number;
  /** Keys with a valid record. */
  desired: number;
  /** Keys whose records request something. */
  wanted: number;
  /** Records that identify no person. */
  skipped: number;
  invalid: number;
  /** Recorded records that this reading is the first to lack. */
  missing: number;
  duplicates: DuplicateCounts;
}

/** What a source holds. */
export interface SourceCheck {
  found: Found;
  counts: SourceCounts;
  unknown: readonly UnknownWords[];
  columns: readonly ColumnCount[];
  people: ReturnType<typeof keepPeople>;
  /** The number of records with a text that was decoded as another encoding. */
  garbled: number;
  /** Columns that are named like an opt-out, and that the configuration does not use. */
  unusedOptOuts: readonly string[];
}

/** What the check of a source needs. */
interface SourceToCheck {
  part: MirrorPart;
  /** The columns whose values are counted. */
  columns: readonly MappedColumn[];
  /** The snapshot; an empty one if none exists yet. */
  snapshot: Snapshot;
  shell: Shell;
  /** Receives each row. */
  each(row: DesiredRow): void;
}

/** UTF-8 that was read as windows-1252: Ã¤ for ä, â€“ for –. */
const garbledText = /Ã[\u00a0-\u00bf\u0178\u0152-\u0161\u017d\u017e\u2013-\u203a]|â€/;

/** Reads a source completely. Throws as `readSource` does. */
export async function checkSource(of: SourceToCheck): Promise<SourceCheck> {
  const { part, columns, snapshot, shell, each } = of;
  const { type, source } = part;
  const counter = countColumns(columns);
  const people = keepPeople();
  const unused = findUnusedOptOuts(type.fields);
  const optsOut = columns.map(({ option }) => isUnsubscribedOption(option));
  let [records, garbled] = [0, 0];
  let sample: DesiredRow | undefined;
  const note = (value: Record<string, unknown>, row: DesiredRow): void => {
    const values = counter.add(value);
    const texts = Object.values(value);
    if (texts.some((one) => typeof one === 'string' && garbledText.test(one))) garbled += 1;
    if (row.id !== '') sample ??= row;
    each(row);
    if (columns.length === 0) return;
    unused.add(value);
    // What these become shows only when the whole column was read.
    if (row.asDates) return;
    const unknown = columns.flatMap(({ channel }, nth) =>
      channel !== undefined && values[nth]?.means === 'unknown' ? [channel] : [],
    );
    const isOut = values.some(({ means }, nth) => optsOut[nth] === true && means === 'yes');
    people.add(row, { isUnsubscribed: isOut, unknown });
  };
  const watched: MirrorPart = {
    ...part,
    type: {
      ...type,
      desire(value, where) {
        const row = type.desire(value, where);
        note(value, row);
        return row;
      },
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
  const duplicates = snapshot.duplicates.count(type.name);
  const counts = { records, desired, wanted, skipped, invalid, missing, duplicates };
  return {
    columns: counter.counts(dateColumns),
    people,
    garbled,
    unusedOptOuts: unused.names(),
    unknown,
    counts,
    found: await judge(of, read, counts, sample),
  };
}

/** Judges a reading. `sample` is a record with an id, which is read alone. */
async function judge(
  { part: { type, source }, snapshot, shell }: SourceToCheck,
  read: SourceRead,
  { records, invalid, skipped }: SourceCounts,
  sample: DesiredRow | undefined,
): Promise<Found> {
  if (!read.complete) {
    return { level: 'fail', found: renderProblem({ reason: read.why, fix: read.fix }) };
  }
  const [first] = snapshot.staging.invalid(type.name, 0, 1);
  const example = first ? `, the first at ${first.place}: ${first.invalid?.reason}` : '';
  const without = skipped > 0 ? `, ${withCommas(skipped)} without an address` : '';
  let single = '';
  if (sample && source.one) {
    // If a listed record were not found by its id, people would be mistaken for removed.
    if (!(await source.one(sample.id, { fields: type.fields, signal: shell.stop }))) {
      throw new Invalid('a record of the list is not found by its id', {
        fix: 'correct one of the source',
      });
    }
    single = ', and one of them was read by its id';
  }
  const all = `${counted(records, 'record')}, ${withCommas(invalid)} of them invalid`;
  const found = `${all}${example}${without}${single}`;
  // A single record proves nothing about a column.
  if (invalid < 2 || invalid * 2 <= records) return { level: 'ok', found };
  const fix = 'correct the columns and words of the configuration: see below what they hold';
  return { level: 'fail', found: renderProblem({ reason: `most are invalid: ${found}`, fix }) };
}
