/**
 * `npm run bench events`: from an accepted webhook to the change on the platform, while a first
 * load runs beside it and no limit is in the way. The platform and the CRM live in this process,
 * the worker in one of its own; 300 ms are waited for on purpose, for more events of one person.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createEmulator } from '../src/emulator/emulator.ts';
import { seeded } from '../src/emulator/shared/seeded-random.ts';
import { serve } from '../src/emulator/http-listener.ts';
import { ownRedis } from '../test/support/redis.ts';
import { openCrm, unguarded } from './stage/crm.ts';
import { configure, end, work } from './stage/worker.ts';

const known = 200;
const newcomers = 60_000;
const eachMs = 50;
const longestMs = 10_000;

const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-events-'));
const crm = await openCrm(known);
const redis = await ownRedis();
const emulator = createEmulator({
  clock: { now: Date.now, monotonic: () => performance.now() },
  random: seeded(1),
  apiKey: 'bench',
  channels: [{ id: 'ch_news', name: 'Newsletter' }],
  limits: ['*=1000000/1'],
});
/** Contacts whose opt-out is waited for, and what to do when it has come. */
const awaited = new Map<string, () => void>();
const seen = { enrolled: 0 };
const receive: typeof emulator.receive = (request) => {
  const delivery = emulator.receive(request);
  if (request.method === 'POST') {
    seen.enrolled += 1;
    const { contact_id: contact } = JSON.parse(request.body ?? '{}');
    awaited.get(String(contact))?.();
  }
  return delivery;
};
const platform = await serve({ receive }, 0);
const files = await configure(folder, {
  platform: { url: platform.url, apiKey: 'bench' },
  contacts: crm.contacts,
  guards: unguarded,
  schedule: { full: '*/5 * * * * *' },
  redis: redis.url,
});
const worker = await work(files);
while (seen.enrolled < known) await pause(50);
const contactOf = (id: string): string => emulator.world.contact(`p${id}@example.com`)?.id ?? '';
const contacts = Array.from({ length: known }, (_, at) => contactOf(String(at + 1)));

for (let at = known + 1; at <= known + newcomers; at += 1) {
  crm.people.set(String(at), { id: String(at), email: `p${at}@example.com`, news: 'yes' });
}
while (seen.enrolled < known + 100) await pause(50);
const before = seen.enrolled;
const began = performance.now();
const alone: Promise<number>[] = [];
for (let at = 1; at <= known; at += 1) {
  alone.push(timed(String(at)));
  await pause(eachMs);
}
const times = (await Promise.all(alone)).toSorted((a, b) => a - b);
const beside = seen.enrolled - before - known;
const seconds = (performance.now() - began) / 1000;
const share = (part: number): string =>
  `${Math.round(times[Math.ceil(part * times.length) - 1] ?? 0)} ms`;
console.table({
  events: times.length,
  p50: share(0.5),
  p99: share(0.99),
  most: share(1),
  'enrolled beside them': `${beside} (${Math.round(beside / seconds)}/s)`,
});
await end(worker, 'SIGTERM');
await platform.close();
await redis.close();
crm.close();
rmSync(folder, { recursive: true });

/** Milliseconds until the platform shows it, from when the webhook was accepted. */
async function timed(id: string): Promise<number> {
  const person = crm.people.get(id);
  if (person) person.news = 'no';
  if ((await crm.tell(files.url, [id])) !== 202) throw new Error(worker.said());
  const accepted = performance.now();
  const { promise, resolve } = Promise.withResolvers<void>();
  awaited.set(contacts[Number(id) - 1] ?? '', resolve);
  await Promise.race([promise, pause(longestMs, undefined, { ref: false })]);
  return performance.now() - accepted;
}
