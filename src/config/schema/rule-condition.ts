/**
 * Compiles the conditions of rules about a plan, in CEL (docs/guards-and-approvals.md), when the
 * configuration is loaded. A comparison with a word or number that the variable never is, such as
 * `weekday == "Monday"`, is right in CEL, but the rule would never ask: it is a mistake, too.
 */
import { type ASTNode, Environment, TypeError as TypeMistake } from '@marcbachmann/cel-js';
import { z } from 'zod';
import { guardRows } from '../../domain/guard-classes.ts';
import {
  askedClasses,
  countedOps,
  type PlanCondition,
  type PlanFacts,
} from '../../domain/guards/plan-rule.ts';
import type { Fault } from '../../domain/record.ts';
import { fault, text as textField } from '../../domain/schema-fields.ts';
import { callsIn, inner, rephrase } from './cel-condition.ts';
import { type Flaw, readText } from './field-types.ts';
import { weekdays } from '../../domain/values/local-time.ts';

const fieldsOf = <T extends string>(names: readonly string[], type: T): Record<string, T> =>
  Object.fromEntries(names.map((name) => [name, type]));

const groups: Readonly<Record<string, Record<string, 'int' | 'double'>>> = {
  plan: fieldsOf([...countedOps, 'people'], 'int'),
  percent: fieldsOf(
    askedClasses.map((guard) => guardRows[guard].configKey),
    'double',
  ),
  usual: fieldsOf([...countedOps, 'runs'], 'int'),
};
const single = {
  hour: 'int',
  weekday: 'string',
  mode: 'string',
  mapping_changed: 'bool',
  templates_published: 'int',
  first_load: 'bool',
} as const satisfies Partial<Record<keyof PlanFacts, string>>;
const names = [...Object.keys(groups), ...Object.keys(single)];

const environment = new Environment({ limits: { maxAstNodes: 2_000, maxListElements: 500 } });
for (const [name, schema] of Object.entries(groups)) environment.registerVariable({ name, schema });
for (const [name, type] of Object.entries(single)) environment.registerVariable(name, type);
// `1.5 * usual.opt_in` is what people write; CEL itself multiplies only numbers of one type.
environment.registerOperator('int * double', (a: bigint, b: number) => Number(a) * b);
environment.registerOperator('double * int', (a: number, b: bigint) => a * Number(b));

export const rules = z
  .array(
    z
      .strictObject({
        when: readText('Condition (CEL) on the plan of a run', compileRule),
        // oxlint-disable-next-line unicorn/no-thenable
        then: z
          .literal('ask')
          .describe('ask: the changes await approval; a rule can do nothing else'),
        say: textField('What the approver reads').optional(),
        for: z
          .array(z.enum(askedClasses))
          .min(1)
          .describe('The classes of changes that await approval; by default all three')
          .optional(),
      })
      .describe('A rule that asks for an approval'),
  )
  .describe('Rules about the plan of a run: where one is true, changes await approval');

/** Returns the compiled condition, or the reason why it is invalid. */
export function compileRule(text: string): PlanCondition | Flaw {
  try {
    const evaluate = environment.parse(text);
    const { valid, type, error } = evaluate.check();
    if (!valid) return explain(error);
    if (type !== 'bool') {
      const reason = `gives a value of type ${type}, not true or false`;
      return { at: 0, ...fault(reason, 'compare it: > 100') };
    }
    // The library does not check what has() asks for: a misspelt name would be false.
    const has = callsIn(evaluate.ast).find(({ name }) => name === 'has');
    if (has) return { at: has.at, ...fault('asks with has(), and every name exists', noHas) };
    const never = neverIs(evaluate.ast);
    if (never) return never;
    const judge: PlanCondition['judge'] = (facts) => {
      try {
        const { plan, usual, hour, templates_published: published } = facts;
        const integer = (n: number) => BigInt(Math.floor(n));
        const whole = (counts: Record<string, number>) =>
          Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, integer(n)]));
        const result: unknown = evaluate({
          ...facts,
          plan: whole(plan),
          usual: whole(usual),
          hour: integer(hour),
          templates_published: integer(published),
        });
        return typeof result === 'boolean' ? result : undefined;
      } catch {
        return undefined;
      }
    };
    return { text, names: [...new Set(namesIn(evaluate.ast))], judge };
  } catch (error) {
    return explain(error);
  }
}

function namesIn(node: ASTNode): string[] {
  const own = node.op === 'id' && names.includes(node.args) ? [node.args] : [];
  return [...own, ...inner(node).flatMap(namesIn)];
}

function explain(error: unknown): Flaw {
  if (error instanceof TypeMistake && error.code === 'no_such_key') {
    // The counts of the variable in which an unknown one was looked for.
    const args: unknown = error.node?.args;
    const of: unknown = Array.isArray(args) ? args[0] : undefined;
    const name = typeof of === 'object' && of !== null && 'args' in of ? String(of.args) : '';
    const counts = Object.keys(groups[name] ?? {}).join(', ');
    const mistake = fault('names a count that is not known', `${name} has ${counts}`);
    return { at: error.range?.start ?? 0, ...mistake };
  }
  return rephrase(error, phrases, { misfit: numbers, other: grammar });
}

const numbers = 'counts are numbers: write plan.opt_in > 1000; weekday and mode are texts';
const noHas = 'compare the count itself: plan.opt_in > 0';
const grammar = 'compare numbers with > and <, and join with && and ||';

const phrases: Record<string, Fault> = {
  unknown_variable: fault('names what is not known', `use ${names.join(', ')}`),
  no_matching_overload: fault(
    'calls a function that is not known, or on what it does not take',
    numbers,
  ),
  invalid_logical_operand: fault('joins what is not true or false', grammar),
  invalid_condition_type: fault('asks with ? what is not true or false', grammar),
  unterminated_string: fault('opens a quote that is not closed', 'close it'),
  limit_exceeded: fault('is too long or nested too deeply', 'shorten it'),
};

const words: Readonly<Record<string, readonly string[]>> = {
  weekday: weekdays,
  mode: ['full', 'fast'],
};
/** The highest value of each variable; the lowest is 0. */
const highest: Readonly<Record<string, number>> = { hour: 23, percent: 100 };

/** The comparisons, and what each is with its sides exchanged. */
const exchanged: Readonly<Record<string, string>> = {
  '==': '==',
  '!=': '!=',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
};

/** Returns the first comparison with a value that the variable never has: weekday == "Monday". */
function neverIs(node: ASTNode): Flaw | undefined {
  const own = comparisons(node).map(({ name, op, constant }) => {
    const at = constant.start;
    const value = valueOf(constant);
    if (typeof value === 'string') {
      const known = words[name];
      if (!known || known.includes(value)) return undefined;
      const reason = `compares ${name} with a word that it never is`;
      return { at, ...fault(reason, `use ${known.join(', ')}`) };
    }
    const most = highest[name.replace(/\..*/, '')];
    if (most === undefined || value === undefined) return undefined;
    const isNever =
      value < 0 || value > most || (op === '<' && value <= 0) || (op === '>' && value >= most);
    if (!isNever) return undefined;
    const reason = `compares ${name} so that the answer is always the same`;
    return { at, ...fault(reason, `${name} is 0 to ${most}`) };
  });
  return [...own, ...inner(node).map(neverIs)].find((flaw) => flaw !== undefined);
}

/** Returns the constants in a comparison; `name` is the variable with its field, as written. */
function comparisons(node: ASTNode): { name: string; op: string; constant: ASTNode }[] {
  const [left, right] = inner(node);
  if (!left || !right) return [];
  const { op } = node;
  if (op === 'in') {
    return right.op === 'list'
      ? inner(right).map((constant) => ({ name: nameOf(left), op: '==', constant }))
      : [];
  }
  const other = exchanged[op];
  if (other === undefined) return [];
  return [
    { name: nameOf(left), op, constant: right },
    { name: nameOf(right), op: other, constant: left },
  ];
}

function nameOf(node: ASTNode): string {
  if (node.op === 'id') return node.args;
  if (node.op !== '.') return '';
  const [of, field] = node.args;
  return of.op === 'id' ? `${of.args}.${field}` : '';
}

function valueOf({ op, args }: ASTNode): string | number | undefined {
  if (op === '-_') {
    const value = valueOf(args);
    return typeof value === 'number' ? -value : undefined;
  }
  if (op !== 'value') return undefined;
  if (typeof args === 'bigint') return Number(args);
  return typeof args === 'string' || typeof args === 'number' ? args : undefined;
}
