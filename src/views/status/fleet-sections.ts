/** Shows the workers that share mirrors, what each of them serves, and what nobody serves. */
import { counted, withCommas } from '../../domain/values/counted.ts';
import { instant } from '../../compose/output/format-values.ts';
import {
  type Fleet,
  type FleetMirror,
  mirrorsWithoutDisk,
  missingDiskWords,
  servedBy,
  unserved,
} from '../../compose/placement/fleet-store.ts';
import { weightOf } from '../../compose/placement/place-mirrors.ts';
import { names, numbers, type Section } from '../sections.ts';

/** What is shown of the fleets over one Redis, or over several. */
export interface ShownFleet {
  workers: ReturnType<typeof workersOf>;
  /** The mirrors that nobody serves. */
  withoutHome: string[];
  /** Those whose disk no living worker has. */
  withoutDisk: FleetMirror[];
}

/** Returns what is shown of a fleet. `own`: the mirrors that are meant, if not all are. */
export function shownFleet(fleet: Fleet, own?: readonly string[]): ShownFleet {
  const isMeant = ({ name }: FleetMirror): boolean => own?.includes(name) ?? true;
  return {
    workers: workersOf(fleet),
    withoutHome: unserved(fleet)
      .filter(isMeant)
      .map(({ name }) => name),
    withoutDisk: mirrorsWithoutDisk(fleet).filter(isMeant),
  };
}

function workersOf(fleet: Fleet) {
  return fleet.nodes.map(({ name, host, since, isDraining }) => {
    const served = servedBy(fleet, name);
    // The sum of the weights of its mirrors: 1 for each, and 1 for each thousand people.
    const weight = served.reduce((sum, one) => sum + weightOf(one), 0);
    return {
      row: {
        node: name,
        host,
        since: instant(since),
        mirrors: served.length,
        weight: Math.round(weight * 10) / 10,
        draining: isDraining,
      },
      /** Its mirrors, heaviest first. */
      served: served.toSorted((a, b) => weightOf(b) - weightOf(a) || a.name.localeCompare(b.name)),
    };
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
  const rows = workers.map(({ row, served }) => {
    const { node, host, since, mirrors, weight, draining } = row;
    const people = served.reduce((sum, { people: n = 0 }) => sum + n, 0);
    const left = mirrors === 0 ? 'Drained: it can be stopped' : 'Gives its mirrors away';
    return {
      id: node,
      cells: [
        node === here ? `${node} (this one)` : node,
        host,
        since,
        withCommas(mirrors),
        withCommas(people),
        weight.toFixed(1),
        draining ? left : ({ tone: 'good', text: 'Serves' } as const),
      ],
      notes: [],
    };
  });
  const columns = [
    names('Worker'),
    'Machine',
    'Since',
    numbers('Mirrors'),
    numbers('People'),
    numbers('Weight'),
    'State',
  ];
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
      lines: served.map(({ name, people }) => [
        { page: name, text: name },
        people === undefined ? '' : ` (${counted(people, 'person', 'people')})`,
      ]),
    })),
  ];
}
