/** Refuses a column whose words are not known, and proposes the flags that name them. */
import { sayUnknown } from '../../domain/unknown-words.ts';
import type { Use } from '../../records/contact/values/value-vocabulary.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';
import { type Chosen, mayBeAny } from './column-words.ts';
import { wordFlag } from './flag-lists.ts';
import { optOutAnswer, placeholder } from './opt-out-answer.ts';
import { type FlagAnswer, Undecided } from './sample/undecided.ts';

/** What to do instead of naming the words. */
const others: Readonly<Record<Use, (column: string) => string>> = {
  subscription: () => 'name another column',
  unsubscribed: (column) =>
    `if it says something else, add --unused ${column}; if no column says so, add --no-unsubscribed`,
  deleted: () => 'name another column, or add --no-deleted',
};

/** What a column with unknown words is for. */
interface Purpose {
  use: Use;
  /** Whether it is the opt-out of a channel, not of all mail. */
  ofChannel?: true;
}

/** Returns the refusal of a column whose words have to be named. */
export function unreadable(
  { column, unknown }: Chosen,
  { use, ofChannel }: Purpose,
  { asTheyAre }: { asTheyAre: boolean },
): Undecided {
  const values = unknown.map((value) => ({ ...value, unknown: 'word' as const }));
  const lists = use === 'subscription' ? consentLists : flagLists;
  const naming = `--words ${JSON.stringify(wordFlag(column.name, lists))}`;
  const any = `--words ${JSON.stringify(wordFlag(column.name, { yes: 'any' }))} if every value but a no means yes`;
  const isAny = use !== 'subscription' && mayBeAny({ column, unknown });
  const options = isAny ? `${any}, ${naming}` : naming;
  const other = others[ofChannel ? 'subscription' : use](quoted(column.name));
  const which = { option: '', fix: '', values, others: 0, first: '' };
  const answer: FlagAnswer =
    use === 'unsubscribed'
      ? optOutAnswer({ column, unknown }, { isNamed: true, asTheyAre })
      : {
          words: wordFlag(column.name, lists),
          states: `each ${placeholder} is a value of ${quoted(column.name)} as you know it`,
        };
  return new Undecided(`column ${quoted(column.name)}: ${sayUnknown(which, { asTheyAre })}`, {
    fix: `say what they mean: ${options}; or ${other}`,
    question: { about: 'words', use, column, unknown, ...(ofChannel && { ofChannel }) },
    answer,
  });
}

const someWords = [placeholder, placeholder];
const consentLists = { in: someWords, out: someWords, none: someWords };
const flagLists = { yes: someWords, no: someWords };
