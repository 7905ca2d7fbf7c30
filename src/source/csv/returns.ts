/** Who left, appended to a CSV file: RFC 4180, with a header, one line for each return. */
import type { Return } from '../../model/returned.ts';
import { appendLines, linesThere, lookAtFile } from '../append.ts';
import type { Returns, Told } from '../returns.ts';
import type { CsvReturnsOptions } from './options.ts';

const AT_ONCE = 500;
const head = 'return,email,crm id,channel,cause,after,by';

export function csvReturns({ path }: CsvReturnsOptions): Returns {
  return {
    most: AT_ONCE,
    takes: () => true,
    async *tell(batch): AsyncGenerator<Told, void> {
      appendLines(path, { head, lines: batch.map(lineOf) });
      for (const _ of batch) yield { is: 'told' };
    },
    arrived(batch) {
      const there = linesThere(path, batch.map(lineOf));
      return new Set(batch.filter((one) => there.has(lineOf(one))).map(({ id }) => id));
    },
    look() {
      lookAtFile(path);
      return `appended to ${path}`;
    },
  };
}

function lineOf({ id, email, crmId, channel, cause, after, by }: Return): string {
  const time = (at: number): string => new Date(at).toISOString();
  const cells = [id, email, crmId, channel, cause, after === null ? '' : time(after), time(by)];
  return cells.map(quoted).join(',');
}

/** Spaces at an end would not outlive every reader. */
function quoted(cell: string): string {
  return /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
