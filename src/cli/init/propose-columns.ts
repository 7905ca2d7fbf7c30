/**
 * Proposes which column holds what, by its name and its values. What a value means for consent is
 * never guessed: columns that cannot be decided are refused with the option that decides them.
 */
import { Invalid } from '../../domain/errors.ts';
import { sayUnknown } from '../../domain/unknown-words.ts';
import { wordOf } from '../../domain/values/record-field.ts';
import { systemClock } from '../../http/system-clock.ts';
import { type Use, vocabulary } from '../../records/contact/observe/value-vocabulary.ts';
import { hintsFor, listed, quoted } from '../../sources/shared/field-suggestions.ts';
import { chooseEmail, chooseId, flagColumns } from './recognize-columns.ts';
import type { Column, Sample, Value } from './read-sample.ts';

/** The words of a column: `in`, `out` and `none` for a channel, `yes` and `no` for a flag. */
export type Words = Partial<Record<'in' | 'out' | 'none' | 'no', readonly string[]>> & {
  /** `any` stands for every value that is neither empty nor a no. */
  yes?: readonly string[] | 'any';
};

/** What the user has said; everything else is proposed. */
export interface Choices {
  id?: string | undefined;
  email?: string | undefined;
  unsubscribed?: string | undefined;
  deleted?: string | undefined;
  channels: readonly { id: string; column: string }[];
  words: ReadonlyMap<string, Words>;
  /** Whether values may be shown as they are. */
  asTheyAre: boolean;
}

/** A column with a purpose. */
export interface Chosen {
  column: Column;
  /** Why it was proposed; undefined: the user named it. */
  why: string | undefined;
  /** The words that the configuration has to name. */
  words: Words;
  /** The values without a known meaning, the most frequent first. */
  unknown: readonly Value[];
}

/** The columns of a whole configuration. */
export interface Proposal {
  id: Chosen;
  email: Chosen;
  unsubscribed: Chosen | undefined;
  deleted: Chosen | undefined;
  channels: readonly (Chosen & { id: string })[];
  /** Columns without a purpose whose values look like a yes, a no, a mark or a date. */
  unused: readonly Column[];
}

/** Proposes all columns. Throws Invalid for what cannot be decided without a guess. */
export function propose(sample: Sample, choices: Choices): Proposal {
  const { columns } = sample;
  const email = said(sample, 'email', choices) ?? plain(chooseEmail(sample));
  const id = said(sample, 'id', choices) ?? plain(chooseId(sample));
  const channels = choices.channels.map(({ id: channel, column: name }) => {
    const column = columnNamed(columns, name, `--channel ${channel}=…`);
    const chosen = withWords(column, 'subscription', choices.words.get(name));
    refuseUnreadable(chosen, choices);
    return { ...chosen, id: channel };
  });
  if (channels.length === 0) throw noChannel(columns);
  const taken = [id, email, ...channels].map(({ column }) => column.name);
  const free = columns.filter(({ name }) => !taken.includes(name));
  const unsubscribed = flagOf({ ...sample, columns: free }, 'unsubscribed', choices);
  const deleted = flagOf({ ...sample, columns: free }, 'deleted', choices);
  const unused = free.filter(
    (column) => ![unsubscribed?.column, deleted?.column].includes(column) && looksLikeFlag(column),
  );
  return { id, email, channels, unsubscribed, deleted, unused };
}

/** Returns whether most values of a column would be known as a flag, or are single marks. */
function looksLikeFlag(column: Column): boolean {
  const { unknown } = withWords(column, 'unsubscribed');
  const strange = unknown
    .filter(({ text }) => text.length > 1)
    .reduce((sum, { records }) => sum + records, 0);
  return column.filled > 0 && strange * 2 < column.filled;
}

function plain({ column, why }: { column: Column; why: string }): Chosen {
  return { column, why, words: {}, unknown: [] };
}

function said({ columns }: Sample, role: 'id' | 'email', choices: Choices): Chosen | undefined {
  const name = choices[role];
  if (name === undefined) return undefined;
  const column = columnNamed(columns, name, `--${role} …`);
  return { column, why: undefined, words: {}, unknown: [] };
}

/**
 * Returns the column of a flag: the one that the user names, or the only one whose name says it and
 * whose values are all known.
 */
function flagOf(
  sample: Sample,
  use: 'unsubscribed' | 'deleted',
  choices: Choices,
): Chosen | undefined {
  const name = choices[use];
  if (name !== undefined) {
    const column = columnNamed(sample.columns, name, `--${use} …`);
    const chosen = withWords(column, use, choices.words.get(name));
    if (chosen.unknown.length > 0) throw unreadable(chosen, use, choices);
    return chosen;
  }
  const found = flagColumns(sample.columns, use).map((column) =>
    withWords(column, use, choices.words.get(column.name)),
  );
  const [first, second] = found.filter(({ unknown }) => unknown.length === 0);
  if (first && second) {
    const names = [first, second].map(({ column }) => quoted(column.name)).join(' and ');
    throw new Invalid(`${names} may both say that a person is ${use}`, {
      fix: `name one: --${use} ${quoted(first.column.name)}`,
    });
  }
  const [doubtful] = found;
  if (!first && doubtful) throw unreadable(doubtful, use, choices);
  return first && { ...first, why: `its name says so, and all its values are known` };
}

/** Words for yes and no in other languages. They are proposed where a column holds them. */
const yesWords = ['ja', 'oui', 'sí', 'si', 'sì', 'sim', 'tak', 'wahr', 'vrai', 'vero'];
const noWords = ['nein', 'non', 'não', 'nao', 'nee', 'nej', 'nie', 'falsch', 'faux', 'falso'];

/** Returns a column with its words: those that the user gives, and those of other languages. */
function withWords(column: Column, use: Use, given: Words = {}): Chosen {
  const [yes, no] = use === 'subscription' ? (['in', 'out'] as const) : (['yes', 'no'] as const);
  const own = { yes: given[yes] ?? [], no: given[no] ?? [], none: given.none ?? [] };
  const unknownTo = (words: typeof own): Value[] => {
    const read = vocabulary(use, words, systemClock.now);
    return column.values.filter(({ text }) => typeof read(text) === 'object');
  };
  const isAny = own.yes === 'any';
  const foreign = (list: readonly string[]) =>
    unknownTo({ ...own, yes: isAny ? [] : own.yes }).flatMap(({ text }) =>
      list.includes(wordOf(text)) ? [text] : [],
    );
  const meant = {
    yes: own.yes === 'any' ? own.yes : [...own.yes, ...foreign(yesWords)],
    no: [...own.no, ...foreign(noWords)],
    none: own.none,
  };
  const lists: [keyof Words, readonly string[] | 'any'][] = [
    [yes, meant.yes],
    [no, meant.no],
    ['none', meant.none],
  ];
  const words: Words = Object.fromEntries(lists.filter(([, list]) => list.length > 0));
  return { column, why: undefined, words, unknown: unknownTo(meant) };
}

/** Throws Invalid if most of the values that are not empty are unknown. */
function refuseUnreadable(chosen: Chosen, choices: Choices): void {
  const unknown = chosen.unknown.reduce((sum, { records }) => sum + records, 0);
  if (unknown * 2 > chosen.column.filled) throw unreadable(chosen, 'subscription', choices);
}

function unreadable(
  { column, unknown }: Chosen,
  use: Use,
  { asTheyAre }: Pick<Choices, 'asTheyAre'>,
): Invalid {
  const values = unknown.map((value) => ({ ...value, unknown: 'word' as const }));
  const meanings = use === 'subscription' ? ['in', 'out', 'none'] : ['yes', 'no'];
  const options = meanings.map((one) => `--words ${quoted(`${column.name}:${one}=WORD,WORD`)}`);
  const which = { option: '', fix: '', values, others: 0, first: 'see the file' };
  return new Invalid(`column ${quoted(column.name)}: ${sayUnknown(which, { asTheyAre })}`, {
    fix: `say what they mean: ${options.join(', ')}; or name another column`,
  });
}

function columnNamed(columns: readonly Column[], name: string, option: string): Column {
  const column = columns.find((one) => one.name === name);
  if (column) return column;
  const names = columns.map((one) => one.name);
  const hints = hintsFor([name], names)
    .map((hint) => `; ${hint}`)
    .join('');
  throw new Invalid(`there is no column ${quoted(name)}; columns found: ${listed(names)}${hints}`, {
    fix: `correct ${option}`,
  });
}

function noChannel(columns: readonly Column[]): Invalid {
  const names = columns.map(({ name }) => name);
  return new Invalid('it is not said which column holds the consent to which channel', {
    fix: `add --channel ID=COLUMN for each channel of the platform; columns found: ${listed(names)}`,
  });
}
