/** `crm-mirror init`: proposes a configuration for an export, and writes it. */
import { existsSync, writeFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { configurationText, said } from '../cli/init/mirror-file.ts';
import { previewOf } from '../cli/init/preview.ts';
import { type Choices, type Proposal, propose, type Words } from '../cli/init/propose-columns.ts';
import { readSample, type Sample } from '../cli/init/read-sample.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { exitCode } from '../cli/output/exit-codes.ts';
import { Invalid } from '../domain/errors.ts';

interface Flags {
  yes?: true;
  output: string;
  mirror?: string;
  channel?: string[];
  id?: string;
  email?: string;
  unsubscribed?: string;
  deleted?: string;
  words?: string[];
  addresses?: true;
}

/** Declares the arguments and flags of `init`. */
export function options(command: Command): void {
  command
    .argument('<file>', 'the export: .csv, .tsv, .txt, .ndjson, .jsonl, .xlsx or .sqlite')
    .option('--yes', 'accept what is proposed')
    .option('--output <file>', 'the configuration to write; never overwritten', 'mirror.yaml')
    .option('--mirror <name>', 'name of the mirror (default: from the name of the file)')
    .option(
      '--channel <id=column...>',
      'the column with the consent to a channel of the platform, such as ch_news=Newsletter',
    )
    .option('--id <column>', 'the column with the stable id of a record')
    .option('--email <column>', 'the column with the email address')
    .option('--unsubscribed <column>', 'the column that says that a person wants no mail at all')
    .option('--deleted <column>', 'the column that says that a person is gone')
    .option(
      '--words <column:in=word,word...>',
      'what words of a column mean: in, out or none for a channel, yes or no for the other two',
    )
    .option('--addresses', 'show addresses and values also where stdout is no terminal');
}

/**
 * Reads the export, proposes a configuration and writes it. Exit code 2 if something cannot be
 * decided without a guess: the message names the option that decides it.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<Flags>();
  const [given = ''] = command.args;
  const output = resolve(flags.output);
  if (existsSync(output)) {
    const fix = 'name another file with --output, or move that one away';
    throw new Invalid(`${flags.output} exists, and init overwrites nothing`, { fix });
  }
  const sample = await readSample(given, shell.stop);
  if (sample.records === 0)
    throw new Invalid(`${given}: the file has no records`, { fix: 'export it again' });
  const choices = choicesOf(flags, shell.terminal || flags.addresses === true);
  const proposal = propose(sample, choices);
  for (const line of told(sample, proposal)) shell.print(line);
  shell.print('');
  shell.print('The first people:');
  for (const line of previewOf(sample, proposal, choices.asTheyAre)) shell.print(line);
  if (!flags.yes) {
    throw new Invalid('nothing is written yet', { fix: 'if this is right, add --yes' });
  }
  const file = resolve(given);
  const mirror = flags.mirror ?? nameOf(given);
  const folder = dirname(output);
  const text = configurationText({ mirror, file, folder, sample, proposal });
  writeFileSync(output, text, { flag: 'wx', mode: 0o644 });
  shell.print('');
  shell.print(`Wrote ${flags.output}.`);
  return next(flags.output, shell);
}

/** Checks the new configuration if the key of the platform is set, and names the next command. */
async function next(output: string, shell: Shell): Promise<number> {
  const { env, print, call } = shell;
  if (env['PLATFORM_API_KEY'] === undefined || call === undefined) {
    print('Next: set PLATFORM_URL and PLATFORM_API_KEY in the environment, then');
    print(`  crm-mirror check -c ${output}`);
    return exitCode('done');
  }
  print('');
  const code = await call(['check', '-c', output], shell);
  print('');
  print(
    code === exitCode('done') || code === exitCode('rejected')
      ? `Next: crm-mirror plan -c ${output}`
      : `Next: correct ${output}, then crm-mirror check -c ${output}`,
  );
  return code;
}

function choicesOf(flags: Flags, asTheyAre: boolean): Choices {
  const { id, email, unsubscribed, deleted, channel = [], words = [] } = flags;
  return {
    id,
    email,
    unsubscribed,
    deleted,
    channels: channel.map(channelOf),
    words: wordsOf(words),
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
    words[meaning] = isAny ? 'any' : [...before, ...list.split(',').map((word) => word.trim())];
    byColumn.set(column, words);
  }
  return byColumn;
}

/** Returns a name for the mirror from that of the file: lower case, with hyphens. */
function nameOf(file: string): string {
  const plain = basename(file)
    .replace(/\..*$/, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40);
  return plain === '' ? 'mirror' : plain;
}

function told({ records, columns, options: source, flaw }: Sample, proposal: Proposal): string[] {
  const { id, email, unsubscribed, deleted, channels } = proposal;
  const roles = [
    ['id', id],
    ['email', email],
    ['unsubscribed', unsubscribed],
    ['deleted', deleted],
    ...channels.map((one) => [one.id, one] as const),
  ] as const;
  const { type = '', ...more } = source;
  const extra = Object.entries(more).map(([name, value]) => `${name}: ${value}`);
  return [
    `${type}: ${records} records, ${columns.length} columns${extra.length > 0 ? ` (${extra.join(', ')})` : ''}`,
    ...(flaw === undefined ? [] : [`  not complete: ${flaw}`]),
    ...roles.map(([role, chosen]) => {
      const name = chosen ? chosen.column.name : 'no column';
      const why = chosen ? (chosen.why ?? 'as you said') : 'none is recognized';
      return `  ${role.padEnd(14)}${name.padEnd(28)}${why}`;
    }),
    ...unusedLines(proposal),
  ];
}

function unusedLines({ unused, unsubscribed }: Proposal): string[] {
  if (unused.length === 0) return [];
  const fix = unsubscribed ? '' : ' or --unsubscribed COLUMN';
  return [
    '',
    'These columns are not used. If one says that a person must not be mailed, or is gone, add',
    `--deleted COLUMN${fix}:`,
    ...unused.map((column) => `  ${said(column)}`),
  ];
}
