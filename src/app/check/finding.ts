/** Defines the findings of `check`, and turns expected errors into findings. */
import { Interrupted, Invalid, isExpected } from '../../domain/errors.ts';

/** A check and its result. `note` marks a finding that stops no mirror but should be fixed. */
export interface Finding {
  what: string;
  level: 'ok' | 'note' | 'fail';
  found: string;
  invalidInput: boolean;
}

/** The result of a check that cannot be invalid input. */
export type Found = Pick<Finding, 'level' | 'found'>;

/** Runs a check. An expected error is a failure. Throws Interrupted, and rethrows bugs. */
export async function look(what: string, at: () => Found | Promise<Found>): Promise<Finding> {
  try {
    return { what, ...(await at()), invalidInput: false };
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return { what, level: 'fail', found: error.message, invalidInput: error instanceof Invalid };
  }
}
