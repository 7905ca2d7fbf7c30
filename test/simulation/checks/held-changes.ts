/**
 * What a guard has held, as anybody could know who saw what was shown: it stays held until that is
 * approved, or a full run wants nothing of the kind any more; stated opt-outs until their time is
 * over, too. Told apart from how the engine remembers it.
 */
import { byGuard, guardNames, type GuardClass } from '../../../src/domain/guard-classes.ts';
import type { Shown } from './approvals.ts';

/** For how long a stated opt-out is held, at most. */
export const holdForMs = 72 * 3_600_000;
/** By which a clock may jump within a run, and what a run takes. */
const doubtMs = 4 * 3_600_000;

/** By the clock that never jumps, and by the clock of the mirror. */
interface Moment {
  monotonic: number;
  ours: number;
}

export interface StatedHold {
  key: string;
  part: string;
}

interface StatedRun {
  began: Moment;
  ended: Moment;
  /** Whether a record or a contact has had both addresses: its hold goes on under the new one. */
  isSame(key: string, other: string): boolean;
}

interface EndedRun {
  mode: 'full' | 'fast';
  killed: boolean;
  /** Whom it has changed under an approval. */
  approved: ReadonlyMap<GuardClass, readonly string[]>;
}

export interface Standing {
  /** A run has ended, and this is what is held now; answers whether anybody was held before. */
  ended(run: EndedRun, held: readonly Shown[]): boolean;
  /** Likewise of stated opt-outs. */
  stated(held: readonly StatedHold[], run: StatedRun): void;
  /** Whether anybody is held. */
  some(guard: GuardClass): boolean;
  /** Whether all of these addresses are. */
  holds(guard: GuardClass, keys: readonly string[]): boolean;
  /** Whether this opt-out is held, and for how long: maybe over, by some clock; or surely over. */
  hold(of: StatedHold, now: Moment): 'none' | 'held' | 'maybe over' | 'over';
  /** The channels of an address in which an opt-out is held. */
  partsOf(key: string): string[];
  /** Somebody is forgotten. Who is allowed again stays held by what the CRM states. */
  drop(key: string): void;
  /** The snapshot is gone, and with it what was held. */
  lose(): void;
}

export function createStanding(): Standing {
  const standing = byGuard(() => new Set<string>());
  const stated = new Map<string, StatedHold & { since: Moment; until: Moment }>();
  const nameOf = ({ key, part }: StatedHold): string => `${key} ${part}`;
  return {
    ended({ mode, killed, approved }, held) {
      // What an undo would do waits for no other run.
      const others = held.filter(({ guard, undoes }) => guard !== 'opt_out' && !undoes);
      const isBefore = others.some((one) => standing[one.guard].has(one.key));
      for (const guard of guardNames) {
        const now = new Set(others.filter((one) => one.guard === guard).map(({ key }) => key));
        const before = standing[guard];
        // Of a run that was killed nobody knows whether it came to hold them.
        const made = approved.get(guard) ?? [];
        const stay = [...before].filter(
          (key) => now.has(key) || (mode === 'fast' && !made.includes(key)),
        );
        standing[guard] = new Set(killed ? stay : [...stay, ...now]);
      }
      return isBefore;
    },
    stated(held, { began, ended, isSame }) {
      const now = new Set(held.map(nameOf));
      const before = [...stated.values()];
      for (const name of stated.keys()) if (!now.has(name)) stated.delete(name);
      for (const one of held) {
        const known = stated.get(nameOf(one));
        // Clocks that were put back since count from there.
        const ours = Math.min(known?.until.ours ?? ended.ours, ended.ours);
        const until = { monotonic: known?.until.monotonic ?? ended.monotonic, ours };
        const former = before.find(
          ({ key, part }) => part === one.part && key !== one.key && isSame(key, one.key),
        );
        const since = (known ?? former)?.since ?? began;
        stated.set(nameOf(one), { ...one, since, until });
      }
    },
    some: (guard) => standing[guard].size > 0,
    holds: (guard, keys) => keys.every((key) => standing[guard].has(key)),
    hold(of, now) {
      const found = stated.get(nameOf(of));
      if (!found) return 'none';
      const { since, until } = found;
      const most = Math.max(
        now.monotonic - since.monotonic,
        now.ours - Math.min(since.ours, until.ours),
      );
      const least = Math.min(now.monotonic - until.monotonic, now.ours - until.ours);
      if (least >= holdForMs + doubtMs) return 'over';
      return most >= holdForMs - doubtMs ? 'maybe over' : 'held';
    },
    partsOf: (key) => [...stated.values()].filter((one) => one.key === key).map(({ part }) => part),
    drop(key) {
      for (const held of Object.values(standing)) held.delete(key);
      for (const [name, one] of stated) if (one.key === key) stated.delete(name);
    },
    lose() {
      for (const held of Object.values(standing)) held.clear();
      stated.clear();
    },
  };
}
