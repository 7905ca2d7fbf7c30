/** An earlier version of the program, unpacked from the history of this folder. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const root = join(import.meta.dirname, '../../..');

/** Whether the history has the commit. A shallow clone has not. */
export function isKnown(commit: string): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Returns the path of the program as of the commit, with the dependencies of today. */
export function unpackVersion(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-earlier-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const archive = execFileSync('git', ['archive', commit, 'bin', 'src', 'package.json'], {
    cwd: root,
    maxBuffer: 100_000_000,
  });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return join(folder, 'bin/crm-mirror.mjs');
}
