/** Quarantine over runs: where changes are mostly refused, opt-outs only are sent for a while. */
import { describe, expect, test } from 'vitest';
import { mirrored } from '../../support/commands/mirrored-contacts.ts';
import type { Arrival } from '../../support/engine/platform-server.ts';
import { createWorld, type World } from '../../support/engine/engine-world.ts';
import { playsAll } from '../../support/extent.ts';

const hour = 3_600_000;
const refused = { is: 'answer' as const, status: 400 };
const isOptIn = ({ body }: Arrival): boolean => body.subscription === 'opt_in';
const address = (at: number): string => `p${String(at).padStart(3, '0')}@example.com`;
const joiners = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => ({ email: address(from + at), news: 'yes' }));

/** Refused so often that the run was stopped. */
async function quarantined(count = 200): Promise<World & { undo(): void }> {
  const world = await createWorld({ kinds: ['contact'] });
  world.people(joiners(count));
  const { undo } = world.server.fail(isOptIn, refused);
  const summary = await world.sync();
  expect(summary.status).toBe('failed');
  expect(summary.reasons.join()).toMatch(/quarantined since .* only opt-outs are sent →/);
  world.writes();
  return { ...world, undo };
}

const isQuarantined = (reasons: readonly string[]): boolean =>
  reasons.some((reason) => reason.startsWith('quarantined since'));

/** Passes so much time, runs, and answers how many opt-ins that took. */
async function later(world: World, ms: number): Promise<{ asked: number; held: boolean }> {
  world.clock.pass(ms);
  const { reasons } = await world.sync();
  return { asked: world.writes().filter(isOptIn).length, held: isQuarantined(reasons) };
}

describe('during a quarantine', () => {
  test('opt-outs are sent and observations recorded; nothing else is sent, in any mode', async () => {
    const world = await quarantined();
    world.undo();
    const [ann, bob] = [`ann@example.com`, `bob@example.com`];
    for (const email of [ann, bob])
      world.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
    const more = [
      { email: ann, news: 'no' },
      { email: bob, news: 'yes' },
    ];
    world.people([...joiners(200), ...more]);
    for (const mode of ['full', 'fast'] as const) {
      const summary = await world.sync({ mode });
      expect(summary).toMatchObject({ mode, status: 'failed' });
      expect(summary.reasons).toEqual([expect.stringMatching(/^quarantined since/)]);
    }
    expect(world.writes().map(({ body }) => body.subscription)).toEqual(['opt_out']);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
    expect(world.recorded(bob)).toMatchObject({ ch_news: { is: 'opt_in' } });
    // What is withheld is not journaled again and again.
    expect(world.states()['stale'] ?? 0).toBeLessThanOrEqual(200);
    expect(world.states()['planned']).toBeUndefined();
  });

  test('a full run completes no first load, so that the people who wait pass the guard', async () => {
    const world = await quarantined();
    world.undo();
    expect(await later(world, 0)).toEqual({ asked: 0, held: true });
    expect((await later(world, hour)).asked).toBeGreaterThan(100);
  });

  test('a plan shows everything, and says that it is not sent yet', async () => {
    const world = await quarantined();
    const plan = await world.sync({ writes: false });
    expect(plan.status).toBe('done');
    expect(plan.contacts.changes['create']).toBeGreaterThan(100);
    expect(isQuarantined(plan.reasons)).toBe(true);
  });
});

describe('after a quarantine', () => {
  test.runIf(playsAll)(
    'the next run tries again; another refusal takes twice as long, at most a day',
    async () => {
      const world = await quarantined(1_000);
      for (const hours of [1, 2, 4, 8, 16, 24, 24]) {
        expect(await later(world, hours * hour - 60_000)).toEqual({ asked: 0, held: true });
        const { asked, held } = await later(world, 60_000);
        expect({ hours, held }).toEqual({ hours, held: true });
        expect(asked).toBeGreaterThanOrEqual(20);
        expect(asked).toBeLessThanOrEqual(20 + 16);
      }
    },
  );

  test('refusals count too that are too few to stop a run', async () => {
    const world = await quarantined(20);
    expect(await later(world, hour)).toEqual({ asked: 0, held: false });
    world.people([...joiners(20), ...joiners(3, 500)]);
    expect(await later(world, 0)).toEqual({ asked: 3, held: true });
    world.people([...joiners(20), ...joiners(3, 600)]);
    expect(await later(world, 2 * hour - 60_000)).toEqual({ asked: 0, held: true });
  });

  test('less than 40 % refused ends it, and the mirror continues as before', async () => {
    const world = await quarantined();
    world.undo();
    world.clock.pass(hour);
    const summary = await world.sync();
    expect(summary).toMatchObject({ status: 'done' });
    expect(summary.reasons).toEqual([expect.stringContaining('the quarantine is over')]);
    expect((await world.sync()).reasons).toEqual([]);
    // Refused anew, it begins with an hour.
    world.people(joiners(100, 700));
    world.server.fail(isOptIn, refused);
    await world.sync();
    world.writes();
    expect(await later(world, hour - 60_000)).toEqual({ asked: 0, held: true });
    expect((await later(world, 60_000)).asked).toBeGreaterThanOrEqual(20);
  });

  test('a time written by a wrong clock holds nobody', async () => {
    const world = await quarantined();
    world.undo();
    world.clock.pass(-48 * hour);
    expect((await later(world, 0)).asked).toBeGreaterThan(100);
  });
});

test('`status` shows a quarantine, and `retry` without a person ends it', async () => {
  const world = await mirrored();
  world.people(joiners(40));
  const { undo } = world.server.fail(isOptIn, refused);
  expect((await world.call('sync')).code).toBe(1);
  undo();
  expect((await world.call('sync', '--fast')).code).toBe(1);
  const { json } = await world.call('status', '--json');
  expect(json.attention).toMatchObject([
    { code: 'never_proven' },
    { code: 'run_failed' },
    { code: 'run_failed' },
    { code: 'quarantined', fix: expect.stringContaining('retry') },
  ]);
  const { since, until } = json.quarantine;
  expect(Date.parse(until) - Date.parse(since)).toBe(hour);
  expect((await world.call('status')).out).toMatch(/quarantined +yes, until/);
  expect((await world.call('retry', address(0), '--json')).json).toMatchObject({
    changes: 1,
    returns: 0,
    quarantineLifted: false,
  });
  expect((await world.call('retry')).out).toMatch(/\nThe quarantine is over\.$/);
  expect((await world.call('status', '--json')).json.quarantine).toBeNull();
  expect((await world.call('sync')).code).toBe(0);
  expect(world.emulator.world.contacts()).toHaveLength(40);
});
