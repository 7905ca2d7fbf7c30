/**
 * No usable answer: time-outs, cut connections, 5xx and bodies nobody can read, before
 * and after the platform acted. What counts is what the platform has in the end, and how often.
 */
import { describe, expect, test } from 'vitest';
import type { Arrival, Fault } from '../../support/engine/platform-server.ts';
import { createWorld, type World } from '../../support/engine/engine-world.ts';
import { sampled } from '../../support/extent.ts';

const ann = 'ann@example.com';
const page = { 'content-type': 'text/html' };

/** Every way to be left without an answer; `resent` by the client where it may be. */
const faults: { name: string; fault: Fault }[] = [
  { name: 'a cut connection', fault: { is: 'cut' } },
  { name: 'a time-out', fault: { is: 'hang' } },
  { name: 'half a body', fault: { is: 'half' } },
  { name: 'a web page', fault: { is: 'answer', status: 200, body: '<html>', headers: page } },
  { name: 'garbage', fault: { is: 'answer', status: 201, body: '\u0000[{' } },
  ...[500, 502, 503, 504].map((status) => ({
    name: `${status}`,
    fault: { is: 'answer' as const, status },
  })),
];
const some = faults.filter(({ name }) => ['a cut connection', '500', '503'].includes(name));

interface Operation {
  name: string;
  route: string;
  /** Answers of 5xx after which the very same request may be sent again, unread. */
  resends: readonly number[];
  /** Leaves exactly one change of this kind to be made. */
  arrange(world: World): Promise<void>;
  expectDone(world: World): void;
  expectNothing(world: World): void;
}

const operations: Operation[] = [
  {
    name: 'a creation',
    route: 'contacts.enrol',
    resends: [500],
    arrange: async (world) => world.people([{ email: ann, news: 'yes' }]),
    expectDone(world) {
      expect(world.emulator.world.contacts()).toHaveLength(1);
      expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
      expect(world.recorded(ann)['ch_news']?.is).toBe('opt_in');
    },
    expectNothing: (world) => expect(world.emulator.world.contacts()).toEqual([]),
  },
  {
    name: 'an opt-in',
    route: 'contacts.enrol',
    resends: [500, 502, 503, 504],
    async arrange(world) {
      world.emulator.seed.contact({ email: ann });
      world.people([{ email: ann, news: 'yes' }]);
    },
    expectDone(world) {
      expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
      expect(world.recorded(ann)['ch_news']?.is).toBe('opt_in');
    },
    expectNothing: (world) => expect(world.shown(ann)).toEqual({}),
  },
  {
    name: 'an opt-out',
    route: 'contacts.enrol',
    resends: [500, 502, 503, 504],
    async arrange(world) {
      world.emulator.seed.contact({ email: ann, channels: { ch_news: 'opt_in' } });
      world.people([{ email: ann, news: 'no' }]);
    },
    expectDone(world) {
      expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
      expect(world.recorded(ann)['ch_news']?.is).toBe('opt_out');
    },
    expectNothing: (world) => expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' }),
  },
  {
    name: 'a template creation',
    route: 'templates.create',
    resends: [],
    arrange: async (world) => world.template('welcome', { subject: 'One' }),
    expectDone(world) {
      expect(world.emulator.world.templates().map(({ name }) => name)).toEqual(['welcome']);
      expect(world.snapshot.recorded.count('template')).toBe(1);
    },
    expectNothing: (world) => expect(world.emulator.world.templates()).toEqual([]),
  },
  {
    name: 'a template update',
    route: 'templates.update',
    resends: [500, 502, 503, 504],
    async arrange(world) {
      world.template('welcome', { subject: 'One' });
      await world.sync();
      world.template('welcome', { subject: 'Twice two' });
    },
    expectDone: (world) =>
      expect(world.emulator.world.templates().map(({ subject }) => subject)).toEqual(['Twice two']),
    expectNothing: (world) =>
      expect(world.emulator.world.templates().map(({ subject }) => subject)).toEqual(['One']),
  },
];

const toRoute =
  (route: string) =>
  (arrival: Arrival): boolean =>
    arrival.route === route;

async function worldFor({ name, arrange }: Operation): Promise<World> {
  const kinds = [name.includes('template') ? ('template' as const) : ('contact' as const)];
  const world = await createWorld({ kinds, timeoutMs: 1_000 });
  world.people([]);
  await arrange(world);
  world.writes();
  return world;
}

/** What was carried out, as the platform's own log has it. */
function effects(world: World, route: string): number {
  const asked = world.emulator.world.requests();
  return asked.filter((entry) => entry.route === route && entry.status < 300).length;
}

async function expectCalm(world: World): Promise<void> {
  const { sent, unknown, planned, ...final } = world.states();
  expect({ sent, unknown, planned }).toEqual({});
  expect(Object.values(final).length).toBeGreaterThan(0);
  world.writes();
  const next = await world.sync();
  expect({ status: next.status, reasons: next.reasons }).toEqual({ status: 'done', reasons: [] });
  expect(world.writes()).toEqual([]);
}

describe.each(sampled(operations, 2))('$name', (operation) => {
  const { route, resends } = operation;

  test.each(sampled(faults, 8))(
    '$name, after the platform acted: one effect',
    async ({ fault }) => {
      const world = await worldFor(operation);
      const before = effects(world, route);
      const play = world.server.fail(toRoute(route), { ...fault, acts: true }, 1);
      const summary = await world.sync();
      expect(play.hits).toBe(1);
      expect(summary).toMatchObject({ status: 'done', reasons: [] });
      operation.expectDone(world);
      const resent = fault.is === 'answer' && resends.includes(fault.status);
      expect(world.writes()).toHaveLength(resent ? 2 : 1);
      const twiceIsOnce = resent && route === 'templates.update';
      expect(effects(world, route) - before).toBe(twiceIsOnce ? 2 : 1);
      await expectCalm(world);
    },
  );

  test.each(sampled(faults, 8))(
    '$name, before the platform acted: done in the same run',
    async (row) => {
      const world = await worldFor(operation);
      const before = effects(world, route);
      world.server.fail(toRoute(route), row.fault, 1);
      const summary = await world.sync();
      expect(summary).toMatchObject({ status: 'done', reasons: [] });
      operation.expectDone(world);
      expect(world.writes()).toHaveLength(2);
      expect(effects(world, route) - before).toBe(1);
      await expectCalm(world);
    },
  );

  test.each(sampled(some, 3))('$name in every request: bounded, and never "done"', async (row) => {
    const world = await worldFor(operation);
    const play = world.server.fail(toRoute(route), row.fault);
    const summary = await world.sync();
    operation.expectNothing(world);
    expect(world.writes().length).toBeLessThanOrEqual(12);
    expect(world.states()['sent']).toBeUndefined();
    expect(summary.status).toBe('failed');
    expect(summary.reasons).not.toEqual([]);
    play.undo();
    expect((await world.sync()).status).toBe('done');
    operation.expectDone(world);
    await expectCalm(world);
  });

  test('a lost answer and a lost look leave the outcome unknown, and the next run finds it', async () => {
    const world = await worldFor(operation);
    world.server.fail(toRoute(route), { is: 'cut', acts: true }, 1);
    let cut = false;
    world.server.watch.acted = (arrival) => void (cut ||= arrival.route === route);
    const silence = world.server.fail(({ method }) => cut && method === 'GET', { is: 'cut' });
    const summary = await world.sync();
    expect(summary.status).toBe('failed');
    expect(world.states()).toMatchObject({ unknown: 1 });
    expect(world.writes()).toHaveLength(1);
    silence.undo();
    expect((await world.sync()).status).toBe('done');
    expect(world.writes()).toEqual([]);
    operation.expectDone(world);
    await expectCalm(world);
  });
});

describe('an unanswered change that took effect counts as ours', () => {
  test.each(sampled(some, 3))('for a creation: $name', async ({ fault }) => {
    const world = await createWorld({ kinds: ['contact'] });
    world.people([{ email: ann, news: 'yes' }]);
    world.server.fail(toRoute('contacts.enrol'), { ...fault, acts: true }, 1);
    await world.sync();
    // Owned; but nobody can tell that another program did not make it.
    expect(world.snapshot.recorded.get('contact', ann)?.ownership).toBe('adopted');
  });

  test.each([400, 404, 422])(
    'a %i to the look for an outcome says nothing about the change',
    async (status) => {
      const world = await createWorld({ kinds: ['contact'] });
      world.people([{ email: ann, news: 'yes' }]);
      world.server.fail(toRoute('contacts.enrol'), { is: 'cut', acts: true }, 1);
      const refusal = world.server.fail(({ path }) => path.includes('search='), {
        is: 'answer',
        status,
      });
      const summary = await world.sync();
      expect(world.states()).toMatchObject({ unknown: 1 });
      expect(summary).toMatchObject({ status: 'failed', contacts: { rejected: 0 } });
      refusal.undo();
      expect((await world.sync()).status).toBe('done');
      expect(world.recorded(ann)['ch_news']?.is).toBe('opt_in');
    },
  );
});
