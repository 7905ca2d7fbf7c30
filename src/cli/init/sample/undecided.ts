/** The refusal of what cannot be decided without a guess. On a terminal it becomes a question. */
import { Invalid, type Problem } from '../../../domain/errors.ts';
import type { Use } from '../../../records/contact/values/value-vocabulary.ts';
import type { Column, Role, Value } from './sample.ts';

/** What is to be decided: the column for a purpose, or the words of a column. */
export type Question =
  | {
      about: Role | 'channels' | 'table';
      /** The columns or tables that come into question; empty: any. */
      among: readonly string[];
    }
  | {
      about: 'flags';
      /** The columns that look like a flag. */
      among: readonly Column[];
      /** The columns that are opt-outs already. */
      optOuts: readonly string[];
    }
  | {
      about: 'words';
      use: Use;
      /** Whether the column is the opt-out of a channel, not of all mail. */
      ofChannel?: true;
      column: Column;
      unknown: readonly Value[];
    }
  /** What a yes means in a channel's column that is named like an opt-out. */
  | { about: 'polarity'; column: Column };

/** Thrown with the option that decides it, and with the question. */
export class Undecided extends Invalid {
  readonly question: Question;
  constructor(
    reason: string,
    { fix, question, more = [] }: { fix: string; question: Question; more?: readonly Problem[] },
  ) {
    super([{ code: 'invalid', reason, fix }, ...more]);
    this.question = question;
  }
  /** Returns the same refusal with the problems of others. */
  with(others: readonly Undecided[]): Undecided {
    const [{ reason, fix = '' }] = this.problems;
    const more = others.flatMap(({ problems }) => problems);
    return new Undecided(reason, { fix, question: this.question, more });
  }
}
