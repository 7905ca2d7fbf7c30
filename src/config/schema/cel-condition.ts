/**
 * Compiles conditions in CEL (docs/values-and-conditions.md), which are checked when the
 * configuration is loaded. Their only variable is `record`. Its fields are texts, as in a CSV file,
 * so that a comparison with a number, which could never be true, is found immediately. Values from
 * JSON become texts: true is "true", 42 is "42", null is "".
 */
import {
  type ASTNode,
  EvaluationError,
  ParseError,
  TypeError as TypeMistake,
} from '@marcbachmann/cel-js';
import type { Fault } from '../../domain/record.ts';
import { fault } from '../../domain/schema-fault.ts';
import type { Condition } from '../../domain/condition.ts';
import { fieldAt, isLossy, textOf } from '../../domain/values/record-field.ts';
import {
  bounded,
  environment,
  evaluateOnce,
  type Flaw,
  longestText,
  tooMuch,
  inner,
} from './condition-bounds.ts';
import { readText } from './field-types.ts';

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
    // In CEL, both branches of ?: have the same type. Therefore null is checked as if it were true,
    // which has the same length and shifts no position, but it is evaluated as a value of any type.
    const checked = environment.parse(replaced(text, nulls, 'true'));
    const uses = usesOf(checked.ast);
    const { valid, type, error } = checked.check();
    const whole = uses.find(({ field }) => field === undefined);
    if (whole) {
      return { at: whole.at, ...fault('uses the record without the name of a field', naming) };
    }
    if (!valid) return rephrase(error);
    if (type !== 'bool' && type !== 'dyn' && !(nullable && type === 'null')) {
      const reason = `gives a value of type ${type}, not true or false`;
      return { at: 0, ...fault(reason, 'compare it: == "yes"') };
    }
    const flaw = tooMuch(checked.ast);
    if (flaw) return flaw;
    const evaluate = environment.parse(replaced(text, nulls, 'dyn(null)'));
    const { error: late } = evaluate.check();
    if (late) return { ...rephrase(late), at: 0 };
    const fields = [...new Set(uses.flatMap(({ field }) => field ?? []))];
    return { text: written, fields, judge: createJudge(evaluate, fields) };
  } catch (error) {
    return rephrase(error);
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
      return { gives: evaluateOnce(() => evaluate({ record: seen })) };
    } catch (error) {
      const node = error instanceof EvaluationError ? error.node : undefined;
      return { failsOn: node ? usesOf(node).flatMap(({ field }) => field ?? []) : [] };
    }
  };
}

/** A use of the record; `field` is undefined if all of it is used or the name is computed. */
interface Use {
  field: string | undefined;
  at: number;
}

function usesOf(node: ASTNode): Use[] {
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

const functions = new Set(environment.getDefinitions().functions.map(({ name }) => name));

/** Rewrites the library's error in this project's words, because its message may quote values. */
function rephrase(error: unknown): Flaw {
  if (!(error instanceof ParseError || error instanceof TypeMistake)) throw error;
  const { code, node, summary } = error;
  const at = error.range?.start ?? 0;
  if (code === 'no_such_overload' && summary.includes(': ')) {
    const types = summary.slice(summary.indexOf(': ') + 2);
    return { at, ...fault(`combines types that do not fit (${types})`, texts) };
  }
  const called: unknown = Array.isArray(node?.args) ? node.args[0] : undefined;
  if (code === 'no_matching_overload' && typeof called === 'string' && !functions.has(called)) {
    const fix = 'use one of CEL: size, startsWith, matches, int …';
    return { at, ...fault('calls a function that is not known', fix) };
  }
  return { at, ...(phrases[code] ?? fault('is no valid condition (CEL) from here on', grammar)) };
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
