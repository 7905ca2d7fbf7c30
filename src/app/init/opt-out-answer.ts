/**
 * Refuses a column whose words are not known, and proposes the flags that name them or make it an
 * opt-out. The user reads what a flag states, and decides.
 */
import { isPlain, sayUnknown } from '../../domain/unknown-words.ts';
import { vocabulary, type Use } from '../../records/contact/values/value-vocabulary.ts';
import { isNamedLikeRefusal } from '../../domain/opt-out-names.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';
import {
  type ReadColumn,
  isDate,
  isMarker,
  noWords,
  yesMarks,
  yesWords,
  type Chosen,
  mayBeAny,
  refuses,
  saysOptOut,
} from './column-words.ts';
import { wordFlag } from './column-flags.ts';
import { type Column, type Value, type FlagAnswer, Undecided } from './sample/sample.ts';

/** Stands for what is not shown, and for what the user has to say: it is refused as it is. */
export const placeholder = 'WORD';
const open: Value = { text: placeholder, records: Number.POSITIVE_INFINITY };

/**
 * Returns the flag, which names every word that is unknown. In a column that is named like an
 * opt-out each of them opts out. In another one, and where some words refuse something, those do
 * that refuse; what the others mean is left to the user.
 */
export function optOutAnswer(
  { column, unknown }: ReadColumn,
  { isNamed, asTheyAre }: { isNamed: boolean; asTheyAre: boolean },
): FlagAnswer {
  const name = quoted(column.name);
  const says = 'says that a person wants no mail';
  if (unknown.length === 0)
    return { unsubscribed: column.name, states: `a yes in ${name} ${says}` };
  if (mayBeAny({ column, unknown })) {
    const words = wordFlag(column.name, { yes: 'any' });
    return { words, states: `every value of ${name} but a no ${says}` };
  }
  const found = listsOf({ column, unknown }, isNamed);
  if (!found) {
    const words = wordFlag(column.name, { yes: [placeholder], no: [placeholder] });
    return { words, states: `each ${placeholder} is a value of ${name} as you know it` };
  }
  const shown = (values: readonly Value[]): string[] => {
    const words = values.map((one) => (asTheyAre || isPlain(one) ? one.text : placeholder));
    return [...new Set(words)];
  };
  const yes = found.yes === 'any' ? found.yes : shown(found.yes);
  const no = shown(found.no);
  const lists = Object.entries({ yes, no }).filter(([, list]) => list.length > 0);
  const isOpen = found.no.includes(open);
  const opting = yes === 'any' ? 'every value but a no' : listed(yes) || 'a yes';
  const staying = no.filter((word) => word !== placeholder);
  return {
    words: wordFlag(column.name, Object.fromEntries(lists)),
    states: [
      `${opting} in ${name} ${says}`,
      ...(staying.length > 0 ? [`, and ${listed(staying)} does not`] : []),
      ...(isOpen ? [`, and ${placeholder} stands for the values that do not`] : []),
      ...(yes.includes(placeholder) ? [` (--addresses shows each ${placeholder})`] : []),
    ].join(''),
  };
}

/** More words than this are not put into a flag. */
const mostWords = 30;

/** Returns the unknown words by what they would mean; undefined: the user has to say it. */
function listsOf(
  { column, unknown }: ReadColumn,
  isNamed: boolean,
): { yes: readonly Value[] | 'any'; no: readonly Value[] } | undefined {
  const isFew = unknown.length <= mostWords;
  const none = unknown.filter(({ text }) => isMarker(text));
  const words = unknown.filter((value) => !none.includes(value));
  // A mark among values that say no, such as J and N.
  const others = column.values.filter((value) => !unknown.includes(value));
  const isSingle = words.length === 1 && others.every(({ text }) => answerOf(text) === 'no');
  const yes = words.filter(isFew ? refuses : saysOptOut);
  if (isFew && (isSingle || words.length === 0)) return { yes: words, no: none };
  if (column.values.some(refuses)) {
    return { yes, no: yes.length < words.length ? [...none, open] : none };
  }
  if (isNamed) return isFew ? { yes: words, no: none } : undefined;
  return isNamedLikeRefusal(column.name) ? { yes: 'any', no: none } : undefined;
}

/**
 * Returns the flag that makes a column of consents an opt-out: a no in it opts out, and a yes does
 * not. Undefined: the column holds no no, or something else than yes and no.
 */
export function denialAnswer({ name, values }: Column): FlagAnswer | undefined {
  const none = values.filter(({ text }) => isMarker(text));
  const words = values.filter((value) => !none.includes(value));
  const no = words.filter(({ text }) => answerOf(text) === 'no');
  const yes = words.filter(({ text }) => answerOf(text) === 'yes');
  if (no.length === 0 || no.length + yes.length < words.length) return undefined;
  const lists = [no, [...yes, ...none]].map((list) => list.map(({ text }) => text));
  const [outs = [], others = []] = lists;
  const rest = others.length > 0 ? `, and ${listed(others)} does not` : '';
  return {
    words: wordFlag(name, { yes: outs, ...(others.length > 0 && { no: others }) }),
    states: `${listed(outs)} in ${quoted(name)} says that a person wants no mail${rest}`,
  };
}

/** Returns whether a value is a plain yes or no. A date, which means yes as a flag, is neither. */
function answerOf(text: string): unknown {
  return isDate(text) ? undefined : answers(text);
}

const answers = vocabulary('deleted', { yes: [...yesWords, ...yesMarks], no: noWords }, () => 0);

const mostListed = 6;

function listed(words: readonly string[]): string {
  const more = words.length > mostListed ? [`${words.length - mostListed} more`] : [];
  return [...words.slice(0, mostListed).map((word) => JSON.stringify(word)), ...more].join(' or ');
}

const others: Readonly<Record<Use, (column: string) => string>> = {
  subscription: () => 'name another column',
  unsubscribed: (column) =>
    `if it says something else, add --unused ${column}; if no column says so, add --no-unsubscribed`,
  deleted: () => 'name another column, or add --no-deleted',
};

/** Returns the refusal of a column whose words have to be named. */
export function unreadable(
  { column, unknown }: Chosen,
  { use, ofChannel }: { use: Use; ofChannel?: true },
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
