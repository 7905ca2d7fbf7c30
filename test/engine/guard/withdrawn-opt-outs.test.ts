/** The guard for opt-ins: a column that came empty takes back no list of opt-outs. */
import { describe, expect, test } from 'vitest';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';
import { approve, approving, exportOf, person, range } from '../../support/engine/change-volume.ts';

/** Nothing but the rule itself holds an opt-in. */
const guards = { opt_in: { percent: 100, floor: 1_000_000 } };

const no = (at: number, more: Record<string, unknown> = {}) =>
  person(at, { ch_news: 'no', ...more });

/** Twelve people of ours; the CRM has stated the opt-outs of the first `out` of them. */
async function optedOut(out: number, options: StageOptions = {}): Promise<Stage> {
  const stage = openStage({ guards, ...options });
  exportOf(stage, range(0, 12));
  await stage.sync();
  exportOf(stage, [...range(0, out).map((_, at) => no(at)), ...range(out, 12)]);
  expect((await stage.sync()).contacts.applied['opt_out']).toBe(out);
  stage.writes();
  return stage;
}

/** The first `back` of `out` people say yes again. */
const withdrawn = (back: number, out: number) => [
  ...range(0, back),
  ...range(back, out).map((_, at) => no(back + at)),
  ...range(out, 12),
];

const isIn = (stage: Stage, { email }: { email: string }): boolean =>
  stage.emulator.world.contact(email)?.channels.find(({ id }) => id === 'ch_news')?.subscription ===
  'opt_in';
const countIn = (stage: Stage): number => range(0, 12).filter((one) => isIn(stage, one)).length;

// prettier-ignore
const table: [out: number, back: number, held: number][] = [
  [6, 6, 6],
  [7, 4, 4],
  // Half of them.
  [8, 4, 0],
  // Too few to tell an accident.
  [3, 3, 0],
  [6, 3, 0],
  [6, 2, 0],
];

describe('of the people whose opt-out the CRM stated', () => {
  test.each(table)('%i: when %i say in again, %i are held', async (out, back, held) => {
    const stage = await optedOut(out);
    exportOf(stage, withdrawn(back, out));
    const { status, contacts } = await stage.sync();
    expect([status, contacts.held.opt_in]).toEqual([held > 0 ? 'held' : 'done', held]);
    expect(contacts.applied['opt_in']).toBe(back - held);
    expect(countIn(stage)).toBe(12 - out + back - held);
  });
});

describe('a column that came empty', () => {
  test.each<[string, object]>([
    ['a full run', {}],
    ['a fast run', { mode: 'fast' }],
    ['a first load', { firstLoad: true }],
  ])('is held in %s, with its likely cause, until it is approved', async (_, options) => {
    const stage = await optedOut(6);
    exportOf(stage, range(0, 12));
    const { plan, problems, ...summary } = await stage.sync(options);
    expect(summary).toMatchObject({ status: 'held', contacts: { held: { opt_in: 6 } } });
    expect(stage.writes()).toEqual([]);
    expect(problems).toMatchObject([{ class: 'held', key: 'opt_in' }]);
    expect(problems[0]?.reason).toContain(
      '6 of the 6 people whose opt-out the CRM stated would be opted in again: is a column empty in this export?',
    );
    expect(problems[0]?.fix).toContain(`crm-mirror approve ${plan}`);
    // The next run gives the same reason.
    expect((await stage.sync({ ...options, writes: false })).problems[0]?.reason).toBe(
      problems[0]?.reason,
    );
    approve(stage, plan);
    expect(await stage.sync(options)).toMatchObject({
      status: 'done',
      contacts: { applied: { opt_in: 6 }, held: { opt_in: 0 } },
    });
    expect(countIn(stage)).toBe(12);
  });

  test.each<[string, object]>([
    ['a full run', {}],
    ['a first load', { firstLoad: true }],
  ])('holds no other opt-in of %s', async (_, options) => {
    const stage = await optedOut(6);
    exportOf(stage, range(0, 15));
    expect(await stage.sync(options)).toMatchObject({
      status: 'held',
      contacts: { applied: { create: 3 }, held: { opt_in: 6 } },
    });
    expect(countIn(stage)).toBe(6);
    exportOf(stage, range(0, 16));
    expect(await stage.sync(options)).toMatchObject({
      contacts: { applied: { create: 1 }, held: { opt_in: 6 } },
    });
  });

  test('holds the other channels of these people as well', async () => {
    const stage = await optedOut(6);
    exportOf(
      stage,
      range(0, 12).map((one) => ({ ...one, ch_product: '1' })),
    );
    expect(await stage.sync()).toMatchObject({
      contacts: { changes: { opt_in: 18 }, applied: { opt_in: 6 }, held: { opt_in: 6 } },
    });
  });

  test('holds the rest, too, of people of whom some were let through before', async () => {
    const stage = await optedOut(9);
    exportOf(stage, withdrawn(3, 9));
    expect((await stage.sync()).contacts.applied['opt_in']).toBe(3);
    exportOf(stage, range(0, 12));
    expect(await stage.sync()).toMatchObject({ contacts: { held: { opt_in: 6 } } });
  });

  test('is held together with whoever follows later, and ends when the column is back', async () => {
    const stage = await optedOut(6);
    exportOf(stage, withdrawn(4, 6));
    const { plan } = await stage.sync();
    exportOf(stage, withdrawn(5, 6));
    expect(await stage.sync()).toMatchObject({ contacts: { held: { opt_in: 5 } } });
    approve(stage, plan);
    expect(await stage.sync()).toMatchObject({
      contacts: { applied: { opt_in: 4 }, held: { opt_in: 1 } },
    });
    exportOf(stage, [...range(0, 4), no(4), no(5), ...range(6, 12)]);
    expect(await stage.sync()).toMatchObject({ status: 'done', contacts: { held: { opt_in: 0 } } });
    expect(countIn(stage)).toBe(10);
  });

  test('can be approved with the run itself', async () => {
    const stage = await optedOut(6);
    exportOf(stage, range(0, 12));
    const { plan } = await stage.sync({ writes: false });
    expect(await stage.sync({ approve: approving(plan) })).toMatchObject({
      status: 'done',
      contacts: { applied: { opt_in: 6 } },
    });
  });

  test('is held where the people would be created again', async () => {
    const stage = await optedOut(6, { policy: { missing: 'recreate' } });
    for (const { email } of range(0, 6)) stage.emulator.dashboard.deleteContact(email);
    exportOf(stage, range(0, 12));
    expect(await stage.sync()).toMatchObject({
      status: 'held',
      contacts: { applied: { create: 0 }, held: { opt_in: 6 } },
    });
    expect(countIn(stage)).toBe(6);
  });

  test('is held where the people have new addresses', async () => {
    const stage = await optedOut(6);
    const moved = range(0, 6).map((one) => ({ ...one, email: `new-${one.email}` }));
    exportOf(stage, [...moved, ...range(6, 12)]);
    expect(await stage.sync()).toMatchObject({
      status: 'held',
      contacts: { applied: { create: 0, opt_in: 0 }, held: { opt_in: 6 } },
    });
    expect(moved.filter((one) => isIn(stage, one))).toEqual([]);
  });
});

test('opt-outs for absence do not count', async () => {
  const stage = openStage({ guards, policy: { absent: 'opt_out' } });
  exportOf(stage, range(0, 12));
  await stage.sync();
  exportOf(stage, [...range(0, 6).map((one) => ({ ...one, deleted: 'true' })), ...range(6, 12)]);
  expect((await stage.sync()).contacts.applied['opt_out']).toBe(6);
  exportOf(stage, range(0, 12));
  expect(await stage.sync()).toMatchObject({
    status: 'done',
    contacts: { applied: { opt_in: 6 } },
  });
});
