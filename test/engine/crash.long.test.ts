/**
 * The command line as a process, killed and interrupted in the middle of an apply. What
 * must hold: nobody is enrolled twice, no template is made twice, and the next run ends what the
 * first began.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Arrival } from '../support/engine/platform-server.ts';
import {
  createWorld,
  launch,
  statesIn,
  type Ended,
  type World,
} from '../support/engine/engine-world.ts';
import { playsAll, sampled } from '../support/extent.ts';

const count = 84;
const address = (at: number): string => `p${String(at).padStart(3, '0')}@example.com`;
/** Two of three are on the platform and leave the newsletter; the others are new. */
const wishes = Array.from({ length: count }, (_, at) => ({
  email: address(at),
  news: at % 3 === 0 ? 'yes' : 'no',
  product: at % 2 === 0 ? 'yes' : '',
}));

/** Longer than a busy machine stands still; a run after a kill waits for it. */
const timeoutMs = 4_000;

async function arranged(): Promise<World & { file: string; journal: string }> {
  const world = await createWorld();
  for (const { email, news } of wishes)
    if (news === 'no') world.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  world.people(wishes);
  for (const key of ['a', 'b', 'c'])
    world.template(key, { subject: key, fromEmail: 'us@example.com' });
  world.server.delayMs = 10;
  // What a killed run has sent counts in the seven days of the guard, which is off here.
  const guards = { optOuts: { percent: 100, floor: 1_000_000_000 } };
  const file = world.config({ timeoutMs, guards });
  return { ...world, file, journal: join(world.folder, 'cli/snapshot.sqlite') };
}

const sync = (file: string) => launch(['sync', '-c', file, '--json']);

/** The one document on stdout. */
function documentOf({ stdout }: Ended) {
  return JSON.parse(stdout);
}

/** Ends what was interrupted, and looks at everything that was ever done. */
async function expectMended(world: World & { file: string; journal: string }): Promise<void> {
  world.server.watch = {};
  world.server.delayMs = 3;
  const second = await sync(world.file).ended;
  expect(second).toMatchObject({ code: 0, stderr: expect.not.stringContaining('bug') });
  expect(documentOf(second)).toMatchObject({ status: 'done', reasons: [] });
  const { sent, unknown, planned } = statesIn(world.journal);
  expect({ sent, unknown, planned }).toEqual({});
  for (const { email, news, product } of wishes) {
    const wanted = {
      ch_news: news === 'yes' ? 'opt_in' : 'opt_out',
      ...(product && { ch_product: 'opt_in' }),
    };
    expect(world.shown(email)).toEqual(wanted);
  }
  expect(world.emulator.world.contacts()).toHaveLength(count);
  const templates = world.emulator.world.templates();
  expect(templates.map(({ name }) => name).toSorted()).toEqual(['a', 'b', 'c']);
  expect(templates.every(({ fromEmail }) => fromEmail === 'us@example.com')).toBe(true);
  const enrolled = world.emulator.world
    .requests()
    .filter(({ route, status }) => route === 'contacts.enrol' && status < 300)
    .map(({ email, channelId }) => `${email} ${channelId}`);
  expect(enrolled.toSorted()).toEqual([...new Set(enrolled)].toSorted());
  world.writes();
  const third = await sync(world.file).ended;
  expect(third.code).toBe(0);
  expect(documentOf(third)).toMatchObject({ status: 'done', contacts: { conflicts: 0 } });
  expect(world.writes()).toEqual([]);
}

/** A moment: the n-th request of a route, seen or carried out. */
const moments: { route: string; nth: number; when: 'arrived' | 'acted' }[] = [
  { route: 'contacts.enrol', nth: 1, when: 'acted' },
  { route: 'contacts.enrol', nth: 62, when: 'arrived' },
  { route: 'contacts.enrol', nth: 41, when: 'acted' },
  { route: 'contacts.enrol', nth: 80, when: 'acted' },
  { route: 'templates.create', nth: 2, when: 'arrived' },
  { route: 'templates.create', nth: 2, when: 'acted' },
  { route: 'templates.update', nth: 1, when: 'acted' },
  { route: 'contacts.list', nth: 1, when: 'acted' },
];

describe('killed with SIGKILL, a run leaves nothing lost or repeated', () => {
  test.each(sampled(moments, 8))('at $route number $nth $when', async ({ route, nth, when }) => {
    const world = await arranged();
    const { child, ended } = sync(world.file);
    // What arrived and was not carried out by the time of the kill never is.
    world.server.fail((one) => killed && one.nth >= nth, { is: 'cut' }, 40);
    let killed = false;
    world.server.watch[when] = (arrival: Arrival) => {
      if (killed || arrival.route !== route || arrival.nth !== nth) return;
      killed = child.kill('SIGKILL');
    };
    expect(await ended).toMatchObject({ code: null, signal: 'SIGKILL', stdout: '' });
    expect(killed).toBe(true);
    await world.server.quiet();
    killed = false;
    await expectMended(world);
  });
});

test.runIf(playsAll)(
  'a process stopped for longer than the time-out continues where it was',
  async () => {
    const world = await arranged();
    const { child, ended } = sync(world.file);
    const stopped = new Promise<void>((resolve) => {
      world.server.watch.acted = ({ route, nth }) => {
        if (route === 'contacts.enrol' && nth === 20) resolve(void child.kill('SIGSTOP'));
      };
    });
    await stopped;
    // As when a disk is slow or a lid was closed.
    await pause(1.1 * timeoutMs);
    child.kill('SIGCONT');
    const end = await ended;
    expect(end.code).toBe(0);
    expect(documentOf(end)).toMatchObject({ status: 'done', reasons: [] });
    await expectMended(world);
  },
);

describe('a run that is asked to stop', () => {
  /** `isAtOnce`: all signals were sent, so soon after one another that they count as one. */
  async function interrupted(signals: readonly ('SIGTERM' | 'SIGINT')[]) {
    const world = await arranged();
    // Longer than the gap between two signals: the second must find a run that is still ending.
    world.server.delayMs = signals.length > 1 ? 40 : 10;
    const { child, ended } = sync(world.file);
    let asked = 0;
    const sentAt: number[] = [];
    const send = (signal: NodeJS.Signals) => {
      sentAt.push(performance.now());
      child.kill(signal);
    };
    world.server.watch.acted = ({ route, nth }) => {
      if (route !== 'contacts.enrol' || nth !== 6) return;
      asked = world.server.arrived.length;
      for (const [at, signal] of signals.entries()) setTimeout(send, at * 60, signal);
    };
    const end = await ended;
    const apartMs = (sentAt.at(-1) ?? 0) - (sentAt[0] ?? 0);
    const isAtOnce = sentAt.length === signals.length && apartMs <= 500;
    return { world, end, isAtOnce, late: () => world.server.arrived.length - asked };
  }

  const asked = [
    ['SIGTERM', ['SIGTERM'], 143],
    ['SIGINT', ['SIGINT'], 130],
    ['SIGTERM twice at once', ['SIGTERM', 'SIGTERM'], 143],
    ['SIGINT twice at once', ['SIGINT', 'SIGINT'], 130],
  ] as const;

  test.each(sampled(asked, 4))('ends after %s in the middle of apply', async (_, signals, code) => {
    let stopped = await interrupted(signals);
    while (!stopped.isAtOnce) stopped = await interrupted(signals);
    const { world, end, late } = stopped;
    expect(end.code).toBe(code);
    expect(documentOf(end)).toMatchObject({ status: 'interrupted' });
    // Opt-outs go first, and none of the rest was begun.
    expect(documentOf(end).contacts.applied).toMatchObject({ create: 0, opt_in: 0 });
    expect(documentOf(end).contacts.applied.opt_out).toBeLessThan(56);
    expect(end.stderr).not.toContain('bug');
    // What had been taken is finished: 32 people at work, and the templates.
    expect(late()).toBeLessThan(45);
    const { sent, unknown } = statesIn(world.journal);
    expect({ sent, unknown }).toEqual({});
    await expectMended(world);
  });

  test.runIf(playsAll).each(['contacts.list', 'templates.list'])(
    'ends while %s is read',
    async (route) => {
      const world = await arranged();
      const { child, ended } = sync(world.file);
      world.server.watch.arrived = (arrival) => {
        if (arrival.route === route) child.kill('SIGTERM');
      };
      const end = await ended;
      expect(end.code).toBe(143);
      expect(documentOf(end)).toMatchObject({ status: 'interrupted' });
      expect(world.writes()).toEqual([]);
      await expectMended(world);
    },
  );

  test.runIf(playsAll)(
    'leaves an unknown outcome, reports no success, and the next run finds it',
    async () => {
      const world = await arranged();
      const { child, ended } = sync(world.file);
      world.server.fail((one) => one.route === 'contacts.enrol' && one.nth >= 3, { is: 'hang' }, 1);
      world.server.watch.arrived = ({ route, nth }) => {
        if (route === 'contacts.enrol' && nth === 4) child.kill('SIGTERM');
      };
      const end = await ended;
      expect(statesIn(world.journal)).toMatchObject({ unknown: 1 });
      // Of several codes the gravest: an outcome left unknown outweighs the interruption.
      expect(end.code).toBe(1);
      await expectMended(world);
    },
  );
});
