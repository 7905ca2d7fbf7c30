/** The command line as it is used: a CSV file, a configuration, a process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Synced {
  /** When the process was started, and when it had ended; milliseconds since the epoch. */
  beganMs: number;
  endedMs: number;
  /** Enrolments that left, 429s included. */
  sent: number;
  refused: number;
}

/** Enrols so many people, whom the platform at `url` does not know, in one channel. */
export async function syncFirst(url: string, people: number): Promise<Synced> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-rate-'));
  try {
    const rows = Array.from({ length: people }, (_, at) => `${at},person${at}@example.com,yes\n`);
    await writeFile(join(folder, 'people.csv'), `id,email,newsletter\n${rows.join('')}`);
    // Nobody is writing it any more.
    await utimes(join(folder, 'people.csv'), 1, 1);
    await writeFile(join(folder, 'mirror.yaml'), configuration(url));
    const beganMs = Date.now();
    const summary = await sync(join(folder, 'mirror.yaml'));
    const endedMs = Date.now();
    const { requests } = summary;
    return {
      beganMs,
      endedMs,
      sent: requests.byRoute['contacts.enrol'] ?? 0,
      refused: requests.rateLimited,
    };
  } finally {
    await rm(folder, { recursive: true });
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

interface Printed {
  requests: { byRoute: Record<string, number>; rateLimited: number };
}

async function sync(config: string): Promise<Printed> {
  const launcher = join(import.meta.dirname, '../../bin/crm-mirror.mjs');
  const child = spawn(process.execPath, [launcher, 'sync', '-c', config, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`sync ended with ${code}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}
