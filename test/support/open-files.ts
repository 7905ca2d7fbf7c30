/** Which files this process has open. */
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

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
