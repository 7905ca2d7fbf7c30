/**
 * Refuses a column whose words are not known, and proposes the flags that name them or make it an
 * opt-out. The user reads what a flag states, and decides.
 */
import { isNamedLikeRefusal } from '../../domain/opt-out-names.ts';
import { isPlain, sayUnknown } from '../../domain/unknown-words.ts';
import { type Use, vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import { quoted } from '../../sources/shared/record-fields.ts';
import {
  type Chosen,
  type GivenWords,
  isDate,
  isMarker,
  mayBeAny,
  noWords,
  type ReadColumn,
  refuses,
  saysOptOut,
  yesMarks,
  yesWords,
} from './column-words.ts';
import { type FlagAnswer, placeholder, Undecided, wordFlag } from './flags.ts';
import type { Column, Value } from './sample.ts';

/** Stands for values that are not shown, and of which the user has to say what they mean. */
const open: Value = { text: placeholder, records: Number.POSITIVE_INFINITY };

/** Leaves to the user what each value means. */
function leftOpen({ name }: Column, lists: GivenWords): FlagAnswer {
  const states = `each ${placeholder} is a value of ${quoted(name)} as you know it`;
  return { flags: { words: [wordFlag(name, lists)] }, states };
}

/** Returns the flag by which some words of a column opt out, and others do not. */
function optingOut(
  { name }: Column,
  yes: readonly string[] | 'any',
  no: readonly string[],
): FlagAnswer {
  const opting = yes === 'any' ? 'every value but a no' : listed(yes) || 'a yes';
  const staying = no.filter((word) => word !== placeholder);
  const rest = staying.length > 0 ? `, and ${listed(staying)} does not` : '';
  const states = `${opting} in ${quoted(name)} says that a person wants no mail${rest}`;
  return { flags: { words: [wordFlag(name, { yes, no })] }, states };
}

/**
 * Returns the flag, which names every word that is unknown. In a column that is named like an
 * opt-out each of them opts out. In another one, and where some words refuse something, those do
 * that refuse; what the others mean is left to the user.
 */
export function optOutAnswer(
  { column, unknown }: ReadColumn,
  { isNamed, asTheyAre }: { isNamed: boolean; asTheyAre: boolean },
): FlagAnswer {
  if (unknown.length === 0) {
    const states = `a yes in ${quoted(column.name)} says that a person wants no mail`;
    return { flags: { unsubscribed: [column.name] }, states };
  }
  if (mayBeAny({ column, unknown })) return optingOut(column, 'any', []);
  const found = sortWords({ column, unknown }, isNamed);
  if (!found) return leftOpen(column, { yes: [placeholder], no: [placeholder] });
  const shown = (values: readonly Value[]): string[] => {
    const words = values.map((one) => (asTheyAre || isPlain(one) ? one.text : placeholder));
    return [...new Set(words)];
  };
  const yes = found.yes === 'any' ? found.yes : shown(found.yes);
  const { flags, states } = optingOut(column, yes, shown(found.no));
  const isOpen = found.no.includes(open);
  const rest = isOpen ? `, and ${placeholder} stands for the values that do not` : '';
  const masked = yes.includes(placeholder) ? ` (--addresses shows each ${placeholder})` : '';
  return { flags, states: `${states}${rest}${masked}` };
}

/** More words than this are not put into a flag. */
const mostWords = 30;

/** Returns the unknown words by what they would mean; undefined: the user has to say it. */
function sortWords(
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
export function denialAnswer(column: Column): FlagAnswer | undefined {
  const none = column.values.filter(({ text }) => isMarker(text));
  const words = column.values.filter((value) => !none.includes(value));
  const no = words.filter(({ text }) => answerOf(text) === 'no');
  const yes = words.filter(({ text }) => answerOf(text) === 'yes');
  if (no.length === 0 || no.length + yes.length < words.length) return undefined;
  const textsOf = (list: readonly Value[]) => list.map(({ text }) => text);
  return optingOut(column, textsOf(no), textsOf([...yes, ...none]));
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

const someWords = [placeholder, placeholder];

/** Returns the refusal of a column whose words have to be named. */
export function unreadable(
  read: Chosen,
  { use, ofChannel }: { use: Use; ofChannel?: true },
  { asTheyAre }: { asTheyAre: boolean },
): Undecided {
  const { column, unknown } = read;
  const name = quoted(column.name);
  const isConsent = use === 'subscription';
  const lists = isConsent
    ? { in: someWords, out: someWords, none: someWords }
    : { yes: someWords, no: someWords };
  const naming = `--words ${JSON.stringify(wordFlag(column.name, lists))}`;
  const any = `--words ${JSON.stringify(wordFlag(column.name, { yes: 'any' }))} if every value but a no means yes`;
  let other = 'name another column';
  if (!ofChannel && use === 'deleted') other += ', or add --no-deleted';
  if (!ofChannel && use === 'unsubscribed') {
    other = `if it says something else, add --unused ${name}; if no column says so, add --no-unsubscribed`;
  }
  // Only the user knows that a date says when somebody agreed, and not when they left.
  if (isConsent && unknown.every(({ text }) => isDate(text))) {
    const when = `record[${JSON.stringify(column.name)}] != "" ? true : null`;
    other += `; if a date in it means yes, only a file written by hand can say so: subscription: { when: '${when}' }`;
  }
  const values = unknown.map((value) => ({ ...value, unknown: 'word' as const }));
  const words = { option: '', fix: '', values, others: 0, first: '' };
  return new Undecided(`column ${name}: ${sayUnknown(words, { asTheyAre })}`, {
    fix: `say what they mean: ${!isConsent && mayBeAny(read) ? `${any}, ` : ''}${naming}; or ${other}`,
    question: { about: 'words', use, column, unknown, ...(ofChannel && { ofChannel }) },
    answer:
      use === 'unsubscribed'
        ? optOutAnswer(read, { isNamed: true, asTheyAre })
        : leftOpen(column, lists),
  });
}
