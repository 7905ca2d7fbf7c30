/**
 * Proposes which column holds what, by its name and its values. What a value means for consent is
 * never guessed: columns that cannot be decided are refused with the option that decides them.
 */
import { Invalid } from '../../domain/errors.ts';
import { isOptOutField } from '../../domain/opt-out-field.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { hintsFor, listed, quoted } from '../../sources/shared/field-suggestions.ts';
import { chooseOptOuts } from './choose-opt-outs.ts';
import { countsOf } from './column-values.ts';
import {
  type ChannelChoices,
  type ChannelColumn,
  channelColumn,
  isHubspotOptOut,
  refuseStray,
} from './channel-columns.ts';
import { type Chosen, isUnreadable, looksLikeFlag, unreadable, withWords } from './column-words.ts';
import { addressAsId, chooseEmail, chooseId, deletionColumns } from './recognize-columns.ts';
import { matchChannels, type PlatformChannel } from './match-channels.ts';
import { openFlags, type Unused, unusedOf } from './unused-columns.ts';
import type { Column, Role, Sample } from './sample/sample.ts';
import { Undecided } from './sample/undecided.ts';

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

/** Proposes all columns. Throws Undecided for what cannot be decided without a guess. */
export function propose(given: Sample, choices: Choices): Proposal {
  const { columns } = given;
  const email = said(given, 'email', choices) ?? plain(chooseEmail(given));
  const id = said(given, 'id', choices) ?? plain(chooseId(given, email.column));
  if (id.column === email.column) id.why ??= `as you said; ${addressAsId}`;
  const named = choices.channels.map(({ column }) => column);
  const taken = [id, email].map(({ column }) => column.name);
  const standard = given.standard?.unsubscribed;
  // The CRM's own opt-out from all mail stays one, even if a channel is read from it, too.
  const open = columns.filter(
    ({ name }) => !taken.includes(name) && (!named.includes(name) || name === standard),
  );
  const sample = { ...given, columns: open };
  const unsubscribed = optOutsOf(sample, choices);
  const optOuts = unsubscribed.map(({ column }) => column);
  const deleted = deletedOf(
    { ...sample, columns: open.filter((column) => !optOuts.includes(column)) },
    choices,
  );
  const flags = [...optOuts, deleted?.column];
  const free = open.filter((column) => !flags.includes(column));
  const channels = channelsOf({ columns, free }, choices);
  const used = channels.map(({ column }) => column);
  refuseStray(choices, used);
  const without = choices.platform.filter((one) => !channels.some(({ id }) => id === one.id));
  const rest = free.filter((column) => !used.includes(column));
  const flagged = openFlags(rest, given, choices);
  if (flagged.length > 0) throw undecidedFlags(flagged, { unsubscribed, given, choices });
  const unused = unusedOf(rest, given.records);
  return { id, email, channels, without, unsubscribed, deleted, unused };
}

function channelsOf(
  { columns, free }: { columns: readonly Column[]; free: readonly Column[] },
  choices: Choices,
): Proposal['channels'] {
  const { platform } = choices;
  const nameOf = (id: string) => platform.find((one) => one.id === id)?.name;
  if (choices.channels.length > 0) {
    return choices.channels.map(({ id, column: name }) => {
      const column = columnNamed(columns, name, `--channel ${id}=…`);
      return { ...channelColumn(column, choices), id, name: nameOf(id) };
    });
  }
  const consents = free.filter(({ name }) => !isOptOutField(name));
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
  throw noChannel(likely.length > 0 ? likely : free, platform);
}

function plain({ column, why }: { column: Column; why: string }): Chosen {
  return { column, why, words: {}, unknown: [] };
}

/** Returns the column that the user, or else the CRM itself, names for a purpose. */
function said(
  { columns, standard }: Sample,
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

function optOutsOf({ columns, standard, records }: Sample, choices: Choices): Chosen[] {
  const { unsubscribed, deleted, unused, words, asTheyAre } = choices;
  if (unsubscribed === false) return [];
  for (const name of unused) columnNamed(columns, name, '--unused …');
  const named = unsubscribed?.map((name) => columnNamed(columns, name, '--unsubscribed …'));
  const open = columns.filter(({ name }) => name !== deleted && !unused.includes(name));
  const own = columns.find(({ name }) => name === standard?.unsubscribed);
  return chooseOptOuts({ named, standard: own, open, records, words, asTheyAre });
}

/**
 * Returns the column of deletions: the one that the user or the CRM names, or the only one whose
 * name says it, if its values are all known.
 */
function deletedOf(sample: Sample, choices: Choices): Chosen | undefined {
  if (choices.deleted === false) return undefined;
  const use = 'deleted';
  const stated = said(sample, use, choices);
  const among = stated ? [stated.column] : deletionColumns(sample.columns);
  const [column, second] = among;
  if (!column) return undefined;
  if (second) {
    const names = among.map(({ name }) => name);
    throw new Undecided(`${names.map(quoted).join(' and ')} may both say that a person is gone`, {
      fix: `name one: --deleted ${quoted(column.name)}, or add --no-deleted`,
      question: { about: use, among: names },
    });
  }
  const why = stated ? stated.why : 'named like a deletion flag; all its values are known';
  const chosen = { ...withWords(column, use, choices.words.get(column.name)), why };
  if (chosen.unknown.length > 0) throw unreadable(chosen, { use }, choices);
  return chosen;
}

/** Returns the refusal of columns that look like flags, with the flags that decide each. */
function undecidedFlags(
  columns: readonly Column[],
  of: { unsubscribed: readonly Chosen[]; given: Sample; choices: Choices },
): Undecided {
  const { records } = of.given;
  const optOuts = of.unsubscribed.map(({ column }) => column.name);
  const asUnused = (one: Column): string => `--unused ${quoted(one.name)}`;
  const [first, ...others] = columns.map((column) => {
    const values = countsOf(column, records, of.choices.asTheyAre);
    const named = [...optOuts, column.name].map((name) => `--unsubscribed ${quoted(name)}`);
    return new Undecided(
      `column ${quoted(column.name)} looks like a flag and would not be used (${values})`,
      {
        fix: `add ${asUnused(column)}, or, if a yes in it says that a person wants no mail, ${named.join(' ')}`,
        question: { about: 'flags', among: columns, optOuts },
      },
    );
  });
  if (!first) throw new Error('there is a column that looks like a flag');
  if (others.length === 0) return first;
  const all = `none of these ${withCommas(columns.length)} columns may say that a person wants no mail`;
  const { question } = first;
  return first.with([
    ...others,
    new Undecided(`or ${all}`, { fix: `add ${columns.map(asUnused).join(' ')}`, question }),
  ]);
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

function noChannel(likely: readonly Column[], platform: readonly PlatformChannel[]): Undecided {
  const names = likely.map(({ name }) => name);
  const [first = 'COLUMN'] = names;
  const [channel, ...more] = platform;
  const flag = `--channel ${quoted(`${channel?.id ?? 'ID'}=${first}`)}`;
  const others = [channel, ...more].flatMap((one) => (one ? `${one.id} (${one.name})` : []));
  const where =
    channel === undefined
      ? 'with the id of the channel on the platform for ID'
      : `or another of its channels: ${others.join(', ')}`;
  return new Undecided('it is not said which column holds the consent to which channel', {
    fix: `add ${flag}, ${where}; columns that may hold a consent: ${listed(names)}`,
    question: { about: 'channels', among: names },
  });
}
