/** The flags of `init`: every answer of its conversation can be given as one. */
import type { Command } from 'commander';
import { Invalid } from '../../domain/errors.ts';
import type { Words } from './column-words.ts';
import type { PlatformChannel } from './match-channels.ts';
import type { Choices } from './propose-columns.ts';

/** The flags as commander parses them, and the argument. */
export interface Flags {
  /** A file, an address, `hubspot` or `salesforce`. */
  source?: string;
  table?: string;
  header?: string[];
  yes?: true;
  output: string;
  mirror?: string;
  channel?: string[];
  optOut?: string[];
  elseIn?: string[];
  id?: string;
  email?: string;
  unsubscribed?: string[] | false;
  unused?: string[];
  deleted?: string | false;
  words?: string[];
  addresses?: true;
}

/** Declares the argument and the flags. */
export function declareFlags(command: Command): void {
  command
    .argument(
      '[source]',
      'an export (.csv, .tsv, .txt, .ndjson, .jsonl, .xlsx, .sqlite), an address (https://, postgres://, mysql://), hubspot or salesforce',
    )
    .option('--yes', 'accept what is proposed, and ask nothing')
    .option('--output <file>', 'the configuration to write; never overwritten', 'mirror.yaml')
    .option('--mirror <name>', 'name of the mirror (default: from the name of the source)')
    .option('--table <name>', 'the table of a database')
    .option(
      '--header <text...>',
      "a header for an HTTP API, with its secret from the environment: 'Authorization: Bearer ${CRM_TOKEN}'",
    )
    .option(
      '--channel <id=column...>',
      'the column with the consent to a channel of the platform, such as ch_news=Newsletter',
    )
    .option(
      '--opt-out <column...>',
      'a column of a --channel in which a yes is an opt-out; everything else is no opinion',
    )
    .option(
      '--else-in <column...>',
      'the same for a list in which everybody is in who has not objected: a no or an empty value opts in',
    )
    .option('--id <column>', 'the column with the stable id of a record')
    .option('--email <column>', 'the column with the email address')
    .option(
      '--unsubscribed <column>',
      'a column that says that a person wants no mail at all; may be repeated',
      (column: string, before?: string[] | false) => [...(before || []), column],
    )
    .option('--no-unsubscribed', 'no column says so')
    .option(
      '--unused <column...>',
      'a column that is named or looks like an opt-out, and says something else',
    )
    .option('--deleted <column>', 'the column that says that a person is gone')
    .option('--no-deleted', 'no column says so')
    .option(
      '--words <column:in=word,word...>',
      'what words of a column mean: in, out or none for a channel, yes or no for the other two; a comma within a word is written \\,',
    )
    .option('--addresses', 'show addresses and values also where stdout is no terminal');
}

/** Returns the flags of a command line. */
export function flagsOf(command: Command): Flags {
  const [source] = command.args;
  return { ...command.opts<Flags>(), ...(source !== undefined && { source }) };
}

/** Returns what the flags decide. Throws Invalid for a flag that is not understood. */
export function choicesOf(
  flags: Flags,
  { asTheyAre, platform }: { asTheyAre: boolean; platform: readonly PlatformChannel[] },
): Choices {
  const { id, email, unsubscribed, unused = [], deleted, channel = [], words = [] } = flags;
  const { optOut = [], elseIn = [] } = flags;
  return {
    id,
    email,
    unsubscribed,
    deleted,
    unused,
    channels: channel.map(channelOf),
    optOut,
    elseIn,
    words: wordsOf(words),
    platform,
    asTheyAre,
  };
}

function channelOf(text: string): Choices['channels'][number] {
  const at = text.indexOf('=');
  if (at > 0 && at < text.length - 1) return { id: text.slice(0, at), column: text.slice(at + 1) };
  throw new Invalid(`--channel ${text} does not name a channel and its column`, {
    fix: 'write ID=COLUMN, such as ch_news=Newsletter',
  });
}

function wordsOf(all: readonly string[]): Map<string, Words> {
  const byColumn = new Map<string, Words>();
  for (const text of all) {
    const found = /^(?<column>.+?):(?<meaning>in|out|none|yes|no)=(?<list>.+)$/s.exec(text)?.groups;
    const { column, meaning, list } = found ?? {};
    if (column === undefined || meaning === undefined || list === undefined) {
      throw new Invalid(`--words ${text} is not understood`, {
        fix: 'write COLUMN:in=WORD,WORD, or out, none, yes, no instead of in',
      });
    }
    const words: Record<string, readonly string[] | 'any'> = { ...byColumn.get(column) };
    const before = words[meaning] ?? [];
    const isAny = before === 'any' || (meaning === 'yes' && list === 'any');
    words[meaning] = isAny ? 'any' : [...before, ...wordsIn(list)];
    byColumn.set(column, words);
  }
  return byColumn;
}

/** Splits a list at its commas; `\,` is a comma within a word. */
function wordsIn(list: string): string[] {
  return list.split(/(?<!\\),/).map((word) => word.replaceAll('\\,', ',').trim());
}

/** Returns the flag that names a word of a column. */
export function wordFlag(column: string, meaning: string, words: readonly string[]): string {
  return `${column}:${meaning}=${words.map((word) => word.replaceAll(',', '\\,')).join(',')}`;
}

/** Returns the command line that does the same without questions. */
export function commandLine(flags: Flags): string {
  const { source = '', output, unused = [], channel = [], words = [], header = [] } = flags;
  const { id, email, unsubscribed, deleted, mirror, table, optOut = [], elseIn = [] } = flags;
  const named = { output, mirror, table, id, email, unsubscribed, deleted };
  const parts = Object.entries(named).flatMap(([name, value]) => {
    if (value === undefined || (name === 'output' && value === 'mirror.yaml')) return [];
    if (value === false) return [`--no-${name}`];
    return [value].flat().flatMap((one) => [`--${name}`, one]);
  });
  const polarity = { 'opt-out': optOut, 'else-in': elseIn };
  const lists = Object.entries({ header, unused, channel, ...polarity, words }).flatMap(
    ([name, values]) => values.flatMap((value) => [`--${name}`, value]),
  );
  const all = ['crm-mirror', 'init', source, ...parts, ...lists, '--yes'];
  return all.map(inShell).join(' ');
}

/** Quotes a text for a shell where that is necessary. */
function inShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
