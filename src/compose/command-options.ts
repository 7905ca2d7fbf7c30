/**
 * Arguments and options of commands as tables, from which the types of their flags follow, and
 * those that several commands share; the numbers and times they state; the configuration if none is
 * named, and commands that a user can copy.
 */
import { milliseconds } from '../domain/values/config-value.ts';
import { Invalid } from '../domain/errors.ts';
import { type Command, Option } from 'commander';
import { exitCode } from './output/failure-report.ts';
import { existsSync, readFileSync } from 'node:fs';

interface OptionDetails {
  text: string;
  isRequired?: boolean;
  isHidden?: boolean;
  default?: string;
  choices?: readonly string[];
  /** The options that exclude it, as the code calls them. */
  conflicts?: readonly string[];
  /** Returns the value of a word; `before` is that of the words before it. */
  parse?(word: string, before: unknown): unknown;
}

type OptionRow = string | OptionDetails | (() => Option);

/** Arguments and options by how they are written: `<file>`, `[person]`, `json`, `last <n>`. */
export type OptionRows = Readonly<Record<string, OptionRow>>;

/** Adds the arguments and options to a command, in their order. */
export function declareOptions(command: Command, rows: OptionRows): void {
  for (const [spelling, row] of Object.entries(rows)) {
    if (typeof row === 'function') {
      command.addOption(row());
      continue;
    }
    const details: OptionDetails = typeof row === 'string' ? { text: row } : row;
    const { text, choices, conflicts, parse, isRequired = false, isHidden = false } = details;
    if (/^[<[]/.test(spelling)) {
      const argument = command.createArgument(spelling, text);
      command.addArgument(choices ? argument.choices(choices) : argument);
      continue;
    }
    const option = new Option(`--${spelling}`, text);
    if (choices) option.choices(choices);
    if (conflicts) option.conflicts([...conflicts]);
    if (parse) option.argParser(parse);
    if (details.default !== undefined) option.default(details.default);
    option.makeOptionMandatory(isRequired).hideHelp(isHidden);
    command.addOption(option);
  }
}

type Camel<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;
type Written<Key extends string> = Key extends `${infer Name} <${string}` ? Name : Key;
type FlagName<Key extends string> =
  Written<Key> extends `no-${infer Name}` ? Camel<Name> : Camel<Written<Key>>;
type FlagValue<Key, Row> = Row extends { choices: readonly (infer Choice)[] }
  ? Choice
  : Key extends `no-${string}`
    ? boolean
    : Key extends `${string}...>`
      ? string[]
      : Key extends `${string}>`
        ? string
        : true;
type Argument = `<${string}` | `[${string}`;
type KeyOf<Rows> = Exclude<keyof Rows & string, Argument>;
type IsGiven<Key, Row> = Key extends `no-${string}`
  ? true
  : Row extends (() => Option) | { isRequired: unknown } | { default: unknown }
    ? true
    : false;
export type FlagsOf<Rows> = {
  [Key in KeyOf<Rows> as IsGiven<Key, Rows[Key]> extends true ? FlagName<Key> : never]: FlagValue<
    Key,
    Rows[Key]
  >;
} & {
  [Key in KeyOf<Rows> as IsGiven<Key, Rows[Key]> extends true ? never : FlagName<Key>]?:
    | FlagValue<Key, Rows[Key]>
    | undefined;
};

/** A command line that was read: the values of its options, and its arguments. */
export interface CalledWith<Flags = object> {
  name: string;
  flags: Flags;
  args: readonly string[];
  /** Whether the command line itself names the configuration. */
  namesConfig: boolean;
}

/** The command line of a command with these options. */
export type Called<Rows> = CalledWith<FlagsOf<Rows>>;

/** For commands that do not name people. */
export const looking = { 'config <file>': () => configOption(), json: 'print one JSON document' };

/** For commands that name people. */
export const naming = {
  ...looking,
  addresses: 'name people by their address also where stdout is no terminal',
};
export type LookFlags = FlagsOf<typeof naming>;

const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof levels)[number];

export const quiet = {
  quiet: 'print results and errors only; nothing of a run that ends with 0 and no new problem',
  'log-level <level>': { text: 'print JSON log lines of this level and above', choices: levels },
};
export type QuietFlags = FlagsOf<typeof quiet>;

export const verbose = { verbose: 'print internals, too: requests, ids, readings' };

export const running = {
  ...naming,
  ...verbose,
  ...quiet,
  strict: `exit ${exitCode('rejected')} while any record is rejected or invalid, known ones too`,
};

export const limiting = {
  'only <kind>': 'contacts or templates',
  'people <file>': 'create and opt in only these people: an address or CRM id on each line',
};

export const writing = {
  'accept-lost-ledger':
    'begin a new memory if the old one, or its key, is lost: opt-outs that only it knew are forgotten',
};

export const onPerson = { ...writing, '<person>': 'an address, or a hash (#9cc428f416d4)' };

export const by = { 'by <name>': 'who decides (the user and host that call it)' };

export const output = {
  'output <file>': 'write to this file, which must not exist, and not to stdout',
};

/** Returns the number that an option states. Throws Invalid for any other text. */
export function countOf(text: string | undefined, option = '--limit'): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Invalid(`${option} ${text}: write a number from 1 on`);
}

/** In milliseconds since the epoch; null if it is not given. Throws Invalid. */
export function sinceOf(text: string | undefined, now: number, option = '--since'): number | null {
  if (text === undefined) return null;
  if (/^\d{1,6}[smhd]$/.test(text)) return now - milliseconds(text);
  if (/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)) {
    const [day = ''] = text.split('T');
    const begin = Date.parse(day);
    // Date turns the 30th of February into the 2nd of March.
    const isDay = !Number.isNaN(begin) && new Date(begin).toISOString().startsWith(day);
    const at = isDay ? Date.parse(text) : Number.NaN;
    if (!Number.isNaN(at)) return at;
  }
  throw new Invalid(
    `${option} ${text}: write a time with its zone (2026-03-01T12:00:00Z), a day, or how long ago (7d)`,
  );
}

/** Parses a whole number from 0 to `most`. Throws Invalid, naming the option. */
export function parseWhole(flag: string, text: string, most: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= most) return value;
  throw new Invalid(`${flag} "${text}": give a whole number from 0 to ${most}`);
}

function defaultConfig(): string {
  return existsSync(inFolder) && !existsSync(here) ? inFolder : here;
}

/** The environment variable that names the configuration, before the files that are looked for. */
export const configVariable = 'CRM_MIRROR_CONFIG';

const here = 'mirror.yaml';
const inFolder = 'config/mirror.yaml';

/** Returns whether a configuration has one of the names that need not be given. */
export function isUsual(config: string): boolean {
  return config === here || config === inFolder;
}

/** The configuration that is found may be the example of the package, or that changed in place. */
export function findsExample(): boolean {
  if (defaultConfig() !== inFolder) return false;
  const shipped = readFileSync(new URL('../../config/mirror.yaml', import.meta.url));
  return readFileSync(inFolder).equals(shipped) && shipped.includes('\nmirror: acme ');
}

/** Returns the option that names one configuration, or several. */
export function configOption(count: 'one' | 'several' = 'one'): Option {
  const either = `$${configVariable}, or else ${here}, or ${inFolder}`;
  if (count === 'one')
    return new Option('-c, --config <file>', 'the configuration').default(defaultConfig(), either);
  const about = 'the configuration; several: a mirror each';
  return new Option('-c, --config <file...>', about).default([defaultConfig()], either);
}

/** Commands that read no configuration of a mirror. */
const without: ReadonlySet<string> = new Set(['init', 'demo', 'emulator', 'print', 'help']);

/** Returns a command line: `crm-mirror approve 539b73071770e947 -c m.yaml` */
export function commandLine(words: string, config: string): string {
  // The disk is asked only where the name can be the default.
  if (isUsual(config) && config === defaultConfig()) return `crm-mirror ${words}`;
  const file = /^[\w./-]+$/.test(config) ? config : JSON.stringify(config);
  return `crm-mirror ${words} -c ${file}`;
}

/** Returns a word as a shell takes it literally. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** Adds the configuration, if any, to the commands that a text quotes as \`crm-mirror …\`. */
export function withConfig(text: string, config: string | undefined): string {
  if (config === undefined) return text;
  return text.replaceAll(/`crm-mirror ([a-z-]+)([^`]*)`/g, (quoted, name: string, rest: string) => {
    const isNamed = / (-c|--config)\b/.test(rest) || without.has(name) || rest === ' --help';
    return isNamed ? quoted : `\`${commandLine(`${name}${rest}`, config)}\``;
  });
}

/** Names the program as npm has found it, where a shell may not find it. `names`: first words. */
export function withCaller(
  text: string,
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string {
  if (env['npm_command'] === undefined) return text;
  const command = new RegExp(`(?<![\\w/.-]|npx )crm-mirror (?=(?:${names.join('|')})\\b)`, 'g');
  return text.replaceAll(command, 'npx crm-mirror ');
}
