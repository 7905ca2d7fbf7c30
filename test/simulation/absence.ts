/**
 * Who left the CRM, as anybody could know who saw what was read: when an opt-out or a delete for
 * that is allowed. Told apart from how the engine counts.
 */
import { keyIn, isUnsound, type CrmRecord, type Reading } from './crm.ts';
import type { Story } from './story.ts';

/** The least time between two readings, by the clock of the mirror. */
const absentForMs = 20 * 3_600_000;

export interface ReadBy {
  mode: 'full' | 'fast';
  only?: 'contacts' | 'templates' | undefined;
  people: Reading;
  /** When it began, by the clock of the mirror. */
  ourStart: number;
}

export interface Absences {
  /** A run has ended; one that was killed may have counted, and may not have forgotten. */
  ended(run: ReadBy, lived: boolean): void;
  /** The snapshot is gone, and with it all that was counted. */
  lose(): void;
  /** Whether the CRM, as this run read it, has no record of somebody who is there. */
  isDue(key: string, run: ReadBy): boolean;
  /** Whether the CRM had a record of this address since there is this snapshot. */
  wasNamed(key: string): boolean;
}

interface Missing {
  readings: Set<string>;
  firstAt: number;
}

export function createAbsences(): Absences {
  const named = new Set<string>();
  const missing = new Map<string, Missing>();

  function missedBy(key: string, { people, mode, ourStart }: ReadBy): Missing {
    const known = missing.get(key) ?? { readings: new Set<string>(), firstAt: ourStart };
    if (mode !== 'full' || !people.certified) return known;
    const readings = new Set(known.readings).add(JSON.stringify(people.records));
    return { readings, firstAt: Math.min(known.firstAt, ourStart) };
  }

  return {
    ended(run, lived) {
      if (run.only === 'templates') return;
      const here = new Set(run.people.records.flatMap((record) => keyIn(record) ?? []));
      for (const key of here) named.add(key);
      for (const key of named) {
        if (!here.has(key)) missing.set(key, missedBy(key, run));
        else if (lived) missing.delete(key);
      }
    },
    lose() {
      named.clear();
      missing.clear();
    },
    isDue(key, run) {
      if (!run.people.certified) return false;
      const records = run.people.records.filter((record) => keyIn(record) === key);
      if (records.length > 0) return records.every((record) => isFlagged(record, run.people));
      if (run.mode !== 'full') return false;
      const { readings, firstAt } = missedBy(key, run);
      return readings.size >= 2 && run.ourStart - firstAt >= absentForMs;
    },
    wasNamed: (key) => named.has(key),
  };
}

function isFlagged(record: CrmRecord, reading: Reading): boolean {
  return record['deleted'] === 'true' && !isUnsound(record, reading);
}

/** What the story's mirror is told about people who left, and about guards. */
export function absenceOf({ absent, deletes, floor, optIns }: Story) {
  return {
    policy: { absent, deletes },
    guards: { delete: { percent: 0, floor }, opt_in: { percent: 0, floor: optIns } },
    absence: { absentReadings: 2, absentForMs },
  };
}
