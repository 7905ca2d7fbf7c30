/**
 * What the runs of one process share that keep one mirror side by side: one that is about
 * everybody, and several that are each about one person.
 *
 *   a run about one person    has her to itself, from before the CRM is asked about her to its end:
 *                             it waits for what is under way about her
 *   the run about everybody   waits for nobody. Whom another took, at any time since it began, it
 *                             decides nothing more about, and sends nothing more that it had
 *                             planned: what it has read of her is not the newest any more
 *
 * She is who has one of these keys, or one of these ids of the source: the source may give her
 * another key at any time, and then each run knows her under its own.
 */
import type { Key } from '../../domain/record.ts';

export interface PersonLocks {
  /** Runs under way, but for this one. */
  others(run: string): string[];
  /** How many runs about everybody have begun, and have ended, so far. */
  count(): { begun: number; ended: number };
  /** A run begins; it is about everybody, and may be overtaken, or about one person. */
  begin(run: string, about: 'all' | 'one'): void;
  end(run: string): void;
  /** Takes these people once nobody else is at them. */
  take(people: LockedPeople): Promise<PersonLock>;
  /** Whom others took since the run began. */
  superseded(run: string): Superseded;
  /** Something is about to leave for her; false: she is overtaken, and nothing may. */
  beginInFlight(run: string, key: Key, ids: readonly string[]): boolean;
  /** It was answered, and what came of it is written. */
  endInFlight(run: string, key: Key): void;
}

export interface LockedPeople {
  keys: readonly Key[];
  /** Of the source. */
  ids: readonly string[];
}

interface Superseded {
  keys: ReadonlySet<Key>;
  ids: ReadonlySet<string>;
}

export interface PersonLock {
  /** Takes these as well; false: somebody is at one of them, and nothing was taken. */
  extend(people: LockedPeople): boolean;
  release(): void;
}

interface WholeRun {
  superseded: { keys: Set<Key>; ids: Set<string> };
  /** For whom something has left, with her ids. */
  inFlight: Map<Key, readonly string[]>;
}

interface Own {
  keys: Key[];
  ids: string[];
}

const nobody: Superseded = { keys: new Set(), ids: new Set() };

interface State {
  /** Runs about everybody that have begun, so far. */
  begun: number;
  /** Runs about one person. */
  alone: Set<string>;
  /** Runs about everybody. */
  runs: Map<string, WholeRun>;
  taken: { keys: Set<Key>; ids: Set<string> };
  waiting: (() => void)[];
}

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
      const underWay = runs.get(run);
      if (!underWay) return true;
      const { superseded, inFlight: entered } = underWay;
      if (superseded.keys.has(key) || ids.some((id) => superseded.ids.has(id))) return false;
      entered.set(key, ids);
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
  return [...runs.values()].every(({ inFlight: entered }) => {
    const has = [...entered.values()].flat();
    return !keys.some((key) => entered.has(key)) && !ids.some((id) => has.includes(id));
  });
}

/** Takes them, if all are free; nothing more leaves for them, so that waiting has an end. */
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
