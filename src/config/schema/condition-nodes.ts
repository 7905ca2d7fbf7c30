/** Walks through a parsed condition. */
import type { ASTNode } from '@marcbachmann/cel-js';

interface Call {
  name: string;
  at: number;
  /** The end of the call's receiver. */
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

/** Returns the direct child nodes of a node. */
export function inner({ args }: ASTNode): ASTNode[] {
  return [args].flat(3).filter(isNode);
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value;
}
