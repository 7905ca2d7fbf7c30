/**
 * Finds comparisons in a rule with a word or number that the variable never is, such as
 * `weekday == "Monday"`: they are right in CEL, and a rule that contains one never asks.
 */
import type { ASTNode } from '@marcbachmann/cel-js';
import { fault } from '../../domain/schema-fault.ts';
import { weekdays } from '../../domain/values/local-time.ts';
import type { Flaw } from './condition-bounds.ts';
import { inner } from './condition-nodes.ts';

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

/** Returns the first such comparison within a node, or undefined if there is none. */
export function neverIs(node: ASTNode): Flaw | undefined {
  const own = comparisons(node).map(flawOf);
  return [...own, ...inner(node).map(neverIs)].find((flaw) => flaw !== undefined);
}

/** A variable, how it is compared, and the constant. */
interface Comparison {
  /** The variable with its field, as it is written: percent.optIns. */
  name: string;
  op: string;
  constant: ASTNode;
}

function comparisons(node: ASTNode): Comparison[] {
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

/** Returns the name of a variable or of its field; '' for anything else. */
function nameOf(node: ASTNode): string {
  if (node.op === 'id') return node.args;
  if (node.op !== '.') return '';
  const [of, field] = node.args;
  return of.op === 'id' ? `${of.args}.${field}` : '';
}

function flawOf({ name, op, constant }: Comparison): Flaw | undefined {
  const at = constant.start;
  const value = valueOf(constant);
  if (typeof value === 'string') {
    const known = words[name];
    if (!known || known.includes(value)) return undefined;
    return {
      at,
      ...fault(`compares ${name} with a word that it never is`, `use ${known.join(', ')}`),
    };
  }
  const most = highest[name.replace(/\..*/, '')];
  if (most === undefined || value === undefined) return undefined;
  const isNever =
    value < 0 || value > most || (op === '<' && value <= 0) || (op === '>' && value >= most);
  if (!isNever) return undefined;
  return {
    at,
    ...fault(`compares ${name} so that the answer is always the same`, `${name} is 0 to ${most}`),
  };
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
