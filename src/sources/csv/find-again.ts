/**
 * Reads on after a row that leaves the borders of the following rows in doubt, as far as a row can
 * be found again for certain. The row opened a quote. If that one is a stray character, rows follow
 * from the next line on; if it opened a field, the next lines are text of that field, and may even
 * be rows that somebody pasted into it. So a row counts if all of this is true:
 *
 *   - read from the line after the faulty row, it is a row of one line outside of all quotes
 *   - it holds no quote itself
 *   - it lies behind the quote that the parser took for the closing one, if there was any: if there
 *     was none, the first quote opened no field
 *
 * The caller also demands the header's width and an address. Nothing certifies such a reading, so
 * that only opt-outs follow from it.
 */
import type { Delimiter } from './csv-header.ts';
import { type Row, type RowParser, rowParser } from './row-parser.ts';

/** How often the rows are looked for again in one file. */
const MOST_STARTS = 100;

/** A row that was found again. */
interface FoundRow extends Row {
  isFound?: true;
}

/** A parser that reads on; `write` and `end` return only the first reason. */
export interface FindingParser extends Omit<RowParser, 'take' | 'rest'> {
  take(): FoundRow[];
}

/** Creates a parser for one file, from the line `first` on. */
export function findingParser(delimiter: Delimiter, first: number): FindingParser {
  let parser = rowParser(delimiter, { line: first });
  let rows: FoundRow[] = [];
  let stoppedOn: number | undefined;
  let doubtful = 0;
  let starts = 0;
  const collect = (): void => {
    for (const row of parser.take()) {
      if (stoppedOn === undefined) rows.push(row);
      else if (row.isPlain && row.end > doubtful) rows.push({ ...row, isFound: true });
    }
  };
  async function read(call: () => Promise<string | undefined>, isEnd: boolean) {
    if (starts > MOST_STARTS) return undefined;
    let why = await call();
    collect();
    const told = stoppedOn === undefined ? why : undefined;
    while (why !== undefined) {
      stoppedOn ??= parser.line();
      const rest = parser.rest();
      parser.close();
      starts += 1;
      if (starts > MOST_STARTS) break;
      doubtful = rest.doubtful;
      parser = rowParser(delimiter, { isWary: true, line: rest.line });
      why = await parser.write(rest.text);
      collect();
      if (why !== undefined || !isEnd) continue;
      why = await parser.end();
      collect();
    }
    return told;
  }
  return {
    write: (chunk) => read(() => parser.write(chunk), false),
    end: () => read(() => parser.end(), true),
    take() {
      const taken = rows;
      rows = [];
      return taken;
    },
    line: () => stoppedOn ?? parser.line(),
    close: () => parser.close(),
  };
}
