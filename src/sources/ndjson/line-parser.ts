/** Converts bytes into lines, and buffers no more than one incomplete line. */

/**
 * Limits the length of a line to more than any record needs. Without a limit, a file without line
 * breaks would be held in memory as a whole.
 */
const LINE_BYTES = 4 * 1024 * 1024;

/** One line of the file. */
export interface JsonLine {
  /** The number of the line; the first line is 1. */
  number: number;
  /** The text; undefined if the line exceeds the limit. */
  text: string | undefined;
}

/** A parser that the caller feeds chunk by chunk. */
export interface LineParser {
  /** Returns the lines completed by this chunk, without blank lines. */
  write(chunk: Buffer): JsonLine[];
  /** Returns the text after the last line break. */
  end(): JsonLine[];
}

/** Creates a parser for one file. */
export function lineParser(): LineParser {
  let number = 1;
  let held: Buffer[] = [];
  let bytes = 0;
  const hold = (part: Buffer) => {
    bytes += part.length;
    if (bytes > LINE_BYTES) held = [];
    else held.push(part);
  };
  const take = (): JsonLine[] => {
    const text = bytes > LINE_BYTES ? undefined : lineOf(held, number);
    const line = { number, text };
    [number, held, bytes] = [number + 1, [], 0];
    return text === '' ? [] : [line];
  };
  return {
    write(chunk) {
      const lines: JsonLine[] = [];
      let start = 0;
      for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
        hold(chunk.subarray(start, end));
        lines.push(...take());
        start = end + 1;
      }
      hold(chunk.subarray(start));
      return lines;
    },
    end: take,
  };
}

function lineOf(parts: readonly Buffer[], number: number): string {
  const text = Buffer.concat(parts).toString('utf8').trim();
  return number === 1 ? text.replace(/^\uFEFF/, '').trim() : text;
}
