/** What guards hold and what an approval releases: the whole engine against the whole emulator. */
import { describe, expect, test } from 'vitest';
import { Interrupted } from '../../../src/domain/errors.ts';
import {
  approve,
  approving,
  deletes,
  exportOf,
  flag,
  hour,
  leave,
  mirrored,
  person,
  range,
  staged,
} from '../../support/engine/change-volume.ts';

describe('the guard for deletes', () => {
  test('holds all deletes together, and lets everything else pass', async () => {
    const stage = await mirrored();
    await leave(stage, range(4, 20));
    stage.people.splice(0, 1, person(4, { ch_news: 'no' }));
    stage.people.push(person(30));
    const summary = await stage.sync();
    expect(summary).toMatchObject({
      status: 'held',
      reasons: [],
      contacts: {
        changes: { delete: 4, opt_out: 5, create: 1 },
        applied: { delete: 0, opt_out: 1, create: 1 },
        held: { delete: 4, opt_in: 0 },
      },
      problems: [{ class: 'held', isNew: true, reason: expect.stringContaining('4 people') }],
    });
    expect(summary.problems[0]?.fix).toContain(`crm-mirror approve ${summary.plan}`);
    expect(deletes(stage)).toBe(0);
    const [held] = stage.snapshot.holds.current();
    expect(held).toMatchObject({ plan: summary.plan, held: { delete: 4, opt_in: 0 } });
  });

  test('gives the same plan from run to run while nothing changes', async () => {
    const stage = await mirrored();
    await leave(stage, range(4, 20));
    const plans = [];
    for (const writes of [true, false, true]) {
      const { plan, status, contacts } = await stage.sync({ writes });
      expect({ status, held: contacts.held.delete }).toEqual({ status: 'held', held: 4 });
      plans.push(plan);
    }
    expect(new Set(plans).size).toBe(1);
    expect((await stage.sync()).problems).toMatchObject([{ class: 'held', isNew: false }]);
  });

  test('holds deletes of flagged people, and their opt-outs in a fast run', async () => {
    const stage = await mirrored({ policy: { absent: 'opt_out' } });
    exportOf(stage, [...[0, 1, 2, 3].map(flag), ...range(4, 20)]);
    expect(await stage.sync({ mode: 'fast' })).toMatchObject({
      status: 'held',
      contacts: { held: { delete: 4 }, applied: { opt_out: 0 } },
    });
  });

  test('holds more than twice the limit in seven days', async () => {
    const stage = await mirrored();
    for (const [from, held] of [
      [2, 0],
      [4, 0],
      [6, 0],
      [8, 2],
    ] as const) {
      exportOf(stage, [
        ...range(from - 2, from).map((one) => ({ ...one, deleted: 'true' })),
        ...range(from, 20),
      ]);
      expect((await stage.sync()).contacts.held.delete).toBe(held);
      await stage.clock.advance(24 * hour);
    }
    // Another week takes those who left before out of the count, not who is held.
    await stage.clock.advance(5 * 24 * hour);
    exportOf(stage, [...range(6, 9).map((one) => ({ ...one, deleted: 'true' })), ...range(9, 20)]);
    expect(await stage.sync()).toMatchObject({
      contacts: { applied: { delete: 1 }, held: { delete: 2 } },
    });
  });

  test('counts a person once in seven days, whatever changes follow', async () => {
    const stage = await mirrored({ policy: { deletes: 'owned', absent: 'opt_out' } });
    const from = [0, 3];
    for (const at of from) {
      exportOf(stage, [...[at, at + 1, at + 2].map(flag), ...range(at + 3, 20)]);
      expect((await stage.sync({ mode: 'fast' })).contacts.applied).toMatchObject({
        opt_out: 3,
        delete: 3,
      });
      await stage.clock.advance(24 * hour);
    }
    exportOf(stage, [flag(6), ...range(7, 20)]);
    expect((await stage.sync({ mode: 'fast' })).contacts.held.delete).toBe(1);
  });

  test('holds everybody of one mail domain below the limit', async () => {
    const stage = await mirrored({ guards: { delete: { percent: 50, floor: 2 } } });
    const without = (last: number) =>
      range(0, 20).filter((_, at) => at % 2 === 1 || at < 10 || at > last);
    await leave(stage, without(12));
    expect((await stage.sync()).contacts).toMatchObject({ applied: { delete: 2 } });
    await leave(
      stage,
      without(12).filter((_, at) => at % 2 === 1 || at > 4),
    );
    expect((await stage.sync()).problems[0]?.reason).toContain('one mail domain');
  });

  test('holds as many in a row as a page of the export has, below the limit', async () => {
    const stage = await mirrored({ guards: { delete: { percent: 50, floor: 2 } } });
    exportOf(stage, range(0, 300));
    await stage.sync({ firstLoad: true });
    await leave(stage, [...range(0, 120), ...range(220, 300)]);
    expect((await stage.sync()).problems[0]?.reason).toContain('100 of them stand in a row');
  });
});

describe('the guard for opt-ins', () => {
  test('holds opt-ins above the limit, and no stated opt-outs', async () => {
    const stage = await mirrored();
    stage.people.push(...range(20, 24));
    stage.people.splice(0, 1, person(0, { ch_news: 'no' }));
    const summary = await stage.sync();
    expect(summary).toMatchObject({
      status: 'held',
      contacts: { held: { opt_in: 4, delete: 0 }, applied: { create: 0, opt_out: 1 } },
    });
    expect((await stage.sync({ mode: 'fast' })).contacts.held.opt_in).toBe(4);
    stage.people.push(...range(24, 30));
    expect((await stage.sync({ firstLoad: true })).contacts).toMatchObject({
      applied: { create: 6 },
      held: { opt_in: 4 },
    });
  });

  test('counts people, not channels', async () => {
    const stage = await mirrored();
    stage.people.push(...range(20, 23).map((one) => ({ ...one, ch_product: '1' })));
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 3, opt_in: 3 } },
    });
  });

  test.each([
    ['nobody', []],
    ['nobody who can be read', range(0, 5).map((one) => ({ ...one, consent_at: 'soon' }))],
  ])('lets a first load pass whose source named %s', async (_, first) => {
    const stage = staged();
    exportOf(stage, first);
    await stage.sync();
    exportOf(stage, range(0, 30));
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 30 }, held: { opt_in: 0 } },
    });
    exportOf(stage, range(0, 40));
    expect((await stage.sync()).contacts.held.opt_in).toBe(10);
  });

  test('lets a first load pass that was interrupted', async () => {
    const stage = staged();
    stage.people.push(...range(0, 5));
    const stop = new AbortController();
    stop.abort(new Interrupted('SIGTERM'));
    expect((await stage.sync({ stop: stop.signal })).status).toBe('interrupted');
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 5 } },
    });
  });
});

describe('an approval', () => {
  test('releases what was shown, once, and no newcomers', async () => {
    const stage = await mirrored();
    await leave(stage, range(4, 20));
    const { plan } = await stage.sync();
    approve(stage, plan);
    exportOf(stage, [flag(4), ...range(5, 20)]);
    expect(await stage.sync()).toMatchObject({
      status: 'held',
      contacts: { applied: { delete: 4 }, held: { delete: 1 } },
    });
    expect(deletes(stage)).toBe(4);
    // It has ended with that run, and what was approved is not counted any more.
    expect(stage.snapshot.holds.approvals(0)).toEqual([]);
    const later = await stage.sync();
    expect(later).toMatchObject({ status: 'held', contacts: { held: { delete: 1 } } });
    approve(stage, later.plan);
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { delete: 1 } },
    });
  });

  test('survives fast runs and interrupted ones, and expires after seven days', async () => {
    const stage = await mirrored();
    await leave(stage, range(4, 20));
    const { plan } = await stage.sync();
    approve(stage, plan);
    await stage.sync({ mode: 'fast' });
    const stop = new AbortController();
    stop.abort(new Interrupted('SIGTERM'));
    await stage.sync({ stop: stop.signal });
    expect(stage.snapshot.holds.approvals(0)).toHaveLength(1);
    await stage.clock.advance(7 * 24 * hour);
    expect(await stage.sync()).toMatchObject({
      status: 'held',
      contacts: { applied: { delete: 0 } },
    });
  });

  test('covers the further channels of people it creates', async () => {
    const stage = await mirrored({ platform: { quirks: ['all-channels=opt_out'] } });
    stage.people.push(...range(20, 24).map((one) => ({ ...one, ch_product: '1' })));
    const { plan, contacts } = await stage.sync();
    expect(contacts.held.opt_in).toBe(4);
    approve(stage, plan);
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 4, opt_in: 4 }, held: { opt_in: 0 } },
    });
  });

  test.each([
    ['where a creation adds no channel', undefined],
    ['where a creation adds every channel', 'all-channels=opt_out'],
  ])('releases nothing else for the people it names, %s', async (_, quirk) => {
    const stage = await mirrored(quirk === undefined ? {} : { platform: { quirks: [quirk] } });
    stage.people.push(...range(20, 24));
    approve(stage, (await stage.sync()).plan);
    for (const one of stage.people.slice(20)) one['ch_product'] = '1';
    const summary = await stage.sync();
    expect(summary).toMatchObject({
      status: 'held',
      contacts: { applied: { create: 4, opt_in: 0 }, held: { opt_in: 4 } },
      problems: [{ class: 'held', key: 'opt_in' }],
    });
    approve(stage, summary.plan);
    expect((await stage.sync()).contacts.applied).toMatchObject({ create: 0, opt_in: 4 });
  });

  test('can be given with the run: for its own plan, or for an earlier one', async () => {
    const stage = await mirrored();
    await leave(stage, range(4, 20));
    // The plan counts no reading: until a run has, nobody is due in it.
    await stage.sync();
    const { plan } = await stage.sync({ writes: false });
    expect(await stage.sync({ approve: approving(plan) })).toMatchObject({
      status: 'done',
      contacts: { applied: { delete: 4 } },
    });
    stage.people.push(...range(30, 34));
    const own = await stage.sync({ writes: false });
    expect(own.contacts.held.opt_in).toBe(4);
    expect(await stage.sync({ approve: approving(own.plan) })).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 4 } },
    });
  });

  test('with the run, for an unknown plan, ends it before anything is sent', async () => {
    const stage = await mirrored();
    stage.people.push(...range(30, 34));
    const { plan } = await stage.sync();
    stage.people.push(person(40, { ch_news: 'yes' }));
    await expect(stage.sync({ approve: approving('cafe') })).rejects.toThrow(
      new RegExp(`under cafe, and this run plans \\w{16} → approve one of these: ${plan};`),
    );
    expect(stage.writes()).toEqual([]);
  });
});
