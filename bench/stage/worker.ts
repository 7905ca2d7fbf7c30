/** A worker as a process of its own, as people start it, with a server. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../test/support/waiting.ts';

export interface Working {
  child: ChildProcess;
  /** Of its server. */
  url: string;
  /** What it said on stderr, so far. */
  said(): string;
}

/** Writes the configuration of a mirror named `soak` into the folder. */
export async function configure(
  folder: string,
  lines: object,
): Promise<{ file: string; url: string }> {
  const port = await freePort();
  const file = join(folder, 'mirror.yaml');
  const server = { host: '127.0.0.1', port };
  // JSON is YAML.
  writeFileSync(
    file,
    JSON.stringify({ mirror: 'soak', snapshot: './soak.sqlite', server, ...lines }),
  );
  return { file, url: `http://127.0.0.1:${port}` };
}

export const program = join(import.meta.dirname, '../../bin/crm-mirror.mjs');

/** Begins it, and waits until it serves. */
export async function work({ file, url }: { file: string; url: string }): Promise<Working> {
  const child = spawn(process.execPath, [program, 'worker', '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let err = '';
  child.stderr.on('data', (chunk: Buffer) => void (err = (err + chunk.toString()).slice(-100_000)));
  while (!err.includes('worker serves')) {
    if (child.exitCode !== null) throw new Error(`the worker ended: ${err}`);
    await pause(50);
  }
  return { child, url, said: () => err };
}

/** Kills or ends it; its exit code. */
export async function end({ child }: Working, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  child.kill(signal);
  const [code] = await once(child, 'exit');
  return code;
}

/** The sums of its metrics, by name, labels left out; undefined while it does not answer. */
export async function metricsOf(url: string): Promise<Map<string, number> | undefined> {
  try {
    const text = await (await fetch(`${url}/metrics`)).text();
    const sums = new Map<string, number>();
    for (const [, name = '', value] of text.matchAll(/^(\w+)(?:\{.*\})? (\S+)$/gm)) {
      sums.set(name, (sums.get(name) ?? 0) + Number(value));
    }
    return sums;
  } catch {
    return undefined;
  }
}
