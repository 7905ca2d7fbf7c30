/** Reports opt-outs to a CSV file (RFC 4180) with a header, one line per report. */
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import { fileReturns } from '../shared/files/file-write-back.ts';
import type { WriteBack } from '../write-back.ts';
import type { CsvReturnsOptions } from './options.ts';

const head = 'return,email,crm id,channel,cause,after,by';

/** Returns a write-back that appends to a CSV file. */
export function csvReturns({ path }: CsvReturnsOptions): WriteBack {
  return fileReturns(path, { head, lineOf });
}

function lineOf({ id, email, crmId, channel, cause, after, by }: OptOutReport): string {
  const time = (at: number): string => new Date(at).toISOString();
  const cells = [id, email, crmId, channel, cause, after === null ? '' : time(after), time(by)];
  return cells.map(quoted).join(',');
}

/**
 * Quotes a cell if needed. Leading and trailing spaces are quoted too, because some readers drop
 * them.
 */
function quoted(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
