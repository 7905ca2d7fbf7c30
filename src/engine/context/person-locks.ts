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
 * A person is identified by keys and by ids of the source. The source may change the key at any
 * time, and then two runs know the same person by different keys.
 */
import type { Key } from '../../domain/record.ts';

/** The locks that the runs of one process share. */
export interface PersonLocks {
  /** Returns the ids of the other runs in progress. */
  others(run: string): string[];
  /** Counts the runs about all people that have begun and those that have ended so far. */
  count(): { begun: number; ended: number };
  /**
   * Call when a run begins: a run about all people, which may be superseded, or about one person.
   */
  begin(run: string, about: 'all' | 'one'): void;
  /** Call when a run ends, whatever its outcome. */
  end(run: string): void;
  /**
   * Locks these people as soon as no other run has locked them and nothing is in flight for them.
   */
  take(people: LockedPeople): Promise<PersonLock>;
  /** Returns the people that other runs have locked since this run began. */
  superseded(run: string): Superseded;
  /** Call before sending a request. Returns false if the person is superseded: do not send it. */
  beginInFlight(run: string, key: Key, ids: readonly string[]): boolean;
  /** Call when the outcome of the request is recorded. */
  endInFlight(run: string, key: Key): void;
}

/** Identifies people by everything that another run may know them by. */
export interface LockedPeople {
  keys: readonly Key[];
  /** Ids of their records in the source. */
  ids: readonly string[];
}

interface Superseded {
  keys: ReadonlySet<Key>;
  ids: ReadonlySet<string>;
}

/** The lock that one run holds. */
export interface PersonLock {
  /** Locks more people. Returns false, and locks none of them, unless all are free. */
  extend(people: LockedPeople): boolean;
  release(): void;
}

/** A run about all people. */
interface WholeRun {
  superseded: { keys: Set<Key>; ids: Set<string> };
  /** People who have a request in flight, with their ids. */
  inFlight: Map<Key, readonly string[]>;
}

/** The people that one lock covers. */
interface Own {
  keys: Key[];
  ids: string[];
}

const nobody: Superseded = { keys: new Set(), ids: new Set() };

interface State {
  /** How many runs about all people have begun so far. */
  begun: number;
  /** The runs about one person. */
  alone: Set<string>;
  /** The runs about all people. */
  runs: Map<string, WholeRun>;
  taken: { keys: Set<Key>; ids: Set<string> };
  /** Callbacks that wake the callers waiting for a lock. */
  waiting: (() => void)[];
}

/** Creates locks without any run. The lease keeps out runs of other processes. */
export function createPersonLocks(): PersonLocks {
  const taken = { keys: new Set<Key>(), ids: new Set<string>() };
  const state: State = { begun: 0, alone: new Set(), runs: new Map(), taken, waiting: [] };
  const { alone, runs, waiting } = state;
  return {
    others: (run) => [...runs.keys(), ...alone].filter((other) => other !== run),
    count: () => ({ begun: state.begun, ended: state.begun - runs.size }),
    begin(run, about) {
      if (about === 'one') {
        alone.add(run);
        return;
      }
      const superseded = { keys: new Set(taken.keys), ids: new Set(taken.ids) };
      state.begun += 1;
      runs.set(run, { superseded, inFlight: new Map() });
    },
    end(run) {
      alone.delete(run);
      runs.delete(run);
      wake(state);
    },
    async take(people) {
      const own: Own = { keys: [], ids: [] };
      while (!takeNow(state, people, own)) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      return { extend: (more) => takeNow(state, more, own), release: () => release(state, own) };
    },
    superseded: (run) => runs.get(run)?.superseded ?? nobody,
    beginInFlight(run, key, ids) {
      const whole = runs.get(run);
      if (!whole) return true;
      const { superseded, inFlight } = whole;
      if (superseded.keys.has(key) || ids.some((id) => superseded.ids.has(id))) return false;
      inFlight.set(key, ids);
      return true;
    },
    endInFlight(run, key) {
      if (runs.get(run)?.inFlight.delete(key)) wake(state);
    },
  };
}

function wake({ waiting }: State): void {
  for (const one of waiting.splice(0)) one();
}

function isFree({ runs, taken }: State, { keys, ids }: LockedPeople): boolean {
  if (keys.some((key) => taken.keys.has(key)) || ids.some((id) => taken.ids.has(id))) return false;
  return [...runs.values()].every(({ inFlight }) => {
    const has = [...inFlight.values()].flat();
    return !keys.some((key) => inFlight.has(key)) && !ids.some((id) => has.includes(id));
  });
}

/**
 * Locks the people if all are free. In either case they become superseded for the runs about all
 * people, which then send nothing more for them, so that the wait ends.
 */
function takeNow(state: State, people: LockedPeople, own: Own): boolean {
  for (const { superseded } of state.runs.values()) {
    for (const key of people.keys) superseded.keys.add(key);
    for (const id of people.ids) superseded.ids.add(id);
  }
  const keys = people.keys.filter((key) => !own.keys.includes(key));
  const ids = people.ids.filter((id) => !own.ids.includes(id));
  if (!isFree(state, { keys, ids })) return false;
  for (const key of keys) state.taken.keys.add(key);
  for (const id of ids) state.taken.ids.add(id);
  own.keys.push(...keys);
  own.ids.push(...ids);
  return true;
}

function release(state: State, own: Own): void {
  for (const key of own.keys.splice(0)) state.taken.keys.delete(key);
  for (const id of own.ids.splice(0)) state.taken.ids.delete(id);
  wake(state);
}
