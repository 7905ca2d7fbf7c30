/** Explains a failure to people, with its exit code. What is no bug has a remedy. */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  codeOf,
  isExpected,
  Busy,
  Interrupted,
  Invalid,
  renderProblem,
} from '../../domain/errors.ts';
import { visibleLine } from './text-style.ts';

export interface Fault {
  place?: string | undefined;
  reason: string;
  fix?: string | undefined;
}

export interface Failure {
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
  if (storage)
    return failure(storage, exitCode(codeOf(error).startsWith('SQLITE_BUSY') ? 'busy' : 'failed'));
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return failure({ reason: `this is a bug, please report it:\n${stack}` }, exitCode('failed'));
}

/** Returns whether an error is a bug: `explain` knows no other explanation. */
export function isBug(error: unknown): boolean {
  return !isExpected(error) && !pathFault(error) && !storageFault(error);
}

/** Returns whether an error says that a disk is full. */
export function isDiskFull(error: unknown): boolean {
  const code = codeOf(error);
  if (['SQLITE_FULL', 'ENOSPC', 'EDQUOT'].includes(code)) return true;
  if (!code.startsWith('SQLITE_IOERR') || !(error instanceof Error && 'path' in error))
    return false;
  try {
    const { bavail, bsize } = statfsSync(dirname(String(error.path)));
    return bavail * bsize < 32_768; // The size of the file of its locks, which SQLite needs.
  } catch {
    return false;
  }
}

function failure(problem: Fault, code: number): Failure {
  return { problem, text: renderProblem(problem), code };
}

const pathFaults: Readonly<Record<string, string>> = {
  EFBIG: 'it holds more than 1 MiB',
  ELOOP: 'the symbolic links lead in a circle',
  ENAMETOOLONG: 'the path is too long',
  ENOTDIR: 'a part of the path is no folder',
};

function pathFault(error: unknown): Fault | undefined {
  const what = pathFaults[codeOf(error)];
  if (what === undefined || !(error instanceof Error && 'path' in error)) return undefined;
  return { reason: `${String(error.path)}: ${what}`, fix: 'correct the path in the configuration' };
}

const faultCodes =
  /^(SQLITE_(IOERR|CANTOPEN|PERM|AUTH|NOLFS|PROTOCOL)|E(ACCES|PERM|IO|NOENT|NOTDIR|ISDIR|MFILE|BUSY))/;

function storageFault(error: unknown): Fault | undefined {
  const code = codeOf(error);
  if (!(error instanceof Error)) return undefined;
  const file = 'path' in error ? String(error.path) : 'a file of this mirror';
  if (isDiskFull(error)) {
    const fix = 'free some space there, and where temporary files go, then run again';
    return { reason: `${file}: the disk is full; nothing is lost`, fix };
  }
  if (code.startsWith('SQLITE_BUSY')) {
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
  if ((code === 'EPERM' || code === 'EACCES') && 'path' in error) {
    const fix = 'run this as the user who owns it, or mend its permissions';
    return { reason: `${file}: this user is not allowed to use it (${code})`, fix };
  }
  if (faultCodes.test(code)) {
    const where = code.startsWith('SQLITE_') ? `${file}: ` : '';
    const fix = 'mend the disk or the permissions, then run again';
    return { reason: `${where}${error.message} (${code})`, fix };
  }
  return undefined;
}

/**
 * Scripts rely on the exit codes, so they never change. If several apply, the first in this order
 * wins. `invalid` and `busy` end a command before it does anything.
 */
export const exitCodes = {
  invalid: {
    code: 2,
    means: 'the command line, the configuration or the input cannot be used as it is',
  },
  busy: {
    code: 75,
    means:
      'not now: paused, another process holds the mirror, the export is still being written, or ' +
      'a window delays the rest of an undo',
  },
  failed: {
    code: 1,
    means: 'failed, or not all of it could be done; stderr says what and how to mend it',
  },
  interrupted: { code: 130, means: 'interrupted; everything done so far is recorded' },
  terminated: { code: 143, means: 'interrupted; everything done so far is recorded' },
  held: { code: 3, means: 'some changes await approval; everything else was done' },
  rejected: {
    code: 4,
    means:
      'done, but some records are newly rejected or invalid, or an opt-out could not be applied or read, ' +
      'or an erasure is not finished, or the audit log could not be written',
  },
  changes: { code: 5, means: '`plan --exit-code` found something to do' },
  done: { code: 0, means: 'done' },
} as const satisfies Record<string, { code: number; means: string }>;

type ExitName = keyof typeof exitCodes;

export function exitCode(name: ExitName): number {
  return exitCodes[name].code;
}

/** `reason` is that of the signal by which a process was asked to stop. */
export function codeOfStop(reason: unknown): number {
  const isKey = reason instanceof Interrupted && reason.signal === 'SIGINT';
  return exitCode(isKey ? 'interrupted' : 'terminated');
}
