/** Stages and counts records from a source that was not read completely. */
import type { DesiredRow, RecordTypeName } from '../../domain/record.ts';
import { z } from 'zod';
import { withSerialsRead } from '../../domain/date-columns.ts';
import { metaValue } from '../../store/database/meta-table.ts';
import { countUnknown } from '../../domain/unknown-words.ts';
import { everything } from '../../store/database/key-range.ts';
import type { RunContext } from '../context/run-context.ts';
import { inTurns } from '../context/work-in-parts.ts';
import type { Sizes } from '../context/run-findings.ts';

const stagedAtOnce = 1_000;

/**
 * Returns the rows with their serial numbers of Excel read as the last complete reading has them. A
 * few records do not show what their columns hold.
 */
export function withKnownColumns(
  run: Pick<RunContext, 'snapshot'>,
  kind: RecordTypeName,
  rows: readonly DesiredRow[],
): DesiredRow[] {
  const known = dateColumnsIn(run.snapshot, kind);
  return rows.map((row) => withSerialsRead(row, known));
}

function dateColumnsIn({ meta }: RunContext['snapshot'], kind: RecordTypeName): string[] {
  return metaValue(meta, dateColumnsOf(kind), z.array(z.string())) ?? [];
}

const dateColumnsOf = (kind: RecordTypeName): string => `date columns of ${kind}s`;

/** Stages a few records. Returns how many of them identify no person. */
export async function stageIncremental(
  run: Pick<RunContext, 'snapshot' | 'clock'>,
  kind: RecordTypeName,
  rows: readonly DesiredRow[],
): Promise<number> {
  const { staging, stage } = run.snapshot;
  const count = Math.ceil(rows.length / stagedAtOnce);
  const starts = Array.from({ length: count }, (_, nth) => nth * stagedAtOnce);
  for await (const start of inTurns(run, starts)) {
    const some = rows.slice(start, start + stagedAtOnce);
    stage(() => staging.addDesired(some, start + 1));
  }
  stage(() => {
    staging.sortIn(kind, 'keyless');
    staging.sortIn(kind, everything);
  });
  staging.endSorting();
  let skipped = 0;
  stage(() => {
    staging.noteStrange(kind, 'keyless');
    staging.noteStrange(kind, everything);
    staging.nameByOrigin(kind, rows.length);
    skipped = staging.skipUnknown(kind);
  });
  return skipped;
}

/**
 * Returns the sizes of an incremental reading. `wanted` is the count of the last complete reading
 * plus the records added since. Without such a count, it is the number of recorded records, counted
 * when a guard needs it.
 */
export function incrementalSizes(
  { snapshot }: Pick<RunContext, 'snapshot'>,
  kind: RecordTypeName,
  { rows, skipped }: { rows: readonly DesiredRow[]; skipped: number },
): Sizes {
  const unknown = countUnknown();
  rows.forEach(unknown.add);
  const invalid = snapshot.staging.countInvalid(kind);
  const before = snapshot.meta.get(wantedOf(kind));
  const news = rows.filter((row) => row.wants && !row.invalid).length;
  return {
    valid: rows.length - invalid - skipped,
    invalid,
    skipped,
    missing: 0,
    unknown: unknown.words(),
    dateColumns: dateColumnsIn(snapshot, kind),
    get wanted() {
      return before === undefined ? snapshot.recorded.count(kind) : Number(before) + news;
    },
  };
}

const wantedOf = (kind: RecordTypeName): string => `wanted of ${kind}s`;

/**
 * Stores the size of a complete reading, and which columns hold dates, for incremental runs. Must
 * be called within a transaction.
 */
export function storeReadingFacts(
  { meta }: RunContext['snapshot'],
  kind: RecordTypeName,
  { wanted, dateColumns }: Sizes,
): void {
  meta.set(wantedOf(kind), String(wanted));
  if (dateColumns.length > 0) meta.set(dateColumnsOf(kind), JSON.stringify(dateColumns));
  else meta.drop(dateColumnsOf(kind));
}
