/** Parses a YAML file with the positions in it, and explains mistakes of syntax in own words. */
import { storedJson } from '../domain/stored-json.ts';
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Scalar,
  type YAMLMap,
  type YAMLError,
} from 'yaml';
import { Invalid, type Problem, renderProblem } from '../domain/errors.ts';

export type Path = readonly (string | number)[];

/** A position in the file. Lines and columns count from 1. */
interface ConfigPlace {
  /** The file, if it is not the one that was asked for but the defaults beside it. */
  file?: string;
  line: number;
  col: number;
}

/** A mistake in the configuration: its place, what is wrong, and the fix. It quotes no value. */
export interface Mistake {
  /** The path of the value; empty if the mistake concerns the whole file. */
  path: Path;
  place: ConfigPlace;
  wrong: string;
  mend: string;
}

export interface Tree {
  /** The plain data with variables replaced. Empty values and null become undefined. */
  value: unknown;
  /** The positions by path, to be read with `spotOf`. */
  spots: ReadonlyMap<string, Spot>;
  mistakes: readonly Mistake[];
  /** Whether the file could be parsed at all. If not, `value` is meaningless. */
  readable: boolean;
}

interface Spot {
  /** The position of the key; of a list entry and of the whole file, that of the value. */
  key: ConfigPlace;
  value: ConfigPlace;
  variables: readonly string[];
  /** Returns the position of a character in the text, or undefined if it cannot be determined. */
  inside?: (index: number) => ConfigPlace | undefined;
}

interface Walk {
  env: Record<string, string | undefined>;
  source: string;
  placeAt(offset: number): ConfigPlace;
  spots: Map<string, Spot>;
  mistakes: Mistake[];
}

const start: ConfigPlace = { line: 1, col: 1 };
const maxBytes = 1 << 20;

/** Parses a file. Collects mistakes and never throws. Positions name `file` if it is given. */
export function readTree(
  bytes: Uint8Array,
  env: Record<string, string | undefined>,
  file?: string,
): Tree {
  if (bytes.length > maxBytes)
    return unreadable('is larger than any configuration', 'name the right file with -c FILE');
  const text = decode(bytes);
  if (typeof text !== 'string') return unreadable('is not UTF-8', 'save it as UTF-8', text);
  const lines = new LineCounter();
  const source = mask(text);
  const document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
  });
  const placeAt = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), col: Math.max(col, 1), ...(file !== undefined && { file }) };
  };
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    const mistakes = syntaxMistakes(faults, source, placeAt);
    return { value: undefined, spots: new Map(), mistakes, readable: false };
  }
  const root = document.contents;
  if (root === null || (isScalar(root) && root.value === null))
    return unreadable('is empty', 'name another with -c FILE; `crm-mirror init FILE` writes one');
  const at = placeAt(root.range?.[0] ?? 0);
  if (!isMap(root)) {
    const mend = 'write "name: value" lines; `crm-mirror init FILE` writes one';
    return unreadable('is not a mapping', mend, at);
  }
  const walk: Walk = { env, source, placeAt, spots: new Map(), mistakes: [] };
  walk.spots.set(spell([]), { key: at, value: at, variables: [] });
  const value = readMap(root, [], walk);
  return { value, spots: walk.spots, mistakes: walk.mistakes, readable: true };
}

/** Returns the position of a path, or of the nearest enclosing value that exists. */
export function spotOf({ spots }: { spots: Tree['spots'] }, path: Path): Spot {
  const spot = spots.get(spell(path));
  if (spot) return spot;
  return path.length > 0
    ? spotOf({ spots }, path.slice(0, -1))
    : { key: start, value: start, variables: [] };
}

const paths = storedJson<Path>('the path of an option');
const spell = paths.encode;
export const pathOf = paths.decode;

/** Returns the text, or the position of the first character that is not UTF-8. */
function decode(bytes: Uint8Array): string | ConfigPlace {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  try {
    return utf8.decode(bytes);
  } catch {
    const loose = new TextDecoder('utf-8').decode(bytes).split('\ufffd')[0] ?? '';
    const before = loose.split(/\r?\n/);
    return { line: before.length, col: (before.at(-1)?.length ?? 0) + 1 };
  }
}

function unreadable(wrong: string, mend: string, place = start): Tree {
  const mistakes = [{ path: [], place, wrong, mend }];
  return { value: undefined, spots: new Map(), mistakes, readable: false };
}

function read(node: unknown, path: Path, walk: Walk): unknown {
  if (isMap(node)) return readMap(node, path, walk);
  if (isSeq(node)) {
    return node.items.map((item, index) => {
      const place = walk.placeAt(offsetOf(item) ?? 0);
      const inner = [...path, index];
      walk.spots.set(spell(inner), { key: place, value: place, variables: [] });
      return read(item, inner, walk);
    });
  }
  if (isScalar(node)) return readScalar(node, path, walk);
  if (isAlias(node)) {
    const place = spotOf(walk, path).value;
    walk.mistakes.push({ path, place, wrong: 'is an alias', mend: 'write the value out' });
  }
  return undefined;
}

/** Reads a mapping. Object.fromEntries makes every key an own property, whatever its name. */
function readMap(map: YAMLMap, path: Path, walk: Walk): Record<string, unknown> {
  const entries = new Map<string, unknown>();
  for (const pair of map.items) {
    const place = walk.placeAt(offsetOf(pair.key) ?? map.range?.[0] ?? 0);
    const key = isScalar(pair.key) ? pair.key.value : undefined;
    const isPlain = typeof key === 'number' || typeof key === 'boolean';
    const name = typeof key === 'string' ? unmask(key) : (isPlain && String(key)) || undefined;
    const inner = [...path, name ?? '?'];
    const first = walk.spots.get(spell(inner));
    if (name === undefined || first) {
      const wrong = first ? `is already given in line ${first.key.line}` : 'is no plain key';
      const mend = first ? 'keep one of the two' : 'write "name: value"';
      walk.mistakes.push({ path: inner, place, wrong, mend });
      continue;
    }
    const value = walk.placeAt(offsetOf(pair.value) ?? offsetOf(pair.key) ?? 0);
    walk.spots.set(spell(inner), { key: place, value, variables: [] });
    entries.set(name, read(pair.value, inner, walk));
  }
  return Object.fromEntries(entries);
}

const offsetOf = (node: unknown): number | undefined =>
  isNode(node) ? node.range?.[0] : undefined;

/** A variable without a value yields an empty text, so that its key still counts as present. */
function readScalar(node: Scalar, path: Path, walk: Walk): unknown {
  if (typeof node.value !== 'string') return node.value ?? undefined;
  const { text, variables, missing, malformed } = interpolate(unmask(node.value), walk.env);
  const inside = (index: number) => {
    const offset = locate(node, text, index, walk.source);
    return offset === undefined ? undefined : walk.placeAt(offset);
  };
  const spot = { ...spotOf(walk, path), variables, inside };
  walk.spots.set(spell(path), spot);
  const wrong = (what: string, mend: string) =>
    walk.mistakes.push({ path, place: spot.value, wrong: what, mend });
  for (const name of missing) {
    const mend = `set it, or write \${${name}:-default} here`;
    wrong(`the environment variable ${name} is not set`, mend);
  }
  if (malformed) {
    const mend = 'write ${NAME} or ${NAME:-default}, or $${ for a plain ${';
    wrong('holds a ${ that is not understood', mend);
  }
  return text === '' && variables.length > 0 && missing.length === 0 ? undefined : text;
}

function locate(
  { range }: Scalar,
  text: string,
  index: number,
  source: string,
): number | undefined {
  const [start, end] = range ?? [0, 0];
  const opening = /^(?:[|>].*\n|['"])/.exec(source.slice(start, end))?.[0] ?? '';
  let at = start + opening.length;
  const letters = text.slice(0, index + 1).replaceAll(/\s/g, '');
  for (const char of letters.split('')) {
    while (source[at] !== char) {
      if (at >= end || !/[\s'\\]/.test(source[at] ?? '')) return undefined;
      at += 1;
    }
    at += 1;
  }
  return index < text.length ? at - 1 : at;
}

interface Interpolated {
  text: string;
  variables: string[];
  /** The names of variables with neither a value nor a default. An empty one counts as unset. */
  missing: string[];
  malformed: boolean;
}

const reference = /\$\$\{|\$\{(?:([A-Za-z_]\w*)(?::-([^{}]*))?\})?/g;

/** Replaces `${NAME}` and `${NAME:-default}` by values of `env`, once, and `$${` by `${`. */
export function interpolate(text: string, env: Record<string, string | undefined>): Interpolated {
  const found: Interpolated = { text, variables: [], missing: [], malformed: false };
  found.text = text.replace(reference, (whole: string, name?: string, standard?: string) => {
    if (whole === '$${') return '${';
    if (name === undefined) {
      found.malformed = true;
      return whole;
    }
    found.variables.push(name);
    const value = (Object.hasOwn(env, name) && env[name]) || standard;
    if (value === undefined) found.missing.push(name);
    return value ?? '';
  });
  return found;
}

/**
 * `{ token: ${TOKEN:-} }` would open a mapping in YAML. So `mask` replaces the characters of a
 * variable one for one, which keeps every position, by noncharacters that no text may contain.
 */
const quarrelsome = '{}[],:#';

const veil = 0xfdd0;

function mask(yaml: string): string {
  const hide = (char: string) => String.fromCharCode(veil + quarrelsome.indexOf(char));
  return yaml.replace(/\$\{[^{}\n]*\}/g, (whole) => whole.replace(/[{}[\],:#]/g, hide));
}

function unmask(text: string): string {
  return text.replace(/[\ufdd0-\ufdd6]/g, (char) => quarrelsome.charAt(char.charCodeAt(0) - veil));
}

/** Returns the value at a path, or undefined if there is none. */
export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, step) => {
    if (typeof inner !== 'object' || inner === null) return undefined;
    return Object.entries(inner).find(([key]) => key === String(step))?.[1];
  }, value);
}

/** Returns the mistakes of broken syntax, one a line, in words that quote no value. */
function syntaxMistakes(
  faults: readonly YAMLError[],
  source: string,
  placeAt: (offset: number) => ConfigPlace,
): Mistake[] {
  // Such words in lists that stand on one line: `[-]`, `[Ja, #1]`.
  const found = source.split('\n').flatMap((text, at) =>
    [...text.matchAll(signs)].map(({ 0: word, index }) => {
      return { line: at + 1, col: index + 1, word };
    }),
  );
  const byLine = new Map<number, Mistake>();
  for (const fault of faults) {
    const at = placeAt(fault.pos[0]);
    // A fault is explained by a word on its line, or by a comment that began just before it.
    const before = found.filter(({ line, word }) => line < at.line && word.startsWith('#'));
    const sign = found.find(({ line }) => line === at.line) ?? before.at(-1);
    const place = sign ? { line: sign.line, col: sign.col } : at;
    const [wrong, mend] = sign
      ? ['YAML reads this sign in its own way', `put the word in quotes: "${sign.word}"`]
      : (syntax[fault.code] ?? ['is no valid YAML here', 'see config/mirror.yaml']);
    if (!byLine.has(place.line)) byLine.set(place.line, { path: [], place, wrong, mend });
  }
  return [...byLine.values()];
}

/** Finds words of a list that begin with a sign of YAML and stand without quotes. */
const signs = /(?<=[[,][ \t]*)(?:[-*&@%!|>?`](?=[ \t]*[,\]])|#[^,\]\s]*(?=[^\n]*[\]}]))/g;

const syntax: Partial<Record<YAMLError['code'], [wrong: string, mend: string]>> = {
  TAB_AS_INDENT: ['a tab is used to indent', 'use spaces'],
  BAD_INDENT: ['the indentation does not fit the lines above', 'indent by two spaces a level'],
  BLOCK_AS_IMPLICIT_KEY: [
    'a key stands where the value above or before it goes on',
    'indent keys of one level alike, and quote values that hold ": "',
  ],
  MISSING_CHAR: ['a quote, bracket or colon is missing', 'close what was opened'],
  BAD_SCALAR_START: ['a value may not begin with this character', 'put the value in quotes'],
  BAD_DQ_ESCAPE: ['an unknown escape stands in double quotes', 'use single quotes'],
  MULTIPLE_DOCS: ['a second document begins', 'keep one mirror in a file, without ---'],
  TAG_RESOLVE_FAILED: ['a tag (!name) is not known here', 'remove it'],
};

/** Returns the error for all mistakes: in file order, those in the defaults last, each once. */
export function invalidFile(file: string, mistakes: readonly Mistake[]): Invalid {
  const sorted = mistakes.toSorted(
    ({ place: a }, { place: b }) =>
      Number(a.file !== undefined) - Number(b.file !== undefined) ||
      a.line - b.line ||
      a.col - b.col,
  );
  const problems = sorted.map(({ path, place, wrong, mend }): Problem => {
    const where = `${place.file ?? file}:${place.line}:${place.col}`;
    // The path is written like contacts.channels[1].id; a key that would garble the line is quoted.
    const steps = path.map((step) => {
      if (typeof step === 'number') return `[${step}]`;
      return /^[\w-]{1,60}$/.test(step) ? `.${step}` : `.${JSON.stringify(step.slice(0, 60))}`;
    });
    const at = path.length > 0 ? `${where}  ${steps.join('').replace(/^\./, '')}` : where;
    return { code: 'invalid', place: at, reason: wrong, fix: mend };
  });
  return new Invalid([...new Map(problems.map((one) => [renderProblem(one), one])).values()]);
}

/** Returns whether `inner` equals `outer` or is inside it. */
export function within(outer: Path, inner: Path): boolean {
  return outer.every((step, index) => inner[index] === step);
}
