/** Finds the mirrors that nobody can serve, because no living worker has the disk they are on. */
import { renderProblem } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';
import { type Fleet, type FleetMirror, type FleetNode, unserved } from './fleet-store.ts';

/** How many names a line lists. */
const mostNames = 5;

/**
 * Returns the mirrors that no process serves, and whose disk none of the living workers has. It is
 * none if no worker is alive, because then the disk is not the reason.
 */
export function mirrorsWithoutDisk({ nodes, mirrors }: Fleet): FleetMirror[] {
  if (nodes.length === 0) return [];
  return withoutDiskIn(nodes, unserved({ mirrors }));
}

/** Returns those of the mirrors whose disk is known, and is none of these workers'. */
export function withoutDiskIn(
  nodes: readonly FleetNode[],
  mirrors: readonly FleetMirror[],
): FleetMirror[] {
  const disks = new Set(nodes.flatMap(({ disks: own }) => Object.keys(own)));
  return mirrors.filter(({ disk }) => disk !== undefined && !disks.has(disk));
}

/** Returns a line for each machine that is missing, with the remedy. */
export function missingDiskWords(missing: readonly FleetMirror[]): string[] {
  const groups = Map.groupBy(missing, ({ diskHost = '' }) => diskHost);
  return [...groups].map(([host, mirrors]) => {
    const names = mirrors.slice(0, mostNames).map(({ name }) => name);
    const more = mirrors.length > mostNames ? ' …' : '';
    const reason =
      `nobody can serve ${counted(mirrors.length, 'mirror')} on a disk of ${host}, which no ` +
      `living worker has: ${names.join(', ')}${more}`;
    const fix =
      `start the worker of ${host}; or put a backup on another machine, and start ` +
      '`worker -c FILE --accept-lost-snapshot` there once';
    return renderProblem({ reason, fix });
  });
}
