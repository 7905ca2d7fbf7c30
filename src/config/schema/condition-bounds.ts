/**
 * Enforces bounds that keep the evaluation of a condition short, whatever a record contains. All
 * are counts:
 *
 *   text of a field              at most 16,384 characters
 *   elements of a list           at most 500, in the condition and from `split`
 *   all, exists, filter, map …   at most 2 nested levels
 *   `matches`                    an RE2 pattern (linear in the text), written in the condition
 *   text that `matches` reads    at most 200,000 characters in one evaluation
 *   result of `join`             at most 65,536 characters
 *
 * A condition that exceeds a bound by itself is refused when it is loaded; a record that exceeds
 * one is invalid. The library's own `matches`, `split` and `join` cannot be replaced. Conditions
 * are therefore rewritten to call custom functions, whose names have the same length so that
 * positions in messages stay correct.
 */
import { Environment, type ASTNode } from '@marcbachmann/cel-js';
import { RE2JS, RE2JSSyntaxException } from 're2js';
import type { Fault } from '../../domain/record.ts';
import { fault } from '../../domain/schema-fault.ts';

/** The reason why a text is not a valid condition, and the position of the character concerned. */
export interface Flaw extends Fault {
  at: number;
}

export const longestText = 16_384;
const longestPattern = 1_000;
const longestJoined = 65_536;
const mostElements = 500;
const mostNested = 2;
const mostMatched = 200_000;

const instead: Readonly<Record<string, string>> = {
  matches: 're2like',
  split: 'parts',
  join: 'glue',
};
const ours = new Set(Object.values(instead));
const loops = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);

/** The patterns of all loaded conditions, by their source text. */
const patterns = new Map<string, RE2JS>();
/** The number of characters that `matches` has read in the current evaluation. */
const read = { characters: 0 };

export const environment = new Environment({
  limits: { maxAstNodes: 2_000, maxListElements: mostElements },
})
  .registerVariable('record', 'map<string, string>')
  .registerFunction('string.re2like(string): bool', (text: string, pattern: string) => {
    read.characters += text.length;
    if (read.characters > mostMatched) throw new RangeError('matches reads too much text');
    return patterns.get(pattern)?.matcher(text).find() ?? false;
  })
  .registerFunction('string.parts(string): list<string>', (text: string, by: string) =>
    few(text.split(by, mostElements + 1)),
  )
  .registerFunction(
    'string.parts(string, int): list<string>',
    (text: string, by: string, most: bigint) => few(splitInto(text, by, Number(most))),
  )
  .registerFunction('list<string>.glue(): string', (list: string[]) => joined(list, ''))
  .registerFunction('list<string>.glue(string): string', joined);

/** Evaluates a condition for one record. Throws RangeError if a bound is exceeded. */
export function evaluateOnce<T>(evaluate: () => T): T {
  read.characters = 0;
  return evaluate();
}

/** Returns the condition with custom functions at unchanged positions, or why it is invalid. */
export function bounded(text: string): string | Flaw {
  const calls = callsIn(environment.parse(text).ast);
  const own = calls.find(({ name }) => ours.has(name));
  if (own) return { at: own.at, ...fault(`calls ${own.name}, which is not known`, known) };
  let found = text;
  for (const { name, after } of calls) {
    const by = instead[name];
    const at = by === undefined ? -1 : text.indexOf(name, after);
    if (by !== undefined) found = found.slice(0, at) + by + found.slice(at + name.length);
  }
  // A comment between the dot and the name would be rewritten instead of the name.
  const left = callsIn(environment.parse(found).ast).find(({ name }) =>
    Object.hasOwn(instead, name),
  );
  return left ? { at: left.at, ...fault('has a comment within a call', 'remove it') } : found;
}

/** Returns the bound that a condition exceeds by itself, or undefined if it exceeds none. */
export function tooMuch(node: ASTNode): Flaw | undefined {
  const deep = tooDeep(node, 0);
  if (!deep) return wrongPattern(node);
  const reason = `nests more than ${mostNested} of exists, all, filter, map`;
  const fix = 'split the list in the CRM, or write two conditions';
  return { at: deep.start, ...fault(reason, fix) };
}

function tooDeep(node: ASTNode, depth: number): ASTNode | undefined {
  const call = node.op === 'rcall' ? node.args : undefined;
  if (!call || !loops.has(call[0])) return first(inner(node), (one) => tooDeep(one, depth));
  if (depth === mostNested) return node;
  return tooDeep(call[1], depth) ?? first(call[2], (one) => tooDeep(one, depth + 1));
}

function wrongPattern(node: ASTNode): Flaw | undefined {
  if (node.op === 'rcall' && node.args[0] === instead['matches']) {
    const [pattern] = node.args[2];
    const flaw = pattern && flawOf(pattern);
    if (flaw) return { at: pattern.start, ...flaw };
  }
  return first(inner(node), wrongPattern);
}

function flawOf({ op, args }: ASTNode): Fault | undefined {
  if (op !== 'value' || typeof args !== 'string')
    return fault('takes a pattern that is not written here', 'write it in quotes: matches("^A")');
  if (args.length > longestPattern)
    return fault(`is a pattern of more than ${longestPattern} characters`, 'shorten it');
  try {
    patterns.set(args, RE2JS.compile(args));
    return undefined;
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error;
    return fault(
      'is no regular expression that can be used',
      'correct the pattern (RE2: without lookaround and backreferences, repeats up to 1000)',
    );
  }
}

function first<T, F>(all: readonly T[], find: (one: T) => F | undefined): F | undefined {
  for (const one of all) {
    const found = find(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

function few(list: string[]): string[] {
  if (list.length > mostElements) throw new RangeError('split gives too many elements');
  return list;
}

function splitInto(text: string, by: string, most: number): string[] {
  if (most < 0 || most > mostElements) return few(text.split(by, mostElements + 1));
  const parts = text.split(by, most);
  if (parts.length < most || most === 0) return parts;
  const before = parts.slice(0, -1);
  const length = before.reduce((sum, one) => sum + one.length + by.length, 0);
  return [...before, text.slice(length)];
}

function joined(list: readonly string[], by: string): string {
  if (list.some((one) => typeof one !== 'string')) throw new TypeError('join of what is no text');
  const length = list.reduce((sum, one) => sum + one.length + by.length, 0);
  if (length > longestJoined) throw new RangeError('join gives too long a text');
  return list.join(by);
}

const known = 'use one of CEL: size, startsWith, matches, int …';

interface Call {
  name: string;
  at: number;
  after: number;
}

/** Returns every call within a node, with its place in the text. */
export function callsIn(node: ASTNode): Call[] {
  const within = inner(node).flatMap(callsIn);
  if (node.op === 'call')
    return [{ name: node.args[0], at: node.start, after: node.start }, ...within];
  if (node.op !== 'rcall') return within;
  const [name, receiver] = node.args;
  return [{ name, at: node.start, after: receiver.range.end }, ...within];
}

export function inner({ args }: ASTNode): ASTNode[] {
  const isNode = (value: unknown): value is ASTNode =>
    typeof value === 'object' && value !== null && 'op' in value;
  return [args].flat(3).filter(isNode);
}
