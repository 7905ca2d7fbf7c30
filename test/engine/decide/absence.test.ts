/** Who left the CRM: real exports, twenty hours apart, against the emulator over HTTP. */
import { describe, expect, test } from 'vitest';
import { createWorld, type World, type WorldOptions } from '../../support/engine/engine-world.ts';

const hour = 3_600_000;
const ann = { email: 'ann@example.com', news: 'yes' };
const bob = { email: 'bob@example.com', news: 'yes' };
const eve = { email: 'eve@example.com', news: 'yes' };

/** Ann was there before us, bob and eve are created; nothing is held, nothing left to do. */
async function mirrored(options: WorldOptions = {}): Promise<World> {
  const world = await createWorld({ kinds: ['contact'], ...options });
  world.emulator.seed.contact({ email: ann.email, channels: { ch_news: 'opt_in' } });
  world.people([ann, bob, eve]);
  await world.sync();
  world.writes();
  return world;
}

const sent = (world: World): string[] =>
  world
    .writes()
    .map(({ method, body }) =>
      `${method} ${'subscription' in body ? body.subscription : ''}`.trim(),
    );

/** Two exports that lack them, far enough apart. */
async function leave(world: World, people: Parameters<World['people']>[0]): Promise<void> {
  world.people(people);
  await world.sync();
  world.clock.pass(20 * hour);
  world.people(people);
}

describe('policy.absent: opt_out', () => {
  const policy = { absent: 'opt_out' } as const;

  test('opts out people missing in two exports that are 20 hours apart', async () => {
    const world = await mirrored({ policy });
    world.people([bob, eve]);
    expect((await world.sync()).contacts.changes).toMatchObject({ opt_out: 0 });
    world.clock.pass(21 * hour);
    // The same file, however often and late it is read, is one reading.
    expect((await world.sync()).contacts.changes).toMatchObject({ opt_out: 0 });
    world.people([eve, bob]);
    const planned = await world.sync({ writes: false });
    expect(planned.contacts.changes).toMatchObject({ opt_out: 0 });
    const summary = await world.sync();
    expect(summary).toMatchObject({ status: 'done', contacts: { applied: { opt_out: 1 } } });
    expect(world.shown(ann.email)).toEqual({ ch_news: 'opt_out' });
    expect(world.recorded(ann.email)).toMatchObject({ ch_news: { is: 'opt_out', by: 'us' } });
    expect(sent(world)).toEqual(['POST opt_out']);
    expect((await world.sync()).contacts.changes).toMatchObject({ opt_out: 0 });
  });

  test('starts over for people who are listed in between, also by a fast run', async () => {
    const world = await mirrored({ policy });
    await leave(world, [bob, eve]);
    world.people([ann, bob, eve]);
    await world.sync({ mode: 'fast' });
    world.people([bob, eve]);
    await world.sync();
    expect(sent(world)).toEqual([]);
  });

  test('neither counts nor opts out in a fast run', async () => {
    const world = await mirrored({ policy });
    for (const people of [
      [bob, eve],
      [eve, bob],
    ]) {
      world.people(people);
      await world.sync({ mode: 'fast' });
      world.clock.pass(21 * hour);
    }
    await world.sync();
    world.clock.pass(21 * hour);
    world.people([bob, eve]);
    await world.sync({ mode: 'fast' });
    expect(sent(world)).toEqual([]);
    await world.sync();
    expect(sent(world)).toEqual(['POST opt_out']);
  });
});

describe('policy.deletes', () => {
  test('deletes nobody in a backfill', async () => {
    const world = await mirrored({ policy: { deletes: 'owned' } });
    await leave(world, [eve]);
    await world.sync({ firstLoad: true });
    expect(sent(world)).toEqual([]);
  });

  test('deletes nobody when the export was written anew after it counted', async () => {
    const world = await mirrored({ policy: { deletes: 'owned' } });
    await leave(world, [ann, eve]);
    world.people([{ ...ann, news: 'no' }, eve]);
    world.server.watch.arrived = ({ method }) => {
      if (method === 'POST') world.people([ann, bob, eve]);
    };
    const { status, contacts } = await world.sync();
    expect({ status, ...contacts.applied }).toMatchObject({
      status: 'done',
      opt_out: 2,
      delete: 0,
    });
    expect(world.shown(bob.email)).toEqual({ ch_news: 'opt_out' });
    await world.sync();
    expect(world.shown(bob.email)).toEqual({ ch_news: 'opt_in' });
  });

  test('sends no delete when the export was written anew while the deletes waited', async () => {
    const world = await mirrored({
      policy: { deletes: 'owned' },
      limits: ['*=1000000/1', 'contacts.delete=1/60'],
    });
    await leave(world, [eve]);
    let named = false;
    world.server.watch.arrived = ({ method }) => {
      if (method === 'DELETE' && !named) world.people([ann, bob, eve]);
      named ||= method === 'DELETE';
    };
    const { status, contacts } = await world.sync();
    expect({ status, applied: contacts.applied['delete'] }).toEqual({ status: 'done', applied: 1 });
    expect([ann, bob].filter(({ email }) => world.shown(email))).toHaveLength(1);
    expect(world.states()['stale']).toBe(1);
  });

  test('takes nobody for due when the export was written anew during the listing', async () => {
    const world = await mirrored({ policy: { deletes: 'owned' } });
    await leave(world, [ann, bob]);
    world.server.watch.arrived = ({ method, path }) => {
      if (method === 'GET' && path.includes('/list')) world.people([ann, bob, eve]);
    };
    expect((await world.sync()).contacts.applied).toMatchObject({ delete: 0 });
    expect(world.shown(eve.email)).toEqual({ ch_news: 'opt_in' });
  });
});
