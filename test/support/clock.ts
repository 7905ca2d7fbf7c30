/** The virtual clock of rehearsals, from the same time in every test. */
import { systemClock } from '../../src/http/system-clock.ts';
import { createVirtualClock, type VirtualClock } from '../../src/rehearsal/virtual-clock.ts';
export type { VirtualClock };

/** A clock that stands still until told otherwise. */
export function virtualClock(startMs = Date.UTC(2026, 0, 1)): VirtualClock {
  return createVirtualClock({ startMs, pause: async (ms) => systemClock.sleep(ms) });
}
