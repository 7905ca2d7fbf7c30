/** Words are completed from a table of all commands, so that Tab does not load the commands. */
import type { CommandModule } from '../../compose/process-shell.ts';
import { exitCode } from '../../compose/output/failure-report.ts';
import { readdirSync } from 'node:fs';
import { RootCommand, ShellCompDirective } from '@bomb.sh/tab';
import table from './commands.json' with { type: 'json' };

export const parts = {
  schema: {
    options: {},
    async run(_command, shell) {
      // A shell that completes a word does not wait for it.
      const { editorSchema } = await import('../../config/load-config.ts');
      shell.print(JSON.stringify(editorSchema(), null, 2));
      return exitCode('done');
    },
  },
  completion: {
    options: { '<shell>': { text: 'bash, zsh or fish', choices: ['bash', 'zsh', 'fish'] } },
    help:
      '  bash  `source <(crm-mirror print completion bash)` in ~/.bashrc; needs bash-completion\n' +
      '  zsh   `crm-mirror print completion zsh > ~/.zfunc/_crm-mirror`, a folder in $fpath ' +
      'before compinit\n' +
      '  fish  `crm-mirror print completion fish > ~/.config/fish/completions/crm-mirror.fish`',
    async run({ args: [name = ''] }, shell) {
      for (const line of completionScript(name).split('\n')) shell.print(line);
      return exitCode('done');
    },
  },
  /** The hidden command `complete`, which the printed script calls to complete the last word. */
  complete: {
    options: { '[words...]': 'a command line, after --' },
    async run({ args }, shell) {
      for (const line of completionsOf(args)) shell.print(line);
      return exitCode('done');
    },
  },
} satisfies Record<string, CommandModule>;

/** What an option or argument takes: "file", "config" (YAML), "text", or choices as "a|b". */
type Value = string;

interface Option {
  about: string;
  /** The short form, with its dash. */
  short?: string;
  /** If undefined, the option takes no value. */
  value?: Value;
}

/** All commands by name, such as "sync" or "platform domains list"; `arguments` are in order. */
export type CommandTable = Record<
  string,
  { about: string; arguments: Record<string, Value>; options: Record<string, Option> }
>;

const commands: CommandTable = table;

/** One line for each candidate for the last, incomplete word, and one with a directive. */
export function completionsOf(words: readonly string[]): string[] {
  const kind = fileKind(words);
  if (kind) return fileLines(words.at(-1) ?? '', kind);
  const root = new RootCommand();
  for (const [name, { about, arguments: given, options }] of Object.entries(commands)) {
    const command = root.command(name, about);
    for (const [argument, value] of Object.entries(given))
      command.argument(argument, offering(value));
    for (const [flag, { about: does, short, value }] of Object.entries(options)) {
      const alias = short?.slice(1);
      const long = flag.replace(/^--/, '');
      if (value === undefined) command.option(long, does, alias);
      else command.option(long, does, offering(value), alias);
    }
  }
  return printedBy(() => root.parse([...words]));
}

function completionScript(shell: string): string {
  const program = 'crm-mirror';
  let script = printedBy(() => new RootCommand().setup(program, program, shell)).join('\n');
  if (shell !== 'bash') return script;
  // The script would evaluate what has been typed, and could not be loaded twice.
  const replacements = [
    ['-- ${words[@]:1}"', '-- $(printf \'%q \' "${words[@]:1:cword}")"'],
    [
      '    # Add an empty parameter if the last parameter is complete\n' +
        '    if [[ -z "$cur" ]]; then\n' +
        '        requestComp="$requestComp \'\'"\n' +
        '    fi\n',
      '',
    ],
    ['readonly ShellComp', 'ShellComp'],
  ] as const;
  for (const [from, to] of replacements) {
    if (!script.includes(from)) throw new Error(`the script for bash has no ${from}`);
    script = script.replaceAll(from, () => to);
  }
  return script;
}

type Offer = (this: unknown, complete: (value: string, about: string) => void) => void;

function offering(value: Value): Offer {
  const choices = value.includes('|') ? value.split('|') : [];
  return (complete) => {
    for (const choice of choices) complete(choice, '');
  };
}

function fileKind(words: readonly string[]): 'file' | 'config' | undefined {
  const [before = '', word = ''] = words.slice(-2);
  const depth = [3, 2, 1].find((length) => commands[words.slice(0, length).join(' ')]) ?? 1;
  const command = commands[words.slice(0, depth).join(' ')];
  if (!command || words.length <= depth || word.startsWith('-')) return undefined;
  const options = Object.entries(command.options);
  const option = options.find(([flag, { short }]) => flag === before || short === before)?.[1];
  const [first] = Object.values(command.arguments);
  const argument = words.length === depth + 1 ? first : undefined;
  const value = option ? option.value : argument;
  return value === 'file' || value === 'config' ? value : undefined;
}

/** Names that a shell would have to quote are left out. */
const plainName = /^[\w.@+,-]+$/;

function fileLines(word: string, kind: 'file' | 'config'): string[] {
  const folder = word.slice(0, word.lastIndexOf('/') + 1);
  const begin = word.slice(folder.length);
  const names = entriesOf(folder === '' ? '.' : folder)
    .filter((entry) => entry.name.startsWith(begin) && plainName.test(entry.name))
    .filter((entry) => begin.startsWith('.') || !entry.name.startsWith('.'))
    .filter((entry) => kind === 'file' || entry.isDirectory() || /\.ya?ml$/i.test(entry.name))
    .map((entry) => `${folder}${entry.name}${entry.isDirectory() ? '/' : ''}`)
    .toSorted();
  const { ShellCompDirectiveNoFileComp: noFiles, ShellCompDirectiveNoSpace: noSpace } =
    ShellCompDirective;
  const hasFolder = names.some((name) => name.endsWith('/'));
  return [...names, `:${noFiles + (hasFolder ? noSpace : 0)}`];
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Returns the lines that a function of the library prints. It has no other way to return them. */
function printedBy(act: () => void): string[] {
  const output: Pick<Console, 'log'> = console;
  const { log } = output;
  const lines: string[] = [];
  output.log = (line) => void lines.push(String(line));
  try {
    act();
  } finally {
    output.log = log;
  }
  return lines;
}
