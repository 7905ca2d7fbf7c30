/**
 * Proposes which column holds what. What a value means for consent is never guessed: a column that
 * cannot be decided is refused with the flag that decides it, and none that may be an opt-out is
 * left out silently.
 */
import {
  type Choices,
  choicesOf,
  columnNamed,
  type Flags,
  type Known,
  Undecided,
  wordFlag,
  denialAnswer,
  optOutAnswer,
  unreadable,
} from './flags.ts';
import { Invalid } from '../../domain/errors.ts';
import {
  plain,
  isAboutOtherWays,
  isNamedLikeOptOut,
  isNamedLikeRefusal,
  isOptOutField,
  isRefusalSign,
  namedLike,
  saysRefusal,
} from '../../domain/opt-out-names.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { listed, quoted } from '../../sources/shared/record-fields.ts';
import {
  type Chosen,
  countsOf,
  holdsDates,
  isFlagWord,
  isTextOfEach,
  isUnreadable,
  looksLikeFlag,
  mayBeOptOut,
  mostCounted,
  refuses,
  saysOptOut,
  withWords,
} from './column-words.ts';
import type { Column, Sample, Value, PlatformChannel } from './sample.ts';

export interface ChannelColumn extends Chosen {
  id: string;
  name?: string | undefined;
  /** What a no or an empty value means if a yes is an opt-out; undefined: a yes is a consent. */
  optOut?: 'else none' | 'else in' | undefined;
}

export interface Proposal {
  id: Chosen;
  email: Chosen;
  /** A yes in any of them is an opt-out. */
  unsubscribed: readonly Chosen[];
  deleted: Chosen | undefined;
  channels: readonly ChannelColumn[];
  /** Channels of the platform that no column is for. */
  without: readonly PlatformChannel[];
  unused: {
    /** Columns that are named like an opt-out or a deletion. */
    named: readonly Column[];
    /** Dates with gaps, then flags and columns with few values, then other dates. */
    likely: readonly Column[];
    others: number;
  };
}

/**
 * Throws Undecided for all at once that cannot be decided without a guess; for columns that look
 * like flags only when the channels are known.
 */
export function propose(given: Sample, flags: Flags, known: Known): Proposal {
  const { columns, standard, records } = given;
  const choices = choicesOf(flags, columns, known);
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
  // Each step chooses from what the steps before it left. First, who a record is about.
  const email = statedColumn(given, 'email', choices) ?? chooseEmail(given);
  const id = attempt(() => statedColumn(given, 'id', choices) ?? chooseId(given, email.column));
  if (id?.column === email.column) id.why ??= `as you said; ${addressAsId}`;
  const named = choices.channels.map(({ column }) => column);
  const taken = [id, email].map((one) => one?.column.name);
  // The CRM's own opt-out from all mail stays one, even if a channel is read from it, too.
  const open = columns.filter(({ name }) => {
    return !taken.includes(name) && (!named.includes(name) || name === standard?.unsubscribed);
  });
  const unsubscribed = chooseOptOuts({ ...given, columns: open }, choices);
  for (const one of unsubscribed) attempt(() => refuseUnreadable(one, 'unsubscribed', choices));
  // Who is gone. A column that is named like both is an opt-out.
  const rest = open.filter((column) => !unsubscribed.some((one) => one.column === column));
  const deletions = chooseDeletions({ ...given, columns: rest }, choices);
  const deleted = attempt(() => onlyDeletion(deletions, choices));
  const free = rest.filter((column) => !deletions.some((one) => one.column === column));
  // Who said yes, and to what.
  const channels = attempt(() => {
    const found =
      named.length > 0
        ? choices.channels.flatMap(({ id, column: name }) => {
            const column = columnNamed(columns, name, `--channel ${id}=…`);
            const own = choices.platform.find((one) => one.id === id);
            return attempt(() => channelColumn({ id, name: own?.name }, column, choices)) ?? [];
          })
        : matchChannels(free, choices);
    const open = channelsWithout(found, choices).filter(
      ({ id }) => choices.leftAlone && !choices.leftAlone.has(id),
    );
    if (open.length > 0 || (named.length === 0 && found.length === 0)) {
      throw undecidedChannels(columns, free, found, choices);
    }
    return found;
  });
  const used = [...named, ...(channels ?? []).map(({ column }) => column.name)];
  // Flags that are left over are asked about, once it is known that none is a consent.
  const leftOver = free.filter(({ name }) => !used.includes(name));
  if (channels) {
    // A column that is said to be the opt-out of a channel must belong to one.
    const { optOut, elseIn } = choices;
    for (const [flag, names] of [['--opt-out', optOut] as const, ['--else-in', elseIn] as const]) {
      const stray = names.find((name) => !used.includes(name));
      if (stray === undefined) continue;
      throw new Invalid(`${flag} ${quoted(stray)}: no channel has this column`, {
        fix: `add --channel ${quoted(`ID=${stray}`)}; if yes means no mail at all, use --unsubscribed`,
      });
    }
    const open = leftOver.filter((column) => isOpenFlag(column, given, choices));
    undecided.push(...open.map((column) => undecidedFlag(column, records, channels, choices)));
  }
  const [first, ...more] = undecided;
  if (first) throw first.with(more);
  if (!id || !channels) throw new Error('nothing is undecided, and something is missing');
  const without = channelsWithout(channels, choices);
  const unused = sortUnused(leftOver, records);
  return { id, email, channels, without, unsubscribed, deleted, unused };
}

function chosen(column: Column, why: string | undefined): Chosen {
  return { column, why, words: {}, unknown: [] };
}

function refuseUnreadable(one: Chosen, use: 'unsubscribed' | 'deleted', choices: Choices): void {
  if (one.unknown.length > 0) throw unreadable(one, { use }, choices);
}

function statedColumn(
  { columns, standard }: Sample,
  role: 'id' | 'email' | 'deleted',
  choices: Choices,
): Chosen | undefined {
  const name = choices[role];
  if (name === false) return undefined;
  if (name !== undefined) return chosen(columnNamed(columns, name, `--${role} …`), undefined);
  const own = columns.find((column) => column.name === standard?.[role]);
  return own && chosen(own, ownColumn);
}

const ownColumn = "it is the CRM's own";

/** Returns the column of email addresses. Throws Undecided if there is none, or more than one. */
function chooseEmail({ columns, records }: Sample): Chosen {
  const answer = { flags: { email: 'COLUMN' }, states: 'COLUMN is the address' };
  const found = columns
    .filter(({ addresses, filled }) => addresses * 2 > filled && addresses * 4 > records)
    .toSorted((a, b) => b.addresses - a.addresses);
  const [first] = found;
  if (!first) {
    const names = listed(columns.map(({ name }) => name));
    throw new Undecided('no column holds an email address in most of its records', {
      fix: `name it: --email COLUMN; columns found: ${names}`,
      question: { about: 'email', among: [] },
      answer,
    });
  }
  const rivals = found.filter(({ addresses }) => addresses * 10 > first.addresses * 9);
  const byName = rivals.filter(({ name }) => /mail|adress/i.test(name));
  const [best, second] = byName.length > 0 ? byName : rivals;
  if (best && !second) {
    const some = withCommas(best.addresses);
    return chosen(best, `an address in ${some} of ${counted(records, 'record')}`);
  }
  const among = rivals.map(({ name }) => name);
  throw new Undecided(`the columns ${among.map(quoted).join(', ')} hold email addresses`, {
    fix: 'name one: --email COLUMN',
    question: { about: 'email', among },
    answer,
  });
}

/** Names of ids, the surest first. */
const idNames = [
  /^(id|uuid|guid|record id|contact id|customer id)$/i,
  /(^|[^a-z])id$|[a-z]Id$|_id$/,
  /(nr|no|nummer|number|num|key)\.?$/i,
];
const otherNumbers = /tel|phone|fax|mobil|plz|zip|post|haus/i;
const addressAsId = 'a changed address then counts as one person gone and a new one';

/** Throws Undecided if no column is an id, and some address is there twice. */
function chooseId({ columns, records }: Sample, email: Column): Chosen {
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
    const some = withCommas(first.values.length);
    return chosen(first, `named like an id; ${some} different in ${counted(records, 'record')}`);
  }
  if (email.filled > 0 && email.values.length === email.filled) {
    return chosen(email, `no column is an id, and no address is there twice; ${addressAsId}`);
  }
  const names = listed(columns.map(({ name }) => name));
  throw new Undecided('no column is recognized as the stable id of a record', {
    fix: `name it: --id COLUMN (the address, if there is no other); columns found: ${names}`,
    question: { about: 'id', among: able.map(({ name }) => name) },
    answer: { flags: { id: 'COLUMN' }, states: 'COLUMN is the stable id of a record' },
  });
}

/**
 * Opt-outs are the columns that the user names, that of the CRM, and all that are named like one;
 * else the first that is named like a reason. Who says what a yes or a no is in a column that has
 * no other purpose says that it is one.
 */
function chooseOptOuts(sample: Sample, choices: Choices): Chosen[] {
  const { columns, standard, records } = sample;
  const { unsubscribed, unused, deleted, words } = choices;
  if (unsubscribed === false) return [];
  const deletions = chooseDeletions(sample, choices).map(({ column }) => column.name);
  const isFree = ({ name }: Column) => name !== deleted && !unused.includes(name);
  const isNamed = (column: Column) => {
    const { name } = column;
    const { yes, no } = words.get(name) ?? {};
    const byWords = (yes ?? no) !== undefined && isFree(column) && !deletions.includes(name);
    return unsubscribed?.includes(name) === true || byWords;
  };
  const ofCrm = columns.find((one) => one.name === standard?.unsubscribed && isFree(one));
  const others = columns.filter(
    (one) => isFree(one) && !isNamed(one) && one !== ofCrm && !(ofCrm && isOfHubspot(one)),
  );
  const read = (column: Column, why: string | undefined): Chosen => {
    return { ...withWords(column, 'unsubscribed', words.get(column.name)), why };
  };
  const all = [
    ...columns.filter(isNamed).map((column) => read(column, undefined)),
    ...(ofCrm && !isNamed(ofCrm) ? [read(ofCrm, ownColumn)] : []),
    ...others
      .filter((column) => isNamedLikeOptOut(column.name) && !isTextOfEach(column, records))
      .map((column) => {
        const state = column.filled > 0 ? 'all its values are known' : 'it is empty in all records';
        return read(column, `named like an opt-out; ${state}`);
      }),
  ];
  const reason = others.find(({ name, filled }) => filled > 0 && namedLike(name) === 'reason');
  if (all.length > 0 || !reason) return all;
  return [read(reason, 'named like the reason of an opt-out; all its values are known')];
}

/** Fewer languages than `namedLike` knows, as columns of these names opt people out unasked. */
const deletedNames =
  /delet|gel(ö|oe)scht|archived|archiviert|supprim|elimin|anulad|borrad|cancellat/i;
/** Columns about other ways to reach a person, or about why a person opted out. */
const aboutOtherMail = /sms|fax|phone|telefon|whatsapp|reason|grund|campaign|comment|source/i;

function chooseDeletions(sample: Sample, choices: Choices): Chosen[] {
  const { deleted, unused, words } = choices;
  if (deleted === false) return [];
  const stated = statedColumn(sample, 'deleted', choices);
  // A column without values is none.
  const among = sample.columns.filter(({ name, filled }) => {
    const isNamed = deletedNames.test(name) && !aboutOtherMail.test(name);
    return filled > 0 && isNamed && !unused.includes(name);
  });
  const why = stated ? stated.why : 'named like a deletion flag; all its values are known';
  return (stated ? [stated.column] : among).map((column) => {
    return { ...withWords(column, 'deleted', words.get(column.name)), why };
  });
}

function onlyDeletion(deletions: readonly Chosen[], choices: Choices): Chosen | undefined {
  const [first, second] = deletions;
  if (first && second) {
    const among = deletions.map(({ column }) => column.name);
    throw new Undecided(`${among.map(quoted).join(' and ')} may both say that a person is gone`, {
      fix: `name one: --deleted ${quoted(first.column.name)}, or add --no-deleted`,
      question: { about: 'deleted', among },
      answer: {
        flags: { deleted: 'COLUMN' },
        states: 'a yes in COLUMN says that a person is gone',
      },
    });
  }
  if (first) refuseUnreadable(first, 'deleted', choices);
  return first;
}

/** Returns whether HubSpot itself defines this column as an opt-out, from one list or all. */
function isHubspotOptOut(name: string): boolean {
  return /^(properties\.)?hs_email_optout(_\d+)?$/.test(name);
}

/** HubSpot has an opt-out for each subscription type; its own column covers all of them. */
function isOfHubspot({ name }: Column): boolean {
  return /^(properties\.)?hs_/.test(name);
}

function channelsWithout(channels: readonly ChannelColumn[], { platform }: Choices) {
  return platform.filter((one) => !channels.some(({ id }) => id === one.id));
}

function channelFlags(channels: readonly ChannelColumn[]): string[] {
  return channels.map(({ id, column }) => `${id}=${column.name}`);
}

function readableConsents(columns: readonly Column[], { words }: Choices): Column[] {
  return columns.filter((column) => {
    const read = withWords(column, 'subscription', words.get(column.name));
    return column.filled > 0 && !isNamedLikeRefusal(column.name) && !isUnreadable(read);
  });
}

/**
 * Names have to be equal but for case, spaces and punctuation: `No newsletter` is no consent to
 * `Newsletter`. What fits several channels or columns is left out.
 */
function matchChannels(free: readonly Column[], choices: Choices): ChannelColumn[] {
  const able = readableConsents(free, choices);
  const pairs = choices.platform.flatMap((channel) => {
    const { id, name } = channel;
    const names = [name, id, id.replace(/^[a-z]{1,4}_/i, '')].map(bareName);
    const fitting = able.filter(
      (one) => bareName(one.name) !== '' && names.includes(bareName(one.name)),
    );
    return fitting.map((column) => ({ column, channel }));
  });
  const single = pairs.filter(({ column, channel }) => {
    const others = pairs.filter((one) => one.column === column || one.channel === channel);
    return others.length === 1;
  });
  return single.map(({ column, channel }) => {
    const found = channelColumn(channel, column, choices);
    const why = `it is named like the platform's channel ${channel.name}`;
    return { ...found, why: found.why ?? why };
  });
}

function undecidedChannels(
  columns: readonly Column[],
  free: readonly Column[],
  found: readonly ChannelColumn[],
  choices: Choices,
): Undecided {
  const open = free.filter((column) => !found.some((one) => one.column === column));
  const bySubscription = open.filter(({ name }) => isHubspotOptOut(name));
  const likely = [...readableConsents(open, choices).filter(looksLikeFlag), ...bySubscription];
  const consents = open.filter(({ name }) => !isNamedLikeRefusal(name));
  const among = (likely.length > 0 ? likely : consents).map(({ name }) => name);
  const without = channelsWithout(found, choices);
  const [channel] = without;
  const id = channel?.id ?? 'ID';
  const all = without.map((one) => `${one.id} (${one.name})`);
  const where = channel
    ? `or another of its channels: ${all.join(', ')}`
    : 'with the id of the channel on the platform for ID';
  const optOut = columns.find(({ name }) => isNamedLikeOptOut(name) && !isRefusalSign(name))?.name;
  const everybody =
    optOut === undefined
      ? ''
      : `; if no column holds a consent, --channel ${quoted(`${id}=${optOut}`)} --else-in ${quoted(optOut)}, which opts in everybody who has not objected there`;
  const flag = `--channel ${quoted(`${id}=${among[0] ?? 'COLUMN'}`)}`;
  const which = found.length > 0 ? all.join(', ') : 'which channel';
  return new Undecided(`it is not said which column holds the consent to ${which}`, {
    fix: `add ${flag}, ${where}; columns that may hold a consent: ${listed(among)}${everybody}`,
    question: { about: 'channels', among, channels: channelFlags(found) },
    answer: {
      flags: { channel: [`${id}=COLUMN`] },
      states: 'COLUMN holds the consent to this channel',
    },
  });
}

function bareName(name: string): string {
  const last = name.split('.').findLast((part) => part !== '') ?? '';
  return last.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}

/** Whether a channel's column holds consents or opt-outs is never guessed. */
function channelColumn(
  channel: { id: string; name: string | undefined },
  column: Column,
  choices: Choices,
): ChannelColumn {
  const { name } = column;
  const words = choices.words.get(name);
  const isElseIn = choices.elseIn.includes(name);
  const isOwn = isHubspotOptOut(name);
  if (isElseIn || isOwn || choices.optOut.includes(name)) {
    if (isElseIn && words?.no === 'any') {
      throw new Invalid(`--else-in ${quoted(name)} opts in by a no, so its words are not any`, {
        fix: `name them: --words ${quoted(`${name}:no=WORD,WORD`)}`,
      });
    }
    const read = withWords(column, 'unsubscribed', words);
    const question = { use: 'unsubscribed', ofChannel: true } as const;
    if (read.unknown.length > 0) throw unreadable(read, question, choices);
    const rest = isElseIn ? 'everybody else is in' : 'everything else is no opinion';
    const because = isOwn ? "it is HubSpot's own opt-out" : 'as you said';
    const why = `${because}: a yes opts out, ${rest}`;
    return { ...channel, ...read, optOut: isElseIn ? 'else in' : 'else none', why };
  }
  const isStated = (words?.in?.length ?? 0) > 0 && (words?.out?.length ?? 0) > 0;
  if (isNamedLikeRefusal(name) && !isStated) {
    const kind = isOptOutField(name) ? 'an opt-out' : 'a bounce, complaint, block or death';
    const lists = wordFlag(name, { in: ['WORD', 'WORD'], out: ['WORD', 'WORD'] });
    const shown = quoted(name);
    const everybody = `--else-in ${shown} if everybody else wants this mail, too`;
    const reason = `column ${shown} is named like ${kind}, so its yes is not taken as a consent`;
    throw new Undecided(reason, {
      fix: `add --opt-out ${shown} if yes means no mail, or ${everybody}; or name all words: --words ${JSON.stringify(lists)}`,
      question: { about: 'polarity', column },
      answer: {
        flags: { optOut: [name] },
        states: `a yes in ${shown} means no mail in this channel`,
      },
    });
  }
  const read = withWords(column, 'subscription', words);
  if (isUnreadable(read)) throw unreadable(read, { use: 'subscription' }, choices);
  return { ...channel, ...read };
}

function isOpenFlag(column: Column, { records, standard }: Sample, choices: Choices): boolean {
  const { unsubscribed, deleted, unused } = choices;
  if (unsubscribed === false || unused.includes(column.name)) return false;
  const saysNoMail = (value: Value): boolean =>
    saysOptOut(value) && /mail|mejl|newsletter|marketing/.test(plain(value.text));
  if (isAboutOtherWays(column.name) && !column.values.some(saysNoMail)) return false;
  if (deleted === false && namedLike(column.name) === 'deletion') return false;
  if (standard && isOfHubspot(column)) return false;
  return mayBeOptOut(column, records);
}

/** A longer flag is only in the line that names all flags. */
const mostShown = 60;

function undecidedFlag(
  column: Column,
  records: number,
  channels: readonly ChannelColumn[],
  choices: Choices,
): Undecided {
  const { asTheyAre } = choices;
  const name = quoted(column.name);
  // Of many values, those are first that clearly say why the column is asked about.
  const refusals = column.values.length > mostCounted ? column.values.filter(saysOptOut) : [];
  const rest = column.values.filter((value) => !refusals.includes(value));
  const values = countsOf({ ...column, values: [...refusals, ...rest] }, records, asTheyAre);
  const read = withWords(column, 'unsubscribed', choices.words.get(column.name));
  const optOut = optOutAnswer(read, { isNamed: false, asTheyAre });
  const flagOf = ([words]: readonly string[]): string => {
    const isShort = words !== undefined && words.length <= mostShown;
    return `--words ${JSON.stringify(isShort ? words : `${column.name}:yes=WORD,no=WORD`)}`;
  };
  const flag = optOut.flags.words ? flagOf(optOut.flags.words) : `--unsubscribed ${name}`;
  const denial = denialAnswer(column)?.flags.words;
  const without = channelsWithout(channels, choices);
  const own = `${without.length > 1 ? 'ID' : without[0]?.id}=${column.name}`;
  const named = [...channelFlags(channels), own].map(quoted).join(' ');
  const which = `${without.length > 1 ? 'one of ' : ''}${listed(without.map(({ id }) => id))}`;
  return new Undecided(`column ${name} looks like a flag and would not be used (${values})`, {
    fix: [
      `add --unused ${name}, or, if a yes in it says that a person wants no mail, ${flag}`,
      ...(denial ? [`or, if a no says so, ${flagOf(denial)}`] : []),
      ...(without.length > 0 ? [`or, if it is the consent to ${which}, --channel ${named}`] : []),
    ].join(', '),
    question: { about: 'flag', column, channels: channelFlags(channels) },
    answer: saysWhatOptsOut(column) ? optOut : { flags: { unused: [column.name] }, states: '' },
  });
}

/** A yes or a no beside words that refuse may mean the opposite, and so does "not opted out". */
function saysWhatOptsOut({ name, values }: Column): boolean {
  const isTurned = ({ text }: Value) => isOptOutField(text) && !saysRefusal(text);
  if (values.some(refuses)) return !values.some((one) => isFlagWord(one) || isTurned(one));
  return isRefusalSign(name) && !isOptOutField(name) && !isAboutOtherWays(name);
}

const fewValues = 6;

function sortUnused(columns: readonly Column[], records: number): Proposal['unused'] {
  const order = ['opt-out', 'reason', 'other', 'deletion'] as const;
  const named = order.flatMap((one) => columns.filter(({ name }) => namedLike(name) === one));
  const filled = columns.filter((column) => column.filled > 0 && !named.includes(column));
  const dates = filled.filter(holdsDates);
  const flags = filled.filter((column) => {
    const { values, filled: n } = column;
    return looksLikeFlag(column) || (values.length <= fewValues && values.length * 2 <= n);
  });
  const gaps = dates.filter((column) => column.filled < records);
  const likely = [...new Set([...gaps, ...flags.filter((one) => !dates.includes(one)), ...dates])];
  return { named, likely, others: columns.length - named.length - likely.length };
}
