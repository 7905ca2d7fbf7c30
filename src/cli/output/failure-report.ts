import { Busy, Interrupted, Invalid, isExpected, Rejected } from '../../domain/errors.ts';
import { codeOfStop, exitCode } from './exit-codes.ts';

/** The text and the exit code of a failure. */
export interface Fault {
  text: string;
  code: number;
}

/**
 * Returns the text and the exit code for any error. An unexpected one is reported as a bug, with
 * its stack.
 */
export function explain(error: unknown): Fault {
  if (isExpected(error)) {
    const text = error instanceof Rejected ? refusalOf(error) : error.message;
    return { text, code: codeOf(error) };
  }
  const path = pathFault(error);
  if (path !== undefined) return { text: path, code: exitCode('invalid') };
  const storage = storageFault(error);
  if (storage !== undefined) {
    return { text: storage, code: exitCode(isLocked(error) ? 'busy' : 'failed') };
  }
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { text: `this is a bug, please report it:\n${stack}`, code: exitCode('failed') };
}

/** Words the platform's refusal: what it said, why, and the fix. */
function refusalOf({ message, why, fix }: Rejected): string {
  const reason = why === '' || why === message ? '' : `: ${why.replace(/\.$/, '')}`;
  return `${message}${reason}${fix === '' ? '' : ` → ${fix}`}`;
}

function codeOf(error: Error): number {
  if (error instanceof Interrupted) return codeOfStop(error);
  if (error instanceof Invalid) return exitCode('invalid');
  return exitCode(error instanceof Busy ? 'busy' : 'failed');
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

/**
 * Words a path that cannot be used, which only a person can correct; undefined: it is no such
 * error.
 */
function pathFault(error: unknown): string | undefined {
  if (!(error instanceof Error && 'code' in error && 'path' in error)) return undefined;
  const what = pathFaults[String(error.code)];
  return what && `${String(error.path)}: ${what} → correct the path in the configuration`;
}

/**
 * Words an error of the disk, the file system or SQLite, which is no bug; undefined: it is no such
 * error.
 */
function storageFault(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (!(error instanceof Error)) return undefined;
  const file = 'path' in error ? String(error.path) : 'a file of this mirror';
  if (code === 'SQLITE_FULL' || code === 'ENOSPC') {
    return `${file}: the disk is full; nothing is lost → free some space there, and where temporary files go, then run again`;
  }
  if (isLocked(error)) {
    return `${file}: it is in use by another process → wait for it, then run again`;
  }
  if (code.startsWith('SQLITE_READONLY') || code === 'EROFS') {
    return `${file}: it cannot be written (read-only) → mend its permissions or its disk`;
  }
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return `${file}: this is not a readable database → restore a backup, or, if it is the snapshot, run again: \`sync\` sets it aside and begins anew`;
  }
  if (
    /^(SQLITE_(IOERR|CANTOPEN|PERM|AUTH|NOLFS|PROTOCOL)|E(ACCES|PERM|IO|NOENT|NOTDIR|ISDIR|MFILE|DQUOT))/.test(
      code,
    )
  ) {
    const where = code.startsWith('SQLITE_') ? `${file}: ` : '';
    return `${where}${error.message} (${code}) → mend the disk or the permissions, then run again`;
  }
  return undefined;
}
