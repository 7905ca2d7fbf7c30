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
import { basename, dirname, join } from 'node:path';
import type { Path } from './config-mistake.ts';
import { pathOf, type Tree } from './yaml-document.ts';

/** The name of the file of the defaults, beside the files of the mirrors. */
export const defaultsName = 'defaults.yaml';

/** Returns where the defaults of a mirror's file are; undefined for the defaults themselves. */
export function defaultsOf(file: string): string | undefined {
  return basename(file) === defaultsName ? undefined : join(dirname(file), defaultsName);
}

/** Returns the tree of a mirror with the defaults that it does not replace. */
export function withDefaults(own: Tree, defaults: Tree): Tree {
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
  if (!isMapping(base) || !isMapping(own)) return undefined;
  const types = [base['type'], own['type']].filter((type) => type !== undefined);
  return new Set(types).size > 1 ? undefined : { base, own };
}

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
