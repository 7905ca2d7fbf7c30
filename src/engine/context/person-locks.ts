/**
 * Locks people against concurrent runs of one process on the same mirror: one run about all people,
 * and any number of runs about one person.
 *
 *   run about one person   waits until the person is free, then holds the lock from before it reads
 *                          the CRM until it ends
 *   run about all people   never waits. If another run has locked a person since this run began,
 *                          this run's plan for the person is superseded: it decides nothing more
 *                          about them and sends none of their planned changes, because what it read
 *                          may be out of date
 *
 * The source may change a person's key at any time, and then two runs know the person by different
 * keys; so a person is identified by ids of the source, too.
 */
import type { Key } from '../../domain/record.ts';

export interface LockedPeople {
  keys: readonly Key[];
  ids: readonly string[];
}

export interface PersonLock {
  /** Locks more people. Returns false, and locks none of them, unless all are free. */
  extend(people: LockedPeople): boolean;
  release(): void;
}

type Sets = { [Name in keyof LockedPeople]: Set<string> };

/** A run about all people: who is superseded, and who has a request in flight, with their ids. */
interface WholeRun {
  superseded: Sets;
  inFlight: Map<Key, readonly string[]>;
}

/**
 * Locks the people if no other run has locked them and nothing is in flight for them. In either
 * case the runs about all people send nothing more for them, so that the wait ends.
 */
function takeNow(
  { taken, runs }: { taken: Sets; runs: ReadonlyMap<string, WholeRun> },
  people: LockedPeople,
  own: Sets,
): boolean {
  for (const { superseded } of runs.values()) {
    for (const key of people.keys) superseded.keys.add(key);
    for (const id of people.ids) superseded.ids.add(id);
  }
  const keys = people.keys.filter((key) => !own.keys.has(key));
  const ids = people.ids.filter((id) => !own.ids.has(id));
  if (keys.some((key) => taken.keys.has(key)) || ids.some((id) => taken.ids.has(id))) return false;
  for (const { inFlight } of runs.values()) {
    const idsInFlight = [...inFlight.values()].flat();
    if (keys.some((key) => inFlight.has(key))) return false;
    if (ids.some((id) => idsInFlight.includes(id))) return false;
  }
  for (const key of keys) for (const set of [taken.keys, own.keys]) set.add(key);
  for (const id of ids) for (const set of [taken.ids, own.ids]) set.add(id);
  return true;
}

/** The locks that the runs of one process share. The lease keeps out runs of other processes. */
export type PersonLocks = ReturnType<typeof createPersonLocks>;

/** Creates locks without any run. */
export function createPersonLocks() {
  const noSets = (): Sets => ({ keys: new Set<Key>(), ids: new Set<string>() });
  const taken = noSets();
  const nobody = noSets();
  const runs = new Map<string, WholeRun>();
  const alone = new Set<string>();
  const waiting: (() => void)[] = [];
  let begun = 0;

  const wake = (): void => waiting.splice(0).forEach((one) => one());

  return {
    others: (run: string): string[] => [...runs.keys(), ...alone].filter((other) => other !== run),
    count: () => ({ begun, ended: begun - runs.size }),
    /** Call when a run begins: about all people, which may be superseded, or about one. */
    begin(run: string, about: 'all' | 'one'): void {
      if (about === 'one') {
        alone.add(run);
        return;
      }
      begun += 1;
      const superseded = { keys: new Set(taken.keys), ids: new Set(taken.ids) };
      runs.set(run, { superseded, inFlight: new Map() });
    },
    end(run: string): void {
      alone.delete(run);
      runs.delete(run);
      wake();
    },
    /** Locks these people once no other run has locked them and nothing is in flight for them. */
    async take(people: LockedPeople): Promise<PersonLock> {
      const own = noSets();
      while (!takeNow({ taken, runs }, people, own))
        await new Promise<void>((resolve) => waiting.push(resolve));
      return {
        extend: (more) => takeNow({ taken, runs }, more, own),
        release() {
          for (const key of own.keys) taken.keys.delete(key);
          for (const id of own.ids) taken.ids.delete(id);
          own.keys.clear();
          own.ids.clear();
          wake();
        },
      };
    },
    superseded(run: string): { keys: ReadonlySet<Key>; ids: ReadonlySet<string> } {
      return runs.get(run)?.superseded ?? nobody;
    },
    /** Call before sending a request. Returns false if the person is superseded: do not send it. */
    beginInFlight(run: string, key: Key, ids: readonly string[]): boolean {
      const whole = runs.get(run);
      if (!whole) return true;
      const { superseded, inFlight } = whole;
      if (superseded.keys.has(key) || ids.some((id) => superseded.ids.has(id))) return false;
      inFlight.set(key, ids);
      return true;
    },
    endInFlight(run: string, key: Key): void {
      if (runs.get(run)?.inFlight.delete(key)) wake();
    },
  };
}
