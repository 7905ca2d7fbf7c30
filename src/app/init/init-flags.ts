/** The flags of `init`, and the one command line that decides all that a refusal names. */
import type { OptionRows } from '../../compose/command-options.ts';
import { Invalid } from '../../domain/errors.ts';
import type { PlatformChannel } from './platform-channels.ts';
import { columnFlag, wordsOf } from './column-flags.ts';
import type { Choices } from './propose-columns.ts';
import type { Undecided } from './sample/sample.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';

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

/** The argument and the options. */
export const options = {
  '[source]':
    'an export (.csv, .tsv, .txt, .ndjson, .jsonl, .xlsx, .sqlite), an address (https://, postgres://, mysql://), hubspot or salesforce',
  yes: 'accept what is proposed, and ask nothing',
  'output <file>': {
    text: 'the configuration to write; never overwritten',
    default: 'mirror.yaml',
  },
  'mirror <name>': 'name of the mirror (default: from the name of the source)',
  'table <name>': 'the table of a database',
  'header <text...>':
    "a header for an HTTP API, with its secret from the environment: 'Authorization: Bearer ${CRM_TOKEN}'",
  'channel <id=column...>':
    'the column with the consent to a channel of the platform, such as ch_news=Newsletter',
  'opt-out <column...>':
    'a column of a --channel in which a yes is an opt-out; everything else is no opinion',
  'else-in <column...>':
    'the same for a list in which everybody is in who has not objected: a no or an empty value opts in',
  'id <column>': 'the column with the stable id of a record',
  'email <column>': 'the column with the email address',
  'unsubscribed <column>': {
    text: 'a column that says that a person wants no mail at all, or several as A,B; those that are named so need no flag',
    parse: (column: string, before: unknown): unknown[] => [before || [], column].flat(),
  },
  'no-unsubscribed': 'no column says so',
  'unused <column...>':
    'a column that is named or looks like an opt-out and says something else, or several as A,B; a comma within a name is written \\,',
  'deleted <column>': 'the column that says that a person is gone',
  'no-deleted': 'no column says so',
  'words <column:in=word,word...>':
    'what all words of a column mean, such as KZ:yes=X,no=Y: in, out or none for a channel, otherwise yes (wants no mail, or is gone) or no; a comma within a word is written \\,',
  addresses: 'show addresses and values also where stdout is no terminal',
} satisfies OptionRows;

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
    channels: channel.map((text) => {
      const at = text.indexOf('=');
      if (at > 0 && at < text.length - 1)
        return { id: text.slice(0, at), column: text.slice(at + 1) };
      throw new Invalid(`--channel ${text} does not name a channel and its column`, {
        fix: 'write ID=COLUMN, such as ch_news=Newsletter',
      });
    }),
    optOut,
    elseIn,
    words: wordsOf(words),
    platform,
    asTheyAre,
  };
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
    ([name, values]) => (values.length > 0 ? [`--${name}`, ...values] : []),
  );
  const all = ['crm-mirror', 'init', source, ...parts, ...lists, '--yes'];
  const inShell = (text: string): string =>
    /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return all.map(inShell).join(' ');
}

/** Returns the refusal with the command line as its last problem. */
export function withAnswerLine({ problems, answers }: Undecided, flags: Flags): Invalid {
  if (answers.length === 0) return new Invalid(problems);
  const open = answers.flatMap((one) => one.unused ?? []).map(quoted);
  const statements = answers.flatMap((one) => (one.unused === undefined ? one.states : []));
  if (open.length > 0) {
    const [those, say] = open.length === 1 ? ['', 'if it says'] : ['those of ', 'that say'];
    statements.push(
      `COLUMN stands for ${those}${open.join(', ')} ${say} nothing about who wants no mail`,
    );
  }
  const reason = `all of it in one line, if this is true: ${statements.join('; ')}`;
  const { unsubscribed = [], unused = [], channel = [], optOut = [], words = [] } = flags;
  const list = (name: 'channel' | 'optOut' | 'words'): string[] =>
    answers.flatMap((answer) => answer[name] ?? []);
  const single = answers.flatMap(({ id, email, deleted }) =>
    Object.entries({ id, email, deleted }),
  );
  const optOuts = answers.flatMap((answer) => answer.unsubscribed ?? []);
  const named = [...(unsubscribed || []), ...(optOuts.length > 0 ? [columnFlag(optOuts)] : [])];
  const fix = commandLine({
    ...flags,
    ...Object.fromEntries(single.filter(([, column]) => column !== undefined)),
    ...(named.length > 0 && { unsubscribed: named }),
    unused: [...unused, ...(open.length > 0 ? ['COLUMN'] : [])],
    channel: [...channel, ...list('channel')],
    optOut: [...optOut, ...list('optOut')],
    words: [...new Set([...words, ...list('words')])],
  });
  return new Invalid([...problems, { code: 'invalid', reason, fix }]);
}
