/** Defines the findings of `check`, and turns expected errors into findings. */
import { Interrupted, Invalid, isExpected } from '../../domain/errors.ts';

/** The result of a check. `note` marks what stops no mirror but should be fixed. */
export interface Found {
  level: 'ok' | 'note' | 'fail';
  found: string;
  /** What to do about it. */
  fix?: string | undefined;
}

/** A check and its result. */
export interface Finding extends Found {
  what: string;
  /** Whether the check failed because an input is invalid. */
  invalidInput?: boolean;
}

/** Runs a check. An expected error is a failure. Throws Interrupted, and rethrows bugs. */
export async function look(what: string, at: () => Found | Promise<Found>): Promise<Finding> {
  try {
    return { what, ...(await at()) };
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return { what, level: 'fail', found: error.message, invalidInput: error instanceof Invalid };
  }
}

/** Returns the finding about a problem that stops no mirror. */
export function note(what: string, found: string, fix: string | undefined): Finding {
  return { what, level: 'note', found, fix };
}
