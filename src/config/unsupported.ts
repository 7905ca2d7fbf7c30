/**
 * What the schema knows and this version does not do yet. It is refused rather than ignored: an
 * ignored policy would look like one that is kept. A feature is switched on by deleting its row.
 */
import type { Mistake, Path } from './mistake.ts';
import { spotOf, type Tree } from './document.ts';

interface Unsupported {
  /** `*` stands for every entry of a list. */
  path: readonly string[];
  /** The only value that asks for nothing; without it the key has to go. */
  harmless?: string;
  what: string;
  mend?: string;
}

export const unsupported: readonly Unsupported[] = [
  row('schedule.sentinel', { what: 'the sentinel is' }),
];

function row(path: string, rest: Omit<Unsupported, 'path'>): Unsupported {
  return { path: path.split('.'), ...rest };
}

/** One mistake for each thing asked for that this version does not do. */
export function findUnsupported(tree: Tree): Mistake[] {
  return unsupported.flatMap((feature) =>
    match(tree.value, feature.path).flatMap(({ path, value }) => {
      if (value === undefined || value === feature.harmless) return [];
      const wrong = `${feature.what} not supported by this version`;
      return [{ path, place: spotOf(tree, path).key, wrong, mend: mendOf(feature) }];
    }),
  );
}

/** How to live without the feature, for people and for editors. */
export function mendOf({ harmless, mend }: Unsupported): string {
  return mend ?? (harmless === undefined ? 'remove it' : `remove it or set it to ${harmless}`);
}

/** Every value that stands at the pattern. */
function match(value: unknown, pattern: readonly string[]): { path: Path; value: unknown }[] {
  const [step, ...rest] = pattern;
  if (step === undefined) return [{ path: [], value }];
  if (typeof value !== 'object' || value === null) return [];
  const entries: [string | number, unknown][] = Array.isArray(value)
    ? [...value.entries()]
    : Object.entries(value);
  const hits = entries.filter(([key]) => (step === '*' ? typeof key === 'number' : key === step));
  return hits.flatMap(([key, inner]) =>
    match(inner, rest).map((hit) => ({ path: [key, ...hit.path], value: hit.value })),
  );
}
