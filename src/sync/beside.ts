/**
 * What the runs of one process share that keep one mirror side by side: one that is about
 * everybody, and several that are each about one person.
 *
 *   a run about one person    has her to itself, from before the CRM is asked about her to its end:
 *                             it waits for what is under way about her
 *   the run about everybody   waits for nobody. Whom another took, at any time since it began, it
 *                             decides nothing more about, and sends nothing more that it had
 *                             planned: what it has read of her is not the newest any more
 */
import type { Key } from '../model/record.ts';

export interface Beside {
  /** Runs under way, but for this one. */
  others(run: string): string[];
  /** A run begins; it is about everybody, and may be overtaken, or about one person. */
  begin(run: string, about: 'all' | 'one'): void;
  end(run: string): void;
  /** Takes these people once nobody else is at them. */
  take(keys: readonly Key[]): Promise<Taken>;
  /** Whom others took since the run began. */
  overtaken(run: string): ReadonlySet<Key>;
  /** Something is about to leave for her; false: she is overtaken, and nothing may. */
  enter(run: string, key: Key): boolean;
  /** It was answered, and what came of it is written. */
  leave(run: string, key: Key): void;
}

export interface Taken {
  /** Takes these as well; false: somebody is at one of them, and nothing was taken. */
  also(keys: readonly Key[]): boolean;
  release(): void;
}

interface UnderWay {
  overtaken: Set<Key>;
  /** For whom something has left. */
  entered: Set<Key>;
}

const nobody: ReadonlySet<Key> = new Set();

export function createBeside(): Beside {
  const alone = new Set<string>();
  const runs = new Map<string, UnderWay>();
  const taken = new Set<Key>();
  const waiting: (() => void)[] = [];
  const wake = (): void => waiting.splice(0).forEach((one) => one());
  const isFree = (key: Key): boolean =>
    !taken.has(key) && [...runs.values()].every(({ entered }) => !entered.has(key));
  /** Nothing more leaves for them, so that there is an end to the waiting. */
  const overtake = (keys: readonly Key[]): void => {
    for (const { overtaken } of runs.values()) for (const key of keys) overtaken.add(key);
  };
  /** Takes them, if all are free. */
  const takeNow = (keys: readonly Key[], own: Key[]): boolean => {
    overtake(keys);
    const more = keys.filter((key) => !own.includes(key));
    if (!more.every(isFree)) return false;
    for (const key of more) taken.add(key);
    own.push(...more);
    return true;
  };
  return {
    others: (run) => [...runs.keys(), ...alone].filter((other) => other !== run),
    begin(run, about) {
      if (about === 'one') alone.add(run);
      else runs.set(run, { overtaken: new Set(taken), entered: new Set() });
    },
    end(run) {
      alone.delete(run);
      runs.delete(run);
      wake();
    },
    async take(keys) {
      const own: Key[] = [];
      while (!takeNow(keys, own)) await new Promise<void>((resolve) => waiting.push(resolve));
      return {
        also: (more) => takeNow(more, own),
        release() {
          for (const key of own.splice(0)) taken.delete(key);
          wake();
        },
      };
    },
    overtaken: (run) => runs.get(run)?.overtaken ?? nobody,
    enter(run, key) {
      const underWay = runs.get(run);
      if (underWay?.overtaken.has(key)) return false;
      underWay?.entered.add(key);
      return true;
    },
    leave(run, key) {
      if (runs.get(run)?.entered.delete(key)) wake();
    },
  };
}
