/** Which worker serves which mirror: the table of src/compose/placement/place-mirrors.ts. */
import { describe, expect, test } from 'vitest';
import { seeded } from '../../src/emulator/shared/seeded-random.ts';
import {
  placeMirrors,
  type PlacedMirror,
  type PlacedNode,
  weightOf,
} from '../../src/compose/placement/place-mirrors.ts';

const random = seeded(11);
const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((one) => ({ one, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ one }) => one);

const mirrorsOf = (people: readonly (number | undefined)[]): PlacedMirror[] =>
  people.map((n, at) => ({ name: `m${at}`, people: n, home: undefined, disk: undefined }));
/** The nodes have one disk in common, where no mirror has a snapshot yet. */
const nodesOf = (names: string, mirrors: readonly PlacedMirror[], draining = ''): PlacedNode[] =>
  names.split('').map((name) => ({
    name,
    disks: { d: { begun: [], bare: mirrors.map((one) => one.name) } },
    isDraining: draining.includes(name),
  }));
/** The mirrors when what was decided has been done. */
const done = (mirrors: readonly PlacedMirror[], placed: ReadonlyMap<string, string>) =>
  mirrors.map((one) => ({ ...one, home: placed.get(one.name) }));

function loads(mirrors: readonly PlacedMirror[], placed: ReadonlyMap<string, string>) {
  const sums: Record<string, number> = {};
  for (const one of mirrors) {
    const node = placed.get(one.name) ?? 'none';
    sums[node] = (sums[node] ?? 0) + weightOf(one);
  }
  return sums;
}

const same = (n: number): undefined[] => Array.from({ length: n }, () => undefined);
const different = (n: number): number[] =>
  Array.from({ length: n }, (_, at) => Math.floor(random() * 3_000) + (at % 10 === 0 ? 4_000 : 0));

describe.each([
  ['12 mirrors of unknown size', same(12)],
  ['60 mirrors of unknown size', same(60)],
  ['100 mirrors of different sizes', different(100)],
])('%s', (_, people) => {
  test('stay where they are as nodes come and go, unless their node goes or is overfull', () => {
    let mirrors = mirrorsOf(people);
    let before = '';
    for (const names of ['a', 'ab', 'abc', 'bc', 'bcd', 'bcdef', 'cdef', 'fg', 'g', 'gh']) {
      const nodes = nodesOf(names, mirrors);
      const placed = placeMirrors(nodes, mirrors);
      const sums = loads(mirrors, placed);
      const mean = mirrors.reduce((sum, one) => sum + weightOf(one), 0) / names.length;
      const heaviest = Math.max(...mirrors.map(weightOf));
      for (const name of names) {
        expect(sums[name]).toBeLessThanOrEqual(Math.max(mean * 1.1, mean + heaviest));
      }
      const moved = mirrors.filter(({ name, home }) => home && placed.get(name) !== home);
      const hasCome = names.split('').some((name) => !before.includes(name));
      if (!hasCome) expect(moved.filter(({ home }) => names.includes(home ?? ''))).toEqual([]);
      mirrors = done(mirrors, placed);
      // Nothing moves a second time.
      expect(placeMirrors(nodes, mirrors)).toEqual(placed);
      before = names;
    }
  });

  test('are placed in the same way on every node, whatever the order', () => {
    const mirrors = mirrorsOf(people);
    const nodes = nodesOf('abcd', mirrors);
    const placed = Object.fromEntries(placeMirrors(nodes, mirrors));
    const homes = done(mirrors, placeMirrors(nodesOf('abx', mirrors), mirrors));
    const later = Object.fromEntries(placeMirrors(nodes, homes));
    for (let time = 0; time < 5; time += 1) {
      const others = shuffled(nodes);
      expect(Object.fromEntries(placeMirrors(others, shuffled(mirrors)))).toEqual(placed);
      expect(Object.fromEntries(placeMirrors(others, shuffled(homes)))).toEqual(later);
    }
  });
});

test.each([
  ['12 on 3 nodes', 12, 'abc', [4, 4, 4]],
  ['12 on 2 nodes', 12, 'ab', [6, 6]],
  ['1 on 2 nodes', 1, 'ab', [1]],
  ['10 on 3 nodes', 10, 'abc', [4, 3, 3]],
])('mirrors of the same weight are spread evenly: %s', (_, n, names, expected) => {
  const mirrors = mirrorsOf(same(n));
  const sums = loads(mirrors, placeMirrors(nodesOf(names, mirrors), mirrors));
  expect(Object.values(sums).toSorted((a, b) => b - a)).toEqual(expected);
});

test('a node with a heavy mirror has no other, where that is possible', () => {
  const mirrors = mirrorsOf([100_000, ...same(10)]);
  const placed = placeMirrors(nodesOf('abc', mirrors), mirrors);
  const heavy = placed.get('m0');
  expect([...placed].filter(([, node]) => node === heavy)).toEqual([['m0', heavy]]);
});

test('a draining node gives all away and takes none, unless there is no other', () => {
  const first = mirrorsOf(same(12));
  const mirrors = done(first, placeMirrors(nodesOf('abc', first), first));
  const placed = placeMirrors(nodesOf('abc', mirrors, 'b'), mirrors);
  expect(loads(mirrors, placed)).toEqual({ a: 6, c: 6 });
  const kept = placeMirrors(nodesOf('b', mirrors, 'b'), mirrors);
  expect([...kept.keys()].toSorted()).toEqual(
    mirrors.flatMap(({ name, home }) => (home === 'b' ? [name] : [])).toSorted(),
  );
});

test('a mirror is placed only on nodes that know it', () => {
  const mirrors = mirrorsOf(same(4));
  const nodes = [
    { name: 'a', disks: { d: { begun: [], bare: ['m0', 'm1', 'm2', 'm3'] } }, isDraining: false },
    { name: 'b', disks: { d: { begun: [], bare: ['m0'] } }, isDraining: false },
  ];
  const placed = placeMirrors(nodes, mirrors);
  expect(['m1', 'm2', 'm3'].map((name) => placed.get(name))).toEqual(['a', 'a', 'a']);
  expect(placed.get('m0')).toBe('b');
});

describe('a mirror is placed only where its snapshot is', () => {
  const disk = (begun: string, bare = '') => ({
    begun: begun.split('').filter(Boolean),
    bare: bare.split('').filter(Boolean),
  });
  const node = (name: string, disks: PlacedNode['disks'], isDraining = false): PlacedNode => ({
    name,
    disks,
    isDraining,
  });
  const of = (known: Partial<PlacedMirror>): PlacedMirror => ({
    name: 'm',
    people: undefined,
    home: undefined,
    disk: undefined,
    ...known,
  });
  const [has, bare] = [disk('m'), disk('', 'm')];
  test.each([
    [
      'on the one node with its disk',
      { disk: 'x' },
      [node('a', { x: has }), node('b', { y: bare })],
      'a',
    ],
    [
      'there, too, if another node has a copy',
      { disk: 'y' },
      [node('a', { x: has }), node('b', { y: has })],
      'b',
    ],
    [
      'there, too, if that lost the snapshot',
      { disk: 'y' },
      [node('a', { x: has }), node('b', { y: bare })],
      'b',
    ],
    [
      'away from a home with another disk',
      { disk: 'y', home: 'a' },
      [node('a', { x: has }), node('b', { y: has })],
      'b',
    ],
    [
      'nowhere, if no node has its disk',
      { disk: 'z' },
      [node('a', { x: has }), node('b', { y: has })],
      undefined,
    ],
    [
      'at its draining home, if no other node has its disk',
      { disk: 'x', home: 'a' },
      [node('a', { x: has }, true), node('b', { y: bare })],
      'a',
    ],
    [
      'on another node with the disk of a draining one',
      { disk: 'x', home: 'a' },
      [node('a', { x: has }, true), node('b', { y: bare }), node('c', { x: has })],
      'c',
    ],
    [
      'where a snapshot is, if no disk is known',
      {},
      [node('a', { x: bare }), node('b', { y: has })],
      'b',
    ],
    ['on a node of which no disk is known', {}, [node('a', { '': bare })], 'a'],
    [
      'not on a node whose folder has no id, if a disk is known',
      { disk: 'x' },
      [node('a', { '': has })],
      undefined,
    ],
  ] as const)('%s', (_, known, nodes, expected) => {
    expect(placeMirrors(nodes, [of(known)]).get('m')).toBe(expected);
  });

  test('on any node, as long as it has none: the nodes get the same number', () => {
    const mirrors = mirrorsOf(same(12));
    const names = mirrors.map(({ name }) => name);
    const bare = { begun: [], bare: names };
    const nodes = [node('a', { x: bare }), node('b', { y: bare }), node('c', { z: bare })];
    expect(loads(mirrors, placeMirrors(nodes, mirrors))).toEqual({ a: 4, b: 4, c: 4 });
  });

  test('on a node that has too much, if no other has its disk', () => {
    const mirrors = mirrorsOf(same(6)).map((one) => ({ ...one, disk: 'x', home: 'a' }));
    const names = mirrors.map(({ name }) => name);
    const nodes = [
      node('a', { x: { begun: names, bare: [] } }),
      node('b', { y: { begun: [], bare: names } }),
    ];
    expect(loads(mirrors, placeMirrors(nodes, mirrors))).toEqual({ a: 6 });
  });
});
