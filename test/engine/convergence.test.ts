import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  arrange,
  checkWrites,
  event,
  happen,
  oursOf,
  person,
  standings,
} from '../support/engine/sample-people.ts';
import { createStage } from '../support/engine/engine-stage.ts';
import { extent } from '../support/extent.ts';

describe('convergence over seeded worlds', () => {
  test('a second run is empty, opts in nobody who unsubscribed, and touches nobody foreign', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(person, { minLength: 1, maxLength: 12 }),
        fc.array(fc.array(event, { maxLength: 6 }), { maxLength: 3 }),
        fc.constantFrom('full' as const, 'fast' as const),
        async (people, rounds, mode) => {
          const stage = createStage();
          arrange(stage, people);
          for (const events of [[], ...rounds]) {
            for (const one of events) happen(stage, one, people.length);
            if (stage.people.length === 0 && stage.snapshot.recorded.count('contact') > 0) break;
            const before = standings(stage);
            const ours = oursOf(stage);
            const first = await stage.sync({ mode });
            expect(first.reasons).toEqual([]);
            checkWrites(stage, before, ours);
            const settled = mode === 'fast' ? await stage.sync({ mode: 'full' }) : first;
            expect(settled.reasons).toEqual([]);
            checkWrites(stage, standings(stage), oursOf(stage));
            const again = await stage.sync({ mode: 'full' });
            expect(stage.writes()).toEqual([]);
            expect(again.contacts.changes).toEqual({
              create: 0,
              opt_in: 0,
              opt_out: 0,
              delete: 0,
              adopt: 0,
              forget: 0,
            });
          }
          stage.close();
        },
      ),
      { numRuns: extent(10, 80), seed: 20_261_120 },
    );
  });
});

describe('one run', () => {
  test('opts in and out as the CRM says, and leaves unsubscribed people alone', async () => {
    const stage = createStage();
    const seed = (email: string, is?: 'opt_in' | 'opt_out') =>
      stage.emulator.seed.contact({ email, channels: is ? { ch_news: is } : {} });
    seed('equal@example.com', 'opt_in');
    seed('left@example.com', 'opt_out');
    seed('unwanted@example.com', 'opt_in');
    seed('bare@example.com');
    seed('foreign@example.com', 'opt_in');
    const wishes = {
      new: 'yes',
      equal: 'yes',
      left: 'yes',
      unwanted: 'no',
      bare: 'yes',
      never: 'no',
    };
    for (const [name, wish] of Object.entries(wishes)) {
      stage.people.push({ id: name, email: `${name}@example.com`, ch_news: wish });
    }
    const summary = await stage.sync();
    expect(summary.status).toBe('done');
    expect(summary.contacts.applied).toEqual({ create: 1, opt_in: 1, opt_out: 1, delete: 0 });
    expect(summary.contacts.changes).toMatchObject({ adopt: 4 });
    expect(summary.contacts.conflicts).toBe(1);
    const shown = standings(stage);
    const is = (name: string) => shown.get(`${name}@example.com`)?.memberships.get('ch_news');
    expect([is('new'), is('equal'), is('left'), is('unwanted'), is('bare'), is('foreign')]).toEqual(
      ['opt_in', 'opt_in', 'opt_out', 'opt_out', 'opt_in', 'opt_in'],
    );
    expect(shown.has('never@example.com')).toBe(false);
    stage.close();
  });

  test('keeps a person missing in the CRM, and fails on an empty CRM without a change', async () => {
    const stage = createStage();
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
    stage.people.push({ id: '2', email: 'b@example.com', ch_news: 'yes' });
    await stage.sync();
    stage.people.pop();
    expect((await stage.sync()).status).toBe('done');
    stage.people.pop();
    stage.writes();
    const empty = await stage.sync();
    expect(empty.status).toBe('failed');
    expect(empty.reasons.join()).toContain('the source of contacts is empty, but 2 are recorded');
    expect(stage.writes()).toEqual([]);
    expect(stage.emulator.world.contacts()).toHaveLength(2);
    stage.close();
  });

  test('after an uncertified reading only opts out', async () => {
    const stage = createStage();
    stage.emulator.seed.contact({ email: 'a@example.com', channels: { ch_news: 'opt_in' } });
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'no', ch_product: 'yes' });
    stage.people.push({ id: '2', email: 'b@example.com', ch_news: 'yes' });
    Object.assign(stage.certificate, { complete: false, why: 'row 7 is ragged', fix: 'mend it' });
    const summary = await stage.sync();
    expect(summary.status).toBe('failed');
    expect(summary.certificate.source).toBe(false);
    expect(summary.contacts.applied).toEqual({ create: 0, opt_in: 0, opt_out: 1, delete: 0 });
    stage.close();
  });

  test('in fast mode looks before it creates or opts in', async () => {
    const stage = createStage();
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
    await stage.sync();
    stage.emulator.dashboard.signUp({ email: 'b@example.com', channels: ['ch_news'] });
    stage.emulator.dashboard.leave('b@example.com', 'ch_news');
    stage.emulator.dashboard.leave('a@example.com', 'ch_product');
    await stage.clock.advance(3_600_000);
    stage.people[0] = { id: '1', email: 'a@example.com', ch_news: 'yes', ch_product: 'yes' };
    stage.people.push({ id: '2', email: 'b@example.com', ch_news: 'yes' });
    stage.writes();
    const summary = await stage.sync({ mode: 'fast' });
    expect(stage.writes()).toEqual([]);
    expect(summary.contacts.conflicts).toBe(2);
    expect(summary.status).toBe('done');
    stage.close();
  });

  test('keeps a person out under a new address who unsubscribed under the former one', async () => {
    const stage = createStage();
    stage.people.push({ id: '1', email: 'old@example.com', ch_news: 'yes' });
    await stage.sync();
    stage.emulator.dashboard.leave('old@example.com', 'ch_news');
    await stage.sync();
    stage.people[0] = { id: '1', email: 'new@example.com', ch_news: 'yes' };
    stage.writes();
    const summary = await stage.sync();
    expect(stage.writes()).toEqual([]);
    expect(summary.contacts.conflicts).toBe(1);
    stage.close();
  });
});
