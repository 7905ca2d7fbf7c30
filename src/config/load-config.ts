/**
 * Reads a configuration file with its defaults, and finds all mistakes in it before anything else.
 */
import { lstatSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve, basename, join } from 'node:path';
import { z } from 'zod';
import { codeOf, Invalid } from '../domain/errors.ts';
import { readSmallFile } from '../domain/values/config-file.ts';
import {
  invalidFile,
  type Mistake,
  type Path,
  pathOf,
  readTree,
  spotOf,
  type Tree,
  valueAt,
  within,
} from './yaml-document.ts';
import { type Config, settle } from './config.ts';
import { withAbsolutePaths } from './schema/source-types.ts';
import { fileSchema } from './schema/file-schema.ts';
import { editDistance } from '../domain/values/edit-distance.ts';
import { isRecord } from '../domain/values/record-field.ts';
import { fixOf, isHeaderText } from '../domain/schema-fields.ts';

/** The name of the file of the defaults, beside the files of the mirrors. */
export const defaultsName = 'defaults.yaml';

type Environment = Record<string, string | undefined>;

/**
 * Reads the file at `path`, with its ${NAME}s from `env`. Throws Invalid with every mistake, one
 * line each. No message contains a value from the files or from `env`.
 */
export function loadConfig(path: string, env: Environment): Config {
  const tree = readFiles(path, env);
  const file = resolve(path);
  const absolute = (text: string) => resolve(dirname(file), text);
  // To compile the schemas takes longer than to interpret them once.
  const checked = fileSchema.safeParse(tree.value, { jitless: true });
  const key = readKey(tree, absolute);
  const found = checked.success ? [] : complain(checked.error.issues, tree);
  // A mistake inside a value that is already reported follows from that one.
  const others = [...found, ...key.mistakes].filter(
    (one) => !tree.mistakes.some((known) => within(known.path, one.path)),
  );
  const mistakes = [...tree.mistakes, ...others];
  if (!checked.success || mistakes.length > 0) throw invalidFile(path, mistakes);
  const apiKey = checked.data.platform.apiKey ?? key.text;
  const config = settle(checked.data, { file, apiKey, absolute });
  const shared = findSharedFiles(config, tree);
  if (shared.length > 0) throw invalidFile(path, shared);
  return config;
}

/**
 * Finds options whose file crm-mirror writes although another option names it, too, or the folder
 * that it lies in, however they spell it.
 */
function findSharedFiles(config: Config, tree: Tree): Mistake[] {
  const { file, snapshot, memory, platform, contacts, templates } = config;
  const { source, map, returns } = contacts ?? {};
  const reports = returns !== undefined && 'path' in returns ? [returns.path] : [];
  const taken = new Map<string, string>();
  const take = (path: string, option: string): string => {
    taken.set(fileId(path), option);
    return path;
  };
  for (const name of [file, join(dirname(file), defaultsName)]) take(name, 'the configuration');
  if (platform.apiKeyFile !== undefined) take(platform.apiKeyFile, 'platform.apiKeyFile');
  if (map !== undefined) take(map, 'contacts.map');
  const parts = {
    'contacts.source': source,
    'contacts.returns': reports.length > 0 ? undefined : returns,
    'templates.source': templates?.source,
  };
  for (const [option, part] of Object.entries(parts))
    if (part) withAbsolutePaths(part, (path) => take(path, option));
  const files = ['', '-lease', '-health', '-memory'].flatMap((end) =>
    ['', '-wal', '-shm', '-journal'].map((suffix) => snapshot + end + suffix),
  );
  const isOwnKey = memory.keyFile === `${snapshot}-memory-key`;
  const written = {
    snapshot: isOwnKey ? [...files, memory.keyFile] : files,
    memoryKeyFile: isOwnKey ? [] : [memory.keyFile],
    'contacts.returns.path': reports,
  };
  const folder = templates?.source.type === 'directory' ? fileId(templates.source.path) : undefined;
  return Object.entries(written).flatMap(([option, paths]) => {
    const ids = paths.map(fileId);
    // What lies beside a file lies in its folder, too.
    const isInside = paths.slice(0, 1).some((path) => liesIn(path, folder));
    const other = isInside ? 'templates.source' : taken.get(ids.find((id) => taken.has(id)) ?? '');
    for (const id of ids) taken.set(id, option);
    if (other === undefined) return [];
    const path = option.split('.');
    const wrong = `is a file of ${other}, too`;
    return [{ path, place: spotOf(tree, path).value, wrong, mend: 'name another one' }];
  });
}

function liesIn(path: string, folder: string | undefined): boolean {
  return fileId(path) === folder || (path !== dirname(path) && liesIn(dirname(path), folder));
}

/** Identifies a file by its number on the disk, and one that is missing by its name in a folder. */
function fileId(path: string): string {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    // Some network file systems number no files.
    if (found) return found.ino === 0n ? realpathSync(path) : `${found.dev}:${found.ino}`;
  } catch {
    // What is wrong with the path is reported where it is used.
  }
  return path === dirname(path) ? path : `${fileId(dirname(path))}/${basename(path)}`;
}

function readFiles(path: string, env: Environment): Tree {
  const own = readTree(readBytes(path), env);
  if (!own.readable) throw invalidFile(path, own.mistakes);
  const file = join(dirname(path), defaultsName);
  // Defaults that are there but cannot be read must not be left out silently: lstat finds a link.
  const hasDefaults = basename(path) !== defaultsName && lstatSync(file, { throwIfNoEntry: false });
  if (!hasDefaults) return own;
  const defaults = readTree(readBytes(file), env, file);
  if (!defaults.readable) throw invalidFile(file, defaults.mistakes);
  return withDefaults(own, defaults);
}

function readBytes(path: string): Uint8Array {
  try {
    return readSmallFile(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === '') throw error;
    if (code === 'EFBIG') {
      const reason = 'is larger than any configuration';
      const fix = 'name the right file with -c FILE';
      throw new Invalid([{ code: 'invalid', place: `${path}:1:1`, reason, fix }]);
    }
    const reason = code === 'ENOENT' ? 'no such file' : `cannot be read (${code})`;
    const fix = 'name the configuration with -c FILE; `crm-mirror init FILE` writes one';
    throw new Invalid([{ code: 'invalid', place: path, reason, fix }]);
  }
}

/** Returns the text of the file named by apiKeyFile ('' if none is named), and its mistakes. */
function readKey(
  tree: Tree,
  absolute: (path: string) => string,
): { text: string; mistakes: Mistake[] } {
  const path = ['platform', 'apiKeyFile'];
  const file = valueAt(tree.value, path);
  if (typeof file !== 'string' || file === '') return { text: '', mistakes: [] };
  const place = spotOf(tree, path).value;
  const bad = (wrong: string, mend: string) => {
    return { text: '', mistakes: [{ path, place, wrong, mend }] };
  };
  try {
    const text = readSmallFile(absolute(file)).toString('utf8').trim();
    if (text === '') return bad('names an empty file', 'write the key into it');
    if (isHeaderText(text)) return { text, mistakes: [] };
    return bad('names a file that holds more than a key', 'write the key alone into it');
  } catch (error) {
    const code = codeOf(error);
    if (code === '') throw error;
    if (code === 'EFBIG')
      return bad('names a file that holds more than a key', 'write the key alone into it');
    return bad(`names a file that cannot be read (${code})`, 'make it readable, or mend the path');
  }
}

type Issue = z.core.$ZodIssue;
type Guide = ReturnType<typeof makeGuide>;

const keyFiles = ['ledgerKeyFile', 'audit.keyFile'];
const memoryKey = 'name the file of the one key of the memory as memoryKeyFile';

/** Converts the schema's issues into mistakes. The text comes from keys, never from values. */
function complain(issues: readonly Issue[], tree: Tree): Mistake[] {
  const guide = makeGuide();
  return issues.flatMap(chooseBranch).flatMap((issue) => {
    const path = issue.path.filter((step) => typeof step !== 'symbol');
    if (issue.code !== 'unrecognized_keys') return [explain(issue, path, tree, guide)];
    const known = guide.keys(path, valueAt(tree.value, [...path, 'type']));
    return issue.keys.map((key) => {
      const inner = [...path, key];
      const place = spotOf(tree, inner).key;
      const mend = keyFiles.includes(inner.join('.')) ? memoryKey : suggest(key, known);
      return { path: inner, place, wrong: 'is not known here', mend };
    });
  });
}

/** Returns the issues of the closest alternative, for a value that may be one of several. */
function chooseBranch(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const branches = issue.errors.toSorted(
    (a, b) => Number(isOther(a)) - Number(isOther(b)) || strangeKeys(a) - strangeKeys(b),
  );
  const found = branches[0] ?? [];
  if (found.length === 0) return [issue];
  return found.flatMap((one) => chooseBranch({ ...one, path: [...issue.path, ...one.path] }));
}

/** Returns whether the issues concern a value of an entirely different type. */
function isOther([first]: readonly Issue[]): boolean {
  if (first === undefined || first.path.length > 0) return false;
  if (first.code === 'invalid_union') return first.errors.length > 0 && first.errors.every(isOther);
  return first.code === 'invalid_type';
}

/** Returns how many keys of the value are unknown to an alternative. */
function strangeKeys(issues: readonly Issue[]): number {
  return issues.flatMap((one) => (one.code === 'unrecognized_keys' ? one.keys : [])).length;
}

function explain(issue: Issue, path: Path, tree: Tree, guide: Guide): Mistake {
  const spot = spotOf(tree, path);
  const value = valueAt(tree.value, path);
  const { wrong, mend } = explainIssue(issue, path, value, guide);
  const origin = value === undefined ? [] : spot.variables.map((name) => `\${${name}}`);
  const from = origin.length > 0 ? ` (it comes from ${origin.join(' and ')})` : '';
  const index: unknown = issue.code === 'custom' ? issue.params?.['at'] : undefined;
  const exact = typeof index === 'number' ? spot.inside?.(index) : undefined;
  const place = value === undefined ? spot.key : (exact ?? spot.value);
  return { path, place, wrong: wrong + from, mend };
}

function explainIssue(issue: Issue, path: Path, value: unknown, guide: Guide) {
  const meaning = guide.meaning(path);
  if (value === undefined && issue.code !== 'custom') {
    const key = path.at(-1);
    if (typeof key === 'number') return { wrong: 'is empty', mend: 'fill the entry or remove it' };
    const example = `"${key}: ${guide.words(path)[0] ?? '…'}"`;
    return { wrong: 'is missing', mend: `add ${example}${meaning}` };
  }
  if (issue.code === 'invalid_type') {
    const [wanted, form] = kinds[issue.expected] ?? [issue.expected, issue.expected];
    const quotes = issue.expected === 'string' && typeof value !== 'object';
    const mend = quotes ? 'put it in quotes' : `write ${form}${meaning}`;
    return { wrong: `is not ${wanted}`, mend };
  }
  if (issue.code === 'invalid_value' || issue.code === 'invalid_union')
    return { wrong: 'is not known here', mend: `use ${guide.words(path).join(' or ')}` };
  if (issue.code === 'too_small' && issue.origin !== 'number')
    return { wrong: 'is empty', mend: `fill it${meaning}` };
  if (issue.code === 'too_small')
    return { wrong: `is below ${issue.minimum}`, mend: `write ${issue.minimum} or more` };
  if (issue.code === 'too_big')
    return { wrong: `is above ${issue.maximum}`, mend: `write ${issue.maximum} or less` };
  return { wrong: issue.message, mend: fixOf(issue) ?? `correct it${meaning}` };
}

const kinds: Record<string, [name: string, form: string]> = {
  string: ['a text', 'a text'],
  number: ['a number', 'a number'],
  int: ['a whole number', 'a whole number'],
  boolean: ['true or false', 'true or false'],
  object: ['a mapping', '"name: value" lines'],
  array: ['a list', '"- entry" lines'],
};

function makeGuide() {
  const schema = editorSchema();
  const choicesAt = (path: Path) => fieldsAt(schema, path).flatMap(choicesOf);
  return {
    meaning(path: Path): string {
      const text = fieldsAt(schema, path).find((field) => field.description)?.description;
      return text ? ` (${text})` : '';
    },
    words(path: Path): string[] {
      const words = choicesAt(path).flatMap(({ enum: all, const: one }) => all ?? one ?? []);
      return [...new Set(words.map((word) => JSON.stringify(word).replaceAll('"', '')))];
    },
    /** Returns the allowed keys. If there is a choice, returns the keys for the given type. */
    keys(path: Path, type: unknown): string[] {
      const choices = choicesAt(path);
      const typed = choices.filter((choice) => {
        const words = fieldsAt(choice, ['type']).flatMap(choicesOf);
        return words.some((word) => word.const !== undefined && word.const === type);
      });
      const fitting = typed.length > 0 ? typed : choices;
      return [...new Set(fitting.flatMap(({ properties }) => Object.keys(properties ?? {})))];
    },
  };
}

function suggest(key: string, known: readonly string[]): string {
  if (known.includes(key)) return 'remove it: it does not go with the other keys here';
  // A long key resembles none.
  const near = (key.length > 60 ? [] : known)
    .map((name) => ({ name, steps: editDistance(key.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, steps }) => steps <= Math.max(2, name.length / 3) && steps < name.length)
    .toSorted((a, b) => a.steps - b.steps)[0];
  return near ? `did you mean ${near.name}?` : `known here: ${known.join(', ')}`;
}

/** Throws Invalid if two configurations name the same mirror or snapshot. */
export function refuseTwins(
  configs: readonly { file: string; mirror: string; snapshot: string }[],
): void {
  for (const [at, { file, mirror, snapshot }] of configs.entries()) {
    const twin = configs
      .slice(0, at)
      .find((other) => other.mirror === mirror || other.snapshot === snapshot);
    if (!twin) continue;
    const what = twin.mirror === mirror ? `are both named ${mirror}` : 'share one snapshot';
    const fix = 'give each a mirror name and a snapshot';
    throw new Invalid(`${twin.file} and ${file} ${what}`, { fix });
  }
}

/**
 * Merges the defaults that the mirrors of a folder share into the file of one mirror.
 *
 *   the default is    the mirror's file has                 result
 *   any value         nothing there                         the default
 *   any value         an empty value, or null               none: the default is switched off
 *   a mapping         a mapping of the same `type`, or one  both, merged key by key
 *                     of them has no `type`
 *   any value         anything else                         the mirror's
 *
 * A list counts as one value. Each value keeps its position, so that a mistake is reported in the
 * file that contains it.
 */
function withDefaults(own: Tree, defaults: Tree): Tree {
  const isInherited = (path: Path) => inherits(own.value, defaults.value, path);
  const spots = [...defaults.spots].filter(([key]) => isInherited(pathOf(key)));
  return {
    value: merge(defaults.value, own.value),
    spots: new Map([...spots, ...own.spots]),
    mistakes: [...own.mistakes, ...defaults.mistakes.filter(({ path }) => isInherited(path))],
    readable: own.readable && defaults.readable,
  };
}

function merge(base: unknown, own: unknown): unknown {
  const pair = mergeable(base, own);
  if (!pair) return own;
  const added = Object.entries(pair.base).filter(([name]) => !Object.hasOwn(pair.own, name));
  const kept = Object.entries(pair.own).map(([name, value]) => [
    name,
    Object.hasOwn(pair.base, name) ? merge(pair.base[name], value) : value,
  ]);
  return Object.fromEntries([...kept, ...added]);
}

/** Returns whether the value at a path of the merged tree comes from the defaults alone. */
function inherits(own: unknown, base: unknown, [step, ...rest]: Path): boolean {
  const pair = mergeable(base, own);
  if (step === undefined || !pair) return false;
  if (!Object.hasOwn(pair.own, step)) return true;
  return inherits(pair.own[step], pair.base[step], rest);
}

type Mapping = Readonly<Record<string | number, unknown>>;

/** Returns both values if they are mappings that are merged key by key. */
function mergeable(base: unknown, own: unknown): { base: Mapping; own: Mapping } | undefined {
  if (!isRecord(base) || !isRecord(own)) return undefined;
  const types = [base['type'], own['type']].filter((type) => type !== undefined);
  return new Set(types).size > 1 ? undefined : { base, own };
}

// Generates the JSON Schema of the configuration, for editors (command `schema`).

type JsonSchema = z.core.JSONSchema.JSONSchema;

/** Returns the schema as JSON Schema draft 7, which YAML editors support best. */
export function editorSchema(): JsonSchema {
  return z.toJSONSchema(fileSchema, {
    target: 'draft-07',
    io: 'input',
    // Any value may come from the environment, but only a text without bounds accepts `${NAME}`.
    override({ jsonSchema: schema }) {
      const { type, enum: values, pattern, minimum, maximum, ...rest } = schema;
      const constrained = values ?? pattern ?? (type === 'string' ? undefined : type);
      if (constrained === undefined || type === 'object' || type === 'array') return;
      const own = Object.entries({ type, enum: values, pattern, minimum, maximum });
      const plain = Object.fromEntries(own.filter(([, value]) => value !== undefined));
      for (const key of Object.keys(schema)) delete schema[key];
      Object.assign(schema, rest, { anyOf: [plain, { type: 'string', pattern: '\\$\\{' }] });
    },
  });
}

/** Returns what the schema states about a path: several schemas if there is a choice, or none. */
function fieldsAt(schema: JsonSchema, path: Path): JsonSchema[] {
  const [step, ...rest] = path;
  if (step === undefined) return [schema];
  const isIndex = typeof step === 'number';
  return choicesOf(schema)
    .map(({ items, properties }) => (isIndex ? items : properties?.[step]))
    .filter(isSchema)
    .flatMap((found) => fieldsAt(found, rest));
}

function choicesOf(schema: JsonSchema): JsonSchema[] {
  return [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema);
}

const isSchema = (value: unknown): value is JsonSchema => isRecord(value);
