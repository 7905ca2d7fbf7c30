/**
 * `npm run bench agency [mirrors] [people] [workers] [minutes] [events] [spread]`: some workers of
 * a folder of mirrors, as processes of their own, while schedules are due every few minutes, events
 * come, and one mirror is loaded for the first time. All schedules are due in the same second, or
 * spread over the minutes: `npm run bench agency 500 200-5000 3 5 5 spread`. Measures what the idle
 * fleet costs, how late runs begin and events are applied, and what happens when one worker is
 * killed while runs are due; and counts that nothing is sent twice.
 *
 * CRMs and platforms live in this process (stage/agency.ts). One mirror of each size is copied.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import { Webhook } from 'standardwebhooks';
import { dueAfter, spread } from '../src/config/schema/cron-pattern.ts';
import { freePort } from '../test/support/waiting.ts';
import { ownRedis } from '../test/support/redis.ts';
import { type Customer, openAgency, secret } from './stage/agency.ts';
import { unguarded } from './stage/crm.ts';
import * as costs from './stage/fleet.ts';
import { environment } from './stage/mirror.ts';
import { program } from './stage/worker.ts';

const mirrors = Number(process.argv[2] ?? 60);
const [fewest = 200, most = fewest] = (process.argv[3] ?? '200-5000').split('-').map(Number);
const count = Number(process.argv[4] ?? 3);
const minutes = Number(process.argv[5] ?? 2);
const eventsPerSecond = Number(process.argv[6] ?? 5);
const isSpread = process.argv[7] === 'spread';
const newcomers = 20_000;
const sizes = 8;

const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-agency-'));
const redis = await ownRedis();
const asking = new Redis(redis.url);
const agency = await openAgency();
const webhook = new Webhook(secret);

const state = join(folder, 'state');
const snapshotOf = (name: string): string => join(state, `${name}.sqlite`);
const fileOf = (name: string): string => join(folder, `${name}.yaml`);
function configure(name: string): void {
  const lines = { mirror: name, snapshot: snapshotOf(name), ...agency.linesOf(name) };
  writeFileSync(fileOf(name), JSON.stringify(lines));
}

/** Loads the mirror by the command line. */
async function load(name: string): Promise<void> {
  const child = spawn(process.execPath, [program, 'sync', '--quiet', '-c', fileOf(name)]);
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${name}: ${said}`);
}

const names = Array.from({ length: mirrors }, (_, at) => `m${at}`);
const schedule = { fast: isSpread ? `H H/${minutes} * * * *` : `*/${minutes} * * * *` };
const patternOf = (mirror: string): string => spread(schedule.fast, { mirror, entry: 'fast' });
const shared = {
  redis: redis.url,
  server: { port: '${PORT}' },
  guards: unguarded,
  requests: { log: 'off' },
};
const defaults = (lines: object): void =>
  writeFileSync(join(folder, 'defaults.yaml'), JSON.stringify({ ...shared, ...lines }));
const sizeOf = (at: number): number =>
  Math.round(fewest * (most / fewest) ** ((at % sizes) / (sizes - 1)));

console.log(`staging ${mirrors} mirrors`);
for (const [at, name] of names.entries()) {
  agency.add({ name, people: sizeOf(at), isLoaded: true, limit: 1_000 });
  configure(name);
  mkdirSync(state, { recursive: true });
  // Without Redis, as it is not to know them yet.
  defaults({ redis: null, server: null });
  if (at < sizes) await load(name);
}
for (const [at, name] of names.entries()) {
  if (at < sizes) continue;
  for (const file of readdirSync(state).filter((one) => one.startsWith(`m${at % sizes}.`)))
    copyFileSync(join(state, file), join(state, file.replace(/^m\d+/, name)));
  const copy = new Database(snapshotOf(name));
  // It is the same account, but for its key.
  copy.prepare("delete from meta where name = 'platform-key'").run();
  copy.close();
}
defaults({ schedule });

let said = '';
const workers = await Promise.all(
  Array.from({ length: count }, async () => {
    const port = await freePort();
    const args = [program, 'worker', '--mirrors', folder];
    const env = { ...process.env, ...environment, PORT: String(port) };
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
    return { child, url: `http://127.0.0.1:${port}` };
  }),
);
const living = () => workers.filter(({ child }) => child.signalCode === null);
const memory = (which?: 'VmHWM'): string =>
  workers.map(({ child }) => costs.memoryOf(child.pid, which)).join(', ');

async function until(holds: () => boolean | Promise<boolean>, mostMs: number): Promise<boolean> {
  const end = Date.now() + mostMs;
  while (!(await holds())) {
    if (workers.some(({ child }) => child.exitCode !== null)) throw new Error(said.slice(-2_000));
    if (Date.now() > end) return false;
    await pause(100);
  }
  return true;
}

const began = Date.now();
const isServed = async (): Promise<boolean> => {
  const shares = await costs.sharesOf(asking);
  return shares.length === count && shares.reduce((sum, n) => sum + n, 0) === mirrors;
};
if (!(await until(isServed, 240_000))) throw new Error(`not all are served: ${said.slice(-2_000)}`);
const servedIn = (Date.now() - began) / 1_000;
console.log(`served after ${servedIn} s by ${(await costs.sharesOf(asking)).join(', ')}`);

const periodMs = minutes * 60_000;
/** When the next runs are due: all of them, or the first. */
const nextDue = (): number =>
  isSpread ? Date.now() + 15_000 : Math.ceil(Date.now() / periodMs) * periodMs;
/** Until all of them have begun that are due from then on. */
const roundMs = isSpread ? periodMs : 0;
/** What has to be sent once, and when: by customer and person. */
const expected: { customer: Customer; id: string; sinceMs: number; of: string }[] = [];
const used = new Map<string, number>();
/** A person of the customer about whom nothing has been sent. */
function fresh(customer: Customer): string {
  const id = used.get(customer.name) ?? 0;
  used.set(customer.name, id + 1);
  return String(id);
}
const first = ({ customer, id }: (typeof expected)[number]): number | undefined =>
  customer.writes.get(id)?.[0];
const isDone = (of: string) => expected.every((one) => one.of !== of || first(one) !== undefined);

/** Has one person of each mirror opt out, which the next run after this time finds. */
function change(fromMs: number, of: string): void {
  for (const name of names) {
    const customer = agency.customers.get(name);
    if (!customer) continue;
    const id = fresh(customer);
    customer.optOut(id);
    expected.push({ customer, id, sinceMs: dueAfter(patternOf(name), 'UTC', fromMs), of });
  }
}

/** Seconds, of the mean, of nearly all, and of the last one. */
function lateness(late: readonly number[]): string {
  const sorted = late.toSorted((a, b) => a - b);
  const share = (part: number): string =>
    ((sorted[Math.ceil(part * sorted.length) - 1] ?? Number.NaN) / 1_000).toFixed(2);
  return `${share(0.5)} / ${share(0.99)} / ${share(1)} s (${sorted.length})`;
}
const lateOf = (of: string): string =>
  lateness(
    expected
      .filter((one) => one.of === of)
      .map((one) => (first(one) ?? Number.POSITIVE_INFINITY) - one.sinceMs),
  );

const told = new AbortController();
let phase = 'events, runs due';
let at = 0;
async function tell(): Promise<void> {
  const customer = agency.customers.get(names[(at * 7) % mirrors] ?? '');
  if (!customer) return;
  const { name } = customer;
  const person = fresh(customer);
  const of = phase;
  customer.optOut(person);
  const body = JSON.stringify([{ type: 'person.changed', data: { id: person } }]);
  for (;;) {
    const [id, now, all] = [randomUUID(), new Date(), living()];
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      'webhook-signature': webhook.sign(id, now, body),
    };
    at += 1;
    const url = `${all[at % all.length]?.url}/webhooks/${name}`;
    const answer = await fetch(url, { method: 'POST', headers, body }).catch(() => undefined);
    if (answer?.status === 202) break;
    await pause(100);
  }
  expected.push({ customer, id: person, sinceMs: Date.now(), of });
}
async function telling(): Promise<void> {
  const all: Promise<void>[] = [];
  while (!told.signal.aborted) {
    all.push(tell());
    await pause(1_000 / eventsPerSecond);
  }
  await Promise.all(all);
}

// A round that is not measured, unless there is time to look at the idle fleet.
if (!isSpread && nextDue() - Date.now() < 55_000) {
  const due = nextDue();
  change(due - 1, 'runs at first');
  await until(() => isDone('runs at first'), due + 100_000 - Date.now());
  console.log('runs at first', lateOf('runs at first'));
}
// Each queue that was opened is looked at a few times at first.
await pause(20_000);
const rates = costs.ratesIn(await costs.ratesOf(asking, 20_000));
console.table({
  mirrors,
  people: names.reduce((sum, _, index) => sum + sizeOf(index), 0),
  workers: (await costs.sharesOf(asking)).join(', '),
  'served after': `${servedIn.toFixed(0)} s`,
  'connections to Redis': await costs.connectionsOf(asking),
  'commands when idle': rates.sum,
  'of which': rates.parts,
  'memory when idle, MB': memory(),
});

const due = nextDue();
if (!isSpread) change(due - 1, 'runs');
await pause(due - Date.now() - 10_000);
agency.add({ name: 'newcomer', people: newcomers, isLoaded: false, limit: 100 });
configure('newcomer');
const ended = telling();
await pause(due - Date.now());
if (isSpread) change(Date.now(), 'runs');
const pids = [process.pid, await costs.pidOf(asking), ...workers.map(({ child }) => child.pid)];
const processors = costs.watchProcessors(pids);
const isInTime = await until(() => isDone('runs'), periodMs - 20_000 + roundMs);
const seconds = (Date.now() - due) / 1_000;
const [platforms, ofRedis, ...ofWorkers] = processors.used();
const begunLate = names.map((name) => {
  const sinceMs = dueAfter(patternOf(name), 'UTC', due - 1);
  return ((agency.customers.get(name)?.listedAt ?? 0) - sinceMs) % periodMs;
});
console.table({
  [isSpread ? 'runs due in a period' : 'runs due at once']: mirrors,
  'begun late: p50 / p99 / most': lateness(begunLate),
  'sent late': lateOf('runs'),
  'all done': isInTime ? `${seconds.toFixed(1)} s` : 'no',
  'processors of the workers': ofWorkers.join(', '),
  'of the platforms, of Redis': `${platforms}, ${ofRedis}`,
  'of everything else, idle': processors.rest(),
  'memory, MB': memory(),
  'memory at most, MB': memory('VmHWM'),
});

phase = 'events, no runs due';
await pause(Math.max(0, nextDue() - Date.now() - 15_000));
phase = 'events around the kill';
const second = nextDue();
if (!isSpread) change(second - 1, 'runs around the kill');
await pause(second - Date.now());
if (isSpread) change(Date.now(), 'runs around the kill');
await pause(1_000);
const killed = workers[0]?.child;
killed?.kill('SIGKILL');
await once(killed ?? process, 'exit');
const killedAt = Date.now();
const isTaken = await until(() => isDone('runs around the kill'), 120_000 + roundMs);
const takenIn = (Date.now() - killedAt) / 1_000;
told.abort();
await ended;
await until(() => expected.every((one) => first(one) !== undefined), 90_000);
const writes = expected.map((one) => one.customer.writes.get(one.id)?.length ?? 0);
console.table({
  'one killed; all runs done': isTaken ? `${takenIn.toFixed(1)} s later` : 'no',
  'sent after they were due': lateOf('runs around the kill'),
  'events while runs were due': lateOf('events, runs due'),
  'events otherwise': lateOf('events, no runs due'),
  'events around the kill': lateOf('events around the kill'),
  'to be sent once': writes.length,
  'sent never, twice': `${writes.filter((n) => n === 0).length}, ${writes.filter((n) => n > 1).length}`,
  'of the first load': `${agency.customers.get('newcomer')?.others} sent`,
  'memory, MB': memory(),
  'memory at most, MB': memory('VmHWM'),
});
await Promise.all(
  living().map(async ({ child }) => {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }),
);
writeFileSync(join(tmpdir(), 'crm-mirror-agency.log'), said);
asking.disconnect();
await redis.close();
await agency.close();
rmSync(folder, { recursive: true, force: true });
