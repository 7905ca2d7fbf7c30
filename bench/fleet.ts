/**
 * `npm run bench fleet [mirrors] [people] [files | workers]`: a worker of a folder of mirrors, or
 * of the same files named one by one, or several workers of the folder, as processes of their own:
 * their connections to Redis, the commands while they are idle, their memory, and how late runs are
 * that are due at once. The platforms run here.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createEmulator, type Emulator } from '../src/emulator/emulator.ts';
import { seeded } from '../src/emulator/shared/seeded-random.ts';
import { serve, type Served } from '../src/emulator/http-listener.ts';
import { ownRedis } from '../test/support/redis.ts';
import { freePort } from '../test/support/waiting.ts';
import * as costs from './stage/fleet.ts';
import { program } from './stage/worker.ts';

const mirrors = Number(process.argv[2] ?? 100);
const people = Number(process.argv[3] ?? 200);
const idleMs = 20_000;
const never = '0 0 1 1 *';

const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-fleet-'));
const redis = await ownRedis();
const asking = new Redis(redis.url);
const emulators = new Map<string, Emulator>();
const platforms: Served[] = [];

/** Writes people.csv, as an export that was finished a while ago. */
function exported(name: string, subscribed: string): void {
  const rows = Array.from({ length: people }, (_, at) => `${at},p${at}@example.com,${subscribed}`);
  const file = join(folder, `${name}.csv`);
  writeFileSync(file, `id,email,news\n${rows.join('\n')}\n`);
  const before = new Date(Date.now() - 60_000);
  utimesSync(file, before, before);
}

function defaults(schedule: object): void {
  const server = { port: '${PORT}' };
  const lines = { redis: redis.url, server, schedule, requests: { log: 'off' } };
  writeFileSync(join(folder, 'defaults.yaml'), JSON.stringify(lines));
}

for (let at = 0; at < mirrors; at += 1) {
  const mirror = `m${at}`;
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random: seeded(1),
    apiKey: 'bench',
    channels: [{ id: 'ch_news', name: 'Newsletter' }],
    limits: ['*=1000000/1'],
  });
  emulators.set(mirror, emulator);
  const platform = await serve(emulator, 0);
  platforms.push(platform);
  const { url } = platform;
  exported(mirror, 'yes');
  const contacts = {
    source: { type: 'csv', path: `${mirror}.csv` },
    id: 'id',
    email: 'email',
    channels: [{ id: 'ch_news', subscription: 'news' }],
  };
  const lines = { mirror, snapshot: `state/${mirror}.sqlite`, contacts };
  const file = join(folder, `${mirror}.yaml`);
  writeFileSync(file, JSON.stringify({ ...lines, platform: { url, apiKey: 'bench' } }));
}
defaults({ full: never });

const files = [...emulators.keys()].map((mirror) => join(folder, `${mirror}.yaml`));
const named = process.argv[4] === 'files' ? ['-c', ...files] : ['--mirrors', folder];
let said = '';
const workers = await Promise.all(
  Array.from({ length: Number(process.argv[4]) || 1 }, async () => {
    const env = { ...process.env, PORT: String(await freePort()) };
    const args = [program, 'worker', ...named];
    const worker = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    worker.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()));
    return worker;
  }),
);
const hasEnded = () => workers.some(({ exitCode }) => exitCode !== null);
const count = (pattern: RegExp): number => said.match(pattern)?.length ?? 0;

async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<number> {
  const began = performance.now();
  while (!(await holds())) {
    if (hasEnded()) throw new Error(`a worker ended: ${said.slice(-2_000)}`);
    if (performance.now() - began > 600_000) {
      throw new Error(`${what} took too long: ${said.slice(-2_000)}`);
    }
    await pause(100);
  }
  return (performance.now() - began) / 1_000;
}

const memory = (): string => workers.map(({ pid }) => `${costs.memoryOf(pid)} MB`).join(', ');

async function areShared(): Promise<boolean> {
  const sizes = await costs.sharesOf(asking);
  return sizes.length === workers.length && sizes.reduce((sum, size) => sum + size, 0) === mirrors;
}

const opened = await until(
  async () => count(/worker serves/g) >= mirrors && (workers.length === 1 || (await areShared())),
  'opening',
);
const openMemory = memory();
await pause(15_000);
const rates = costs.ratesIn(await costs.ratesOf(asking, idleMs));
console.table({
  mirrors,
  workers: workers.length,
  'mirrors of each': (await costs.sharesOf(asking)).join(', '),
  'opened in': `${opened.toFixed(1)} s`,
  'connections to Redis': await costs.connectionsOf(asking),
  'commands when idle': rates.sum,
  'of which': rates.parts,
  'memory, open': openMemory,
  'memory, idle': memory(),
});

// All are due in the same minute.
const due = new Date(Date.now() + 120_000);
due.setSeconds(0, 0);
const servedBefore = count(/worker serves/g);
defaults({ full: `${due.getUTCMinutes()} * * * *` });
await until(() => count(/worker serves/g) >= servedBefore + mirrors, 'opening anew');
await until(() => count(/"msg":"run done"/g) === mirrors, 'running');
const begun = [...said.matchAll(/"run":"(\d{8}T\d{6})Z/g)].map(([, at = '']) =>
  Date.parse(at.replace(/(....)(..)(..)T(..)(..)(..)/, '$1-$2-$3T$4:$5:$6Z')),
);
const enrolled = [...emulators.values()].filter((one) => one.world.contact('p0@example.com'));
console.table({
  'runs due at once': begun.length,
  'last one begun after': `${(Math.max(...begun) - due.getTime()) / 1_000} s`,
  'all done after': `${((Date.now() - due.getTime()) / 1_000).toFixed(1)} s`,
  'mirrors loaded': enrolled.length,
  'memory after': memory(),
});
await Promise.all(
  workers.map(async (worker) => {
    worker.kill('SIGTERM');
    await once(worker, 'exit');
  }),
);
asking.disconnect();
await redis.close();
await Promise.all(platforms.map(async ({ close }) => close()));
rmSync(folder, { recursive: true, force: true });
