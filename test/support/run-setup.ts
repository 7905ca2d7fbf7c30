import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

// Puts the temporary files of all tests into memory, where there is plenty: thousands of small
// databases are written, each with all the care that a disk needs.

const memory = '/dev/shm';
const prefix = 'crm-mirror-test-';
const dayMs = 86_400_000;
const plentyBytes = 4 * 1024 ** 3;

let folder: string | undefined;

export function setup(): void {
  keepCompiledCode();
  if (process.env['TMPDIR'] !== undefined || freeIn(memory) < plentyBytes) return;
  removeOld();
  folder = mkdtempSync(join(memory, prefix));
  // Databases that tests start run as users of their own.
  chmodSync(folder, 0o755);
  // Programs that were fetched stay where they are found again.
  process.env['TEST_PROGRAMS'] ??= tmpdir();
  process.env['TMPDIR'] = folder;
}

/** Threads and processes that tests start find the modules compiled: each loads hundreds. */
function keepCompiledCode(): void {
  const cache = join(import.meta.dirname, '../../node_modules/.cache/crm-mirror');
  process.env['NODE_COMPILE_CACHE'] ??= cache;
}

export function teardown(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
}

/** Removes the folders of runs that were killed. */
function removeOld(): void {
  for (const name of readdirSync(memory).filter((one) => one.startsWith(prefix))) {
    const path = join(memory, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > dayMs) rmSync(path, { recursive: true, force: true });
  }
}

function freeIn(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

// Prints the ten slowest files at the end of a run of many, and what plays the same draw again.

const shown = 10;

export const slowestFiles: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]) {
    if (modules.length <= shown) return;
    const timed = modules.map((module) => ({
      name: module.relativeModuleId,
      seconds: module.diagnostic().duration / 1000,
    }));
    const slowest = timed.toSorted((a, b) => b.seconds - a.seconds).slice(0, shown);
    const lines = slowest.map(
      ({ name, seconds }) => `${seconds.toFixed(1).padStart(8)} s  ${name}`,
    );
    const again = `SEED_BASE=${process.env['SEED_BASE']} plays the same draw again.`;
    process.stdout.write(`\nThe slowest files:\n${lines.join('\n')}\n${again}\n`);
  },
};
