/**
 * Compiles the conditions of rules about a plan, in CEL (docs/rules-and-windows.md). They are
 * checked when the configuration is loaded: an unknown name or a result other than true or false is
 * a mistake in the file.
 */
import {
  type ASTNode,
  Environment,
  ParseError,
  TypeError as TypeMistake,
} from '@marcbachmann/cel-js';
import { z } from 'zod';
import { guardRows } from '../../domain/guard-classes.ts';
import {
  askedClasses,
  countedOps,
  type PlanCondition,
  type PlanFacts,
} from '../../domain/guards/plan-rule.ts';
import type { Fault } from '../../domain/record.ts';
import { fault } from '../../domain/schema-fault.ts';
import type { Flaw } from './condition-bounds.ts';
import { callsIn, inner } from './condition-nodes.ts';
import { neverIs } from './rule-constants.ts';
import { text as textField } from './field-types.ts';

const fieldsOf = <T extends string>(names: readonly string[], type: T): Record<string, T> =>
  Object.fromEntries(names.map((name) => [name, type]));

/** The variables with fields, and their types. */
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

const environment = createEnvironment();

function createEnvironment(): Environment {
  const made = new Environment({ limits: { maxAstNodes: 2_000, maxListElements: 500 } });
  for (const [name, schema] of Object.entries(groups)) made.registerVariable({ name, schema });
  for (const [name, type] of Object.entries(single)) made.registerVariable(name, type);
  // `1.5 * usual.opt_in` is what people write; CEL itself multiplies only numbers of one type.
  made.registerOperator('int * double', (a: bigint, b: number) => Number(a) * b);
  made.registerOperator('double * int', (a: number, b: bigint) => a * Number(b));
  return made;
}

const condition = textField('Condition (CEL) on the plan of a run').transform((value, context) => {
  const found = compileRule(value);
  if ('judge' in found) return found;
  const { reason, fix, at } = found;
  context.addIssue({ code: 'custom', message: reason, params: { fix, at } });
  return z.NEVER;
});

/** The schema of `rules`. */
export const rules = z
  .array(
    z
      .strictObject({
        when: condition,
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
    if (!valid) return told(error);
    if (type !== 'bool') {
      const mistake = fault(
        `gives a value of type ${type}, not true or false`,
        'compare it: > 100',
      );
      return { at: 0, ...mistake };
    }
    // The library does not check what has() asks for: a misspelt name would be false.
    const has = callsIn(evaluate.ast).find(({ name }) => name === 'has');
    if (has) return { at: has.at, ...fault('asks with has(), and every name exists', noHas) };
    const never = neverIs(evaluate.ast);
    if (never) return never;
    return { text, names: [...new Set(namesIn(evaluate.ast))], judge: judging(evaluate) };
  } catch (error) {
    return told(error);
  }
}

function judging(evaluate: (context: object) => unknown): PlanCondition['judge'] {
  return (facts) => {
    try {
      const result = evaluate({ ...facts, ...withIntegers(facts) });
      return typeof result === 'boolean' ? result : undefined;
    } catch {
      return undefined;
    }
  };
}

/** Returns the counts as the integers of CEL. */
function withIntegers({ plan, usual, hour, templates_published: published }: PlanFacts) {
  const whole = (counts: Record<string, number>) =>
    Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, integer(n)]));
  return {
    plan: whole(plan),
    usual: whole(usual),
    hour: integer(hour),
    templates_published: integer(published),
  };
}

function integer(n: number): bigint {
  return BigInt(Math.floor(n));
}

function namesIn(node: ASTNode): string[] {
  const own = node.op === 'id' && names.includes(node.args) ? [node.args] : [];
  return [...own, ...inner(node).flatMap(namesIn)];
}

/** Rewrites the library's error in this project's words. */
function told(error: unknown): Flaw {
  if (!(error instanceof ParseError || error instanceof TypeMistake)) throw error;
  return { at: error.range?.start ?? 0, ...phrase(error) };
}

function phrase({ code, node, summary }: ParseError | TypeMistake): Fault {
  if (code === 'no_such_key') return fault('names a count that is not known', countsOf(node));
  if (code === 'no_such_overload' && summary.includes(': ')) {
    const types = summary.slice(summary.indexOf(': ') + 2);
    return fault(`combines types that do not fit (${types})`, numbers);
  }
  return phrases[code] ?? fault('is no valid condition (CEL) from here on', grammar);
}

/** Names the counts of the variable in which an unknown one was looked for. */
function countsOf(node: ParseError['node']): string {
  const args: unknown = node?.args;
  const of: unknown = Array.isArray(args) ? args[0] : undefined;
  const name = typeof of === 'object' && of !== null && 'args' in of ? String(of.args) : '';
  return `${name} has ${Object.keys(groups[name] ?? {}).join(', ')}`;
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
