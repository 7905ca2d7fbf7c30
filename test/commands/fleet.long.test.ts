/** Several workers of one folder: real processes, a real Redis, a platform for each mirror. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { openEventQueue } from '../../src/compose/queues/event-queue.ts';
import { connectQuickly } from '../../src/compose/queues/redis-connections.ts';
import { readFleet, ownerOf } from '../../src/compose/fleet/fleet.ts';
import { serve } from '../support/http/test-server.ts';
import { sharedRedis } from '../support/redis.ts';
import { createWorld, launch } from '../support/engine/engine-world.ts';
import { connectTo } from '../support/worker/connections.ts';
import { startFolder, until } from '../support/worker/fleet.ts';

const redis = await sharedRedis();

const names = Array.from({ length: 12 }, (_, at) => `m${at}`);
/** These have events and no schedule; the others have a schedule and no events. */
const eventful = names.slice(0, 6);

interface Person {
  id: string;
  email: string;
  news: string;
}

/** A folder of twelve mirrors of a CRM, whose people are found by mirror and id. */
async function stage() {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-fleet-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const people = new Map(names.map((name) => [name, new Map<string, Person>()]));
  const crm = await serve(({ url = '' }, response) => {
    const [, mirror = '', id] = /^\/(\w+)\/people(?:\/(\w+))?/.exec(url) ?? [];
    const known = people.get(mirror);
    const found = id === undefined ? [...(known?.values() ?? [])] : known?.get(id);
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  const worlds = new Map<string, Awaited<ReturnType<typeof createWorld>>>();
  for (const mirror of names) {
    const world = await createWorld({ kinds: ['contact'], channels: ['ch_news'] });
    worlds.set(mirror, world);
    const url = `${crm}/${mirror}/people`;
    const isEventful = eventful.includes(mirror);
    const lines = {
      mirror,
      redis: redis.url,
      snapshot: `state/${mirror}.sqlite`,
      platform: { url: world.server.url, apiKey: 'key_live_world' },
      schedule: isEventful ? {} : { full: '*/5 * * * * *' },
      contacts: {
        source: { type: 'http', url, one: `${url}/{id}` },
        ...(isEventful && {
          webhook: { format: 'standard', secret: 'whsec_c2VjcmV0IHNlY3JldA==' },
        }),
        id: 'id',
        email: 'email',
        channels: [{ id: 'ch_news', subscription: 'news' }],
      },
    };
    writeFileSync(join(folder, `${mirror}.yaml`), JSON.stringify(lines));
  }
  const quick = connectQuickly(redis.url);
  onTestFinished(() => quick.close());
  const nodes = async () => (await readFleet(quick)).nodes.map(({ name }) => name);
  const workers: ReturnType<typeof startFolder>[] = [];
  const startOne = () => {
    const worker = startFolder(folder);
    onTestFinished(() => worker.kill('SIGKILL'));
    workers.push(worker);
    return worker;
  };
  /** Waits until there are so many workers, and each mirror is where it belongs. */
  const settles = async (count: number) =>
    until(async () => {
      const { nodes: living, mirrors } = await readFleet(quick);
      const isHome = (one: (typeof mirrors)[number]) => one.holder === ownerOf(one.name, living);
      return living.length === count && mirrors.length === names.length && mirrors.every(isHome);
    });
  const fleet = async (part: string, ...words: string[]) =>
    launch(['fleet', part, ...words, '--mirrors', folder]).ended;
  return { people, worlds, fleet, nodes, workers, startOne, settles };
}

type Stage = Awaited<ReturnType<typeof stage>>;

/** New people, each told of once in an event, until it is ended; answers their number. */
function telling({ people }: Stage) {
  const connections = connectTo(redis.url);
  const queues = new Map(
    eventful.map((mirror) => {
      return [mirror, openEventQueue({ mirror, clock: systemClock, connections })] as const;
    }),
  );
  let told = 0;
  const over = new AbortController();
  const go = async (): Promise<void> => {
    while (!over.signal.aborted) {
      for (const [mirror, queue] of queues) {
        const id = `p${told}`;
        people.get(mirror)?.set(id, { id, email: `${id}@example.com`, news: 'yes' });
        await queue.add([id]);
        told += 1;
      }
      await pause(1_000);
    }
  };
  const gone = go();
  return async (): Promise<number> => {
    over.abort();
    await gone;
    for (const queue of queues.values()) await queue.close();
    return told;
  };
}

/** Every event has led to one contact, created once. */
async function expectOnce({ people, worlds }: Stage, told: number): Promise<void> {
  let done = 0;
  for (const mirror of eventful) {
    const world = worlds.get(mirror);
    const known = [...(people.get(mirror)?.values() ?? [])];
    await until(() => known.every(({ email }) => world?.shown(email)?.['ch_news'] === 'opt_in'));
    const created = world?.writes().flatMap(({ body, status }) => {
      return body.email !== undefined && status < 300 ? [body.email] : [];
    });
    expect(created?.toSorted()).toEqual(known.map(({ email }) => email).toSorted());
    done += known.length;
  }
  expect(done).toBe(told);
}

/** Waits until each mirror with a schedule has begun one more run than now. */
async function expectRunsGoOn({ workers }: Stage): Promise<void> {
  const runsOf = (mirror: string): number => {
    const pattern = new RegExp(`"mirror":"${mirror}"[^\\n]*"run":"`, 'g');
    return workers.reduce((sum, { heard }) => sum + [...heard().matchAll(pattern)].length, 0);
  };
  for (const mirror of names.filter((name) => !eventful.includes(name))) {
    const before = runsOf(mirror);
    await until(() => runsOf(mirror) > before);
  }
}

test('three workers: one is drained, then each is restarted, and nothing is missed', async () => {
  const staged = await stage();
  const { startOne, settles, fleet, workers } = staged;
  expect((await fleet('status')).stdout).toContain('Nobody serves 12 mirrors: m0, m1, m10');
  for (let n = 0; n < 3; n += 1) startOne();
  await settles(3);
  const end = telling(staged);
  const [node = ''] = await staged.nodes();
  expect((await fleet('drain', node)).stdout).toContain('gives its mirrors away');
  await settles(3);
  const { nodes, withoutHome } = JSON.parse((await fleet('status', '--json')).stdout);
  expect(nodes).toContainEqual(expect.objectContaining({ node, mirrors: 0, draining: true }));
  expect(withoutHome).toEqual([]);
  expect(await fleet('drain', 'nobody')).toMatchObject({ code: 2 });
  expect((await fleet('drain', node, '--undo')).code).toBe(0);
  await settles(3);
  for (const worker of workers.slice()) {
    expect(await worker.ends()).toBe(143);
    await settles(2);
    startOne();
    await settles(3);
  }
  await expectRunsGoOn(staged);
  await expectOnce(staged, await end());
  for (const worker of workers) expect(worker.heard()).not.toContain('bug');
});
