/** The refusal of what cannot be decided without a guess. On a terminal it becomes a question. */
import { Invalid } from '../../../domain/errors.ts';
import type { Use } from '../../../records/contact/observe/value-vocabulary.ts';
import type { Column, Role, Value } from './sample.ts';

/** What is to be decided: the column for a purpose, or the words of a column. */
export type Question =
  | {
      about: Role | 'channels' | 'table';
      /** The columns or tables that come into question; empty: any. */
      among: readonly string[];
    }
  | { about: 'words'; use: Use; column: Column; unknown: readonly Value[] };

/** Thrown with the option that decides it, and with the question. */
export class Undecided extends Invalid {
  readonly question: Question;
  constructor(reason: string, { fix, question }: { fix: string; question: Question }) {
    super(reason, { fix });
    this.question = question;
  }
}
