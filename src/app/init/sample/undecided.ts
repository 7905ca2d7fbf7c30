/** The refusal of what cannot be decided without a guess. On a terminal it becomes a question. */
import { Invalid } from '../../../domain/errors.ts';
import type { Use } from '../../../records/contact/values/value-vocabulary.ts';
import type { Column, Role, Value } from './sample.ts';

/** What is to be decided: the column for a purpose, or the words of a column. */
export type Question =
  | {
      about: Exclude<Role, 'unsubscribed'> | 'channels' | 'table';
      /** The columns or tables that come into question; empty: any. */
      among: readonly string[];
    }
  | {
      about: 'flags';
      /** The columns that look like a flag. */
      among: readonly Column[];
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

/** Flags that decide something, each with its value, and what they state about the data. */
export interface FlagAnswer extends Partial<
  Record<'id' | 'email' | 'deleted' | 'channel' | 'optOut' | 'words', string>
> {
  /** The name of a column of which only the user knows whether it says who wants no mail. */
  unused?: string;
  /** The name of a column. */
  unsubscribed?: string;
  states: string;
}

/** Thrown with the option that decides it, and with the question. */
export class Undecided extends Invalid {
  readonly question: Question;
  /** The flags that are most likely right, for each problem. */
  readonly answers: readonly FlagAnswer[];
  constructor(
    reason: string,
    { fix, question, answer, others = [] }: Given & { others?: readonly Undecided[] },
  ) {
    super([{ code: 'invalid', reason, fix }, ...others.flatMap(({ problems }) => problems)]);
    this.question = question;
    this.answers = [...(answer ? [answer] : []), ...others.flatMap(({ answers }) => answers)];
  }
  /** Returns the same refusal with the problems of others. */
  with(others: readonly Undecided[]): Undecided {
    const [{ reason, fix = '' }] = this.problems;
    const [answer] = this.answers;
    return new Undecided(reason, { fix, question: this.question, answer, others });
  }
}

interface Given {
  fix: string;
  question: Question;
  answer?: FlagAnswer | undefined;
}
