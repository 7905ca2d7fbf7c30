/** Shows what has happened since a time: what runs have changed by day, failures and decisions. */
import { dayText, instant } from '../../compose/output/format-values.ts';
import type { Config } from '../../config/config.ts';
import { readMemory } from '../../store/memory/memory.ts';
import { documentsOf, entryTitle, pendingDecisions } from '../audit/entry-document.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { counted } from '../../domain/values/counted.ts';
import { names, numbers, type Section, spansOf, type TableRow, type Text } from '../sections.ts';
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

/** What else has happened in a mirror: runs that failed, and decisions, the newest first. */
export interface SinceFacts {
  mirror: string;
  failed: { run: string; at: string }[];
  decided: { at: string; title: Text }[];
}

/** Reads it since a time (epoch ms), at most 100 of each. */
export function readSince(snapshot: Snapshot, config: Config, since: number): SinceFacts {
  const failed = snapshot.runs
    .newest(100, { statuses: ['failed'], since })
    .map(({ id, startedAt }) => {
      return { run: id, at: instant(startedAt) };
    });
  const memory = readMemory(config.memory);
  try {
    const rows = memory?.log.noWrites({ type: 'decision', from: since, count: 100 }) ?? [];
    const logged = memory ? rows.map(documentsOf(memory.log)) : [];
    // The next run adds these to the log.
    const pending = pendingDecisions(snapshot, 100).filter(({ at }) => Date.parse(at) >= since);
    return {
      mirror: config.mirror,
      failed,
      decided: [...pending, ...logged].map((entry) => ({ at: entry.at, title: entryTitle(entry) })),
    };
  } finally {
    memory?.close();
  }
}

/** Returns the sections of several mirrors: all changes together, failed runs and decisions. */
export function sinceSections(
  days: readonly DayChanges[],
  found: readonly SinceFacts[],
): Section[] {
  const all: ToldChanges = { contacts: {}, templates: {} };
  for (const type of ['contacts', 'templates'] as const) {
    for (const [op, states] of days.flatMap(({ changes }) => Object.entries(changes[type])))
      all[type][op] = { acked: (all[type][op]?.['acked'] ?? 0) + (states['acked'] ?? 0) };
  }
  const runs = days.reduce((sum, one) => sum + one.runs, 0);
  const failed = found.flatMap(({ mirror, failed: those }) =>
    those.map(({ run, at }): Text => [
      { tone: 'bad', text: 'failed' },
      ` ${at}, `,
      { page: `${mirror}/runs/${run}`, text: mirror },
    ]),
  );
  const decided = found.flatMap(({ mirror, decided: those }) =>
    those.map(({ at, title }): Text => [
      `${at}, `,
      { page: mirror, text: mirror },
      ': ',
      ...spansOf(title),
    ]),
  );
  return [
    {
      lines:
        days.length === 0 ? [] : [`In all, ${counted(runs, 'run')}: ${changesWords(all, 'done')}.`],
    },
    { title: 'Failed runs', lines: failed, isList: true },
    { title: 'Decisions', lines: decided, isList: true },
  ];
}

/** Returns the table; `ofMany`: with the mirrors. */
export function daysSection(days: readonly DayChanges[], ofMany: boolean): Section {
  const rows = days.map(({ day, mirror, runs, changes }): TableRow => [
    dayText(day),
    ...(ofMany ? [{ page: mirror, text: mirror }] : []),
    `${runs}`,
    changesWords(changes, 'done'),
  ]);
  const columns = [names('Day'), ...(ofMany ? ['Mirror'] : []), numbers('Runs'), 'Changes'];
  const none = 'No run has changed anything in this time.';
  return { title: 'Changes by day', table: { columns, rows }, none };
}
