/**
 * Proposes which column holds what, by its name and its values. What a value means for consent is
 * never guessed: columns that cannot be decided are refused with the option that decides them, and
 * none that may be an opt-out is left out silently.
 */
import { Invalid } from '../../domain/errors.ts';
import {
  isAboutOtherWays,
  isNamedLikeOptOut,
  isOptOutField,
  isNamedLikeRefusal,
  isRefusalSign,
  saysRefusal,
  namedLike,
} from '../../domain/opt-out-names.ts';
import { plain } from '../../domain/name-terms.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { hintsFor, listed, quoted } from '../../sources/shared/field-suggestions.ts';
import {
  countsOf,
  holdsDates,
  mayBeOptOut,
  mostCounted,
  type Chosen,
  isUnreadable,
  looksLikeFlag,
  withWords,
  isFlagWord,
  refuses,
  saysOptOut,
  isTextOfEach,
} from './column-words.ts';
import {
  type ChannelChoices,
  type ChannelColumn,
  channelColumn,
  isHubspotOptOut,
  isOfHubspot,
  matchChannels,
  refuseStray,
} from './channel-columns.ts';
import { columnsIn } from './column-flags.ts';
import { denialAnswer, optOutAnswer, placeholder, unreadable } from './opt-out-answer.ts';
import type { PlatformChannel } from './platform-channels.ts';
import {
  type Column,
  type Role,
  type Sample,
  type Value,
  type FlagAnswer,
  Undecided,
} from './sample/sample.ts';

interface Unused {
  /** Columns that are named like an opt-out or a deletion. */
  named: readonly Column[];
  /** Dates with gaps, then flags and columns with few values, then other dates. */
  likely: readonly Column[];
  others: number;
}

/** What the user has said; everything else is proposed. */
export interface Choices extends ChannelChoices {
  /** false: no column, whatever is recognized. */
  unsubscribed?: readonly string[] | false | undefined;
  deleted?: string | false | undefined;
  /** Columns that are named or look like an opt-out, and are none. */
  unused: readonly string[];
  id?: string | undefined;
  email?: string | undefined;
  platform: readonly PlatformChannel[];
}

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
  // Each step chooses from what the steps before it left. First, who a record is about.
  const email = statedColumn(given, 'email', choices) ?? asProposed(chooseEmail(given));
  const undecided: Undecided[] = [];
  const attempt = <T>(decide: () => T): T | undefined => {
    try {
      return decide();
    } catch (error) {
      if (!(error instanceof Undecided)) throw error;
      undecided.push(error);
      return undefined;
    }
  };
  const id = attempt(
    () => statedColumn(given, 'id', choices) ?? asProposed(chooseId(given, email.column)),
  );
  if (id?.column === email.column) id.why ??= `as you said; ${addressAsId}`;
  // Who said no.
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
  // Who is gone. A column that is named like both is an opt-out.
  const optOuts = unsubscribed.map(({ column }) => column);
  const rest = open.filter((column) => !optOuts.includes(column));
  const deletions = chooseDeletions({ ...sample, columns: rest }, choices);
  const deleted = attempt(() => deletedOf(deletions, choices));
  const free = rest.filter((column) => !deletions.some((one) => one.column === column));
  // Who said yes, and to what.
  const channels = attempt(() => channelsOf(columns, free, choices, attempt));
  const used = [...named, ...(channels ?? []).map(({ column }) => column.name)];
  // Flags that are left over are asked about, once it is known that none is a consent.
  const leftOver = free.filter(({ name }) => !used.includes(name));
  if (channels) {
    refuseStray(choices, used);
    const flags = openFlags(leftOver, given, choices);
    undecided.push(...flags.map((column) => undecidedFlag(column, { flags, given, choices })));
  }
  const [first, ...more] = undecided;
  if (first) throw first.with(more);
  if (!id || !channels) throw new Error('nothing is undecided, and something is missing');
  const without = choices.platform.filter((one) => !channels.some(({ id }) => id === one.id));
  const unused = unusedOf(leftOver, given.records);
  return { id, email, channels, without, unsubscribed, deleted, unused };
}

/** Returns the choices with single names. Throws Invalid for a column that is not there. */
function withNames(choices: Choices, columns: readonly Column[]): Choices {
  const namesIn = (lists: readonly string[], option: string): string[] => {
    const names = lists.flatMap((list) => columnsIn(list, columns));
    return names.map((name) => columnNamed(columns, name, `--${option} …`).name);
  };
  for (const [name, words] of choices.words) {
    const { values } = columnNamed(columns, name, '--words …');
    // A proposed flag has it in the place of what the user has to say.
    const isOpen = Object.values(words).some((list) => list.includes(placeholder));
    if (!isOpen || values.some(({ text }) => text === placeholder)) continue;
    throw new Invalid(`--words: ${placeholder} is no value of column ${quoted(name)}`, {
      fix: 'write the values that it stands for, or --unused if the column says nothing about mail',
    });
  }
  const { unsubscribed, unused } = choices;
  return {
    ...choices,
    unused: namesIn(unused, 'unused'),
    unsubscribed: unsubscribed && namesIn(unsubscribed, 'unsubscribed'),
  };
}

function refuseUnreadable(chosen: Chosen, use: 'unsubscribed' | 'deleted', choices: Choices): void {
  if (chosen.unknown.length > 0) throw unreadable(chosen, { use }, choices);
}

function channelsOf(
  columns: readonly Column[],
  free: readonly Column[],
  choices: Choices,
  attempt: <T>(decide: () => T) => T | undefined,
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
  const optOut = columns.find(({ name }) => isNamedLikeOptOut(name) && !isRefusalSign(name));
  throw noChannel(likely.length > 0 ? likely : consents, platform, optOut);
}

function asProposed({ column, why }: { column: Column; why: string }): Chosen {
  return { column, why, words: {}, unknown: [] };
}

/** Returns the column that the user, or else the CRM itself, names for a purpose. */
function statedColumn(
  { columns, standard }: Sample,
  role: Exclude<Role, 'unsubscribed'>,
  choices: Choices,
): Chosen | undefined {
  const name = choices[role];
  if (name === false) return undefined;
  if (name !== undefined) {
    const column = columnNamed(columns, name, `--${role} …`);
    return { column, why: undefined, words: {}, unknown: [] };
  }
  const own = columns.find((column) => column.name === standard?.[role]);
  return own && asProposed({ column: own, why: "it is the CRM's own" });
}

/**
 * Returns the columns that are opt-outs: those that the user names, that of the CRM, and all that
 * are named like one; a text of each person is no opt-out. If there are none, returns the first one
 * that is named like the reason of an opt-out. Who says what a yes or a no is in a column that has
 * no other purpose says that it is one.
 */
function optOutsOf(sample: Sample, choices: Choices): Chosen[] {
  const { columns, standard, records } = sample;
  const { unsubscribed, unused, deleted, words } = choices;
  if (unsubscribed === false) return [];
  const deletions = chooseDeletions(sample, choices).map(({ column }) => column.name);
  const isFree = (name: string) => name !== deleted && !unused.includes(name);
  const byWords = [...words].flatMap(([name, { yes, no }]) => {
    return (yes ?? no) && isFree(name) && !deletions.includes(name) ? [name] : [];
  });
  const isNamed = (name: string) => unsubscribed?.includes(name) || byWords.includes(name);
  const named = columns.filter(({ name }) => isNamed(name));
  const open = columns.filter(({ name }) => isFree(name));
  const ofCrm = open.find(({ name }) => name === standard?.unsubscribed);
  const own = ofCrm && !named.includes(ofCrm) ? [ofCrm] : [];
  const others = open.filter(
    (column) => ![...named, ...own].includes(column) && !(ofCrm && isOfHubspot(column)),
  );
  const alike = others.filter(
    (column) => isNamedLikeOptOut(column.name) && !isTextOfEach(column, records),
  );
  const read = (column: Column, why: string | undefined): Chosen => {
    return { ...withWords(column, 'unsubscribed', words.get(column.name)), why };
  };
  const all = [
    ...named.map((column) => read(column, undefined)),
    ...own.map((column) => read(column, "it is the CRM's own")),
    ...alike.map((column) => read(column, column.filled > 0 ? allKnown : allEmpty)),
  ];
  const reason = others.find(({ name, filled }) => filled > 0 && namedLike(name) === 'reason');
  if (all.length > 0 || !reason) return all;
  return [read(reason, 'named like the reason of an opt-out; all its values are known')];
}

const allKnown = 'named like an opt-out; all its values are known';
const allEmpty = 'named like an opt-out; it is empty in all records';

/** Returns the deletions: the column that the user or the CRM names, or all named like one. */
function chooseDeletions(sample: Sample, choices: Choices): Chosen[] {
  const { deleted, unused, words } = choices;
  if (deleted === false) return [];
  const stated = statedColumn(sample, 'deleted', choices);
  // A column without values is none.
  const among = sample.columns
    .filter(({ filled }) => filled > 0)
    .filter(({ name }) => deletedNames.test(name) && !aboutOtherMail.test(name))
    .filter(({ name }) => !unused.includes(name));
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

function undecidedFlag(
  column: Column,
  { flags, given, choices }: { flags: readonly Column[]; given: Sample; choices: Choices },
): Undecided {
  const { asTheyAre } = choices;
  const name = quoted(column.name);
  // Of many values, those are first that clearly say why the column is asked about.
  const refusals = column.values.length > mostCounted ? column.values.filter(saysOptOut) : [];
  const rest = column.values.filter((value) => !refusals.includes(value));
  const sorted = { ...column, values: [...refusals, ...rest] };
  const values = countsOf(sorted, given.records, asTheyAre);
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
  platform: readonly PlatformChannel[],
  optOut: Column | undefined,
): Undecided {
  const names = likely.map(({ name }) => name);
  const [first = 'COLUMN'] = names;
  const [channel] = platform;
  const id = channel?.id ?? 'ID';
  const flag = `--channel ${quoted(`${id}=${first}`)}`;
  const others = platform.map((one) => `${one.id} (${one.name})`);
  const where = channel
    ? `or another of its channels: ${others.join(', ')}`
    : 'with the id of the channel on the platform for ID';
  const list = quoted(`${id}=${optOut?.name}`);
  const everybody = optOut
    ? `; if no column holds a consent, --channel ${list} --else-in ${quoted(optOut.name)}, which opts in everybody who has not objected there`
    : '';
  return new Undecided('it is not said which column holds the consent to which channel', {
    fix: `add ${flag}, ${where}; columns that may hold a consent: ${listed(names)}${everybody}`,
    question: { about: 'channels', among: names },
    answer: { channel: `${id}=COLUMN`, states: 'COLUMN holds the consent to this channel' },
  });
}

/** Neither the names of these columns nor the user say what they are about. */
function openFlags(
  columns: readonly Column[],
  { records, standard }: Sample,
  { unsubscribed, deleted, unused }: Choices,
): Column[] {
  if (unsubscribed === false) return [];
  return columns.filter((column) => {
    if (unused.includes(column.name)) return false;
    const saysNoMail = (value: Value): boolean =>
      saysOptOut(value) && /mail|mejl|newsletter|marketing/.test(plain(value.text));
    if (isAboutOtherWays(column.name) && !column.values.some(saysNoMail)) return false;
    if (deleted === false && namedLike(column.name) === 'deletion') return false;
    if (standard && isOfHubspot(column)) return false;
    return mayBeOptOut(column, records);
  });
}

function unusedOf(columns: readonly Column[], records: number): Unused {
  const order = ['opt-out', 'reason', 'other', 'deletion'] as const;
  const named = order.flatMap((one) => columns.filter(({ name }) => namedLike(name) === one));
  const filled = columns.filter((column) => column.filled > 0 && !named.includes(column));
  const dates = filled.filter(holdsDates);
  const some = dates.filter((column) => column.filled < records);
  const isShort = ({ values, filled: n }: Column): boolean =>
    values.length <= fewValues && values.length * 2 <= n;
  const flags = filled.filter((column) => looksLikeFlag(column) || isShort(column));
  const likely = [...new Set([...some, ...flags.filter((one) => !dates.includes(one)), ...dates])];
  return { named, likely, others: columns.length - named.length - likely.length };
}

const fewValues = 6;

interface Found {
  column: Column;
  why: string;
}

/** Returns the column of email addresses. Throws Undecided if there is none, or more than one. */
function chooseEmail({ columns, records }: Sample): Found {
  const found = columns
    .filter(({ addresses, filled }) => addresses * 2 > filled && addresses * 4 > records)
    .toSorted((a, b) => b.addresses - a.addresses);
  const [first] = found;
  if (!first) {
    const names = listed(columns.map(({ name }) => name));
    throw new Undecided('no column holds an email address in most of its records', {
      fix: `name it: --email COLUMN; columns found: ${names}`,
      question: { about: 'email', among: [] },
      answer: { email: 'COLUMN', states: 'COLUMN is the address' },
    });
  }
  const rivals = found.filter(({ addresses }) => addresses * 10 > first.addresses * 9);
  const byName = rivals.filter(({ name }) => /mail|adress/i.test(name));
  const [chosen, second] = byName.length > 0 ? byName : rivals;
  if (!chosen || second) {
    const names = rivals.map(({ name }) => name);
    throw new Undecided(`the columns ${names.map(quoted).join(', ')} hold email addresses`, {
      fix: 'name one: --email COLUMN',
      question: { about: 'email', among: names },
      answer: { email: 'COLUMN', states: 'COLUMN is the address' },
    });
  }
  return {
    column: chosen,
    why: `an address in ${withCommas(chosen.addresses)} of ${counted(records, 'record')}`,
  };
}

/** Names of ids, the surest first. */
const idNames = [
  /^(id|uuid|guid|record id|contact id|customer id)$/i,
  /(^|[^a-z])id$|[a-z]Id$|_id$/,
  /(nr|no|nummer|number|num|key)\.?$/i,
];
const otherNumbers = /tel|phone|fax|mobil|plz|zip|post|haus/i;

/** Throws Undecided if no column is an id, and some address is there twice. */
function chooseId({ columns, records }: Sample, email: Column): Found {
  const able = columns.filter(({ name, filled, values, addresses, isList }) => {
    const isUnique = values.length * 10 >= filled * 9;
    const isMostlyFilled = filled * 5 >= records * 4;
    return isUnique && isMostlyFilled && addresses === 0 && !isList && !otherNumbers.test(name);
  });
  for (const form of idNames) {
    const [first] = able
      .filter(({ name }) => form.test(name))
      .toSorted((a, b) => b.values.length - a.values.length);
    if (!first) continue;
    const why = `named like an id; ${withCommas(first.values.length)} different in ${counted(records, 'record')}`;
    return { column: first, why };
  }
  if (email.filled > 0 && email.values.length === email.filled) {
    const why = 'no column is an id, and no address is there twice';
    return { column: email, why: `${why}; ${addressAsId}` };
  }
  const names = listed(columns.map(({ name }) => name));
  throw new Undecided('no column is recognized as the stable id of a record', {
    fix: `name it: --id COLUMN (the address, if there is no other); columns found: ${names}`,
    question: { about: 'id', among: able.map(({ name }) => name) },
    answer: { id: 'COLUMN', states: 'COLUMN is the stable id of a record' },
  });
}

const addressAsId = 'a changed address then counts as one person gone and a new one';

/**
 * Fewer languages than `namedLike` knows, because people are opted out by a column that is proposed
 * from these names. A column that only `namedLike` knows is asked about or listed.
 */
const deletedNames =
  /delet|gel(ö|oe)scht|archived|archiviert|supprim|elimin|anulad|borrad|cancellat/i;
/** Columns about other ways to reach a person, or about why a person opted out. */
const aboutOtherMail = /sms|fax|phone|telefon|whatsapp|reason|grund|campaign|comment|source/i;
