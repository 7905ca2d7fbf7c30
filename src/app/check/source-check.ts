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
import { keepPeople, type PeopleKeeper } from './mapped-people.ts';
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
  people: PeopleKeeper;
  /** The number of records with a text that was decoded as another encoding. */
  garbled: number;
  /** Columns that are named like an opt-out, and that the configuration does not use. */
  unusedOptOuts: readonly string[];
}

/** What the check of a source needs. */
export interface SourceToCheck {
  part: MirrorPart;
  /** The columns whose values are counted. */
  columns: readonly MappedColumn[];
  /** The snapshot; an empty one if none exists yet. */
  snapshot: Snapshot;
  shell: Shell;
  /** Receives each row. */
  each(row: DesiredRow): void;
}

/** Reads a source completely. Throws as `readSource` does. */
export async function checkSource(of: SourceToCheck): Promise<SourceCheck> {
  const { part, snapshot, shell } = of;
  const watch = watching(of);
  const line = createProgress(outletsOf(shell), {
    clock: systemClock,
    limits: () => ({}),
    reserve: 0,
  });
  const { progress } = line;
  const run = { snapshot, clock: systemClock, stop: shell.stop, progress };
  const read = await readSource(run, { ...part, type: watch.type, source: watch.source }).finally(
    line.close,
  );
  const counts = countsOf(read, snapshot, { part, records: watch.seen.records });
  return {
    ...watch.found(read.sizes.dateColumns),
    unknown: read.sizes.unknown,
    counts,
    found: await foundOf({ of, read, counts, sample: watch.seen.sample }),
  };
}

/** What is noted while records pass. */
interface Seen {
  records: number;
  garbled: number;
  /** A record with an id, to be read alone. */
  sample: DesiredRow | undefined;
}

/** Wraps a part so that every record and row that a run reads is noted. */
function watching({ part: { type, source }, columns, each }: SourceToCheck) {
  const counter = countColumns(columns);
  const people = keepPeople();
  const unused = findUnusedOptOuts(type.fields);
  const seen: Seen = { records: 0, garbled: 0, sample: undefined };
  const optsOut = columns.map(({ option }) => isUnsubscribedOption(option));
  const note = (value: Record<string, unknown>, row: DesiredRow): void => {
    const values = counter.add(value);
    if (isGarbled(value)) seen.garbled += 1;
    if (row.id !== '') seen.sample ??= row;
    each(row);
    if (columns.length === 0) return;
    unused.add(value);
    const open = columns.flatMap(({ channel }, nth) =>
      channel !== undefined && values[nth]?.means === 'unknown' ? [channel] : [],
    );
    // What these become shows only when the whole column was read.
    if (row.asDates) return;
    const isOut = values.some(({ means }, nth) => optsOut[nth] === true && means === 'yes');
    people.add(row, { isUnsubscribed: isOut, unknown: open });
  };
  return {
    seen,
    type: {
      ...type,
      desire(value: Record<string, unknown>, where: string) {
        const row = type.desire(value, where);
        note(value, row);
        return row;
      },
    },
    source: {
      ...source,
      async *read(request: Parameters<typeof source.read>[0]) {
        const records = source.read(request);
        let step = await records.next();
        for (; !step.done; step = await records.next()) {
          seen.records += step.value.length;
          yield step.value;
        }
        return step.value;
      },
    },
    found: (dateColumns: readonly string[]) => ({
      columns: counter.counts(dateColumns),
      people,
      garbled: seen.garbled,
      unusedOptOuts: unused.names(),
    }),
  };
}

/** UTF-8 that was read as windows-1252: Ã¤ for ä, â€“ for –. */
const garbledText = /Ã[\u00a0-\u00bf\u0178\u0152-\u0161\u017d\u017e\u2013-\u203a]|â€/;

function isGarbled(record: Record<string, unknown>): boolean {
  return Object.values(record).some((one) => typeof one === 'string' && garbledText.test(one));
}

function countsOf(
  { sizes }: SourceRead,
  { duplicates }: Snapshot,
  { part: { type }, records }: { part: MirrorPart; records: number },
): SourceCounts {
  const { valid, wanted, skipped, invalid, missing } = sizes;
  const shared = duplicates.count(type.name);
  return { records, desired: valid, wanted, skipped, invalid, missing, duplicates: shared };
}

interface Judging {
  of: SourceToCheck;
  read: SourceRead;
  counts: SourceCounts;
  sample: DesiredRow | undefined;
}

async function foundOf({ of, read, counts, sample }: Judging): Promise<Found> {
  if (!read.complete) {
    return { level: 'fail', found: renderProblem({ reason: read.why, fix: read.fix }) };
  }
  const { records, invalid, skipped } = counts;
  const [first] = of.snapshot.staging.invalid(of.part.type.name, 0, 1);
  const example = first ? `, the first at ${first.place}: ${first.invalid?.reason}` : '';
  const without = skipped > 0 ? `, ${withCommas(skipped)} without an address` : '';
  const single = sample ? await readSingle(of, sample) : '';
  const all = `${counted(records, 'record')}, ${withCommas(invalid)} of them invalid`;
  const found = `${all}${example}${without}${single}`;
  // A single record proves nothing about a column.
  if (invalid < 2 || invalid * 2 <= records) return { level: 'ok', found };
  const fix = 'correct the columns and words of the configuration: see below what they hold';
  return { level: 'fail', found: renderProblem({ reason: `most are invalid: ${found}`, fix }) };
}

/**
 * Checks that a source that can read a single record finds one that it listed. If it did not,
 * people would be mistaken for removed.
 */
async function readSingle({ part: { type, source }, shell }: SourceToCheck, { id }: DesiredRow) {
  if (!source.one) return '';
  const found = await source.one(id, { fields: type.fields, signal: shell.stop });
  if (found) return ', and one of them was read by its id';
  throw new Invalid('a record of the list is not found by its id', {
    fix: 'correct one of the source',
  });
}
