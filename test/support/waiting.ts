import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { createVirtualClock, type VirtualClock } from '../../src/trials/rehearsal/virtual-clock.ts';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Waits for facts. Only a test that hangs for good meets the limit, on a busy machine too.

const LONGEST_MS = 280_000;
/** Short beside what lasts only a moment and is waited for. */
const LONGEST_PAUSE_MS = 40;

/** Until `check` throws no more, which is tried at once, then after ever longer pauses. */
export async function untilHolds<T>(check: () => T | Promise<T>): Promise<T> {
  const end = performance.now() + LONGEST_MS;
  for (let waitMs = 5; ; waitMs = Math.min(waitMs * 1.5, LONGEST_PAUSE_MS)) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await systemClock.sleep(waitMs);
  }
}

// The virtual clock of rehearsals, from the same time in every test.

export type { VirtualClock };

/** A clock that stands still until told otherwise. */
export function virtualClock(startMs = Date.UTC(2026, 0, 1)): VirtualClock {
  return createVirtualClock(startMs, async (ms) => systemClock.sleep(ms));
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
