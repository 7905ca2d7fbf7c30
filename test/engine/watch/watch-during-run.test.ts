/** The sentinel beside a run of the same process, and where it has to keep still. */
import { describe, expect, test } from 'vitest';
import { quirks } from '../../../src/emulator/quirks/quirks.ts';
import { Interrupted, Invalid, Rejected } from '../../../src/domain/errors.ts';
import type { Arrival } from '../../support/engine/platform-server.ts';
import {
  at,
  NEWS,
  watched,
  type Watched,
  type Person,
  type WorldOptions,
} from '../../support/engine/engine-world.ts';
import { sampled } from '../../support/extent.ts';

const counters = 'list 1×1';

const ann: Person = { email: at('ann'), news: 'yes' };
const bob: Person = { email: at('bob'), news: 'yes' };
const annWantsMore: Person = { ...ann, product: 'yes' };
const bobWantsOut: Person = { ...bob, news: 'no' };

async function standing(people: Person[], options: WorldOptions = {}): Promise<Watched> {
  const world = await watched(options);
  world.people(people);
  await world.sync();
  await world.look();
  world.writes();
  return world;
}

/** Acts once, when such a request has arrived, before it is answered. */
function once(world: Watched, when: (arrival: Arrival) => boolean, act: () => Promise<void>): void {
  let isDone = false;
  world.server.watch.arrived = async (arrival) => {
    if (isDone || !when(arrival)) return;
    isDone = true;
    await act();
  };
}

const isOptOut = ({ body }: Arrival): boolean => body.subscription === 'opt_out';
const optedIn = (world: Watched): unknown[] =>
  world.writes().filter(({ body }) => body.subscription === 'opt_in');

describe('a look during a run that is sending', () => {
  test.each([
    [true, 0],
    [false, 1],
  ])(
    'keeps the run from opting in a person who unsubscribed, if it looks: %s',
    async (looks, sent) => {
      const world = await standing([ann, bob]);
      world.people([annWantsMore, bobWantsOut]);
      // Opt-outs leave first.
      once(world, isOptOut, async () => {
        world.emulator.dashboard.unsubscribe(at('ann'));
        if (looks) expect(await world.look()).toMatchObject({ is: 'listed', learnt: 1 });
      });
      await world.sync();
      expect(optedIn(world)).toHaveLength(sent);
      expect(world.hasLeft('ann')).toBe(looks);
    },
  );

  test('keeps the run from creating a person who signed up and unsubscribed', async () => {
    const world = await standing([bob]);
    world.people([ann, bobWantsOut]);
    once(world, isOptOut, async () => {
      world.emulator.dashboard.signUp({ email: at('ann') });
      world.emulator.dashboard.unsubscribe(at('ann'));
      expect(await world.look()).toMatchObject({ is: 'listed', learnt: 1 });
    });
    expect((await world.sync()).contacts.conflicts).toBe(1);
    expect(optedIn(world)).toEqual([]);
    expect([world.hasLeft('ann'), world.against('ann')]).toEqual([true, ['unsubscribed *']]);
  });

  test('concludes nothing about a person with a change in flight until that has ended', async () => {
    const world = await standing([ann, bob]);
    world.people([{ ...ann, news: 'no' }, bob]);
    once(world, isOptOut, async () => {
      world.emulator.dashboard.unsubscribe(at('ann'));
      expect(await world.look()).toMatchObject({ is: 'listed', learnt: 0 });
      // While it lasts nothing calls for another listing.
      expect(await world.look()).toMatchObject({ is: 'still', asked: [counters] });
    });
    await world.sync();
    expect([world.hasLeft('ann'), world.recorded(at('ann'))[NEWS]?.by]).toEqual([false, 'us']);
    expect(await world.look()).toMatchObject({ is: 'listed', learnt: 1 });
    expect([world.hasLeft('ann'), world.recorded(at('ann'))[NEWS]?.by]).toEqual([true, 'us']);
    expect(await world.look()).toMatchObject({ is: 'still' });
  });
});

test('a listing of several looks is followed by another, as a run was in progress at first', async () => {
  const limits = ['contacts.list=8/60', '*=100000/1'];
  const world = await standing([ann, bob], { limits });
  for (let nth = 0; nth < 150; nth += 1)
    world.emulator.seed.contact({ email: at(`gone${nth}`), status: 'unsubscribed' });
  world.people([ann, bobWantsOut]);
  world.clock.pass(61_000);
  once(world, isOptOut, async () => {
    expect(await world.look()).toMatchObject({ is: 'listing' });
  });
  await world.sync();
  const seen: string[] = [];
  for (let nth = 0; nth < 6; nth += 1) {
    world.clock.pass(61_000);
    seen.push((await world.look()).is);
  }
  expect(seen.filter((is) => is === 'listed')).toHaveLength(2);
  expect(seen.at(-1)).toBe('still');
});

describe('a look during a run that has listed the platform', () => {
  /** Acts when the contacts were listed, and before anything is decided: templates wait. */
  async function between(world: Watched, act: () => Promise<void>): Promise<void> {
    const listed = Promise.withResolvers<void>();
    world.server.watch.answered = ({ route }) => route === 'contacts.list' && listed.resolve();
    once(
      world,
      ({ route }) => route === 'templates.list',
      async () => {
        await listed.promise;
        await act();
      },
    );
    await world.sync();
  }
  const kinds: WorldOptions['kinds'] = ['contact', 'template'];

  test('is not outweighed by the older listing', async () => {
    const world = await standing([ann, bob], { kinds });
    world.people([annWantsMore, bob]);
    await between(world, async () => {
      world.emulator.dashboard.unsubscribe(at('ann'));
      expect(await world.look()).toMatchObject({ is: 'listed', learnt: 1 });
    });
    expect(optedIn(world)).toEqual([]);
    expect([world.hasLeft('ann'), world.against('ann')]).toEqual([true, ['unsubscribed *']]);
  });

  test('finds an adopted person once the run has adopted the contact', async () => {
    const world = await standing([bob], { kinds });
    world.emulator.dashboard.signUp({ email: at('ann'), channels: [NEWS] });
    world.people([ann, bob]);
    await between(world, async () => {
      world.emulator.dashboard.unsubscribe(at('ann'));
      expect(await world.look()).toMatchObject({ is: 'listed', learnt: 0 });
      expect(await world.look()).toMatchObject({ is: 'still' });
    });
    expect(world.hasLeft('ann')).toBe(false);
    expect(await world.look()).toMatchObject({ is: 'listed', learnt: 1 });
    expect(world.hasLeft('ann')).toBe(true);
    expect(await world.look()).toMatchObject({ is: 'still' });
  });
});

describe('no look happens', () => {
  test('when the snapshot is bound to another account', async () => {
    const world = await standing([ann]);
    const before = await world.look({}, 'key_live_other');
    expect(before).toMatchObject({ is: 'unproven', asked: [] });
  });

  test('when the platform does not tell its counts', async () => {
    const world = await standing([ann]);
    const by = ({ body, ...answer }: { status: number; headers: object; body: string }) => {
      const { unsubscribedContacts: _, ...rest } = JSON.parse(body);
      return { ...answer, headers: {}, body: JSON.stringify(rest) };
    };
    const fault = world.server.fail(() => true, { is: 'rewrite', by });
    world.emulator.dashboard.unsubscribe(at('ann'));
    expect(await world.look()).toMatchObject({ is: 'uncounted', asked: [counters] });
    fault.undo();
    expect(await world.look()).toMatchObject({ is: 'listed', learnt: 1 });
  });

  test('on a mirror without contacts, which is reported', async () => {
    const world = await watched({ kinds: ['template'] });
    await expect(world.look()).rejects.toThrow(Invalid);
  });

  test('when the key is refused or it is to stop: it throws', async () => {
    const world = await standing([ann]);
    const why = new Interrupted('SIGTERM');
    await expect(world.look({ stop: AbortSignal.abort(why) })).rejects.toBe(why);
    world.server.fail(() => true, { is: 'answer', status: 401 });
    await expect(world.look()).rejects.toMatchObject({ status: 401 });
    await expect(world.look()).rejects.toThrow(Rejected);
  });
});

test('after a restore, an opt-out recorded as ours may be the person’s by now', async () => {
  const world = await standing([ann]);
  world.people([{ ...ann, news: 'no' }]);
  await world.sync();
  world.emulator.dashboard.unsubscribe(at('ann'));
  world.clock.pass(1_000);
  await world.look({ restored: true });
  expect(world.recorded(at('ann'))[NEWS]).toMatchObject({ is: 'opt_out', by: 'platform' });
});

const spelled = quirks.flatMap(({ name, values }) =>
  values ? values.map((value) => `${name}=${value}`) : [name],
);
test.each(sampled(spelled, 6))('%s does no harm', async (quirk) => {
  const world = await watched({ platform: { quirks: [quirk] } });
  for (const { email } of [ann, bob]) world.emulator.dashboard.signUp({ email });
  world.people([ann, bob]);
  await world.sync();
  await world.look();
  world.emulator.seed.contact({ email: 'Eve@Example.com', status: 'blocked' });
  world.emulator.dashboard.unsubscribe(at('ann'));
  await world.look();
  expect([world.hasLeft('ann'), world.hasLeft('bob')]).toEqual([true, false]);
  expect(world.against('ann')).toContain('unsubscribed *');
  expect(await world.look()).toMatchObject({ is: 'still' });
});
