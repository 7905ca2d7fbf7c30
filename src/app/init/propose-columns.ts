/**
 * Proposes which column holds what, by its name and its values. What a value means for consent is
 * never guessed: columns that cannot be decided are refused with the option that decides them.
 */
import { Invalid } from '../../domain/errors.ts';
import {
  isAboutOtherWays,
  isNamedLikeOptOut,
  isOptOutField,
  isNamedLikeRefusal,
  isRefusalSign,
  saysRefusal,
} from '../../domain/opt-out-names.ts';
import { hintsFor, listed, quoted } from '../../sources/shared/field-suggestions.ts';
import { chooseOptOuts } from './choose-opt-outs.ts';
import { countsOf, mostCounted } from './column-values.ts';
import {
  type ChannelChoices,
  type ChannelColumn,
  channelColumn,
  isHubspotOptOut,
  refuseStray,
} from './channel-columns.ts';
import {
  type Chosen,
  type GivenWords,
  isUnreadable,
  looksLikeFlag,
  withWords,
} from './column-words.ts';
import { isFlagWord, refuses, saysOptOut } from './flag-columns.ts';
import { columnsIn } from './flag-lists.ts';
import { denialAnswer, optOutAnswer, placeholder } from './opt-out-answer.ts';
import { unreadable } from './unreadable-column.ts';
import { addressAsId, chooseEmail, chooseId, deletionColumns } from './recognize-columns.ts';
import { matchChannels, type PlatformChannel } from './match-channels.ts';
import { openFlags, type Unused, unusedOf } from './unused-columns.ts';
import type { Column, Role, Sample, Value } from './sample/sample.ts';
import { type FlagAnswer, Undecided } from './sample/undecided.ts';

/** What the user has said; everything else is proposed. */
export interface Choices extends ChannelChoices {
  id?: string | undefined;
  email?: string | undefined;
  /** false: no column, whatever is recognized. */
  unsubscribed?: readonly string[] | false | undefined;
  deleted?: string | false | undefined;
  /** Columns that are named or look like an opt-out, and are none. */
  unused: readonly string[];
  /** The channels that the platform is known to have. */
  platform: readonly PlatformChannel[];
}

/** The columns of a whole configuration. */
export interface Proposal {
  id: Chosen;
  email: Chosen;
  /** A yes in any of them is an opt-out. */
  unsubscribed: readonly Chosen[];
  deleted: Chosen | undefined;
  channels: readonly (ChannelColumn & { id: string; name?: string | undefined })[];
  /** Channels of the platform that no column is for. */
  without: readonly PlatformChannel[];
  unused: Unused;
}

/**
 * Proposes all columns. Throws Undecided for what cannot be decided without a guess: all of it at
 * once, but for columns that look like flags as long as no channel is named.
 */
export function propose(given: Sample, asGiven: Choices): Proposal {
  const { columns } = given;
  const choices = withNames(asGiven, columns);
  const email = said(given, 'email', choices) ?? plain(chooseEmail(given));
  const undecided: Undecided[] = [];
  const attempt = attempting(undecided);
  const id = attempt(() => said(given, 'id', choices) ?? plain(chooseId(given, email.column)));
  if (id?.column === email.column) id.why ??= `as you said; ${addressAsId}`;
  const named = choices.channels.map(({ column }) => column);
  const taken = [id, email].map((one) => one?.column.name);
  const standard = given.standard?.unsubscribed;
  // The CRM's own opt-out from all mail stays one, even if a channel is read from it, too.
  const open = columns.filter(
    ({ name }) => !taken.includes(name) && (!named.includes(name) || name === standard),
  );
  const sample = { ...given, columns: open };
  const unsubscribed = optOutsOf(sample, choices);
  for (const one of unsubscribed) attempt(() => refuseUnreadable(one, 'unsubscribed', choices));
  const optOuts = unsubscribed.map(({ column }) => column);
  const rest = open.filter((column) => !optOuts.includes(column));
  const gone = goneAmong({ ...sample, columns: rest }, choices);
  const deleted = attempt(() => deletedOf(gone, choices));
  const free = rest.filter((column) => !gone.some((one) => one.column === column));
  const channels = attempt(() => channelsOf({ columns, free, attempt }, choices));
  const used = [...named, ...(channels ?? []).map(({ column }) => column.name)];
  const others = free.filter(({ name }) => !used.includes(name));
  if (channels) {
    refuseStray(choices, used);
    const flags = openFlags(others, given, choices);
    undecided.push(...flags.map((column) => undecidedFlag(column, { flags, given, choices })));
  }
  const [first, ...more] = undecided;
  if (first) throw first.with(more);
  if (!id || !channels) throw new Error('nothing is undecided, and something is missing');
  const without = choices.platform.filter((one) => !channels.some(({ id }) => id === one.id));
  const unused = unusedOf(others, given.records);
  return { id, email, channels, without, unsubscribed, deleted, unused };
}

/** Returns a function that returns what is decided, and collects what cannot be. */
function attempting(undecided: Undecided[]) {
  return <T>(decide: () => T): T | undefined => {
    try {
      return decide();
    } catch (error) {
      if (!(error instanceof Undecided)) throw error;
      undecided.push(error);
      return undefined;
    }
  };
}

/** Returns the choices with single names. Throws Invalid for a column that is not there. */
function withNames(choices: Choices, columns: readonly Column[]): Choices {
  const namesIn = (lists: readonly string[], option: string): string[] => {
    const names = lists.flatMap((list) => columnsIn(list, columns));
    return names.map((name) => columnNamed(columns, name, `--${option} …`).name);
  };
  for (const [name, words] of choices.words) {
    refusePlaceholder(columnNamed(columns, name, '--words …'), words);
  }
  const { unsubscribed, unused } = choices;
  return {
    ...choices,
    unused: namesIn(unused, 'unused'),
    unsubscribed: unsubscribed && namesIn(unsubscribed, 'unsubscribed'),
  };
}

/** Throws Invalid for WORD, which stands in a proposed flag for what the user has to say. */
function refusePlaceholder({ name, values }: Column, words: GivenWords): void {
  const isOpen = Object.values(words).some((list) => list.includes(placeholder));
  if (!isOpen || values.some(({ text }) => text === placeholder)) return;
  throw new Invalid(`--words: ${placeholder} is no value of column ${quoted(name)}`, {
    fix: 'write the values that it stands for, or --unused if the column says nothing about mail',
  });
}

function refuseUnreadable(chosen: Chosen, use: 'unsubscribed' | 'deleted', choices: Choices): void {
  if (chosen.unknown.length > 0) throw unreadable(chosen, { use }, choices);
}

function channelsOf(
  {
    columns,
    free,
    attempt,
  }: {
    columns: readonly Column[];
    free: readonly Column[];
    attempt: ReturnType<typeof attempting>;
  },
  choices: Choices,
): Proposal['channels'] {
  const { platform } = choices;
  const nameOf = (id: string) => platform.find((one) => one.id === id)?.name;
  if (choices.channels.length > 0) {
    return choices.channels.flatMap(({ id, column: name }) => {
      const column = columnNamed(columns, name, `--channel ${id}=…`);
      const chosen = attempt(() => channelColumn(column, choices));
      return chosen ? { ...chosen, id, name: nameOf(id) } : [];
    });
  }
  const consents = free.filter(({ name }) => !isNamedLikeRefusal(name));
  const able = consents
    .map((column) => withWords(column, 'subscription', choices.words.get(column.name)))
    .filter((chosen) => chosen.column.filled > 0 && !isUnreadable(chosen));
  const found = matchChannels(able, platform);
  if (found.length > 0) {
    return found.map((one) => {
      const chosen = channelColumn(one.column, choices);
      return { ...one, ...chosen, why: chosen.why ?? one.why };
    });
  }
  const bySubscription = free.filter(({ name }) => isHubspotOptOut(name));
  const likely = [...able.map(({ column }) => column).filter(looksLikeFlag), ...bySubscription];
  const optOuts = columns.filter(({ name }) => isNamedLikeOptOut(name) && !isRefusalSign(name));
  throw noChannel(likely.length > 0 ? likely : consents, { platform, optOuts });
}

function plain({ column, why }: { column: Column; why: string }): Chosen {
  return { column, why, words: {}, unknown: [] };
}

/** Returns the column that the user, or else the CRM itself, names for a purpose. */
function said(
  { columns, standard }: Pick<Sample, 'columns' | 'standard'>,
  role: Exclude<Role, 'unsubscribed'>,
  choices: Choices,
): Chosen | undefined {
  const name = choices[role];
  if (name !== undefined && name !== false) {
    const column = columnNamed(columns, name, `--${role} …`);
    return { column, why: undefined, words: {}, unknown: [] };
  }
  const own = columns.find((column) => column.name === standard?.[role]);
  return own && name !== false ? plain({ column: own, why: "it is the CRM's own" }) : undefined;
}

/**
 * Returns the columns that are opt-outs. Who says what a yes or a no is in a column that has no
 * other purpose says that it is one.
 */
function optOutsOf(sample: Sample, choices: Choices): Chosen[] {
  const { columns, standard, records } = sample;
  const { unsubscribed, unused, deleted, words } = choices;
  if (unsubscribed === false) return [];
  const gone = goneAmong(sample, choices).map(({ column }) => column.name);
  const isFree = (name: string) => name !== deleted && !unused.includes(name);
  const byWords = [...words].flatMap(([name, { yes, no }]) => {
    return (yes ?? no) && isFree(name) && !gone.includes(name) ? [name] : [];
  });
  const isNamed = (name: string) => unsubscribed?.includes(name) || byWords.includes(name);
  const named = columns.filter(({ name }) => isNamed(name));
  const open = columns.filter(({ name }) => isFree(name));
  const own = open.find(({ name }) => name === standard?.unsubscribed);
  return chooseOptOuts({ named, standard: own, open, records, words });
}

/**
 * Returns the column of deletions: the one that the user or the CRM names, or all whose names say
 * it.
 */
function goneAmong(sample: Pick<Sample, 'columns' | 'standard'>, choices: Choices): Chosen[] {
  const { deleted, unused, words } = choices;
  if (deleted === false) return [];
  const stated = said(sample, 'deleted', choices);
  const among = deletionColumns(sample.columns).filter(({ name }) => !unused.includes(name));
  const why = stated ? stated.why : 'named like a deletion flag; all its values are known';
  return (stated ? [stated.column] : among).map((column) => {
    return { ...withWords(column, 'deleted', words.get(column.name)), why };
  });
}

/** Returns the only one of these columns. Throws Undecided if there are several. */
function deletedOf(among: readonly Chosen[], choices: Choices): Chosen | undefined {
  const [chosen, second] = among;
  if (!chosen) return undefined;
  if (second) {
    const names = among.map(({ column }) => column.name);
    throw new Undecided(`${names.map(quoted).join(' and ')} may both say that a person is gone`, {
      fix: `name one: --deleted ${quoted(chosen.column.name)}, or add --no-deleted`,
      question: { about: 'deleted', among: names },
      answer: { deleted: 'COLUMN', states: 'a yes in COLUMN says that a person is gone' },
    });
  }
  refuseUnreadable(chosen, 'deleted', choices);
  return chosen;
}

/** A longer flag is only in the line that names all flags. */
const mostShown = 60;

/** Returns the refusal of a column that looks like a flag, with the flags that decide it. */
function undecidedFlag(
  column: Column,
  { flags, given, choices }: { flags: readonly Column[]; given: Sample; choices: Choices },
): Undecided {
  const { asTheyAre } = choices;
  const name = quoted(column.name);
  const values = countsOf(withRefusalsFirst(column), given.records, asTheyAre);
  const chosen = withWords(column, 'unsubscribed', choices.words.get(column.name));
  const optOut = optOutAnswer(chosen, { isNamed: false, asTheyAre });
  const denial = denialAnswer(column);
  const flagOf = ({ words = '' }: FlagAnswer): string =>
    JSON.stringify(words.length <= mostShown ? words : `${column.name}:yes=WORD,no=WORD`);
  const flag = optOut.words === undefined ? `--unsubscribed ${name}` : `--words ${flagOf(optOut)}`;
  return new Undecided(`column ${name} looks like a flag and would not be used (${values})`, {
    fix: [
      `add --unused ${name}, or, if a yes in it says that a person wants no mail, ${flag}`,
      ...(denial ? [`or, if a no says so, --words ${flagOf(denial)}`] : []),
    ].join(', '),
    question: { about: 'flags', among: flags },
    answer: saysWhatOptsOut(column) ? optOut : { unused: column.name, states: '' },
  });
}

/**
 * Returns whether the name or the values of a flag say which of them opt out. A yes or a no beside
 * words that refuse may mean the opposite, and so does "not opted out".
 */
function saysWhatOptsOut({ name, values }: Column): boolean {
  const isTurned = ({ text }: Value) => isOptOutField(text) && !saysRefusal(text);
  if (values.some(refuses)) return !values.some((one) => isFlagWord(one) || isTurned(one));
  return isRefusalSign(name) && !isOptOutField(name) && !isAboutOtherWays(name);
}

/** Returns a column of many values with those first that clearly say why it is asked about. */
function withRefusalsFirst(column: Column): Column {
  const refusals = column.values.length > mostCounted ? column.values.filter(saysOptOut) : [];
  const others = column.values.filter((value) => !refusals.includes(value));
  return { ...column, values: [...refusals, ...others] };
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

function noChannel(
  likely: readonly Column[],
  {
    platform,
    optOuts: [optOut],
  }: { platform: readonly PlatformChannel[]; optOuts: readonly Column[] },
): Undecided {
  const names = likely.map(({ name }) => name);
  const [first = 'COLUMN'] = names;
  const [channel, ...more] = platform;
  const flag = `--channel ${quoted(`${channel?.id ?? 'ID'}=${first}`)}`;
  const others = [channel, ...more].flatMap((one) => (one ? `${one.id} (${one.name})` : []));
  const where =
    channel === undefined
      ? 'with the id of the channel on the platform for ID'
      : `or another of its channels: ${others.join(', ')}`;
  const list = quoted(`${channel?.id ?? 'ID'}=${optOut?.name}`);
  const everybody = optOut
    ? `; if no column holds a consent, --channel ${list} --else-in ${quoted(optOut.name)}, which opts in everybody who has not objected there`
    : '';
  return new Undecided('it is not said which column holds the consent to which channel', {
    fix: `add ${flag}, ${where}; columns that may hold a consent: ${listed(names)}${everybody}`,
    question: { about: 'channels', among: names },
    answer: {
      channel: `${channel?.id ?? 'ID'}=COLUMN`,
      states: 'COLUMN holds the consent to this channel',
    },
  });
}
