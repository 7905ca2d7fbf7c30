/** Which worker serves which mirror: the table of src/compose/fleet/fleet.ts. */
import { expect, test } from 'vitest';
import { type FleetNode, ownerOf } from '../../src/compose/fleet/fleet.ts';

const names = Array.from({ length: 3_000 }, (_, at) => `m${at}`);
const all = new Set(names);
const node = (name: string, more: Partial<FleetNode> = {}): FleetNode => ({
  name,
  mirrors: all,
  isDraining: false,
  ...more,
});
const owners = (nodes: readonly FleetNode[]) => names.map((name) => ownerOf(name, nodes));
const shares = (nodes: readonly FleetNode[]) => {
  const owned = owners(nodes);
  return nodes.map(({ name }) => owned.filter((owner) => owner === name).length);
};
/** Which mirrors move between two fleets: from whom to whom. */
const moves = (before: readonly FleetNode[], after: readonly FleetNode[]) => {
  const [from, to] = [owners(before), owners(after)];
  return from.flatMap((owner, at) => (owner === to[at] ? [] : [[owner, to[at]] as const]));
};
const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => node(name));
const three = [a!, b!, c!];

test('each worker has about the same number, whatever the order of the workers', () => {
  for (const share of shares(three)) expect(Math.abs(share - 1_000)).toBeLessThan(100);
  expect(owners(three.toReversed())).toEqual(owners(three));
});

test('a worker that comes moves only the mirrors that it gets, and one that goes only its own', () => {
  const four = [...three, d!];
  const came = moves(three, four);
  expect(new Set(came.map(([, to]) => to))).toEqual(new Set(['d']));
  expect(Math.abs(came.length - 750)).toBeLessThan(100);
  const gone = moves(four, three);
  expect(new Set(gone.map(([from]) => from))).toEqual(new Set(['d']));
  expect(gone).toHaveLength(came.length);
});

test('a draining worker has none, and only its mirrors move; the last one keeps nobody waiting', () => {
  const draining = node('b', { isDraining: true });
  const moved = moves(three, [a!, draining, c!]);
  expect(new Set(moved.map(([from]) => from))).toEqual(new Set(['b']));
  expect(new Set(moved.map(([, to]) => to))).toEqual(new Set(['a', 'c']));
  expect(ownerOf('m0', [draining])).toBeUndefined();
});

test.each([
  ['the one worker that may serve it', [node('a', { mirrors: new Set() }), b!], 'b'],
  ['nobody, if no worker may serve it', [node('a', { mirrors: new Set(['m1']) })], undefined],
] as const)('a mirror has as its owner %s', (_, nodes, expected) => {
  expect(ownerOf('m0', nodes)).toBe(expected);
});
