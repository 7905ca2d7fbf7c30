/** Shows what runs have changed, day by day, in one mirror or in several. */
import type { Snapshot } from '../../store/snapshot.ts';
import { names, numbers, type Section, type TableRow } from '../sections.ts';
import { pluralOf, type ToldChanges } from './run-history.ts';
import { changesWords } from './run-sections.ts';

/** What the runs of one day (UTC) have changed in a mirror. */
export interface DayChanges {
  day: string;
  mirror: string;
  runs: number;
  changes: ToldChanges;
}

/** Reads what runs about all people have changed since a time (epoch ms), the newest day first. */
export function readDays({ figures }: Snapshot, mirror: string, since: number): DayChanges[] {
  const days = Map.groupBy(figures.changedByDay(since), ({ day }) => day);
  return [...days].map(([day, rows]) => {
    const changes: ToldChanges = { contacts: {}, templates: {} };
    for (const { kind, op, n } of rows) changes[pluralOf(kind)][op] = { acked: n };
    return { day, mirror, runs: figures.changingRuns({ day, since }), changes };
  });
}

/** Returns the table; `ofMany`: with the mirrors. */
export function daysSection(days: readonly DayChanges[], ofMany: boolean): Section {
  const rows = days.map(({ day, mirror, runs, changes }): TableRow => [
    day,
    ...(ofMany ? [{ page: mirror, text: mirror }] : []),
    `${runs}`,
    changesWords(changes, 'done'),
  ]);
  const columns = [names('Day'), ...(ofMany ? ['Mirror'] : []), numbers('Runs'), 'Changes'];
  const none = 'No run has changed anything in this time.';
  return { title: 'Changes by day', table: { columns, rows }, none };
}
