/**
 * What the platform understood and refused: one record, one channel, and people first.
 */
import { describe, expect, test } from 'vitest';
import type { Arrival, Fault } from '../../support/engine/platform-server.ts';
import { createWorld, type World } from '../../support/engine/engine-world.ts';

const ann = 'ann@example.com';
const bob = 'bob@example.com';
const hour = 3_600_000;

const isEnrolment = ({ route }: Arrival): boolean => route === 'contacts.enrol';
const answering = (status: number): Fault => ({ is: 'answer', status });
const contactsOnly = () => createWorld({ kinds: ['contact'] });

/** Somebody the platform knows already, with an address made of `name`. */
function known(world: World, name: string, channels: Record<string, 'opt_in' | 'opt_out'> = {}) {
  const email = `${name}@example.com`;
  return { email, id: world.emulator.seed.contact({ email, channels }) };
}

function expectNoneOpen(world: World): void {
  const { sent, unknown, planned } = world.states();
  expect({ sent, unknown, planned }).toEqual({});
}

describe('a 409 to an enrolment is followed by a look', () => {
  test('which rejects and parks another state, not counted by the quarantine', async () => {
    const world = await contactsOnly();
    const names = Array.from({ length: 25 }, (_, at) => `p${at}`);
    for (const name of names) known(world, name, { ch_news: 'opt_in' });
    world.people(names.map((name) => ({ email: `${name}@example.com`, news: 'no' })));
    world.server.fail(isEnrolment, answering(409));
    const summary = await world.sync();
    expect(summary).toMatchObject({ status: 'rejected', reasons: [], contacts: { rejected: 25 } });
    expect(world.writes()).toHaveLength(25);
    expect(summary.problems[0]?.reason).toContain(
      'the platform does not change an existing subscription',
    );
    expectNoneOpen(world);
  });
});

describe('a 404 to an enrolment by id', () => {
  test('stops that channel when the contact exists, reported once, and no other', async () => {
    const channels = ['ch_lost', 'ch_news'] as const;
    const world = await createWorld({ kinds: ['contact'], channels: [...channels] });
    const names = Array.from({ length: 60 }, (_, at) => `p${at}`);
    for (const name of names) known(world, name, {});
    world.people(names.map((name) => ({ email: `${name}@example.com`, lost: 'yes', news: 'yes' })));
    const summary = await world.sync();
    expect(summary.status).toBe('failed');
    expect(summary.reasons.filter((reason) => reason.includes('ch_lost'))).toHaveLength(1);
    const news = names.map((name) => world.shown(`${name}@example.com`)?.['ch_news']);
    expect(news).toEqual(names.map(() => 'opt_in'));
  });
});

describe('a 404 to an enrolment by email', () => {
  const people = (count: number, wish: object) =>
    Array.from({ length: count }, (_, at) => ({ email: `p${at}@example.com`, ...wish }));

  test('is rejected and parked; fewer than five stop nothing', async () => {
    const world = await contactsOnly();
    world.people(people(4, { news: 'yes' }));
    world.server.fail(isEnrolment, answering(404));
    const summary = await world.sync();
    expect(summary).toMatchObject({ status: 'rejected', reasons: [], contacts: { rejected: 4 } });
    expect(world.writes()).toHaveLength(4);
    expect((await world.sync()).status).toBe('done');
    expect(world.writes()).toEqual([]);
  });
});

describe.each([400, 422])('%i', (status) => {
  test('is not rejected any more once the change is not wanted any more', async () => {
    const world = await contactsOnly();
    world.people([{ email: ann, news: 'yes' }]);
    world.server.fail(isEnrolment, answering(status));
    expect(await world.sync()).toMatchObject({ contacts: { rejected: 1 } });
    world.people([{ email: ann, news: 'no' }]);
    expect(await world.sync()).toMatchObject({ status: 'done', contacts: { rejected: 0 } });
  });

  test('parks a template like a person', async () => {
    const world = await createWorld({ kinds: ['template'] });
    world.template('welcome', { subject: 'One' });
    world.server.fail(({ method }) => method === 'POST', answering(status), 1);
    expect(await world.sync()).toMatchObject({ status: 'rejected', templates: { rejected: 1 } });
    world.writes();
    expect((await world.sync()).status).toBe('done');
    expect(world.writes()).toEqual([]);
    world.template('welcome', { subject: 'One, changed' });
    expect(await world.sync()).toMatchObject({ status: 'done', templates: { rejected: 0 } });
    expect(world.emulator.world.templates()).toHaveLength(1);
  });

  test('retries an opt-out with rising delay, and lists it first each time', async () => {
    const world = await contactsOnly();
    known(world, 'ann', { ch_news: 'opt_in' });
    world.people([
      { email: ann, news: 'no' },
      { email: bob, news: 'yes' },
    ]);
    const play = world.server.fail(isEnrolment, answering(status));
    const first = await world.sync();
    expect(first.problems.map(({ key }) => key)).toEqual([ann, bob]);
    const tries: number[] = [];
    for (let passed = 0; passed < 60; passed += 1) {
      world.writes();
      const summary = await world.sync({ mode: passed % 2 === 0 ? 'fast' : 'full' });
      expect(summary.status).toBe('rejected');
      expect(summary.problems[0]).toMatchObject({ key: ann, class: 'rejected' });
      if (world.writes().length > 0) tries.push(passed);
      world.clock.pass(hour);
    }
    // 1, 2, 4, 8, 16 and 24 hours after the one before.
    expect(tries).toEqual([1, 3, 7, 15, 31, 55]);
    play.undo();
    world.clock.pass(24 * hour);
    expect((await world.sync()).status).toBe('done');
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
  });
});
