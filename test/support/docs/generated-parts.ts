import type { CommandTable } from '../../../src/commands/completion/print.ts';
import { fileURLToPath } from 'node:url';
import { format } from 'oxfmt';
import formatting from '../../../.oxfmtrc.json' with { type: 'json' };
import type { FileText } from '../../style/text.ts';
import { exitCodes } from '../../../src/compose/output/failure-report.ts';
import { runGates } from '../../../src/engine/decide/decide-changes.ts';
import { gates } from '../../../src/records/contact/consent/gates.ts';
import { rules, type Rule } from '../../../src/records/contact/consent/rules.ts';
import { Command, type Option } from 'commander';
import { readPages } from './page-blocks.ts';
import { declareOptions } from '../../../src/compose/command-options.ts';
import { commands, tasks } from '../../../src/commands/table.ts';
import type { CommandForm } from '../../../src/compose/process-shell.ts';
import { algorithms } from '../../../src/emulator/limits/route-limits.ts';
import { editorSchema } from '../../../src/config/load-config.ts';

// Writes the parts of the pages that come from the code. In a page, the text between
// `<!-- generated: NAME -->` and `<!-- end -->` is the part of that name.

/** The parts by name, in Markdown. */
export type Parts = Readonly<Record<string, string>>;

const marked = /^<!-- generated: (.+) -->\n(?:[^]*?\n)??^<!-- end -->$/gm;
const opening = /^<!-- generated: .+ -->$/gm;

/** Returns the names of the parts that a page has a place for. */
export function partsIn({ text }: Pick<FileText, 'text'>): string[] {
  return [...text.matchAll(marked)].map(([, name = '']) => name);
}

/** Returns a page with its parts written anew. Throws for a name that no part has. */
export async function withParts({ path, text }: FileText, parts: Parts): Promise<string> {
  const places = partsIn({ text }).length;
  if (places < [...text.matchAll(opening)].length) throw new Error(`${path}: a part has no end`);
  if (places === 0) return text;
  const written = text.replaceAll(marked, (_whole, name: string) => {
    const part = parts[name];
    if (part === undefined) throw new Error(`${path}: no part is called ${name}`);
    return `<!-- generated: ${name} -->\n\n${part}\n\n<!-- end -->`;
  });
  return (await format(path, written, formatting)).code;
}

/** Returns a table whose cells are as wide as their text. Each row has a cell for each head. */
function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escaped).join(' | ')} |`;
  const rule = `|${heads.map(() => ' --- |').join('')}`;
  return ['<!-- prettier-ignore -->', line(heads), rule, ...rows.map(line)].join('\n');
}

/** A line in a cell would end it, in code too. */
function escaped(text: string): string {
  return text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');
}

// The table of exit codes, from the codes themselves.

const codes = Object.values(exitCodes);

/** The codes with their meanings, and the order in which one wins over another. */
export const exitCodeParts: Parts = {
  'exit codes': table(
    ['Code', 'Meaning'],
    [...Map.groupBy(codes, ({ means }) => means)]
      .map(([means, same]) => [same.map(({ code }) => code), means] as const)
      .toSorted(([[a = 0]], [[b = 0]]) => a - b)
      .map(([same, means]) => [same.map((code) => `\`${code}\``).join(', '), means]),
  ),
  'order of exit codes': codes.map(({ code }) => `\`${code}\``).join(', '),
};

// The tables of docs/consent.md, from the rules and gates themselves.

const actions: Record<Rule['action'], string> = {
  nothing: 'nothing',
  create: 'create',
  opt_in: 'opt in',
  opt_out: 'opt out',
  delete: 'opt our contact out where it is subscribed, then delete it',
  conflict: 'nothing; report a conflict',
};

/** What decide.ts makes of a gate, where that is not what its action says alone. */
const outcomes: Record<string, string> = {
  'address-replaced':
    'delete our contact without an opt-out; opt out the other contacts with the address',
  'renamed-claimed': 'report a conflict; opt out only the contacts that no such record claims',
};

function outcomeOf({ id, action }: Pick<Rule, 'id' | 'action'>): string {
  return outcomes[id] ?? actions[action];
}

/** The rules of consent, the gates behind them, and the gates of a run. */
export const consentParts: Parts = {
  'consent rules': table(
    ['Rule', 'The rule matches if', 'What happens'],
    rules.map(({ id, asks, action }) => [`\`${id}\``, asks, actions[action]]),
  ),
  'consent gates': table(
    ['Gate', 'Applies to', 'The gate stops it if', 'What happens instead'],
    gates.map(({ id, about, asks, action }) => {
      return [`\`${id}\``, aboutActions(about), asks, outcomeOf({ id, action })];
    }),
  ),
  'gates of a run': table(
    ['Gate', 'The change is withheld if'],
    runGates.map(({ id, asks }) => [`\`${id}\``, asks]),
  ),
};

function aboutActions(about: readonly Rule['action'][]): string {
  const isAll = about.length === Object.keys(actions).length;
  return isAll ? 'everything' : about.map((action) => action.replace('_', ' ')).join(', ');
}

// The table from which a shell completes the command line, from what the commands declare.

/** Where `npm run docs` writes the table. */
export const completionFile = fileURLToPath(
  new URL('../../../src/commands/completion/commands.json', import.meta.url),
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
  const called = await calledCommands();
  const table: CommandTable = Object.fromEntries(
    commands.flatMap(({ name, summary: about, isHidden }) => {
      if (isHidden) return [];
      const command = called.find((one) => one.name() === name);
      const { registeredArguments = [], options = [] } = command ?? {};
      const given = Object.fromEntries(registeredArguments.map(argumentOf));
      const flags = Object.fromEntries(options.map(optionOf));
      return [[name, { about, arguments: given, options: flags }]];
    }),
  );
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

// The reference of the commands, from the options that the commands declare.

/** An option that at least so many commands have is listed once. */
const manyCommands = 3;
/** It is not listed with them: it means something else for each command. */
const ownMeaning = '--plan <file>';

/** A command, and one above it whose arguments and options it has, too. */
const alike: Readonly<Record<string, string>> = {
  reject: 'approve',
  'export templates': 'export people',
};

/** Returns every command that can be called, with its arguments and options. */
async function calledCommands(): Promise<Command[]> {
  const built = commands.map(async ({ name, isHidden, load }) => {
    if (!load || isHidden) return [];
    const command = new Command(name);
    declareOptions(command, (await load()).options);
    return [command];
  });
  return (await Promise.all(built)).flat();
}

/** Returns a part for each command, and one for the options that many of them have. */
export async function commandParts(): Promise<Parts> {
  const called = await calledCommands();
  const count = (option: string) => called.filter((one) => optionsOf(one).has(option)).length;
  const common = [...new Set(called.flatMap((one) => [...optionsOf(one).keys()]))]
    .filter((option) => count(option) >= manyCommands && option !== ownMeaning)
    .toSorted((a, b) => count(b) - count(a));
  const own = called.map((command) => {
    const like = called.find((one) => one.name() === alike[command.name()]);
    return [`command ${command.name()}`, partOf(command, common, like)];
  });
  return {
    ...Object.fromEntries(own),
    'common options': commonTable(common, called),
    tasks: tasksTable(),
    'commands during a pause': pauseTable(),
    'commands beside a worker': workerTable(),
  };
}

/** Every form in which a command can be called, as the pages name it. */
const allForms = commands
  .filter(({ load, isHidden }) => load && !isHidden)
  .flatMap(({ forms = [], ...row }) => [
    row,
    ...forms.map(({ options, ...form }) => ({ ...form, name: `${row.name} --${options[0]}` })),
  ]);

/** The commands of each task, each with a link to where it is described. */
function tasksTable(): string {
  const pages = readPages();
  const linkTo = (name: string): string => {
    const mark = `<!-- generated: command ${name} -->`;
    const page = pages.find(({ text }) => text.includes(mark));
    if (!page) throw new Error(`no page describes the command ${name}`);
    const before = page.text.slice(0, page.text.indexOf(mark));
    const heading = [...before.matchAll(/^#+ (.+)$/gm)].at(-1)?.[1] ?? '';
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^a-z0-9 -]/g, '')
      .replaceAll(' ', '-');
    const file = page.path === 'docs/commands.md' ? '' : page.path.replace(/^docs\//, '');
    return `[${name}](${file}#${anchor})`;
  };
  const rows = Object.keys(tasks).map((task) => {
    const own = commands.filter((one) => one.task === task && one.load && !one.isHidden);
    return [task, own.map(({ name }) => linkTo(name)).join(' · ')];
  });
  return table(['Task', 'Commands'], rows);
}

/** Which commands a pause refuses: those that change people, or send something. */
function pauseTable(): string {
  const handed = allForms.filter(({ where }) => where !== 'here');
  const [steering, refused] = [true, false].map((is) =>
    namesOf(handed.filter(({ effect }) => (effect === 'steers') === is)),
  );
  const heads = ['Does not work during a pause', 'Still works'];
  const waiting = `${refused} (exit code 75), scheduled runs, events (they wait)`;
  return table(heads, [[waiting, `what only reads, such as \`plan\`; ${steering}`]]);
}

const besideWorker: Record<CommandForm['where'], string> = {
  alone: 'waits until the run has ended',
  beside: 'works during the run',
  here: 'needs no worker: only reads, or changes the files of the mirror directly',
};

/** What a worker that has the mirror makes of the commands. */
function workerTable(): string {
  const rows = [...Map.groupBy(allForms, ({ where }) => where)].map(([where, forms]) => [
    where === 'here' ? 'all others' : namesOf(forms),
    besideWorker[where],
  ]);
  return table(['Command', 'While the worker is busy with a run'], rows.toReversed());
}

function namesOf(forms: readonly { name: string }[]): string {
  return forms.map(({ name }) => code(name)).join(', ');
}

/** Returns what an option does, by its flags; the first words of a default in brackets. */
function optionsOf({ options }: Command): Map<string, string> {
  return new Map(
    options.map(({ flags, description, defaultValue, defaultValueDescription: either }) => {
      if (either !== undefined) return [flags, `${description} (default: ${either})`];
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
const runs = ['backfill', 'plan', 'sync'];

/** Names the commands that have an option, or those that lack it where they are fewer. */
function commandsOf(having: readonly Command[], all: readonly Command[]): string {
  const names = (some: readonly Command[]) =>
    [...new Set(some.map((one) => code(one.name())))].join(', ');
  const given = having.map((one) => one.name()).toSorted();
  if (given.join() === runs.join()) return 'runs';
  const lacking = all.filter((one) => !having.includes(one));
  return having.length > lacking.length ? `all but ${names(lacking)}` : names(having);
}

/**
 * Returns how a command is called, and its arguments and options in a table. What the command
 * `like` has as well is listed there, unless a call without it is refused.
 */
function partOf(command: Command, common: readonly string[], like?: Command): string {
  // A call without a required option is refused, so it is shown although it is listed once.
  const flags = command.options.filter((one) => one.mandatory || !common.includes(one.flags));
  const given = command.registeredArguments;
  const words = given.map((one) => (one.required ? `<${one.name()}>` : `[${one.name()}]`));
  const calls = flags.map(({ flags, mandatory }) => (mandatory ? flags : `[${flags}]`));
  // A long line of options says less than the table does.
  const shown = calls.length > 6 ? ['[options]'] : calls;
  const call = code(['crm-mirror', command.name(), ...words, ...shown].join(' '));
  const texts = optionsOf(command);
  const listed = like ? optionsOf(like) : new Map<string, string>();
  const own = flags.filter(
    (one) => one.mandatory || listed.get(one.flags) !== texts.get(one.flags),
  );
  const rows = [
    ...(like ? [] : given).map((one) => [code(one.name()), one.description]),
    ...own.map((one) => [code(one.flags), texts.get(one.flags) ?? '']),
    ...(like ? [['all others', `as of ${code(like.name())}`]] : []),
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

// The reference of the configuration, from the schema that editors use.

type Schema = ReturnType<typeof editorSchema>;

/** One key of the configuration. */
interface Key {
  path: string;
  schema: Schema;
  isRequired: boolean;
}

/** How the types are listed of keys whose options are on other pages. */
const elsewhere: Readonly<Record<string, (types: readonly string[]) => string>> = {
  'contacts.deleted': () => 'text, or [words or a condition](values-and-conditions.md)',
  'contacts.unsubscribed': () =>
    'text, or [words or a condition](values-and-conditions.md), or a list of these',
  'contacts.consentAt': () =>
    'text, or `{ field, format, timezone }`: [dates](values-and-conditions.md#when-the-person-said-so-consentat)',
  'guards.deletes': guardLink,
  'guards.optIns': guardLink,
  'guards.optOuts': guardLink,
  'guards.templates': guardLink,
  'server.proxyUser': () => '`{ header, from, operators }`: [the console](console.md)',
  'notices.to[].slack': () => '`{ url }`',
  'notices.to[].teams': () => '`{ url }`',
  'notices.to[].ntfy': () => '`{ url, token }`',
  'notices.to[].email': () => '`{ smtp, user, password, from, to }`',
  'notices.to[].webhook': () => '`{ url, secret }`',
  'contacts.source': sourceLinks,
  'templates.source': sourceLinks,
  'policy.approvers': () => '[keys](guards-and-approvals.md#who-may-approve)',
  'policy.canary': () => '[keys](guards-and-approvals.md#canary)',
  'templates.canary': () => '[keys](guards-and-approvals.md#canary)',
  'contacts.channels[].subscription': () =>
    'text, or [words](values-and-conditions.md#ja-and-nein-words-of-your-own), a [condition](values-and-conditions.md#conditions), or an [opt-out](values-and-conditions.md#columns-of-opt-outs)',
  'contacts.protect': () => 'list of text, or `{ when }`',
  page: () => '`{ cursor, param }` or `{ number, first, size, sizeValue }`, as above',
  changes: () => '`{ url, format, overlap }`, as above',
  'contacts.webhook': () => '`{ format, secret, id }`: [events](worker.md#take-events)',
  'contacts.returns': (types) => `[by type](write-back.md): ${types.map(inCode).join(', ')}`,
};

function guardLink(): string {
  return '[limits](guards-and-approvals.md#the-four-guards)';
}

function sourceLinks(types: readonly string[]): string {
  return `by type: ${types.map((type) => `[${type}](sources/${type}.md)`).join(', ')}`;
}

/** Returns a part for each block of the file, and for each type of source and of write-back. */
export function configurationParts(): Parts {
  const whole = editorSchema();
  const blocks = Object.entries(propertiesOf(whole)).filter(([, schema]) => isBlock(schema));
  const { contacts, templates } = propertiesOf(whole);
  const sources = [contacts, templates].flatMap((of) => typesOf(propertyOf(of, 'source')));
  const returns = typesOf(propertyOf(contacts, 'returns'));
  return {
    'top-level keys': tableOf(keysOf(whole, ''), blockLink),
    ...mapped(blocks, (name, schema) => [`keys of ${name}`, deepKeysOf(schema, `${name}.`)]),
    ...mapped(sources, (type, schema) => [`options of ${type}`, deepKeysOf(schema, '')]),
    ...Object.fromEntries(
      returns.map(([type, schema]) => {
        const source = sources.find(([name]) => name === type)?.[1];
        const above = new Set(source ? rowsOf(deepKeysOf(source, '')).map(String) : []);
        const rows = rowsOf(deepKeysOf(schema, ''));
        const repeated = rows.filter((row) => above.has(String(row)));
        const own = rows.filter((row) => !above.has(String(row)));
        const names = repeated.map(([name = '']) => name).join(', ');
        const more = repeated.length === 0 ? [] : [[names, 'as above', '', '']];
        return [`write-back options of ${type}`, keyTable([...own, ...more])];
      }),
    ),
  };
}

function mapped(
  schemas: readonly (readonly [string, Schema])[],
  by: (name: string, schema: Schema) => [part: string, keys: Key[]],
): Parts {
  const parts = schemas.map(([name, schema]) => by(name, schema));
  return Object.fromEntries(parts.map(([part, keys]) => [part, tableOf(keys)]));
}

function tableOf(keys: readonly Key[], values: (key: Key) => string = valuesAt): string {
  return keyTable(rowsOf(keys, values));
}

function rowsOf(keys: readonly Key[], values: (key: Key) => string = valuesAt): string[][] {
  return keys.map((key) => {
    return [inCode(key.path), meaningOf(key.schema), values(key), defaultOf(key)];
  });
}

function keyTable(rows: readonly (readonly string[])[]): string {
  return table(['Key', 'What it is', 'Values', 'Default'], rows);
}

/** The pages of blocks that are not described in the reference itself. */
const pages: Readonly<Record<string, string>> = {
  server: 'metrics.md',
  audit: 'audit.md',
  requests: 'audit.md#requests',
  rules: 'guards-and-approvals.md#rules',
  windows: 'guards-and-approvals.md#windows',
  alerts: 'notifications.md#thresholds',
  notices: 'notifications.md',
};

/** Returns a link to the heading or the page of a block. */
function blockLink(key: Key): string {
  const page = pages[key.path];
  if (!page && !isBlock(key.schema)) return valuesAt(key);
  return `[${key.path}](${page ?? `#${key.path}`})`;
}

/** Returns what may be written there: links for what is described on other pages. */
function valuesAt({ path, schema }: Key): string {
  const list = elsewhere[path];
  return list ? list(typesOf(schema).map(([type]) => type)) : valuesOf(schema);
}

/** Returns the keys of a block and of what lies in it, `page.cursor` after `page`. */
function deepKeysOf(block: Schema, prefix: string): Key[] {
  return keysOf(block, prefix).flatMap((key) => {
    const inner = key.path in elsewhere ? [] : alternativesOf(key.schema);
    const deep = inner.flatMap((schema) => innerKeysOf(schema, key.path));
    // What one may write alone or in a list is listed once.
    const known = new Set(deep.map(({ path }) => path));
    const listed = `${key.path}[].`;
    const isTwin = ({ path }: Key) =>
      path.startsWith(listed) && known.has(path.replace(listed, `${key.path}.`));
    return [key, ...deep.filter((one) => !isTwin(one))];
  });
}

function innerKeysOf(schema: Schema, path: string): Key[] {
  const { items } = schema;
  if (!isSchema(items)) return deepKeysOf(schema, `${path}.`);
  return alternativesOf(items).flatMap((item) => deepKeysOf(item, `${path}[].`));
}

function keysOf(block: Schema, prefix: string): Key[] {
  return Object.entries(propertiesOf(block)).map(([name, schema]) => {
    const isRequired = block.required?.includes(name) ?? false;
    return { path: prefix + name, schema, isRequired };
  });
}

function meaningOf({ description = '' }: Schema): string {
  return description.replaceAll(/\$?\{\w+\}/g, inCode);
}

function defaultOf({ path, schema, isRequired }: Key): string {
  if (isRequired) return 'required';
  if (elsewhere[path] === guardLink) return defaultsWithin(schema);
  const { default: value } = schema;
  if (value === undefined || (isSchema(value) && Object.keys(value).length === 0)) return '';
  return inCode(typeof value === 'string' ? value : JSON.stringify(value));
}

function defaultsWithin(block: Schema): string {
  const inner = Object.entries(propertiesOf(block));
  return inCode(`{ ${inner.map(([key, one]) => `${key}: ${String(one.default)}`).join(', ')} }`);
}

/** Returns what a schema allows, in a few words. */
function valuesOf(schema: Schema): string {
  const forms = new Set(alternativesOf(schema).map(formOf).filter(Boolean));
  // What is a text may be written as a number or a boolean as well.
  const isWord = ['text', 'number', '`true`, `false`'].every((form) => forms.has(form));
  return isWord ? 'text' : [...forms].join(', or ');
}

function formOf(schema: Schema): string {
  const { type, enum: words, const: word, pattern = '', items } = schema;
  if (word !== undefined) return inCode(String(word));
  if (words) return words.map((one) => inCode(String(one))).join(', ');
  if (pattern.includes('[smhd]') || pattern.includes('[smh]')) return 'duration';
  if (type === 'boolean') return '`true`, `false`';
  if (type === 'integer' || type === 'number') return rangeOf(schema);
  if (isSchema(items)) return `list of ${valuesOf(items)}`.replace(/ of $/, '');
  if (type === 'object') return mappingOf(schema);
  if (Array.isArray(type)) return type.map((one) => (one === 'string' ? 'text' : one)).join(', ');
  return type === 'string' ? 'text' : (type ?? '');
}

function rangeOf({ type, minimum, maximum }: Schema): string {
  const sort = type === 'integer' ? 'whole number' : 'number';
  if (minimum === undefined || maximum === undefined) return sort;
  return `${sort}, ${minimum.toLocaleString('en')} to ${maximum.toLocaleString('en')}`;
}

function mappingOf(schema: Schema): string {
  const names = Object.keys(propertiesOf(schema));
  if (names.length === 0) return 'mapping';
  return inCode(`{ ${names.join(', ')} }`);
}

/** Returns the alternatives of a schema, but for the one that is a variable, which all have. */
function alternativesOf(schema: Schema): Schema[] {
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema);
  if (choices.length === 0) return [schema];
  return choices.filter(({ pattern }) => pattern !== String.raw`\$\{`).flatMap(alternativesOf);
}

/** Returns the types that a source or a write-back may have, with the options of each. */
function typesOf(schema: Schema | undefined): [string, Schema][] {
  return (schema?.oneOf ?? []).filter(isSchema).map((option) => {
    const { type, ...others } = propertiesOf(option);
    return [String(type?.const), { ...option, properties: others }];
  });
}

function propertyOf(schema: Schema | undefined, name: string): Schema | undefined {
  return schema && propertiesOf(schema)[name];
}

function propertiesOf({ properties = {} }: Schema): Record<string, Schema> {
  const known = Object.entries(properties).filter((entry): entry is [string, Schema] =>
    isSchema(entry[1]),
  );
  return Object.fromEntries(known);
}

function isBlock(schema: Schema): boolean {
  return Object.keys(propertiesOf(schema)).length > 0;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function inCode(text: string): string {
  return `\`${text}\``;
}
