/**
 * The twelve failures that have hurt the users of mirrors most, each told end to end: over a real
 * socket, with real files. Two of them need killed and held up processes, and have their own tests:
 * a crash in the middle (6, crash.long.test.ts) and two runs at once (7, test/store/fencing-token).
 */
import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Summary } from '../../src/engine/report/run-summary.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { createWorld, csvOf, type Person, type World } from '../support/engine/engine-world.ts';

const ann = 'ann@example.com';
const bob = 'bob@example.com';
const eve = 'eve@example.com';
const crowd = (size: number): Person[] =>
  Array.from({ length: size }, (_, at) => ({ email: `p${at}@example.com`, news: 'yes' }));
const newsOf = (world: World, people: readonly Person[]): (string | undefined)[] =>
  people.map(({ email }) => world.shown(email)?.['ch_news']);
const allIn = (size: number): string[] => Array.from({ length: size }, () => 'opt_in');

const other = { email: 'other@example.com', news: 'yes' };

/** Two exports, far enough apart, that name nobody else. */
async function without(world: World, people: readonly Person[]): Promise<Summary> {
  world.people([...people]);
  await world.sync();
  world.clock.pass(21 * 3_600_000);
  world.people([...people]);
  return world.sync();
}

const strict = { deletes: 'owned', absent: 'opt_out' } as const;

describe.each([['keeping everybody', {}] as const, ['deleting who left', strict] as const])(
  '1: an empty or partial source deletes nobody, %s',
  (_policy, policy) => {
    const people = crowd(40);
    const held = 'deletes' in policy ? 'held' : 'done';
    test.each([
      ['without any row', csvOf([]), 'failed', 'failed'],
      ['cut off in the middle of a row', csvOf(people).slice(0, 90), 'failed', 'failed'],
      ['cut off between two rows, unseen', csvOf(people.slice(0, 2)), 'done', held],
    ])('%s', async (_what, text, once, twice) => {
      const world = await createWorld({ kinds: ['contact'], policy });
      world.people(people);
      await world.sync();
      world.writes();
      for (const status of [once, twice]) {
        world.csv(text);
        expect((await world.sync()).status).toBe(status);
        expect((await world.sync({ mode: 'fast' })).status).toBe(once);
        // As long as it takes for who is missing to count as gone.
        world.clock.pass(21 * 3_600_000);
      }
      expect(world.writes()).toEqual([]);
      world.people(people);
      await world.sync();
      expect(world.writes()).toEqual([]);
      expect(newsOf(world, people)).toEqual(allIn(40));
    });
  },
);

test('2: unsubscribed people are not subscribed again by a sync', async () => {
  const world = await createWorld({ kinds: ['contact'] });
  const people = [ann, bob, eve].map((email) => ({ email, news: 'yes', product: 'yes' }));
  world.people(people);
  await world.sync();
  const { dashboard } = world.emulator;
  dashboard.leave(ann, 'ch_news');
  dashboard.unsubscribe(bob);
  dashboard.suppress(eve, 'complaint');
  world.writes();
  for (const mode of ['full', 'fast', 'full'] as const) {
    // The CRM still says yes, and says it as something new.
    world.people([...people, { email: `${mode}@example.com`, news: 'no' }]);
    await world.sync({ mode });
  }
  expect(world.writes()).toEqual([]);
  expect(world.shown(ann)).toEqual({ ch_news: 'opt_out', ch_product: 'opt_in' });
});

describe('3: deleting and creating again does not lift an opt-out', () => {
  const people = [ann, bob, eve].map((email) => ({ email, news: 'yes' }));

  test('when somebody deletes the contacts on the platform', async () => {
    const world = await createWorld({ kinds: ['contact'], policy: { missing: 'recreate' } });
    world.people(people);
    await world.sync();
    const { dashboard } = world.emulator;
    dashboard.leave(ann, 'ch_news');
    dashboard.unsubscribe(bob);
    await world.sync();
    for (const email of [ann, bob, eve]) dashboard.deleteContact(email);
    const summary = await world.sync();
    // The person who never unsubscribed is the only one created again.
    expect(newsOf(world, people)).toEqual([undefined, undefined, 'opt_in']);
    expect(summary.contacts.conflicts).toBe(2);
  });

  test('when we deleted them with the CRM, and the CRM lists them again', async () => {
    const world = await createWorld({ kinds: ['contact'], policy: strict });
    world.people([...people, other]);
    await world.sync();
    world.emulator.dashboard.leave(ann, 'ch_news');
    world.emulator.dashboard.unsubscribe(bob);
    await world.sync();
    expect((await without(world, [other])).contacts.applied).toMatchObject({ delete: 3 });
    world.people([...people, other]);
    const summary = await world.sync();
    expect(newsOf(world, people)).toEqual([undefined, undefined, 'opt_in']);
    expect(summary.contacts.conflicts).toBe(2);
  });

  test('when the snapshot is lost: the do-not-contact list remembers', async () => {
    const world = await mirrored();
    world.people(people);
    await world.call('sync');
    world.emulator.dashboard.leave(ann, 'ch_news');
    await world.call('sync');
    for (const end of ['', '-wal', '-shm']) rmSync(world.path + end, { force: true });
    world.emulator.dashboard.deleteContact(ann);
    world.writes();
    expect((await world.call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);
    expect(world.shown(ann)).toBeUndefined();
  });
});

test('4: foreign contacts are neither deleted nor changed', async () => {
  const world = await createWorld({ policy: strict });
  const { seed } = world.emulator;
  seed.contact({ email: eve, channels: { ch_news: 'opt_in' } });
  seed.template({ name: 'theirs', subject: 'Hello' });
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'yes' },
  ]);
  world.template('ours', { subject: 'Hi' });
  await world.sync();
  world.template('ours', { subject: 'Hi again' });
  await without(world, [{ email: ann, news: 'no' }]);
  const writes = world.writes();
  expect(writes.map(({ method }) => method).toSorted()).toEqual([
    'DELETE',
    ...Array.from({ length: 5 }, () => 'POST'),
    'PUT',
  ]);
  expect(writes.flatMap(({ body }) => body.email ?? body.name ?? [])).not.toContain(eve);
  expect(world.shown(eve)).toEqual({ ch_news: 'opt_in' });
  const theirs = world.emulator.world.templates().find(({ name }) => name === 'theirs');
  expect(theirs).toMatchObject({ subject: 'Hello', status: 'draft' });
});

test('5: pages that shift during the listing hide nobody', async () => {
  const world = await createWorld({ kinds: ['contact'], policy: { missing: 'recreate' } });
  const people = crowd(150);
  for (const { email } of people)
    world.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  world.emulator.seed.contact({ email: eve });
  world.people(people);
  await world.sync();
  world.writes();
  let pages = 0;
  world.server.watch.acted = ({ route }) => {
    if (route !== 'contacts.list') return;
    pages += 1;
    // The first contact of the second page moves to the first page, which was read.
    if (pages === 1) world.emulator.dashboard.deleteContact(eve);
  };
  await world.sync();
  expect(pages).toBeGreaterThan(1);
  expect(world.writes()).toEqual([]);
  expect(newsOf(world, people)).toEqual(allIn(150));
});

test('8: case and spaces create nobody twice', async () => {
  const world = await createWorld({ kinds: ['contact'] });
  world.emulator.seed.contact({ email: bob, channels: { ch_news: 'opt_in' } });
  const spelt = [
    ann,
    ' Ann@Example.com ',
    'ANN@EXAMPLE.COM',
    ' BOB@example.com',
    'Bob@Example.Com',
  ];
  const rows = spelt.map((email, at) => `${at},${email},${at === 4 ? 'no' : 'yes'},,`);
  world.csv(`${['id,email,news,product,lost', ...rows].join('\n')}\n`);
  await world.sync();
  await world.sync();
  expect(world.writes().map(({ body }) => body.subscription)).toEqual(['opt_out', 'opt_in']);
  expect(
    world.emulator.world
      .contacts()
      .map(({ email }) => email)
      .toSorted(),
  ).toEqual([ann, bob]);
  // Of several records the strictest wins.
  expect(world.shown(bob)).toEqual({ ch_news: 'opt_out' });
});

test('9: both record types together cause no storm of 429s', async () => {
  // To be told of several processes as well, once they share a budget.
  const limits = ['contacts.enrol=5/10', 'templates.create=2/10', 'contacts.list=2/10'];
  const world = await createWorld({ limits });
  const people = crowd(40);
  world.people(people);
  for (let at = 0; at < 8; at += 1) world.template(`letter-${at}`, { subject: 'Hi' });
  const { status, requests } = await world.sync();
  expect(status).toBe('done');
  expect(newsOf(world, people)).toEqual(allIn(40));
  expect(world.emulator.world.templates()).toHaveLength(8);
  // A limit is learned by a refusal, and a busy machine adds a few.
  expect(requests.rateLimited).toBeLessThanOrEqual(5);
});

describe('10: no clock and no late change loses a row', () => {
  test.each([-7_200_000, 0, 86_400_000])('with our clock ahead by %i ms', async (ms) => {
    const world = await createWorld({ kinds: ['contact'] });
    world.people([{ email: ann, news: 'yes' }]);
    await world.sync();
    world.clock.pass(ms);
    world.people([
      { email: ann, news: 'no' },
      { email: bob, news: 'yes' },
    ]);
    await world.sync({ mode: 'fast' });
    expect([world.shown(ann), world.shown(bob)]).toEqual([
      { ch_news: 'opt_out' },
      { ch_news: 'opt_in' },
    ]);
  });

  test('when it is committed during a run: the next one reads it', async () => {
    const world = await createWorld({ kinds: ['contact'] });
    world.people([{ email: ann, news: 'yes' }]);
    world.server.watch.acted = ({ route, nth }) => {
      if (route === 'contacts.enrol' && nth === 1) world.people([{ email: ann, news: 'no' }]);
    };
    await world.sync();
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
    await world.sync({ mode: 'fast' });
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
  });
});

test('11: a run does what its plan said', async () => {
  const world = await mirrored();
  const { json: plan } = await world.call('plan', '--json');
  expect(world.writes()).toEqual([]);
  const { json: run } = await world.call('sync', '--json');
  expect(run.plan).toBe(plan.plan);
  expect(run.contacts.changes).toEqual(plan.contacts.changes);
  expect(run.contacts.applied).toMatchObject({ create: 2, opt_out: 0 });
  const { json: after } = await world.call('plan', '--json');
  expect(after.contacts.changes).toMatchObject({ create: 0, opt_in: 0, opt_out: 0 });
});

test('12: one bad row neither stops the rest nor is retried without end', async () => {
  const world = await createWorld({ kinds: ['contact'] });
  const good = crowd(4);
  const bad = { email: bob, news: 'yes' };
  const odd = { email: ann, news: 'maybe' };
  world.people([odd, bad, ...good]);
  world.server.fail(({ body }) => body.email === bob, { is: 'answer', status: 422 });
  const summary = await world.sync();
  expect(newsOf(world, good)).toEqual(allIn(4));
  expect(summary).toMatchObject({ status: 'rejected', contacts: { rejected: 1, invalid: 1 } });
  world.writes();
  for (const mode of ['full', 'fast', 'full'] as const) {
    expect((await world.sync({ mode })).contacts.rejected).toBe(1);
  }
  expect(world.writes()).toEqual([]);
  // It is tried again when it has changed, and not before.
  world.people([odd, { ...bad, product: 'no' }, ...good]);
  await world.sync();
  expect(world.writes().map(({ body }) => body.email)).toEqual([bob]);
});
