/** Outcomes that stop more than one record, or slow everything down. */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { CEILING } from '../../../src/http/rate-limit/route-budget.ts';
import { run } from '../../../src/engine/run.ts';
import type { Arrival } from '../../support/engine/platform-server.ts';
import { createWorld, type World } from '../../support/engine/engine-world.ts';

const isEnrolment = ({ route }: Arrival): boolean => route === 'contacts.enrol';
const isOptOut = ({ body }: Arrival): boolean => body.subscription === 'opt_out';
const address = (at: number): string => `p${String(at).padStart(2, '0')}@example.com`;
const everybody = (count: number, wish: object) =>
  Array.from({ length: count }, (_, at) => ({ email: address(at), ...wish }));

/** Adds people that the platform has opted in and the CRM opts out. */
function leavers(world: World, count: number, from = 0): void {
  for (let at = from; at < from + count; at += 1)
    world.emulator.seed.contact({ email: address(at), channels: { ch_news: 'opt_in' } });
}

async function expectMended(world: World): Promise<void> {
  expect(await world.sync()).toMatchObject({ status: 'done', reasons: [] });
  world.writes();
  expect((await world.sync()).status).toBe('done');
  expect(world.writes()).toEqual([]);
  const { sent, unknown, planned } = world.states();
  expect({ sent, unknown, planned }).toEqual({});
}

describe('401', () => {
  const refusedKey = { is: 'answer' as const, status: 401 };

  test('in the middle of a run stops it with status failed, and the key is named', async () => {
    const world = await createWorld({ kinds: ['contact'] });
    world.people(everybody(200, { news: 'yes' }));
    world.server.delayMs = 5;
    const play = world.server.fail((one) => isEnrolment(one) && one.nth > 5, refusedKey);
    const summary = await world.sync();
    expect(summary.status).toBe('failed');
    expect(summary.reasons.join()).toContain('platform.apiKey');
    expect(summary.contacts.applied['create']).toBe(5);
    expect(world.states()['sent']).toBeUndefined();
    const { arrived } = world.server;
    const first = arrived.find(({ status }) => status === 401);
    // Those on their way when the answer left are a matter of the network: as many at most as may
    // be in flight, of the 194 that waited.
    expect(arrived.length - (first?.answeredAfter ?? 0)).toBeLessThanOrEqual(CEILING);
    play.undo();
    world.server.delayMs = 0;
    await expectMended(world);
    expect(world.emulator.world.contacts()).toHaveLength(200);
  });

  test('at the first request: nothing is written, and nothing is recorded', async () => {
    const world = await createWorld();
    world.people(everybody(3, { news: 'yes' }));
    world.template('welcome', { subject: 'Hi' });
    const play = world.server.fail(() => true, refusedKey);
    const summary = await world.sync();
    expect(summary.status).toBe('failed');
    expect(summary.reasons.join()).toContain('platform.apiKey');
    expect(world.writes()).toEqual([]);
    expect(world.snapshot.recorded.count('contact')).toBe(0);
    play.undo();
    await expectMended(world);
  });

  test('after an attempt that may have acted: the opt-out may be ours, and is not taken for theirs', async () => {
    const world = await createWorld({ kinds: ['contact'] });
    leavers(world, 1);
    world.people(everybody(1, { news: 'no' }));
    const lost = { is: 'answer' as const, status: 500, acts: true };
    world.server.fail((one) => isEnrolment(one) && one.nth === 1, lost);
    const play = world.server.fail((one) => isEnrolment(one) && one.nth > 1, refusedKey);
    expect((await world.sync()).status).toBe('failed');
    expect(world.states()).toEqual({ unknown: 1 });
    play.undo();
    await expectMended(world);
    expect(world.states()).toEqual({ acked: 1 });
    const row = world.snapshot.recorded.get('contact', address(0));
    expect(JSON.parse(row?.body ?? '')).toMatchObject({
      channels: { ch_news: { doubtful: true } },
    });
  });
});

describe('403', () => {
  const forbidden = { is: 'answer' as const, status: 403 };
  const arranged = async () => {
    const world = await createWorld();
    leavers(world, 2);
    world.people([...everybody(2, { news: 'no' }), { email: address(2), news: 'yes' }]);
    world.template('welcome', { subject: 'Hi' });
    world.template('sender', { subject: 'Hi', fromEmail: 'us@example.com' });
    return world;
  };

  test.each(['contacts.enrol', 'templates.create', 'templates.update'])(
    '%s: that route stops, the rest continues',
    async (route) => {
      const world = await arranged();
      const play = world.server.fail((one) => one.route === route, forbidden);
      const summary = await world.sync();
      expect(summary.status).toBe('failed');
      expect(summary.reasons.filter((reason) => reason.includes(route))).toHaveLength(1);
      const templates = world.emulator.world.templates();
      expect(templates).toHaveLength(route === 'templates.create' ? 0 : 2);
      const out = route === 'contacts.enrol' ? 'opt_in' : 'opt_out';
      expect(world.shown(address(0))).toEqual({ ch_news: out });
      expect(world.shown(address(2)) === undefined).toBe(route === 'contacts.enrol');
      expect(world.states()['sent']).toBeUndefined();
      expect(summary).toMatchObject({ contacts: { rejected: 0 }, templates: { rejected: 0 } });
      play.undo();
      await expectMended(world);
      expect(world.emulator.world.templates()).toHaveLength(2);
    },
  );

  test('on listing templates does not hinder opt-outs of people', async () => {
    const world = await arranged();
    world.server.fail(({ route }) => route === 'templates.list', forbidden);
    const summary = await world.sync();
    expect(summary.status).toBe('failed');
    expect(summary.reasons.join()).toContain('templates.list');
    expect(world.shown(address(0))).toEqual({ ch_news: 'opt_out' });
  });

  test('on retrieving contacts does not hinder enrolments', async () => {
    const world = await createWorld({ kinds: ['contact'] });
    leavers(world, 60);
    world.people(everybody(60, { news: 'no' }));
    world.server.fail((one) => isEnrolment(one) && one.nth === 1, { is: 'answer', status: 409 });
    world.server.fail(({ route }) => route === 'contacts.retrieve', forbidden);
    expect((await world.sync()).status).toBe('failed');
    const out = everybody(60, {}).filter(
      ({ email }) => world.shown(email)?.['ch_news'] === 'opt_out',
    );
    expect(out).toHaveLength(59);
  });
});

describe('429', () => {
  test.each([{ 'retry-after': '7' }, { 'retry-after': '0' }, {}])(
    'waits, and does not count as an attempt: %j',
    async (headers: Record<string, string>) => {
      const world = await createWorld();
      world.people(everybody(3, { news: 'yes' }));
      world.template('welcome', { subject: 'Hi' });
      const slow = { is: 'answer' as const, status: 429, headers };
      // More often than anything is attempted.
      const plays = ['contacts.list', 'contacts.enrol', 'templates.create'].map((route) =>
        world.server.fail((one) => one.route === route, slow, 8),
      );
      const from = world.clock.monotonic();
      const summary = await world.sync();
      expect(summary).toMatchObject({ status: 'done', reasons: [], contacts: { rejected: 0 } });
      expect(summary.requests.rateLimited).toBe(24);
      expect(plays.map(({ hits }) => hits)).toEqual([8, 8, 8]);
      expect(world.clock.monotonic() - from).toBeGreaterThan(
        8 * Math.max(1000, Number(headers['retry-after'] ?? 1) * 1000),
      );
      const templates = world.emulator.world.templates();
      expect(templates).toHaveLength(1);
      await expectMended(world);
    },
  );

  test('dates a creation from when it was sent, not from when it began to wait', async () => {
    // Until one time-out after that it may still arrive: the next run must not look before.
    const timeoutMs = 5000;
    const world = await createWorld({ kinds: ['template'], timeoutMs });
    world.template('welcome', { subject: 'Hi' });
    const isCreation = ({ route }: Arrival): boolean => route === 'templates.create';
    const headers = { 'retry-after': '60' };
    world.server.fail(isCreation, { is: 'answer', status: 429, headers }, 1);
    const margins: number[] = [];
    world.server.watch.acted = (one) => {
      if (!isCreation(one)) return;
      const [open] = world.snapshot.journal.open('template');
      margins.push((open?.sentAt ?? 0) + timeoutMs - world.clock.now());
    };
    expect((await world.sync()).status).toBe('done');
    expect(margins).toHaveLength(1);
    expect(margins[0]).toBeGreaterThan(0);
  });
});

describe('a rejection of more than 40 % of at least 20 changes', () => {
  const refused = { is: 'answer' as const, status: 400 };

  test('does not stop opt-outs', async () => {
    const world = await createWorld({ kinds: ['contact'] });
    leavers(world, 80);
    const joiners = [{ email: 'zoe@example.com', news: 'yes' }];
    world.people([...everybody(80, { news: 'no' }), ...joiners]);
    const play = world.server.fail((one) => isOptOut(one) && one.nth <= 30, refused);
    const summary = await world.sync();
    expect(summary.status).toBe('failed');
    expect(summary.contacts.applied['opt_out']).toBe(50);
    expect(summary.problems.filter(({ part }) => part === 'ch_news')).toHaveLength(30);
    expect(world.shown('zoe@example.com')).toBeUndefined();
    play.undo();
  });
});

test('what a failed look left unsent is told with its reason, and is sent by the next run', async () => {
  const world = await createWorld({ kinds: ['contact'] });
  world.people(everybody(1, { news: 'yes' }));
  await world.sync();
  world.people(everybody(2, { news: 'yes' }));
  const play = world.server.fail(({ route }) => route === 'contacts.list', {
    is: 'answer',
    status: 404,
  });
  const { status, reasons } = await world.sync({ mode: 'fast' });
  expect(status).toBe('failed');
  expect(reasons.join()).toMatch(
    /1 change was not sent: the platform answered 404 to contacts.list/,
  );
  play.undo();
  await expectMended(world);
  expect(world.emulator.world.contacts()).toHaveLength(2);
});

describe('a failed run', () => {
  test('asks the platform nothing more, and stages nothing more', async () => {
    const world = await createWorld({ kinds: ['contact'] });
    for (let at = 0; at < 2000; at += 1)
      world.emulator.seed.contact({ email: `x${at}@example.com` });
    world.csv('id,email\n');
    world.server.delayMs = 5;
    const connected = world.connect();
    const never = new AbortController().signal;
    const failed = run(
      { ...world.mirror(connected), timeoutMs: 150 },
      {
        mode: 'full',
        writes: true,
        only: undefined,
        stop: never,
        abort: never,
        progress: () => undefined,
      },
    );
    await expect(failed).rejects.toThrow('news');
    const counted = world.snapshot.staging.countObserved('contact');
    await pause(100);
    expect(world.snapshot.staging.countObserved('contact')).toBe(counted);
    await connected.close();
  });
});
