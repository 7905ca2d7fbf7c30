/**
 * Compiles conditions in CEL (docs/values-and-conditions.md) when the configuration is loaded.
 * Their only variable is `record`, whose fields are texts, so that a comparison with a number,
 * which could never be true, is found at once. From JSON, true is "true", 42 is "42", null is "".
 */
import {
  type ASTNode,
  EvaluationError,
  ParseError,
  TypeError as TypeMistake,
  Environment,
} from '@marcbachmann/cel-js';
import type { Fault } from '../../domain/record.ts';
import { fault } from '../../domain/schema-fields.ts';
import type { Condition } from '../../domain/condition.ts';
import { fieldAt, isLossy, textOf } from '../../domain/values/record-field.ts';
import { type Flaw, readText } from './field-types.ts';
import { RE2JS, RE2JSSyntaxException } from 're2js';

/** Returns the schema of a configuration field that contains a condition. */
export const condition = (nullable: boolean, what: string) =>
  readText(`Condition (CEL) on the CRM record: ${what}`, (text) => compile(text, { nullable }));

/** Returns the compiled condition, or its flaw. `nullable`: it may return null for no opinion. */
export function compile(written: string, { nullable }: { nullable: boolean }): Condition | Flaw {
  try {
    const text = bounded(written);
    if (typeof text !== 'string') return text;
    const branches = nullable ? nullBranches(environment.parse(text).ast) : [];
    const nulls = branches.filter((at) => text.startsWith('null', at));
    // In CEL, both branches of ?: have one type. So null is checked as true, which has the same
    // length and shifts no position, but evaluated as a value of any type.
    const checked = environment.parse(replaced(text, nulls, 'true'));
    const uses = usesOf(checked.ast);
    const { valid, type, error } = checked.check();
    const whole = uses.find(({ field }) => field === undefined);
    if (whole) {
      return { at: whole.at, ...fault('uses the record without the name of a field', naming) };
    }
    if (!valid) return explain(error);
    if (type !== 'bool' && type !== 'dyn' && !(nullable && type === 'null')) {
      const reason = `gives a value of type ${type}, not true or false`;
      return { at: 0, ...fault(reason, 'compare it: == "yes"') };
    }
    const flaw = tooMuch(checked.ast);
    if (flaw) return flaw;
    const evaluate = environment.parse(replaced(text, nulls, 'dyn(null)'));
    const { error: late } = evaluate.check();
    if (late) return { ...explain(late), at: 0 };
    const fields = [...new Set(uses.flatMap(({ field }) => field ?? []))];
    return { text: written, fields, judge: createJudge(evaluate, fields) };
  } catch (error) {
    return explain(error);
  }
}

function createJudge(
  evaluate: (context: object) => unknown,
  fields: readonly string[],
): Condition['judge'] {
  return (record) => {
    const values = fields.map((field): [string, unknown] => [field, fieldAt(record, field)]);
    const known = values.filter(([, value]) => value !== undefined);
    const seen = Object.fromEntries(known.map(([field, value]) => [field, textOf(value)]));
    const unread = known.flatMap(([field, value]) =>
      seen[field] === undefined || isLossy(value) ? [field] : [],
    );
    if (unread.length > 0) return { failsOn: unread };
    const isLong = (text = '') => text.length > longestText;
    const long = known.flatMap(([field]) => (isLong(seen[field]) ? [field] : []));
    if (long.length > 0) return { failsOn: long, longest: longestText };
    try {
      read.characters = 0;
      return { gives: evaluate({ record: seen }) };
    } catch (error) {
      const node = error instanceof EvaluationError ? error.node : undefined;
      return { failsOn: node ? usesOf(node).flatMap(({ field }) => field ?? []) : [] };
    }
  };
}

/** Returns the uses of the record; without a field if all of it is used, or a computed name. */
function usesOf(node: ASTNode): { field: string | undefined; at: number }[] {
  if (node.op === 'id') return node.args === 'record' ? [{ field: undefined, at: node.start }] : [];
  if (node.op === '.' || node.op === '[]') {
    const [of, name] = node.args;
    const isRecord = of.op === 'id' && of.args === 'record';
    const literal = typeof name !== 'string' && name.op === 'value' ? name.args : name;
    if (isRecord && typeof literal === 'string') return [{ field: literal, at: node.start }];
  }
  return inner(node).flatMap(usesOf);
}

/** Returns the positions of each null that is a branch of ?:, from left to right. */
function nullBranches(node: ASTNode): number[] {
  const branches = node.op === '?:' ? node.args.slice(1) : [];
  const nulls = branches.filter(({ op, args }) => op === 'value' && args === null);
  const found = [...nulls.map(({ start }) => start), ...inner(node).flatMap(nullBranches)];
  return found.toSorted((a, b) => a - b);
}

function replaced(text: string, nulls: readonly number[], by: string): string {
  const starts = [0, ...nulls.map((at) => at + 'null'.length)];
  return starts.map((start, index) => text.slice(start, nulls[index])).join(by);
}

const naming = 'write record.NAME or record["NAME"]';

/** Returns the library's error in this project's words, because its message may quote values. */
export function rephrase(
  error: unknown,
  phrases: Readonly<Record<string, Fault>>,
  { misfit, other }: { misfit: string; other: string },
): Flaw {
  if (!(error instanceof ParseError || error instanceof TypeMistake)) throw error;
  const { code, summary } = error;
  const at = error.range?.start ?? 0;
  if (code === 'no_such_overload' && summary.includes(': ')) {
    const types = summary.slice(summary.indexOf(': ') + 2);
    return { at, ...fault(`combines types that do not fit (${types})`, misfit) };
  }
  return { at, ...(phrases[code] ?? fault('is no valid condition (CEL) from here on', other)) };
}

function explain(error: unknown): Flaw {
  if (error instanceof TypeMistake && error.code === 'no_matching_overload') {
    const called: unknown = Array.isArray(error.node?.args) ? error.node.args[0] : undefined;
    const { functions } = environment.getDefinitions();
    if (typeof called === 'string' && functions.every(({ name }) => name !== called)) {
      return { at: error.range?.start ?? 0, ...fault('calls a function that is not known', known) };
    }
  }
  return rephrase(error, phrases, { misfit: texts, other: grammar });
}

const texts = 'fields are texts, "" when empty: compare with "…", or write int(record.NAME)';
const grammar = `compare with ==, join with && and ||, and ${naming}`;

const phrases: Record<string, Fault> = {
  unknown_variable: fault('names what is not known', `the only name is record: ${naming}`),
  no_matching_overload: fault('calls a function on what it does not take', texts),
  cannot_index_type: fault('looks for a field in a text', 'a name with dots is record["a.b"]'),
  invalid_logical_operand: fault('joins what is not true or false', texts),
  invalid_condition_type: fault('asks with ? what is not true or false', texts),
  incompatible_ternary_branches: fault(
    'gives different types after ? and :',
    'give true or false, and null only in when',
  ),
  unterminated_string: fault('opens a quote that is not closed', 'close it'),
  limit_exceeded: fault('is too long or nested too deeply', 'shorten it'),
};

// Enforces bounds that keep the evaluation of a condition short, whatever a record contains. All
// are counts:
//
//   text of a field              at most 16,384 characters
//   elements of a list           at most 500, in the condition and from `split`
//   all, exists, filter, map …   at most 2 nested levels
//   `matches`                    an RE2 pattern (linear in the text), written in the condition
//   text that `matches` reads    at most 200,000 characters in one evaluation
//   result of `join`             at most 65,536 characters
//
// A condition that exceeds a bound by itself is refused when it is loaded; a record that exceeds
// one is invalid. The library's own `matches`, `split` and `join` cannot be replaced. Conditions
// are therefore rewritten to call custom functions, whose names have the same length so that
// positions in messages stay correct.
// /

const longestText = 16_384;
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

const patterns = new Map<string, RE2JS>();
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

/** Returns the condition with custom functions at unchanged positions, or why it is invalid. */
function bounded(text: string): string | Flaw {
  const calls = callsIn(environment.parse(text).ast);
  const own = calls.find(({ name }) => ours.has(name));
  if (own) return { at: own.at, ...fault(`calls ${own.name}, which is not known`, known) };
  let found = text;
  for (const { name, after } of calls) {
    const by = instead[name];
    if (by === undefined) continue;
    const at = text.indexOf(name, after);
    found = found.slice(0, at) + by + found.slice(at + name.length);
  }
  // A comment between the dot and the name would be rewritten instead of the name.
  const left = callsIn(environment.parse(found).ast).find(({ name }) =>
    Object.hasOwn(instead, name),
  );
  return left ? { at: left.at, ...fault('has a comment within a call', 'remove it') } : found;
}

/** Returns the bound that a condition exceeds by itself, or undefined if it exceeds none. */
function tooMuch(node: ASTNode): Flaw | undefined {
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

/** Returns every call within a node, with its place in the text. */
export function callsIn(node: ASTNode): { name: string; at: number; after: number }[] {
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
