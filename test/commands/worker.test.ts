/** The long-running form, with real processes on a real Redis. */
import { expect, test } from 'vitest';
import { Queue } from 'bullmq';
import { sharedRedis } from '../support/redis.ts';
import { createWorld, launch, type World } from '../support/engine/engine-world.ts';
import { calling, mirrored } from '../support/commands/mirrored-contacts.ts';
import { start, until } from '../support/worker/fleet.ts';
import { playsAll } from '../support/extent.ts';

const redis = await sharedRedis();

const everySecond = '* * * * * *';
const never = '0 0 1 1 *';
const piped = { source: { type: 'csv', path: '-' } };

async function worldWith(schedule: Record<string, unknown>) {
  const world = await createWorld({ kinds: ['contact'] });
  const file = world.config({ redis: redis.url, schedule, timeoutMs: 5_000 });
  return { ...world, file };
}

/** Asked to end, it does, and has met no bug; answers what it said. */
async function ends(worker: ReturnType<typeof start>): Promise<string> {
  const code = await worker.ends();
  const { stderr } = await worker.ended;
  expect({ code, bug: stderr.includes('bug') }).toEqual({ code: 143, bug: false });
  return stderr;
}

/** Writes the people of the CRM, who all want the newsletter. */
const wanting = ({ people }: World, ...names: string[]): void =>
  people(names.map((name) => ({ email: `${name}@example.com`, news: 'yes' })));
const isIn = async ({ shown }: World, name: string): Promise<void> =>
  until(() => shown(`${name}@example.com`)?.['ch_news'] === 'opt_in');

async function inQueue<T>(ask: (queue: Queue) => Promise<T>): Promise<T> {
  const queue = new Queue('runs-world', { connection: { url: redis.url }, prefix: 'crm-mirror' });
  const answer = await ask(queue);
  await queue.close();
  return answer;
}

test('keeps a mirror as scheduled, and exits when asked to stop', async () => {
  const world = await worldWith({ full: everySecond });
  wanting(world, 'ann');
  const worker = start(world.file);
  await isIn(world, 'ann');
  wanting(world, 'ann', 'bob');
  await isIn(world, 'bob');
  const err = await ends(worker);
  expect(err).toContain('world: worker serves full');
  // Each run counts its own requests: a run that changes nothing lists the platform, twice at most.
  const totals = [...err.matchAll(/"requests":{"total":(\d+)/g)].map(([, n]) => Number(n));
  expect(Math.max(...totals)).toBeLessThan(6);
  // The mirror is free again.
  const again = launch(['sync', '-c', world.file]);
  expect((await again.ended).code).toBe(0);
});

test.runIf(playsAll)(
  'stands by while another worker has the mirror, and takes over when that one dies',
  async () => {
    const world = await worldWith({ full: everySecond });
    wanting(world, 'ann');
    const first = start(world.file);
    await isIn(world, 'ann');
    const second = start(world.file);
    await second.said('another worker serves world');
    // What is due is done by the one that holds it.
    wanting(world, 'ann', 'cid');
    await isIn(world, 'cid');
    // In the middle of a run: it is taken over with the mirror.
    await inQueue(async (queue) => until(async () => (await queue.getActiveCount()) === 1));
    first.kill('SIGKILL');
    wanting(world, 'ann', 'bob', 'cid');
    await isIn(world, 'bob');
    await ends(second);
  },
);

test.each([
  ['redis', { schedule: { full: never } }, 'redis is missing'],
  ['a schedule', { redis: 'redis://127.0.0.1:1' }, 'schedule names no run'],
  ['a run in it', { redis: 'redis://127.0.0.1:1', schedule: { full: null } }, 'names no run'],
  [
    'a source that it can read',
    { redis: 'redis://127.0.0.1:1', schedule: { full: never }, contacts: piped },
    'contacts.source is standard input, which a worker cannot read → name a file, or pipe it into',
  ],
])('does not start without %s', async (_, lines, said) => {
  const world = await mirrored();
  const file = world.config(lines);
  const { code, err } = await world.call('worker', '-c', file);
  expect({ code, said: err.includes(said) }).toEqual({ code: 2, said: true });
});

test.each([
  ['-c and --mirrors', ['-c', 'mirror.yaml', '--mirrors', '.'], 'keep one of the two'],
  ['a lost snapshot', ['--mirrors', '.', '--accept-lost-snapshot'], 'worker with -c'],
  ['a folder that is not there', ['--mirrors', '/nowhere'], 'name a folder with --mirrors'],
])('refuses %s', async (_, args, said) => {
  const { code, err } = await calling(['worker', ...args]);
  expect({ code, said: err.includes(said) }).toEqual({ code: 2, said: true });
});
