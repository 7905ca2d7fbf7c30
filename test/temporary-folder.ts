/**
 * Puts the temporary files of all tests into memory, where there is plenty: thousands of small
 * databases are written, each with all the care that a disk needs.
 */
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';

const memory = '/dev/shm';
const plentyBytes = 4 * 1024 ** 3;

export default function setup(): (() => void) | undefined {
  if (process.env['TMPDIR'] !== undefined || freeIn(memory) < plentyBytes) return undefined;
  const folder = mkdtempSync(`${memory}/crm-mirror-test-`);
  process.env['TMPDIR'] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}

function freeIn(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
