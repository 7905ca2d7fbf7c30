/** Runs a command line in a process of its own, for work that would keep this one busy. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Shell } from './process-shell.ts';

const program = fileURLToPath(new URL('../../../bin/crm-mirror.mjs', import.meta.url));
const mostBytes = 1024 * 1024;

/** Returns the exit code of a command line, and what it printed: results first, then notes. */
export async function runSeparately(
  argv: readonly string[],
  { env, stop }: Pick<Shell, 'env' | 'stop'>,
): Promise<{ code: number; lines: string[] }> {
  const { promise, resolve } = Promise.withResolvers<{ code: number; lines: string[] }>();
  const options = { env, signal: stop, maxBuffer: mostBytes };
  execFile(process.execPath, [program, ...argv], options, (error, out, err) => {
    const code = typeof error?.code === 'number' ? error.code : 1;
    resolve({ code: error ? code : 0, lines: [out, err].filter((text) => text !== '') });
  });
  return promise;
}
