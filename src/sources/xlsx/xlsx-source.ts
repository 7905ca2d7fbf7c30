/**
 * Reads contacts from a sheet of an Excel workbook: one record per row, with the column names as
 * its fields and texts as values. The header is the first row with more than one cell. Rows above
 * it are titles. A cell to the right of the header is in a column without a name.
 *
 * The read is certified if the sheet was read to the end, its bytes match their CRC, every row
 * could be read, and the file did not change meanwhile. If the read breaks off, the records read so
 * far are kept, without a certificate.
 */
import { Invalid } from '../../domain/errors.ts';
import type { Clock } from '../../domain/clock.ts';
import { brokenRow, type FileTally, flawsOf, untilCut } from '../shared/files/line-file.ts';
import { localFile } from '../shared/files/local-file.ts';
import { certificateOf, type Flaw, stoppedBy } from '../shared/read-certificate.ts';
import {
  type Columns,
  columnsOf,
  NAMING_ROWS,
  type NamingRow,
  noHeader,
} from '../shared/table-columns.ts';
import type { Source, SourceRecord } from '../source.ts';
import type { XlsxOptions } from './options.ts';
import type { SheetRow } from './sheet-rows.ts';
import { openSheet, type Sheet } from './workbook.ts';

export function xlsxSource(
  { path, sheet: name, headerRow }: XlsxOptions,
  { clock }: { clock: Clock },
): Source {
  const file = localFile(path, clock);
  return {
    async *read(request) {
      const { signal } = request;
      const { handle, reading, flaws } = await file.open(signal);
      try {
        const sheet = await openSheet({ path, handle, signal }, name);
        const tally: Tally = { bytes: 0, lineEnded: true, broken: 0, records: 0 };
        let cut: Flaw | undefined;
        try {
          yield* untilCut(readRecords(sheet, request.fields, headerRow, tally), tally);
        } catch (error) {
          const where = `at row ${sheet.rows.last()}`;
          cut = stoppedBy(error, { hasBegun: tally.records > 0, where });
        }
        return certificateOf(reading, flawsOf(tally, cut, await flaws()));
      } finally {
        await handle.close();
      }
    },
    still: file.still,
  };
}

interface Tally extends FileTally {
  records: number;
}

/** Yields one group of records for each chunk of the sheet. */
async function* readRecords(
  sheet: Sheet,
  fields: readonly string[],
  headerRow: number | undefined,
  tally: Tally,
): AsyncGenerator<SourceRecord[]> {
  const naming = { name: sheet.name, fields, headerRow };
  let header: readonly NamingRow[] = [];
  let columns: Columns | undefined;
  let above: NamingRow = { number: 0, cells: [] };
  const columnsUnder = ([names, ...below]: readonly NamingRow[], width: number): Columns => {
    const { number = 0, cells = [] } = names ?? {};
    const all = Array.from({ length: Math.max(cells.length, width) }, (_, at) => cells[at] ?? '');
    return columnsOf([{ number, cells: all }, ...below], naming);
  };
  for await (const bytes of sheet.read()) {
    tally.bytes += bytes;
    const group: SourceRecord[] = [];
    const rows = sheet.rows.take();
    for (const row of rows) {
      if (columns) {
        const isWide = row.cells.length > columns.width;
        const own = isWide ? columnsUnder(header, row.cells.length) : columns;
        group.push(toRecord(row, own, fields, tally));
      } else if (
        headerRow === undefined
          ? namesIn(row).cells.filter((cell) => cell !== '').length > 1
          : row.number >= headerRow
      ) {
        const from = rows.indexOf(row) + 1;
        const below = rows.slice(from, from + NAMING_ROWS).map(namesIn);
        const names = headerRow === undefined ? namesIn(row) : underMerged(above, namesIn(row));
        header = [names, ...below];
        // Cells of requested columns without a name may come late.
        const unnamed = fields.map((field) => /^unnamed \((\d{1,5})\)$/.exec(field)?.[1] ?? 0);
        columns = columnsUnder(header, names.cells.length + Math.max(0, ...unnamed.map(Number)));
      } else above = underMerged(above, namesIn(row));
    }
    tally.records += group.length;
    yield group;
  }
  if (columns) return;
  if (headerRow !== undefined) throw noHeader(naming);
  throw new Invalid(`${sheet.name} has no row with more than one cell`, {
    fix: 'name another sheet in the source, or add a row of column names',
  });
}

function namesIn({ number, cells }: SheetRow): NamingRow {
  const names = Array.from(cells, (cell) => (typeof cell === 'string' ? cell.trim() : ''));
  return { number, cells: names };
}

/** Fills empty cells of a row from above, as where cells of several header rows are merged. */
function underMerged({ cells: above }: NamingRow, { number, cells }: NamingRow): NamingRow {
  const length = Math.max(above.length, cells.length);
  return { number, cells: Array.from({ length }, (_, at) => cells[at] || (above[at] ?? '')) };
}

/** Returns a row's record, broken if a requested cell (any, if none is) cannot be read. */
function toRecord(
  { number, cells }: SheetRow,
  columns: Columns,
  fields: readonly string[],
  tally: Tally,
): SourceRecord {
  const where = `row ${number}`;
  const all = columns.valueOf(Array.from({ length: columns.width }, (_, at) => cells[at] ?? ''));
  if (cells.every((cell) => typeof cell === 'string')) return { where, value: all };
  const asked = fields.length === 0 ? Object.keys(all) : fields;
  const fault = asked.map((field) => all[field]).find((cell) => typeof cell === 'object');
  if (fault) return brokenRow(tally, where, fault);
  const texts = Object.entries(all).filter(([, cell]) => typeof cell === 'string');
  return { where, value: Object.fromEntries(texts) };
}
