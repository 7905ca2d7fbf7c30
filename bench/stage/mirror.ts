/** The command line as it is used: a CSV file, a configuration, a process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import type { Watched } from './watch.ts';

export interface Folder {
  /** Of the people, of the snapshot. */
  csv: string;
  snapshot: string;
  config: string;
  remove(): Promise<void>;
}

/** An export of so many people, all opted in, and a configuration that mirrors them to `url`. */
export async function folderOf(url: string, people: number): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'bench-'));
  const at = (name: string): string => join(path, name);
  const csv = at('people.csv');
  await pipeline(Readable.from(rows(people)), createWriteStream(csv));
  // Nobody is writing it any more.
  await utimes(csv, 1, 1);
  await writeFile(at('mirror.yaml'), configuration(url));
  const remove = async (): Promise<void> => rm(path, { recursive: true });
  return { csv, snapshot: at('bench.sqlite'), config: at('mirror.yaml'), remove };
}

/** In no order that would make anything easier. */
export function* rows(people: number): Generator<string> {
  yield 'id,email,name,archived,newsletter\n';
  for (let nth = 0; nth < people; nth += 1) {
    const at = (nth * 7919) % people;
    yield `${at},person${at}@example.com,Person No ${at},false,yes\n`;
  }
}

function configuration(url: string): string {
  return `mirror: bench
snapshot: ./bench.sqlite
platform: { url: '${url}', apiKey: key_bench, reserve: 0 }
contacts:
  source: { type: csv, path: ./people.csv }
  id: id
  email: email
  channels:
    - { id: ch_news, name: Newsletter, subscription: newsletter }
`;
}

export interface Ran extends Watched {
  /** The whole process, in milliseconds since the epoch. */
  beganMs: number;
  endedMs: number;
  summary: {
    ms: number;
    contacts: { desired: number; observed: number; applied: Record<string, number> };
    requests: { total: number; byRoute: Record<string, number>; rateLimited: number };
  };
}

const root = join(import.meta.dirname, '../..');
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');

/** As the image runs it; and the watch is compiled once, as the launcher has it with the rest. */
export const environment = {
  NODE_OPTIONS: /^ENV NODE_OPTIONS=(.+)$/m.exec(dockerfile)?.[1],
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/crm-mirror'),
};

/** `crm-mirror sync`, with these options. Throws unless it ends with 0. */
export async function sync(folder: Folder, ...options: string[]): Promise<Ran> {
  const { printed, ...ran } = await called(folder, 'sync', '--json', ...options);
  return { ...ran, summary: JSON.parse(printed) };
}

/** A command with these options, and what it prints. Throws unless it ends with 0. */
export async function called(
  { config }: Folder,
  name: string,
  ...options: string[]
): Promise<Omit<Ran, 'summary'> & { printed: string }> {
  const launcher = join(root, 'bin/crm-mirror.mjs');
  const watch = ['--import', join(import.meta.dirname, 'watch.ts')];
  const command = [...watch, launcher, name, '-c', config, ...options];
  const beganMs = Date.now();
  const child = spawn(process.execPath, command, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  });
  const watcher = child.stdio[3];
  if (!(watcher instanceof Readable && child.stdout)) throw new Error('nobody watches');
  const [printed, watched, [code]] = await Promise.all([
    text(child.stdout),
    text(watcher),
    once(child, 'close'),
  ]);
  const endedMs = Date.now();
  if (code !== 0) throw new Error(`${name} ended with ${code}: ${printed}`);
  const seen: Watched = JSON.parse(watched);
  return { ...seen, beganMs, endedMs, printed };
}
