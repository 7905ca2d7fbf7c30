/** Reads a configuration file and finds all mistakes in it before anything else happens. */
import { lstatSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { Invalid } from '../domain/errors.ts';
import { readSmallFile } from '../domain/values/config-file.ts';
import { readTree, spotOf, type Tree, valueAt } from './yaml-document.ts';
import { complain } from './schema-diagnostics.ts';
import { type Config, settle } from './config.ts';
import { isHeaderText } from './schema/field-types.ts';
import { invalidFile, type Mistake, within } from './config-mistake.ts';
import { defaultsOf, withDefaults } from './shared-defaults.ts';
import { fileSchema } from './schema/file-schema.ts';

type Environment = Record<string, string | undefined>;

/**
 * Reads the file at `path`, with the defaults beside it, and takes the values for its ${NAME}s from
 * `env`. Throws Invalid with every mistake, one line each. No message contains a value from the
 * files or from `env`.
 */
export function loadConfig(path: string, env: Environment): Config {
  const tree = treeOf(path, env);
  const file = resolve(path);
  const absolute = (text: string) => resolve(dirname(file), text);
  const checked = fileSchema.safeParse(tree.value);
  const key = readKey(tree, absolute);
  const found = checked.success ? [] : complain(checked.error.issues, tree);
  const mistakes = [...tree.mistakes, ...outside(tree.mistakes, [...found, ...key.mistakes])];
  if (!checked.success || mistakes.length > 0) throw invalidFile(path, mistakes);
  const apiKey = checked.data.platform.apiKey ?? key.text;
  return settle(checked.data, { file, apiKey, absolute });
}

function treeOf(path: string, env: Environment): Tree {
  const own = readTree(bytesOf(path), env);
  if (!own.readable) throw invalidFile(path, own.mistakes);
  const file = defaultsOf(path);
  // Defaults that are there but cannot be read must not be left out silently: lstat finds a link.
  if (file === undefined || !lstatSync(file, { throwIfNoEntry: false })) return own;
  const defaults = readTree(bytesOf(file), env, file);
  if (!defaults.readable) throw invalidFile(file, defaults.mistakes);
  return withDefaults(own, defaults);
}

function bytesOf(path: string): Uint8Array {
  try {
    return readSmallFile(path);
  } catch (error) {
    if (code(error) === 'EFBIG') {
      const reason = 'is larger than any configuration';
      const fix = 'name the right file with -c FILE';
      throw new Invalid([{ code: 'invalid', place: `${path}:1:1`, reason, fix }]);
    }
    const reason = code(error) === 'ENOENT' ? 'no such file' : `cannot be read (${code(error)})`;
    const fix = 'name the configuration with -c FILE; `crm-mirror init FILE` writes one';
    throw new Invalid([{ code: 'invalid', place: path, reason, fix }]);
  }
}

/** Returns the mistakes that are not inside one that is already reported. */
function outside(said: readonly Mistake[], mistakes: readonly Mistake[]): Mistake[] {
  return mistakes.filter(({ path }) => !said.some((other) => within(other.path, path)));
}

/**
 * Returns the text of the file named by apiKeyFile ('' if none is named), and the mistakes in it.
 */
function readKey(
  tree: Tree,
  absolute: (path: string) => string,
): { text: string; mistakes: Mistake[] } {
  const path = ['platform', 'apiKeyFile'];
  const file = valueAt(tree.value, path);
  if (typeof file !== 'string' || file === '') return { text: '', mistakes: [] };
  const place = spotOf(tree, path).value;
  const bad = (wrong: string, mend: string) => ({
    text: '',
    mistakes: [{ path, place, wrong, mend }],
  });
  try {
    const text = readSmallFile(absolute(file)).toString('utf8').trim();
    if (text === '') return bad('names an empty file', 'write the key into it');
    if (isHeaderText(text)) return { text, mistakes: [] };
    return bad('names a file that holds more than a key', 'write the key alone into it');
  } catch (error) {
    if (code(error) === 'EFBIG')
      return bad('names a file that holds more than a key', 'write the key alone into it');
    return bad(
      `names a file that cannot be read (${code(error)})`,
      'make it readable, or mend the path',
    );
  }
}

const systemError = z.object({ code: z.string() });

function code(error: unknown): string {
  const found = systemError.safeParse(error);
  if (!found.success) throw error;
  return found.data.code;
}
