/** The reference of the commands, from the options that the commands declare. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command, type Option } from 'commander';
import type { CommandGroup, CommandModule } from '../../../src/cli/compose/process-shell.ts';
import { table, type Parts } from './generated-parts.ts';

const folder = fileURLToPath(new URL('../../../src/commands', import.meta.url));

/** An option that at least so many commands have is listed once. */
const manyCommands = 3;

/** Returns every command that the help lists, with the parts of those that have several. */
export async function listedCommands(): Promise<Command[]> {
  const all = (await Promise.all(commandFiles().map(load))).flat();
  return all.filter((command) => command.name() !== 'complete');
}

/** Returns a part for each command, and one for the options that many of them have. */
export async function commandParts(): Promise<Parts> {
  const commands = await listedCommands();
  const count = (option: string) => commands.filter((one) => optionsOf(one).has(option)).length;
  const common = [...new Set(commands.flatMap((one) => [...optionsOf(one).keys()]))]
    .filter((option) => count(option) >= manyCommands)
    .toSorted((a, b) => count(b) - count(a));
  const own = commands.map((command) => [`command ${command.name()}`, partOf(command, common)]);
  return { ...Object.fromEntries(own), 'common options': commonTable(common, commands) };
}

function commandFiles(): string[] {
  return readdirSync(folder).map((file) => file.replace(/\.ts$/, ''));
}

/** Returns the command of a file, or each of its parts: `domains list`. */
async function load(name: string): Promise<Command[]> {
  const module = (await import(`${folder}/${name}.ts`)) as CommandModule | CommandGroup;
  const build = (full: string, { options }: Pick<CommandModule, 'options'>) => {
    const command = new Command(full);
    options(command);
    return command;
  };
  if (!('parts' in module)) return [build(name, module)];
  return module.parts.map((part) => build(`${name} ${part.name}`, part));
}

/** Returns what an option does, by its flags; the first words of a default in brackets. */
function optionsOf({ options }: Command): Map<string, string> {
  return new Map(
    options.map(({ flags, description, defaultValue }) => {
      const isText = typeof defaultValue === 'string';
      return [flags, isText ? `${description} (default: \`${defaultValue}\`)` : description];
    }),
  );
}

function commonTable(common: readonly string[], commands: readonly Command[]): string {
  const rows = common.map((option) => {
    const having = commands.filter((one) => optionsOf(one).has(option));
    const texts = having.map((one) => optionsOf(one).get(option) ?? '');
    return [code(option), mostFrequent(texts), commandsOf(having, commands)];
  });
  return table(['Option', 'What it does', 'Commands'], rows);
}

/** The commands that run the mirror once. */
const runs = ['apply', 'backfill', 'one', 'plan', 'sync'];

/** Names the commands that have an option, or those that lack it where they are fewer. */
function commandsOf(having: readonly Command[], all: readonly Command[]): string {
  const names = (some: readonly Command[]) => some.map((one) => code(one.name())).join(', ');
  const given = having.map((one) => one.name()).toSorted();
  if (given.join() === runs.join()) return 'runs';
  const lacking = all.filter((one) => !having.includes(one));
  return having.length > lacking.length ? `all but ${names(lacking)}` : names(having);
}

/** Returns how a command is called, and its arguments and options in a table. */
function partOf(command: Command, common: readonly string[]): string {
  // A call without a required option is refused, so it is shown although it is listed once.
  const isShown = ({ flags, mandatory }: Option) => mandatory || !common.includes(flags);
  const flags = command.options.filter(isShown);
  const shownFlags = new Set(flags.map((one) => one.flags));
  const own = [...optionsOf(command)].filter(([name]) => shownFlags.has(name));
  const given = command.registeredArguments;
  const words = given.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`));
  const calls = flags.map(({ flags, mandatory }) => (mandatory ? flags : `[${flags}]`));
  // A long line of options says less than the table does.
  const shown = calls.length > 6 ? ['[options]'] : calls;
  const call = code(['crm-mirror', command.name(), ...words, ...shown].join(' '));
  const rows = [
    ...given.map((one) => [code(one.name()), one.description]),
    ...own.map(([name, does]) => [code(name), does]),
  ];
  return rows.length === 0
    ? call
    : `${call}\n\n${table(['Argument, option', 'What it does'], rows)}`;
}

function mostFrequent(texts: readonly string[]): string {
  const groups = [...Map.groupBy(texts, (text) => text)];
  return groups.toSorted(([, a], [, b]) => b.length - a.length)[0]?.[0] ?? '';
}

function code(text: string): string {
  return `\`${text}\``;
}
