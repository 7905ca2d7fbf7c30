/**
 * Reports opt-outs by appending lines to a file. They are complete and on disk when `tell` yields.
 * Appending is synchronous, so two writers in one process never interleave.
 */
import type { OptOutReport } from '../../../domain/opt-out-report.ts';
import type { ReportResult, WriteBack } from '../../source.ts';
import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { Invalid, Unavailable } from '../../../domain/errors.ts';
import type { Fault } from '../../../domain/record.ts';
import { quoted } from '../record-fields.ts';

const AT_ONCE = 500;

/** Reports opt-outs to a CSV file (RFC 4180) with a header, one line per report. */
export function csvReturns({ path }: { path: string }): WriteBack {
  const lineOf = ({ id, email, crmId, channel, cause, after, by }: OptOutReport) => {
    const times = [after, by].map((at) => (at === null ? '' : new Date(at).toISOString()));
    const cells = [id, email, crmId, channel, cause, ...times];
    // Outer spaces need quotes too, because some readers drop them.
    const isPlain = (cell: string) => !/[",\r\n]|^\s|\s$/.test(cell);
    return cells
      .map((cell) => (isPlain(cell) ? cell : `"${cell.replaceAll('"', '""')}"`))
      .join(',');
  };
  return fileReturns(path, lineOf, 'return,email,crm id,channel,cause,after,by');
}

/** Reports opt-outs to a file with one JSON object per line. */
export function ndjsonReturns({ path }: { path: string }): WriteBack {
  return fileReturns(path, ({ id, email, crmId, channel, cause, after, by }) =>
    JSON.stringify({
      return: id,
      email,
      crmId: crmId === '' ? null : crmId,
      channel,
      cause,
      after: after === null ? null : new Date(after).toISOString(),
      by: new Date(by).toISOString(),
    }),
  );
}

/** Returns a write-back that appends to a file; `head` is the first line of a new file. */
function fileReturns(
  path: string,
  lineOf: (one: OptOutReport) => string,
  head?: string,
): WriteBack {
  return {
    most: AT_ONCE,
    takes: () => true,
    async *tell(batch): AsyncGenerator<ReportResult, void> {
      refuseOtherHead(path, head);
      appendLines(path, batch.map(lineOf), head);
      for (const _ of batch) yield { is: 'told' };
    },
    arrived(batch) {
      if (!exists(path)) return new Set();
      const file = doing(path, () => openSync(path, 'r'));
      try {
        const tail = doing(path, () => tailOf(file, fstatSync(file).size)).toString();
        // A line is complete even without its line break.
        const begun = cutShort(Buffer.from(tail)).toString();
        const isThere = (line: string) => line === begun || tail.includes(`${line}\n`);
        return new Set(batch.filter((one) => isThere(lineOf(one))).map(({ id }) => id));
      } finally {
        closeSync(file);
      }
    },
    look() {
      doing(path, () => {
        if (exists(path)) accessSync(path, constants.W_OK | constants.R_OK);
        else accessSync(`${dirname(path)}/.`, constants.W_OK | constants.X_OK);
      });
      if (exists(path) && !statSync(path).isFile())
        throw new Invalid(`${path}: ${noFile.reason}`, { fix: noFile.fix });
      refuseOtherHead(path, head);
      return `appended to ${path}`;
    },
  };
}

const TAIL_BYTES = 1024 * 1024;

/** The file contains addresses, so other users must not read it. */
const MODE = 0o640;

const LF = 0x0a;

/**
 * Appends lines, below `head` in a new file. A line that a crash cut short is completed if it is
 * one of these, and else ended. Throws Invalid, or Unavailable if some lines may be in the file.
 */
function appendLines(path: string, lines: readonly string[], head: string | undefined): void {
  const isNew = !exists(path);
  const file = doing(path, () => openSync(path, 'a+', MODE));
  try {
    doing(path, () => {
      const { size } = fstatSync(file);
      const tail = tailOf(file, size);
      const isHead = head?.startsWith(tail.toString()) === true;
      const text = completeText(cutShort(tail), isHead ? [head] : [], lines);
      for (let done = 0; done < text.length;) done += writeSync(file, text, done);
      fsyncSync(file);
    });
    if (isNew) {
      // The directory entry of a new file must survive a power failure.
      const folder = openSync(dirname(path), 'r');
      try {
        fsyncSync(folder);
      } catch {
        // Not every file system supports this; the lines themselves are already on disk.
      } finally {
        closeSync(folder);
      }
    }
  } finally {
    closeSync(file);
  }
}

const HEAD_BYTES = 1024;

/** Throws Invalid if a file begins neither with (a part of) this header nor with a report. */
function refuseOtherHead(path: string, head: string | undefined): void {
  if (head === undefined || !exists(path)) return;
  const file = doing(path, () => openSync(path, 'r'));
  try {
    const size = Math.min(HEAD_BYTES, fstatSync(file).size);
    const text = doing(path, () => tailOf(file, size)).toString();
    const [line = ''] = text.replace(/^\uFEFF/, '').split(/\r?\n/);
    if (text.includes('\n') ? line === head : head.startsWith(line)) return;
    // A reader may have removed the header with the lines that it took.
    const fields = line.replaceAll(/"[^"]*"/g, '').split(',');
    if (line.startsWith('ret_') && fields.length === head.split(',').length) return;
    const reason = `its first line is not ${quoted(head)}`;
    throw new Invalid(`${path}: ${reason}`, { fix: 'name another file in path of returns' });
  } finally {
    closeSync(file);
  }
}

const noFile: Fault = {
  reason: 'this is no regular file',
  fix: 'name a file in returns of the configuration',
};

/** Returns the text to append after a line cut short: its rest or a line break, then the others. */
function completeText(begun: Buffer, head: readonly string[], lines: readonly string[]): Buffer {
  const whole = [...head, ...lines].map((line) => Buffer.from(`${line}\n`));
  if (begun.length === 0) return Buffer.concat(whole);
  const same = whole.find((line) => line.subarray(0, begun.length).equals(begun));
  if (same)
    return Buffer.concat([same.subarray(begun.length), ...whole.filter((one) => one !== same)]);
  return Buffer.from(`\n${lines.map((line) => `${line}\n`).join('')}`);
}

const cutShort = (tail: Buffer): Buffer => tail.subarray(tail.lastIndexOf(LF) + 1);

function tailOf(file: number, size: number): Buffer {
  const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
  let length = 0;
  while (length < tail.length) {
    const at = size - tail.length + length;
    const read = readSync(file, tail, length, tail.length - length, at);
    if (read === 0) break;
    length += read;
  }
  return tail.subarray(0, length);
}

const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

const otherPath = 'correct path of returns';
const letWrite: Fault = {
  reason: 'it may not be written',
  fix: 'let the user who runs this write it',
};

const faults = new Map<string, Fault>([
  ['ENOENT', { reason: 'its folder is not there', fix: `make it, or ${otherPath}` }],
  ['ENOTDIR', { reason: 'a part of the path is no folder', fix: otherPath }],
  ['EISDIR', noFile],
  ['EACCES', letWrite],
  ['EPERM', letWrite],
  ['EROFS', { reason: 'it lies where nothing can be written', fix: otherPath }],
]);

function doing<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && 'syscall' in error)) throw error;
    const fault = faults.get(String(error.code));
    if (fault) throw new Invalid(`${path}: ${fault.reason}`, { fix: fault.fix });
    throw new Unavailable(`${path}: cannot be written now (${String(error.code)})`, {
      fix: 'make room on its disk',
      acted: 'maybe',
      cause: error,
    });
  }
}
