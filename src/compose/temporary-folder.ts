/** Folders for temporary copies that hold addresses. */
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a folder that only this user can read. Its name begins with `crm-mirror-`, `purpose`, and
 * the id of this process. Removes the folders of the same purpose whose process was killed before
 * it could do that.
 */
export function createTemporaryFolder(purpose: string): string {
  const prefix = `crm-mirror-${purpose}-`;
  const named = new RegExp(`^${prefix}(\\d+)-`);
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = named.exec(name) ?? [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    try {
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
    } catch {
      // Another user's: their next command removes it.
    }
  }
  const folder = mkdtempSync(join(tmpdir(), `${prefix}${process.pid}-`));
  chmodSync(folder, 0o700);
  return folder;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}
