/**
 * `npm run soak -- [minutes]` (20): a worker that is never left in peace. Runs every two seconds,
 * events all the time and some that are lost, a platform that fails now and then, people who leave,
 * a Redis that is killed or stands still, a worker that is killed. Said in the end: whether both
 * sides are equal, nobody who left was brought back, and memory and open handles stayed flat.
 * Whose opt-out got no answer stays out, as it may have been her own, and is told as a conflict.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { z } from 'zod';
import { createEmulator, type Emulator } from '../src/emulator/emulator.ts';
import { seeded } from '../src/emulator/shared/seeded-random.ts';
import { serve } from '../src/emulator/http-listener.ts';
import { ownRedis, type TestRedis } from '../test/support/redis.ts';
import { openCrm, unguarded, type Crm } from './stage/crm.ts';
import { configure, end, metricsOf, program, work, type Working } from './stage/worker.ts';

const execute = promisify(execFile);
const explained = z.object({ channels: z.array(z.object({ decision: z.string() })) });
const failed = z.object({ stdout: z.string(), stderr: z.string() });
const status = z.object({ held: z.array(z.object({ plan: z.string() })) });
const people = 300;
const faults = ['500=0.01', '429=0.01', 'reset-before=0.005', 'reset-after=0.005', 'slow=0.005'];
const random = seeded(7);
const pick = (): string => String(1 + Math.floor(random() * people));

interface Soak {
  crm: Crm;
  emulator: Emulator;
  platform: Awaited<ReturnType<typeof serve>>;
  redis: TestRedis;
  files: { file: string; url: string };
  worker: Working;
  /** Who left on the platform: nobody brings them back. */
  left: Set<string>;
  told: number;
  refused: number;
  lost: number;
  redisRestarts: number;
  kills: number;
}

const minutes = Number(process.argv[2] ?? 20);
const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-soak-'));
const soak = await begin();
const samples: { at: number; rss: number; fds: number; loop: number }[] = [];
const until = performance.now() + minutes * 60_000;
const turns = { beat: 0 };
while (performance.now() < until) {
  turns.beat += 1;
  await turn(soak, turns.beat);
  if (turns.beat % 40 === 0) await sample();
  await pause(250);
}
const settled = await settle(soak);
console.table(samples);
const conflicts: string[] = [];
for (const email of settled.wrong) if (await isConflict(soak, email)) conflicts.push(email);
const wrong = settled.wrong.filter((email) => !conflicts.includes(email));
print(settled.seconds);
for (const email of wrong.slice(0, 3)) console.log(await called(soak, 'explain', email));
await end(soak.worker, 'SIGTERM');
await soak.redis.close();
soak.crm.close();
await soak.platform.close();
rmSync(folder, { recursive: true });
process.exitCode = wrong.length === 0 ? 0 : 1;

async function begin(): Promise<Soak> {
  const crm = await openCrm(people);
  const redis = await ownRedis();
  const emulator = createEmulator({
    clock: { now: Date.now, monotonic: () => performance.now() },
    random,
    apiKey: 'soak',
    channels: [{ id: 'ch_news', name: 'Newsletter' }],
    limits: ['*=400/2'],
    faults,
  });
  const platform = await serve(emulator, 0);
  const { url } = platform;
  const files = await configure(folder, {
    platform: { url, apiKey: 'soak', timeoutMs: 3_000 },
    contacts: crm.contacts,
    guards: unguarded,
    schedule: { fast: '*/2 * * * * *', full: '*/30 * * * * *', sentinel: '*/10 * * * * *' },
    redis: redis.url,
  });
  const worker = await work(files);
  const none = { told: 0, refused: 0, lost: 0, redisRestarts: 0, kills: 0 };
  return { crm, emulator, platform, redis, files, worker, left: new Set(), ...none };
}

/** A quarter of a second of a bad day. */
async function turn(soak: Soak, beat: number): Promise<void> {
  const ids = Array.from({ length: 1 + Math.floor(random() * 4) }, pick);
  for (const id of ids) {
    const person = soak.crm.people.get(id);
    if (person) person.news = person.news === 'yes' ? 'no' : 'yes';
  }
  if (beat % 10 === 0) soak.lost += 1;
  else await tell(soak, ids);
  if (beat % 100 === 0) leave(soak, `p${pick()}@example.com`);
  if (beat % 480 === 0) await restartRedis(soak);
  if (beat % 720 === 360) {
    soak.redis.pause();
    await pause(3_000);
    soak.redis.resume();
  }
  // Not in the second half, in which the memory of one worker is seen.
  if (beat % 960 === 700 && performance.now() < until - minutes * 30_000) {
    await end(soak.worker, 'SIGKILL');
    soak.worker = await work(soak.files);
    soak.kills += 1;
  }
}

async function tell(soak: Soak, ids: readonly string[]): Promise<void> {
  const status = await soak.crm.tell(soak.worker.url, ids);
  if (status === 202) soak.told += 1;
  else soak.refused += 1;
}

function leave({ emulator, left }: Soak, email: string): void {
  if (!emulator.world.contact(email)) return;
  emulator.dashboard.unsubscribe(email);
  left.add(email);
}

async function restartRedis(soak: Soak): Promise<void> {
  await soak.redis.kill();
  await pause(2_000);
  await soak.redis.start();
  soak.redisRestarts += 1;
}

async function sample(): Promise<void> {
  const found = await metricsOf(soak.worker.url);
  if (!found) return;
  const of = (name: string): number => found.get(`crm_mirror_${name}`) ?? Number.NaN;
  samples.push({
    at: Math.round((performance.now() - (until - minutes * 60_000)) / 1000),
    rss: Math.round(of('process_resident_memory_bytes') / 1e6),
    fds: of('process_open_fds'),
    loop: Math.round(of('nodejs_eventloop_lag_max_seconds') * 1000),
  });
}

/**
 * In peace, for as long as it takes, but a minute at most; what is not equal then is wrong. After a
 * pause of Redis, people who left and came back in great number wait for approval: they get it.
 */
async function settle(soak: Soak): Promise<{ wrong: string[]; seconds: number }> {
  const began = performance.now();
  for (;;) {
    const { held } = status.parse(JSON.parse(await called(soak, 'status', '--json')));
    for (const { plan } of held) await called(soak, 'approve', plan);
    const wrong = differences(soak);
    const seconds = Math.round((performance.now() - began) / 1000);
    if (wrong.length === 0 || seconds >= 60) return { wrong, seconds };
    await pause(1_000);
  }
}

/** Who is not as the CRM wants, or was brought back. */
function differences({ crm, emulator, left }: Soak): string[] {
  return [...crm.people.values()].flatMap(({ email, news }) => {
    const shown = emulator.world.contact(email);
    const is = shown?.channels.find(({ id }) => id === 'ch_news')?.subscription;
    const isIn = is === 'opt_in';
    const isRight = left.has(email) ? shown?.status === 'unsubscribed' : isIn === (news === 'yes');
    return isRight ? [] : [email];
  });
}

/** What the mirror itself says of somebody, who asks the CRM and the platform of this process. */
async function isConflict(on: Soak, email: string): Promise<boolean> {
  const { channels } = explained.parse(JSON.parse(await called(on, 'explain', email, '--json')));
  return channels.some(({ decision }) => decision === 'conflict');
}

/** What a command prints, whatever its exit code. */
async function called({ files }: Soak, ...words: string[]): Promise<string> {
  const argv = [program, ...words, '-c', files.file];
  const ended = execute(process.execPath, argv);
  const { stdout, stderr } = await ended.catch((error: unknown) => failed.parse(error));
  if (stdout === '') throw new Error(`${words.join(' ')}: ${stderr}`);
  return stdout;
}

function print(seconds: number): void {
  const { told: events, refused, lost, redisRestarts, kills, left } = soak;
  const counts = { minutes, events, refused, lost, redisRestarts, kills, left: left.size };
  console.table({ ...counts, conflicts: conflicts.length, 'seconds to settle': seconds });
  for (const email of wrong) console.log(`${email} is not as the CRM wants, or was brought back`);
  if (wrong.length === 0) console.log('Both sides are equal; nobody who left was brought back.');
}
