/** Reports opt-outs to a CSV file (RFC 4180) with a header, one line per report. */
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import { fileReturns } from '../shared/files/file-write-back.ts';
import type { WriteBack } from '../write-back.ts';
import type { CsvReturnsOptions } from './options.ts';

const head = 'return,email,crm id,channel,cause,after,by';

export function csvReturns({ path }: CsvReturnsOptions): WriteBack {
  const lineOf = ({ id, email, crmId, channel, cause, after, by }: OptOutReport) => {
    const times = [after, by].map((at) => (at === null ? '' : new Date(at).toISOString()));
    return [id, email, crmId, channel, cause, ...times].map(quoted).join(',');
  };
  return fileReturns(path, lineOf, head);
}

/** Quotes a cell if needed, also one with outer spaces, because some readers drop them. */
function quoted(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
