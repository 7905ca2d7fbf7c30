/**
 * Decides which worker of a fleet serves which mirror. Every worker computes the same from what
 * Redis knows, so no worker leads. A pure function of nodes and mirrors, whatever their order:
 *
 *   a mirror                             is placed
 *   at home on a node that may serve it  there, as long as that node is not overfull
 *   at home on an overfull node          on the best node that has room, or one that has less even
 *                                        so: those that belong least to their node first, until it
 *                                        is not overfull any more
 *   without a home, or at home on a node on the best node that has room; if none has, on the one
 *   that takes none (it is draining,     that has the least
 *   or does not know the mirror)
 *   that no node may serve               where it is at home, if that node is alive
 *
 * A node may serve a mirror that it knows, unless it is draining, and
 *
 *   the snapshot of the mirror is        if
 *   on a known disk                      the node has this disk
 *   on no known disk                     the node has a snapshot of it, or no node has one
 *
 * The best node is the one with the highest random weight for the mirror (rendezvous hashing). A
 * node has room for a mirror as long as it is not overfull with it: as its share of the weight of
 * all mirrors does not exceed the mean by more than a tenth. The result, once it is true, is placed
 * as it is: nothing moves without a reason.
 */
import { createHash } from 'node:crypto';

export interface PlacedNode {
  name: string;
  disks: Disks;
  isDraining: boolean;
}

/** The mirrors in the folder of a node, by the id of the disk that their snapshots are on. */
type Disks = Readonly<Record<string, MirrorsOnDisk>>;

/** The names of the mirrors that have a snapshot there, and of those that have none yet. */
interface MirrorsOnDisk {
  begun: readonly string[];
  bare: readonly string[];
}

export interface PlacedMirror {
  name: string;
  /** The number of people in it; undefined if no run has counted them yet. */
  people: number | undefined;
  /** The name of the node that serves it; undefined if none does. */
  home: string | undefined;
  /** The id of the disk that its snapshot is on; undefined if that is not known. */
  disk: string | undefined;
}

/** How much a node may have more than the mean. */
const bound = 1.1;
const tiny = 1e-9;

/** Returns the load that a mirror is: 1, and 1 for each thousand people. */
export function weightOf({ people = 0 }: Pick<PlacedMirror, 'people'>): number {
  return 1 + people / 1_000;
}

interface Candidate extends PlacedMirror {
  weight: number;
  nodes: readonly string[];
  /** Returns the nodes, the best one first; most mirrors stay where they are, and need no order. */
  ranked(): readonly string[];
}

interface State {
  loads: Map<string, number>;
  most: number;
  placed: Map<string, string>;
}

/** Returns the name of the node for each mirror that has one. */
export function placeMirrors(
  nodes: readonly PlacedNode[],
  mirrors: readonly PlacedMirror[],
): Map<string, string> {
  const takers = nodes.filter(({ isDraining }) => !isDraining).toSorted(byName);
  const places = placesOn(takers);
  const candidates = mirrors.map((mirror): Candidate => {
    const known = places.get(mirror.name) ?? [];
    const begun = known.filter(({ isBegun }) => isBegun);
    let allowed = begun.length > 0 ? begun : known;
    if (mirror.disk !== undefined) allowed = known.filter(({ disk }) => disk === mirror.disk);
    const nodes = allowed.map(({ node }) => node);
    let ranked: readonly string[] | undefined;
    const rank = (): readonly string[] => {
      const scored = nodes.map((node) => ({ node, score: scoreOf(mirror.name, node) }));
      return scored.toSorted((a, b) => (a.score < b.score ? 1 : -1)).map(({ node }) => node);
    };
    return { ...mirror, weight: weightOf(mirror), nodes, ranked: () => (ranked ??= rank()) };
  });
  const all = candidates.toSorted((a, b) => b.weight - a.weight || byName(a, b));
  const placeable = all.filter((one) => one.nodes.length > 0);
  const total = placeable.reduce((sum, { weight }) => sum + weight, 0);
  const most = (total / Math.max(1, takers.length)) * bound;
  const loads = new Map(takers.map(({ name }) => [name, 0]));
  const state: State = { loads, most, placed: new Map() };
  const isAtHome = ({ home, nodes: may }: Candidate) => home !== undefined && may.includes(home);
  for (const one of placeable.filter(isAtHome)) put(state, one, one.home);
  for (const one of placeable) {
    if (!isAtHome(one)) put(state, one, roomFor(state, one) ?? leastLoaded(state, one));
  }
  while (takers.some(({ name }) => relieve(state, name, placeable)));
  const alive = new Set(nodes.map(({ name }) => name));
  for (const { name, home, nodes: may } of all) {
    if (may.length === 0 && home !== undefined && alive.has(home)) state.placed.set(name, home);
  }
  return state.placed;
}

/** Where a node has the snapshot of a mirror, or would have it. */
interface Place {
  node: string;
  disk: string;
  isBegun: boolean;
}

/** Returns the places of each mirror on these nodes. */
function placesOn(nodes: readonly PlacedNode[]): Map<string, Place[]> {
  const places = new Map<string, Place[]>();
  const add = (mirror: string, place: Place): void => {
    const known = places.get(mirror);
    if (known) known.push(place);
    else places.set(mirror, [place]);
  };
  for (const { name: node, disks } of nodes) {
    for (const [disk, { begun, bare }] of Object.entries(disks)) {
      for (const mirror of begun) add(mirror, { node, disk, isBegun: true });
      for (const mirror of bare) add(mirror, { node, disk, isBegun: false });
    }
  }
  return places;
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}

/** Returns the random weight of a node for a mirror, as digits that compare as text. */
function scoreOf(mirror: string, node: string): string {
  return createHash('sha256').update(`${node}\n${mirror}`).digest('hex');
}

function put({ loads, placed }: State, { name, weight }: Candidate, node = ''): void {
  const before = placed.get(name);
  if (before !== undefined) loads.set(before, (loads.get(before) ?? 0) - weight);
  placed.set(name, node);
  loads.set(node, (loads.get(node) ?? 0) + weight);
}

function loadOf({ loads }: State, node: string): number {
  return loads.get(node) ?? 0;
}

/** Returns the best node that would not be overfull with the mirror. */
function roomFor(state: State, { ranked, weight }: Candidate): string | undefined {
  return ranked().find((node) => loadOf(state, node) + weight <= state.most + tiny);
}

function leastLoaded(state: State, { ranked }: Candidate): string | undefined {
  const [first, ...others] = ranked();
  return others.reduce(
    (least, node) => (loadOf(state, node) + tiny < loadOf(state, least ?? node) ? node : least),
    first,
  );
}

/** Takes mirrors from a node while it is overfull. Returns whether any was taken. */
function relieve(state: State, node: string, mirrors: readonly Candidate[]): boolean {
  if (loadOf(state, node) <= state.most + tiny) return false;
  const own = mirrors
    .filter(({ name }) => state.placed.get(name) === node)
    .map((mirror) => ({ mirror, score: scoreOf(mirror.name, node) }))
    .toSorted((a, b) => (a.score < b.score ? -1 : 1));
  let isRelieved = false;
  for (const { mirror } of own) {
    if (loadOf(state, node) <= state.most + tiny) break;
    const other = roomFor(state, mirror) ?? leastLoaded(state, mirror);
    if (other === undefined || loadOf(state, other) + mirror.weight + tiny >= loadOf(state, node)) {
      continue;
    }
    put(state, mirror, other);
    isRelieved = true;
  }
  return isRelieved;
}
