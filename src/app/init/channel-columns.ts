/** The column of each channel. Whether it holds consents or opt-outs is never guessed. */
import { Invalid } from '../../domain/errors.ts';
import { isOptOutField, isNamedLikeRefusal } from '../../domain/opt-out-names.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';
import { type Chosen, isUnreadable, withWords, type GivenWords } from './column-words.ts';
import { wordFlag } from './column-flags.ts';
import { unreadable } from './opt-out-answer.ts';
import { type Column, Undecided } from './sample/sample.ts';
import type { PlatformChannel } from './platform-channels.ts';

export interface ChannelChoices {
  channels: readonly { id: string; column: string }[];
  /** Columns of channels in which a yes is an opt-out. */
  optOut: readonly string[];
  /** The same, and everybody else is opted in. */
  elseIn: readonly string[];
  words: ReadonlyMap<string, GivenWords>;
  asTheyAre: boolean;
}

export interface ChannelColumn extends Chosen {
  /** What a no or an empty value means if a yes is an opt-out; undefined: a yes is a consent. */
  optOut?: 'else none' | 'else in' | undefined;
}

/** Returns whether HubSpot itself defines this column as an opt-out, from one list or all. */
export function isHubspotOptOut(name: string): boolean {
  return /^(properties\.)?hs_email_optout(_\d+)?$/.test(name);
}

/** HubSpot has an opt-out for each subscription type; its own column covers all of them. */
export function isOfHubspot({ name }: Column): boolean {
  return /^(properties\.)?hs_/.test(name);
}

/** Returns the column that the user names for a channel. Throws Undecided if it is ambiguous. */
export function channelColumn(column: Column, choices: ChannelChoices): ChannelColumn {
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
    const chosen = withWords(column, 'unsubscribed', words);
    const question = { use: 'unsubscribed', ofChannel: true } as const;
    if (chosen.unknown.length > 0) throw unreadable(chosen, question, choices);
    const optOut = isElseIn ? ('else in' as const) : ('else none' as const);
    const rest = isElseIn ? 'everybody else is in' : 'everything else is no opinion';
    const because = isOwn ? "it is HubSpot's own opt-out" : 'as you said';
    return { ...chosen, optOut, why: `${because}: a yes opts out, ${rest}` };
  }
  const isStated = (words?.in?.length ?? 0) > 0 && (words?.out?.length ?? 0) > 0;
  if (isNamedLikeRefusal(name) && !isStated) throw inverted(column);
  const chosen = withWords(column, 'subscription', words);
  if (isUnreadable(chosen)) throw unreadable(chosen, { use: 'subscription' }, choices);
  return chosen;
}

function inverted(column: Column): Undecided {
  const name = quoted(column.name);
  const lists = wordFlag(column.name, { in: ['WORD', 'WORD'], out: ['WORD', 'WORD'] });
  const kind = isOptOutField(column.name) ? 'an opt-out' : 'a bounce, complaint, block or death';
  const reason = `column ${name} is named like ${kind}, so its yes is not taken as a consent`;
  const everybody = `--else-in ${name} if everybody else wants this mail, too`;
  return new Undecided(reason, {
    fix: `add --opt-out ${name} if yes means no mail, or ${everybody}; or name all words: --words ${JSON.stringify(lists)}`,
    question: { about: 'polarity', column },
    answer: { optOut: column.name, states: `a yes in ${name} means no mail in this channel` },
  });
}

/** Throws Invalid for a column that is said to be the opt-out of a channel and belongs to none. */
export function refuseStray({ optOut, elseIn }: ChannelChoices, used: readonly string[]): void {
  for (const [flag, names] of [['--opt-out', optOut] as const, ['--else-in', elseIn] as const]) {
    const stray = names.find((name) => !used.includes(name));
    if (stray === undefined) continue;
    throw new Invalid(`${flag} ${quoted(stray)}: no channel has this column`, {
      fix: `add --channel ${quoted(`ID=${stray}`)}; if yes means no mail at all, use --unsubscribed`,
    });
  }
}

/**
 * Returns the columns that are named like a channel, or like its id. Names have to be equal but for
 * case, spaces and punctuation: `No newsletter` is not the consent to `Newsletter`. A name that
 * fits several channels or several columns is left out.
 */
export function matchChannels(
  columns: readonly Chosen[],
  platform: readonly PlatformChannel[],
): (Chosen & PlatformChannel)[] {
  const pairs = platform.flatMap((channel) => {
    const { id, name } = channel;
    const names = [bare(name), bare(id), bare(id.replace(/^[a-z]{1,4}_/i, ''))];
    const fitting = columns.filter(
      ({ column }) => bare(column.name) !== '' && names.includes(bare(column.name)),
    );
    return fitting.map((chosen) => ({ ...chosen, ...channel }));
  });
  const single = pairs.filter(
    (pair) =>
      pairs.filter(({ id }) => id === pair.id).length === 1 &&
      pairs.filter(({ column }) => column === pair.column).length === 1,
  );
  const why = "it is named like the platform's channel";
  return single.map((pair) => ({ ...pair, why: `${why} ${pair.name}` }));
}

/** Returns a name without case, spaces, punctuation and the folders of a dotted path. */
function bare(name: string): string {
  const last = name.split('.').findLast((part) => part !== '') ?? '';
  return last.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}
