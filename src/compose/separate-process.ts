/** Runs a command line in a process of its own, for work that would keep this one busy. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Shell } from './process-shell.ts';

const program = fileURLToPath(new URL('../../bin/crm-mirror.mjs', import.meta.url));
const mostChars = 1024 * 1024;

export interface CommandAnswer {
  /** The exit code (docs/commands.md). */
  code: number;
  out: string;
  err: string;
}

/** A progress line, as the process sends it (real-shell.ts). */
const drawn = z.object({ progress: z.string() });

/**
 * Runs a command line and returns its answer, with the exit code 1 if the process has none. A
 * process that prints more than a megabyte is stopped. `heard` receives each progress line and each
 * note.
 * When `stop` is aborted, the process is asked to stop; it stops by itself if this one dies.
 */
export async function runSeparately(
  argv: readonly string[],
  { env, stop }: Pick<Shell, 'env' | 'stop'>,
  heard: (line: string) => void = () => undefined,
): Promise<CommandAnswer> {
  const child = spawn(process.execPath, [program, ...argv], {
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error('both streams are pipes');
  const end = (): void => void child.kill();
  stop.addEventListener('abort', end);
  if (stop.aborted) end();
  child.on('message', (message) => {
    const { data } = drawn.safeParse(message);
    if (data) heard(data.progress);
  });
  createInterface(stderr).on('line', heard);
  try {
    const [out, err, code] = await Promise.all([
      textOf(stdout, end),
      textOf(stderr, end),
      once(child, 'close').then(([status]) => (typeof status === 'number' ? status : 1)),
    ]);
    return { code, out, err };
  } catch (error) {
    // The system could not start the process.
    if (!(error instanceof Error)) throw error;
    return { code: 1, out: '', err: error.message };
  } finally {
    stop.removeEventListener('abort', end);
  }
}

/** Returns what a stream holds; one that is too long is cut, and `end` is called. */
async function textOf(stream: Readable, end: () => void): Promise<string> {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    if (text.length + chunk.length > mostChars) end();
    else text += chunk;
  });
  await once(stream, 'end');
  return text.trimEnd();
}
