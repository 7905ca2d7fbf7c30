/**
 * Puts the temporary files of all tests into memory, where there is plenty: thousands of small
 * databases are written, each with all the care that a disk needs.
 */
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memory = '/dev/shm';
const prefix = 'crm-mirror-test-';
const dayMs = 86_400_000;
const plentyBytes = 4 * 1024 ** 3;

let folder: string | undefined;

export function setup(): void {
  if (process.env['TMPDIR'] !== undefined || freeIn(memory) < plentyBytes) return;
  removeOld();
  folder = mkdtempSync(join(memory, prefix));
  // Databases that tests start run as users of their own.
  chmodSync(folder, 0o755);
  // Programs that were fetched stay where they are found again.
  process.env['TEST_PROGRAMS'] ??= tmpdir();
  process.env['TMPDIR'] = folder;
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
