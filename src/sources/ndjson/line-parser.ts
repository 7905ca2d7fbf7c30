/** Bytes in, lines out, holding no more than one line that is not whole yet. */

/** More than any record; without a bound a file without line breaks would be held as a whole. */
const LINE_BYTES = 4 * 1024 * 1024;

export interface JsonLine {
  /** The first line of the file is 1. */
  number: number;
  /** Undefined when it is longer than is accepted. */
  text: string | undefined;
}

export interface LineParser {
  /** The lines that became whole, without those that are blank. */
  write(chunk: Buffer): JsonLine[];
  /** What stands after the last line break. */
  end(): JsonLine[];
}

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
