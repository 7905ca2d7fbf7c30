/** The table from which a shell completes the command line, from what the commands declare. */
import { fileURLToPath } from 'node:url';
import type { Command, Option } from 'commander';
import { main } from '../../../src/cli.ts';
import type { CommandTable } from '../../../src/cli/completion/complete-words.ts';
import { algorithms } from '../../../src/emulator/limits/algorithms.ts';
import { listedCommands } from './command-parts.ts';

/** Where `npm run docs` writes the table. */
export const completionFile = fileURLToPath(
  new URL('../../../src/cli/completion/commands.json', import.meta.url),
);

/** The values of options whose name does not say what they take. */
const known: Readonly<Record<string, string>> = {
  '--config': 'config',
  '--only': 'contacts|templates',
  '--algorithm': algorithms.map(({ name }) => name).join('|'),
};

/** Arguments that are files. */
const fileArguments: ReadonlySet<string> = new Set([
  'file',
  'plan',
  'plan.json',
  'export',
  'source',
]);

/** Returns the table as the text of its file. */
export async function completionTable(): Promise<string> {
  const table: CommandTable = {};
  for (const name of await namesInHelp()) {
    table[name] = { about: '', arguments: {}, options: {} };
  }
  for (const command of await listedCommands()) {
    const about = await aboutOf(command.name());
    table[command.name()] = {
      about,
      arguments: Object.fromEntries(command.registeredArguments.map(argumentOf)),
      options: Object.fromEntries(command.options.map(optionOf)),
    };
    const [group = '', part] = command.name().split(' ');
    if (part !== undefined)
      table[group] = { about: await aboutOf(group), arguments: {}, options: {} };
  }
  return `${JSON.stringify(table, null, 2)}\n`;
}

function argumentOf(argument: Command['registeredArguments'][number]) {
  const name = argument.name();
  const value = argument.argChoices?.join('|') ?? (fileArguments.has(name) ? 'file' : 'text');
  return [name, value] as const;
}

function optionOf({ flags, long, short, description, argChoices }: Option) {
  const [, takes] = /[<[]([^>\]]+)[>\]]/.exec(flags) ?? [];
  const isFile = takes !== undefined && /^(file|folder)/.test(takes);
  const value = known[long ?? ''] ?? argChoices?.join('|') ?? (isFile ? 'file' : 'text');
  return [
    long ?? flags,
    {
      about: description,
      ...(short !== undefined && { short }),
      ...(takes !== undefined && { value }),
    },
  ] as const;
}

/** Returns the first line of what the help says about a command. */
async function aboutOf(name: string): Promise<string> {
  const lines = (await helpOf(name)).slice(2);
  return lines.slice(0, lines.indexOf('')).join(' ');
}

/** Returns the commands in the order of the help. */
async function namesInHelp(): Promise<string[]> {
  const lines = await helpOf('');
  return lines.slice(lines.indexOf('Commands:') + 1).flatMap((line) => {
    const [, name] = /^ {2}([a-z][a-z-]*) /.exec(line) ?? [];
    return name === undefined || name === 'help' ? [] : [name];
  });
}

/** Returns the lines of the help of a command, or of the program. */
export async function helpOf(name: string): Promise<string[]> {
  const lines: string[] = [];
  const { signal } = new AbortController();
  const print = (line: unknown): void => void lines.push(String(line));
  await main([...name.split(' ').filter(Boolean), '--help'], {
    env: {},
    print,
    note: print,
    progress: () => undefined,
    terminal: false,
    interactive: false,
    stop: signal,
    abort: signal,
  });
  return lines;
}
