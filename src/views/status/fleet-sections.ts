/** Shows the workers that share mirrors, what each of them serves, and what nobody serves. */
import { counted, withCommas } from '../../domain/values/counted.ts';
import { instant } from '../../compose/output/format-values.ts';
import {
  type Fleet,
  mirrorsWithoutDisk,
  missingDiskWords,
  servedBy,
  unserved,
} from '../../compose/fleet/fleet.ts';
import { names, numbers, type Section } from '../sections.ts';

/** What is shown of the fleets over one Redis, or over several. */
export interface ShownFleet {
  workers: ReturnType<typeof workersOf>;
  /** The mirrors that nobody serves. */
  withoutHome: string[];
  /** Those whose disk no living worker has. */
  withoutDisk: Fleet['mirrors'];
}

/** Returns what is shown of a fleet. `own`: the mirrors that are meant, if not all are. */
export function shownFleet(fleet: Fleet, own?: readonly string[]): ShownFleet {
  const isMeant = ({ name }: { name: string }): boolean => own?.includes(name) ?? true;
  return {
    workers: workersOf(fleet),
    withoutHome: unserved(fleet.mirrors)
      .filter(isMeant)
      .map(({ name }) => name),
    withoutDisk: mirrorsWithoutDisk(fleet).filter(isMeant),
  };
}

function workersOf(fleet: Fleet) {
  return fleet.nodes.map(({ name, host, since, isDraining }) => {
    const served = servedBy(fleet, name);
    const row = {
      node: name,
      host,
      since: instant(since),
      mirrors: served.length,
      draining: isDraining,
    };
    return { row, served };
  });
}

/**
 * Returns the workers, what is wrong, and the mirrors of each. `here` is the worker that shows it;
 * `unusable` are the files whose mirrors are not known. The id of a row is the worker.
 */
export function fleetSections(
  { workers, withoutHome, withoutDisk }: ShownFleet,
  { here, unusable = [] }: { here?: string; unusable?: readonly string[] } = {},
): Section[] {
  const rows = workers.map(({ row: { node, host, since, mirrors, draining } }) => {
    const left = mirrors === 0 ? 'Drained: it can be stopped' : 'Gives its mirrors away';
    return {
      id: node,
      cells: [
        node === here ? `${node} (this one)` : node,
        host,
        since,
        withCommas(mirrors),
        draining ? left : ({ tone: 'good', text: 'Serves' } as const),
      ],
      notes: [],
    };
  });
  const columns = [names('Worker'), 'Machine', 'Since', numbers('Mirrors'), 'State'];
  const free = `Nobody serves ${counted(withoutHome.length, 'mirror')}: ${withoutHome.join(', ')}`;
  const well = `Every ${unusable.length === 0 ? '' : 'other '}mirror is served.`;
  return [
    { table: { columns, rows }, none: 'No worker of a folder is alive.' },
    {
      lines: [
        withoutHome.length === 0 ? well : { tone: 'bad', text: free },
        ...(unusable.length === 0 ? [] : [`Not known, see above: ${unusable.join(', ')}`]),
        ...missingDiskWords(withoutDisk),
      ],
    },
    ...workers.map(({ row, served }): Section => ({
      title: `Mirrors of ${row.node}`,
      isFolded: true,
      isList: true,
      lines: served.map((name) => [{ page: name, text: name }]),
    })),
  ];
}
