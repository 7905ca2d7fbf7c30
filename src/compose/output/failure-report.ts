/**
 * Explains any failure to people, with the exit code that classifies it. What is no bug has a
 * remedy: an expected error, a path that cannot be used, an error of the disk, the file system or
 * SQLite.
 */
import {
  isExpected,
  Busy,
  Interrupted,
  Invalid,
  type Problem,
  renderProblem,
} from '../../domain/errors.ts';
import { codeOfStop, exitCode } from './exit-codes.ts';
import { visibleLine } from './visible-text.ts';

type Fault = Omit<Problem, 'code'>;

/** The text that describes a failure for people, and the exit code that classifies it. */
export interface Failure {
  /** The first of the problems. */
  problem: Fault;
  /** All problems, one per line without control characters, or the stack of a bug. */
  text: string;
  code: number;
}

/** An unexpected error is reported as a bug, with its stack. */
export function explain(error: unknown): Failure {
  if (isExpected(error)) {
    const text = error.problems.map((one) => visibleLine(renderProblem(one))).join('\n');
    let code = exitCode(error instanceof Busy ? 'busy' : 'failed');
    if (error instanceof Invalid) code = exitCode('invalid');
    if (error instanceof Interrupted) code = codeOfStop(error);
    return { problem: error.problems[0], text, code };
  }
  const path = pathFault(error);
  if (path) return failure(path, exitCode('invalid'));
  const storage = storageFault(error);
  if (storage) return failure(storage, exitCode(isLocked(error) ? 'busy' : 'failed'));
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return failure({ reason: `this is a bug, please report it:\n${stack}` }, exitCode('failed'));
}

/** Returns whether an error is a bug: `explain` knows no other explanation. */
export function isBug(error: unknown): boolean {
  return !isExpected(error) && !pathFault(error) && !storageFault(error);
}

/** Returns whether an error says that a disk is full. */
export function isDiskFull(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ['SQLITE_FULL', 'ENOSPC', 'EDQUOT'].includes(code);
}

function failure(problem: Fault, code: number): Failure {
  return { problem, text: renderProblem(problem), code };
}

function isLocked(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');
}

const pathFaults: Readonly<Record<string, string>> = {
  EFBIG: 'it holds more than 1 MiB',
  ELOOP: 'the symbolic links lead in a circle',
  ENAMETOOLONG: 'the path is too long',
  ENOTDIR: 'a part of the path is no folder',
};

function pathFault(error: unknown): Fault | undefined {
  if (!(error instanceof Error && 'code' in error && 'path' in error)) return undefined;
  const what = pathFaults[String(error.code)];
  if (what === undefined) return undefined;
  return { reason: `${String(error.path)}: ${what}`, fix: 'correct the path in the configuration' };
}

const faultCodes =
  /^(SQLITE_(IOERR|CANTOPEN|PERM|AUTH|NOLFS|PROTOCOL)|E(ACCES|PERM|IO|NOENT|NOTDIR|ISDIR|MFILE|DQUOT))/;

function storageFault(error: unknown): Fault | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (!(error instanceof Error)) return undefined;
  const file = 'path' in error ? String(error.path) : 'a file of this mirror';
  if (isDiskFull(error)) {
    const fix = 'free some space there, and where temporary files go, then run again';
    return { reason: `${file}: the disk is full; nothing is lost`, fix };
  }
  if (isLocked(error)) {
    const fix = 'wait for it, then run again';
    return { reason: `${file}: it is in use by another process`, fix };
  }
  if (code.startsWith('SQLITE_READONLY') || code === 'EROFS') {
    const fix = 'mend its permissions or its disk';
    return { reason: `${file}: it cannot be written (read-only)`, fix };
  }
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    const fix =
      'restore a backup, or, if it is the snapshot, run again: `sync` sets it aside and begins anew';
    return { reason: `${file}: this is not a readable database`, fix };
  }
  if (faultCodes.test(code)) {
    const where = code.startsWith('SQLITE_') ? `${file}: ` : '';
    const fix = 'mend the disk or the permissions, then run again';
    return { reason: `${where}${error.message} (${code})`, fix };
  }
  return undefined;
}
