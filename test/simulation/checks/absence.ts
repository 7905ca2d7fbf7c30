/**
 * Who left the CRM, as anybody could know who saw what was read: when an opt-out or a delete for
 * that is allowed. Told apart from how the engine counts: by the clock that never jumps, since one
 * of the two clocks that it adds up by is always right.
 */
import { keyIn, isLiving, type Reading } from '../world/crm.ts';
import { holdForMs } from './held-changes.ts';
import type { Story } from '../story/story.ts';
import type { Person } from '../world/platform-history.ts';

/** The least time between two readings. */
const absentForMs = 20 * 3_600_000;
/** The platform's clock tells whole seconds, and a process does not begin in no time. */
const roundingMs = 60_000;

export interface ReadBy {
  mode: 'full' | 'fast';
  only?: 'contacts' | 'templates' | undefined;
  people: Reading;
  /** By the clock that never jumps. */
  startedAt: number;
}

export interface Absences {
  /** A run has ended; one that was killed may have counted, and may not have forgotten. */
  ended(run: ReadBy, lived: boolean): void;
  /** The snapshot is gone, and with it all that was counted. */
  lose(): void;
  /** Whether the CRM, as this run read it, has flagged every record of somebody. */
  isFlagged(key: string, run: ReadBy): boolean;
  /** Whether it has had no record of somebody who is there for long enough. */
  isLong(key: string, run: ReadBy): boolean;
  /** … and for so long since the person was due, or opted out by us. */
  hasWaited(person: Person, run: ReadBy, wait: Wait): boolean;
  /** Whether the CRM had a record of this address since there is this snapshot. */
  wasNamed(key: string): boolean;
}

export interface Wait {
  key: string;
  ms: number;
  /** Whether people are opted out first. */
  optsOut: boolean;
}

interface Missing {
  readings: Set<string>;
  firstAt: number;
}

/** `idsOf`: the ids of the CRM under which the snapshot knows somebody. */
export function createAbsences(idsOf: (key: string) => readonly string[]): Absences {
  const named = new Set<string>();
  const missing = new Map<string, Missing>();

  function missedBy(key: string, { people, mode, startedAt }: ReadBy): Missing {
    const known = missing.get(key) ?? { readings: new Set<string>(), firstAt: startedAt };
    if (mode !== 'full' || !people.certified) return known;
    const readings = new Set(known.readings).add(JSON.stringify(people.records));
    return { readings, firstAt: Math.min(known.firstAt, startedAt) };
  }

  const isGone = (key: string, { people }: ReadBy): boolean =>
    people.certified && !isLiving(people, key);

  return {
    ended(run, lived) {
      if (run.only === 'templates') return;
      const here = new Set(run.people.records.flatMap((record) => keyIn(record) ?? []));
      for (const key of here) named.add(key);
      for (const key of named) {
        if (!isLiving(run.people, key)) missing.set(key, missedBy(key, run));
        else if (lived) missing.delete(key);
      }
    },
    lose() {
      named.clear();
      missing.clear();
    },
    isFlagged(key, run) {
      const { records } = run.people;
      const ids = new Set(records.map(({ id }) => String(id)));
      const isWhole = run.mode === 'fast' || idsOf(key).every((id) => ids.has(id));
      return isGone(key, run) && isWhole && records.some((record) => keyIn(record) === key);
    },
    isLong(key, run) {
      if (!isGone(key, run) || run.mode !== 'full') return false;
      const { readings, firstAt } = missedBy(key, run);
      return readings.size >= 2 && run.startedAt - firstAt >= absentForMs - roundingMs;
    },
    hasWaited(person, run, { key, ms, optsOut }) {
      const { firstAt } = missedBy(key, run);
      const outs = [...person.channels.values()].flatMap(({ is, by, at }) =>
        is === 'opt_out' && by === 'us' ? [at] : [],
      );
      const from = Math.max(firstAt + absentForMs, ...(optsOut ? outs : []));
      return run.startedAt - from >= ms - roundingMs;
    },
    wasNamed: (key) => named.has(key),
  };
}

/** What the story's mirror is told about people who left, and about guards. */
export function absenceOf(story: Story) {
  const { absent, deletes, deleteAfter, floor, optIns, optOuts, letterFloor } = story;
  return {
    policy: { absent, deletes },
    guards: {
      delete: { percent: 0, floor },
      opt_out: { percent: 0, floor: optOuts, holdForMs },
      opt_in: { percent: 0, floor: optIns },
      template: { percent: 0, floor: letterFloor },
    },
    absence: { absentReadings: 2, absentForMs, deleteAfterMs: deleteAfter * 3_600_000 },
  };
}
