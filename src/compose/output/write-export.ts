/** Writes an export line by line to a file of its own, and rows as CSV (RFC 4180). */
import { closeSync, existsSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { codeOf, Invalid } from '../../domain/errors.ts';

const charactersAtOnce = 65_536;

/** Opens the file of --output, or else stdout, which --json then leaves no room. Throws Invalid. */
export function openExport(
  { output, json }: { output?: string | undefined; json?: true | undefined },
  shell: { print(line: string): void },
) {
  const path = output === undefined ? undefined : resolve(output);
  if (path === undefined && json) {
    throw new Invalid('--json: the export itself goes to stdout', {
      fix: 'add --output FILE, or leave --json out',
    });
  }
  return {
    path,
    write(lines: Iterable<string>): void {
      if (path === undefined) for (const line of lines) shell.print(line);
      else writeLines(path, lines);
    },
    /** Returns the line that says what was written; it would be in the way on stdout. */
    written: (what: string): string[] => (path === undefined ? [] : [`${what} written to ${path}`]),
  };
}

/**
 * A new file that only its owner can read (0600), and that is removed if it is not whole. Throws
 * Invalid if it exists or has no folder.
 */
export function writeLines(path: string, lines: Iterable<string>): void {
  const folder = dirname(path);
  if (!existsSync(folder)) {
    throw new Invalid(`${path}: there is no folder ${folder}`, {
      fix: 'make it, or name another file',
    });
  }
  let file: number;
  try {
    file = openSync(path, 'wx', 0o600);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    throw new Invalid(`${path}: it is there, and nothing is overwritten`, {
      fix: 'name another, or remove it',
    });
  }
  let isWhole = false;
  try {
    let waiting = '';
    for (const line of lines) {
      waiting += `${line}\n`;
      if (waiting.length < charactersAtOnce) continue;
      writeAll(file, waiting);
      waiting = '';
    }
    writeAll(file, waiting);
    isWhole = true;
  } finally {
    closeSync(file);
    if (!isWhole) rmSync(path);
  }
}

/** One call may write only a part. */
function writeAll(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done);
}

/** Returns one line for each row. `spreadsheet`: cells that begin like a formula become texts. */
export function csvLines(
  rows: readonly (readonly string[])[],
  { spreadsheet }: { spreadsheet: boolean },
): string[] {
  // Puts an apostrophe, which spreadsheets hide, before text that begins like a formula.
  const plain = (text: string): string =>
    spreadsheet && /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  // Leading and trailing spaces are quoted, too: some readers would drop them.
  const quoted = (cell: string): string =>
    /[",\r\n]|^\s|\s$/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
  return rows.map((row) => row.map((text) => quoted(plain(text))).join(','));
}
