/**
 * Whom a guard has held, as anybody could know who saw what was shown: they stay held until that is
 * approved, or a full run wants nothing of the kind of them. Told apart from how the engine
 * remembers it.
 */
import type { GuardClass } from '../../src/model/change.ts';
import type { Shown } from './approvals.ts';

export interface Standing {
  /** A run has ended, and this is what is held now; answers whether anybody was held before. */
  ended(run: { mode: 'full' | 'fast'; killed: boolean }, held: readonly Shown[]): boolean;
  /** Whether anybody is held. */
  some(guard: GuardClass): boolean;
  /** Whether all of these addresses are. */
  holds(guard: GuardClass, keys: readonly string[]): boolean;
  /** Somebody is forgotten, or allowed again. */
  drop(key: string): void;
  /** The snapshot is gone, and with it what was held. */
  lose(): void;
}

export function createStanding(): Standing {
  const standing = { delete: new Set<string>(), opt_in: new Set<string>() };
  return {
    ended({ mode, killed }, held) {
      const isBefore = held.some((one) => standing[guardOf(one)].has(one.key));
      for (const guard of ['delete', 'opt_in'] as const) {
        const now = new Set(held.filter((one) => guardOf(one) === guard).map(({ key }) => key));
        const before = standing[guard];
        // Of a run that was killed nobody knows whether it came to hold them.
        const stay = [...before].filter((key) => mode === 'fast' || now.has(key));
        standing[guard] = new Set(killed ? stay : [...stay, ...now]);
      }
      return isBefore;
    },
    some: (guard) => standing[guard].size > 0,
    holds: (guard, keys) => keys.every((key) => standing[guard].has(key)),
    drop(key) {
      for (const held of Object.values(standing)) held.delete(key);
    },
    lose() {
      for (const held of Object.values(standing)) held.clear();
    },
  };
}

function guardOf({ op }: Shown): GuardClass {
  return op === 'delete' || op === 'opt_out' ? 'delete' : 'opt_in';
}
