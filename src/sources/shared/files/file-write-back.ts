/** Who left, appended to a file: a line for each return. */
import type { OptOutReport } from '../../../domain/opt-out-report.ts';
import { appendLines, linesThere, lookAtFile } from './line-append.ts';
import type { WriteBack, ReportResult } from '../../write-back.ts';

const AT_ONCE = 500;

/** How a return is written; `head` is the first line of a new file. */
interface Form {
  head?: string;
  lineOf(one: OptOutReport): string;
}

export function fileReturns(path: string, { head, lineOf }: Form): WriteBack {
  return {
    most: AT_ONCE,
    takes: () => true,
    async *tell(batch): AsyncGenerator<ReportResult, void> {
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
