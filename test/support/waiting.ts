import { onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { createVirtualClock, type VirtualClock } from '../../src/trials/rehearsal/virtual-clock.ts';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Waits for facts. Only a test that hangs for good meets the limit, on a busy machine too.

/** Until `check` throws no more. */
export function untilHolds<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 280_000, interval: 10 });
}

// The virtual clock of rehearsals, from the same time in every test.

export type { VirtualClock };

/** A clock that stands still until told otherwise. */
export function virtualClock(startMs = Date.UTC(2026, 0, 1)): VirtualClock {
  return createVirtualClock({ startMs, pause: async (ms) => systemClock.sleep(ms) });
}

/** A folder that is gone when the test has finished. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * A port of this machine that nobody listens on. The system gives none of these to whoever asks for
 * any port, as other tests do meanwhile.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch {
      continue;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}

// Which files this process has open.

/** The open files whose path begins with this one. None where the system does not show them. */
export function openFiles(path: string): string[] {
  const shown = '/proc/self/fd';
  if (!existsSync(shown)) return [];
  const targets = readdirSync(shown).map((fd) => {
    try {
      return readlinkSync(join(shown, fd));
    } catch {
      return '';
    }
  });
  return targets.filter((target) => target.startsWith(path)).toSorted();
}
