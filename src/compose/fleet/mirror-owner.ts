/**
 * Decides which worker of a fleet serves a mirror. Every worker computes the same from what Redis
 * knows, so no worker leads and nothing is stored. A pure function of the mirror and the workers,
 * whatever their order: of those that may serve the mirror, the one with the highest score for it
 * (weighted rendezvous hashing).
 *
 *   a worker may serve a mirror that it knows, unless it is draining, if
 *     the disk of the mirror's snapshot is known, and the worker has that disk
 *     or no disk is known
 *
 *   a worker     moves
 *   comes        only the mirrors that it gets: its share by its slots
 *   goes         only the mirrors that it had
 */

export interface FleetNode {
  name: string;
  /** How many runs it has in progress at once, at most: its share of the mirrors. */
  slots: number;
  /** The mirrors of its folder, by the id of the disk of their snapshots. */
  disks: Readonly<Record<string, ReadonlySet<string>>>;
  isDraining: boolean;
}

/** Returns the name of the worker that serves the mirror; undefined if none may. */
export function ownerOf(
  { name, disk }: { name: string; disk: string | undefined },
  nodes: readonly FleetNode[],
): string | undefined {
  let owner: string | undefined;
  let highest = 0;
  for (const node of nodes) {
    const known = disk === undefined ? Object.values(node.disks) : [node.disks[disk]];
    if (node.isDraining || !known.some((mirrors) => mirrors?.has(name))) continue;
    const score = node.slots / -Math.log(chanceOf(`${node.name}\n${name}`));
    if (score < highest || (score === highest && node.name > (owner ?? ''))) continue;
    owner = node.name;
    highest = score;
  }
  return owner;
}

/** Returns a number between 0 and 1, evenly spread (FNV-1a, with the finalizer of MurmurHash3). */
function chanceOf(text: string): number {
  let hash = 0x81_1c_9d_c5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01_00_01_93);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32 + 2 ** -33;
}
