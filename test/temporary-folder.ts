/**
 * Puts the temporary files of all tests into memory, where there is plenty: thousands of small
 * databases are written, each with all the care that a disk needs.
 */
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const memory = '/dev/shm';
const plentyBytes = 4 * 1024 ** 3;

let folder: string | undefined;

export function setup(): void {
  if (process.env['TMPDIR'] !== undefined || freeIn(memory) < plentyBytes) return;
  folder = mkdtempSync(`${memory}/crm-mirror-test-`);
  // Databases that tests start run as users of their own.
  chmodSync(folder, 0o755);
  // Programs that were fetched stay where they are found again.
  process.env['TEST_PROGRAMS'] ??= tmpdir();
  process.env['TMPDIR'] = folder;
}

export function teardown(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
}

function freeIn(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
