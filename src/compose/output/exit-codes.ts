import { Interrupted } from '../../domain/errors.ts';

/**
 * Lists the exit codes of all commands. Scripts rely on them, so they never change. If several
 * apply, the first in this order wins. `invalid` and `busy` end a command before it does anything.
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

export type ExitName = keyof typeof exitCodes;

export function exitCode(name: ExitName): number {
  return exitCodes[name].code;
}

/** `reason` is that of the signal by which a process was asked to stop. */
export function codeOfStop(reason: unknown): number {
  const isKey = reason instanceof Interrupted && reason.signal === 'SIGINT';
  return exitCode(isKey ? 'interrupted' : 'terminated');
}
