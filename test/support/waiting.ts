/** Waits for facts. Only a test that hangs for good meets the limit, on a busy machine too. */
import { vi } from 'vitest';

/** Until `check` throws no more. */
export function untilHolds<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 280_000, interval: 10 });
}
