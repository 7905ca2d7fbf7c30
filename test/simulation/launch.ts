/** `npm run simulate` as a process. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs it with these arguments; `reader` may leave. */
export function launch(
  args: readonly string[],
  reader?: (stdout: Readable) => void,
): Promise<Ended> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), ...args]);
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => void (said.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => void (said.stderr += chunk.toString()));
  reader?.(child.stdout);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, ...said }));
  });
}

/** Plays many seeds, and returns the lines of their table; the error tells of a seed that fails. */
export async function playSeeds(
  kind: '' | '--undo' | '--canary' | '--restore',
  { seeds, from }: { seeds: number; from: number },
): Promise<string[]> {
  const named = kind === '' ? [] : [kind];
  const { code, stdout } = await launch([...named, '--seeds', `${seeds}`, '--from', `${from}`]);
  if (code !== 0) throw new Error(stdout.slice(0, 20_000));
  return stdout.split('\n');
}
