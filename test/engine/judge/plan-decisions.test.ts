/** Parts of a plan that are approved, and changes that are rejected: what a run sends then. */
import { describe, expect, test } from 'vitest';
import { Invalid } from '../../../src/domain/errors.ts';
import {
  approvePlan,
  type PartFilter,
  rejectPlan,
} from '../../../src/engine/judge/plan-decisions.ts';
import type { Stage } from '../../support/engine/engine-stage.ts';
import {
  approving,
  deletes,
  exportOf,
  flag,
  hour,
  leave,
  mirrored,
  person,
  range,
} from '../../support/engine/change-volume.ts';

const by = (stage: Stage) => ({ at: stage.clock.now(), by: 'anna', reason: 'looked' });
const file = (...words: string[]): PartFilter => ({
  people: { file: 'few.txt', entries: words.map((word, at) => ({ line: at + 1, word })) },
});
const approve = (stage: Stage, plan: string, only: PartFilter = {}) =>
  approvePlan(stage.snapshot, { plan, only, decision: by(stage) });
const reject = (stage: Stage, plan: string, only: PartFilter = {}) =>
  rejectPlan(stage.snapshot, { plan, only, decision: by(stage) });

/** Four newcomers want both channels, which are eight changes: two for each. */
async function newcomers() {
  const stage = await mirrored();
  stage.people.push(...range(20, 24).map((one) => ({ ...one, ch_product: 'yes' })));
  const { plan } = await stage.sync();
  return { stage, plan };
}

/** Four people are flagged as deleted; each is opted out and deleted. */
async function leavers() {
  const stage = await mirrored();
  exportOf(stage, flagged(0, 1, 2, 3));
  const { plan } = await stage.sync();
  return { stage, plan };
}

const flagged = (...at: number[]) => [
  ...at.map(flag),
  ...range(0, 20).filter((_, one) => !at.includes(one)),
];

const opted = (stage: Stage) =>
  stage.emulator.world
    .contacts()
    .flatMap(({ email, channels }) =>
      channels
        .filter(({ subscription }) => subscription === 'opt_in')
        .map(({ id }) => `${email} ${id}`),
    );

describe('an approved part of a plan', () => {
  test.each(['full', 'fast'] as const)(
    'leaves the rest in one plan, which a %s run makes, and that a later one replaces',
    async (mode) => {
      const { stage, plan } = await newcomers();
      const { holds } = stage.snapshot;
      approve(stage, plan, file('1020'));
      await stage.sync({ mode });
      expect(holds.current()).toMatchObject([{ held: { opt_in: 3 } }]);
      await stage.sync({ mode: 'fast' });
      expect(holds.current()).toMatchObject([{ held: { opt_in: 3 } }]);
      const [rest] = holds.current();
      approve(stage, rest?.plan ?? '');
      expect((await stage.sync()).contacts).toMatchObject({ applied: { create: 3 } });
      expect(holds.current()).toEqual([]);
    },
  );

  test.each<[string, PartFilter, number, number]>([
    ['people by address or id', file('P20@example.com', '1021', 'nobody'), 2, 4],
    ['a channel, with the creation', { channels: ['ch_news'] }, 4, 4],
    ['an operation, as plans show it', { op: 'create' }, 4, 8],
    ['a guard', { guard: 'opt_in' }, 4, 8],
    ['all that is given', { channels: ['ch_news'], ...file('1020') }, 1, 1],
  ])('releases %s, and nothing else', async (_, only, people, changes) => {
    const { stage, plan } = await newcomers();
    const before = opted(stage).length;
    const { held } = approve(stage, plan, only);
    expect(held.opt_in).toBe(people);
    const { contacts } = await stage.sync();
    expect(contacts.applied['create']).toBe(people);
    expect(opted(stage)).toHaveLength(before + changes);
    // The others still wait, and can be approved under the old hash or the new one.
    stage.writes();
    await stage.sync({ mode: 'fast' });
    expect(stage.writes()).toEqual([]);
    const { part, held: others } = approve(stage, plan);
    if (changes === 8)
      expect({ part, others: others.opt_in }).toEqual({ part: undefined, others: 0 });
    expect((await stage.sync()).status).toBe('done');
    expect(opted(stage)).toHaveLength(before + 8);
  });

  test('leaves out who is created in another channel first', async () => {
    const { stage, plan } = await newcomers();
    expect(approve(stage, plan, { channels: ['ch_product'] })).toMatchObject({
      held: { opt_in: 0 },
      rest: { opt_in: 4 },
      uncreated: 4,
    });
    expect(approve(stage, plan, { channels: ['ch_news'] }).held.opt_in).toBe(4);
    expect(approve(stage, plan, { channels: ['ch_product'] }).held.opt_in).toBe(4);
    expect((await stage.sync()).status).toBe('done');
  });

  test('leaves out who has an address that the named record had before', async () => {
    const stage = await mirrored();
    const moved = { ...person(3), email: 'moved@example.com' };
    exportOf(stage, [...range(0, 3), moved, ...range(4, 20)]);
    await stage.sync();
    await stage.sync();
    const other = { ...person(3), id: '7003' };
    exportOf(stage, [...range(0, 3), { ...moved, ch_product: 'yes' }, ...range(4, 24), other]);
    const { plan } = await stage.sync();
    const { held, rest } = approve(stage, plan, file('1003'));
    expect([held.opt_in, rest.opt_in]).toEqual([1, 5]);
    await stage.sync();
    expect(opted(stage)).toContain('moved@example.com ch_product');
    expect(opted(stage)).not.toContain('p3@example2.com ch_news');
  });

  test('says which lines of the file name nobody who waits', async () => {
    const { stage, plan } = await newcomers();
    expect(approve(stage, plan, file('1020', 'p1@example2.com', '1099')).unknown).toEqual([2, 3]);
  });

  test('of opt-outs does not approve the deletes', async () => {
    const { stage, plan } = await leavers();
    approve(stage, plan, { op: 'opt_out' });
    expect((await stage.sync()).contacts).toMatchObject({
      applied: { opt_out: 4, delete: 0 },
      held: { delete: 4 },
    });
  });

  test('is shown with who and why', async () => {
    const { stage, plan } = await newcomers();
    approve(stage, plan, { channels: ['ch_news'] });
    const { holds } = stage.snapshot;
    const approvals = holds.approvals(0);
    expect(approvals).toMatchObject([{ plan, by: 'anna', reason: 'looked' }]);
    const ids = approvals.map(({ id }) => id);
    expect(holds.counts({ list: plan, approvals: ids }).undecided.opt_in).toBe(4);
    expect(holds.current()[0]?.held.opt_in).toBe(4);
    expect(holds.size(plan)).toMatchObject({ waiting: 8, rejected: 0, ended: 0 });
  });
});

describe('a rejected change', () => {
  test('is not sent and not reported while the CRM asks for it', async () => {
    const { stage, plan } = await newcomers();
    expect(reject(stage, plan).held.opt_in).toBe(4);
    stage.writes();
    for (const mode of ['full', 'fast', 'full', { single: person(20).email }] as const) {
      expect(await stage.sync({ mode })).toMatchObject({
        status: 'done',
        contacts: { held: { opt_in: 0 }, applied: { create: 0 } },
        problems: [],
      });
    }
    expect((await stage.sync({ writes: false })).contacts.changes['create']).toBe(0);
    expect((await stage.sync({ firstLoad: true })).contacts.applied['create']).toBe(0);
    expect(stage.writes()).toEqual([]);
    expect(stage.snapshot.holds.current()).toEqual([]);
  });

  test('passes once it is approved by the hash of the rejected part', async () => {
    const { stage, plan } = await newcomers();
    const { part = '' } = reject(stage, plan);
    await stage.sync();
    expect(approve(stage, part, file('1020')).held.opt_in).toBe(1);
    expect((await stage.sync()).contacts.applied['create']).toBe(1);
    expect(await stage.sync({ approve: approving(part) })).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 3 } },
    });
    expect(stage.snapshot.holds.rejections()).toEqual([]);
  });

  test('is another change once the CRM wants another one', async () => {
    const { stage, plan } = await leavers();
    reject(stage, plan);
    stage.writes();
    expect((await stage.sync()).status).toBe('done');
    // What the CRM states now is no longer the opt-out for absence that was rejected.
    exportOf(stage, [
      person(0, { ch_news: 'no' }),
      ...flagged(1, 2, 3).filter(({ id }) => id !== '1000'),
    ]);
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 1, delete: 0 });
    expect(deletes(stage)).toBe(0);
  });

  test('awaits approval again after thirty days', async () => {
    const { stage, plan } = await newcomers();
    reject(stage, plan, file('1020'));
    approve(stage, plan);
    expect((await stage.sync()).contacts.applied['create']).toBe(3);
    await stage.clock.advance(29 * 24 * hour);
    expect((await stage.sync()).status).toBe('done');
    await stage.clock.advance(25 * hour);
    expect((await stage.sync()).contacts).toMatchObject({
      held: { opt_in: 1 },
      applied: { create: 0 },
    });
  });

  test('was approved before: the rejection counts, and the rest stays approved', async () => {
    const { stage, plan } = await newcomers();
    approve(stage, plan);
    const { part = '' } = reject(stage, plan, file('1020'));
    expect((await stage.sync()).contacts.applied['create']).toBe(3);
    // Even if the wish, and with it the rejection, ends before the approval does.
    const [first] = stage.people.splice(20, 1);
    await stage.sync();
    stage.people.push({ ...first }, person(24), person(25), person(26));
    expect((await stage.sync()).contacts).toMatchObject({ held: { opt_in: 4 } });
    expect(approve(stage, part).held.opt_in).toBe(0);
  });

  test('is not one that was approved under another hash, but that hash ends the approval', async () => {
    const { stage, plan } = await newcomers();
    const { part = '' } = approve(stage, plan, file('1020', '1021'));
    expect(reject(stage, plan)).toMatchObject({ held: { opt_in: 2 }, approved: 2 });
    expect(reject(stage, part, file('1021')).held.opt_in).toBe(1);
    expect((await stage.sync()).contacts.applied['create']).toBe(1);
    expect((await stage.sync()).status).toBe('done');
    expect(opted(stage).filter((one) => one.startsWith('p2') && !one.startsWith('p2@'))).toEqual([
      'p20@example.com ch_news',
      'p20@example.com ch_product',
    ]);
  });

  test('is no stated opt-out: that is refused, and nothing is rejected', async () => {
    const stage = await mirrored({
      guards: { opt_out: { percent: 0, floor: 3, holdForMs: 72 * hour } },
    });
    exportOf(stage, [...range(0, 16), ...range(16, 20).map((one) => ({ ...one, ch_news: 'no' }))]);
    const { plan } = await stage.sync();
    expect(() => reject(stage, plan)).toThrow(Invalid);
    expect(() => reject(stage, plan, { op: 'opt_out' })).toThrow(
      '4 people to be opted out because the CRM says so cannot be rejected',
    );
    expect(stage.snapshot.holds.rejections()).toEqual([]);
    await stage.clock.advance(73 * hour);
    expect((await stage.sync()).contacts.applied['opt_out']).toBe(4);
  });

  test.each([
    ['flags the people as deleted', flagged(0, 1), { opt_out: 2, delete: 2 }],
    [
      'states an opt-out of theirs',
      range(0, 20).map((one, at) => (at < 2 ? { ...one, ch_news: 'no' } : one)),
      { opt_out: 2, delete: 0 },
    ],
  ])('for absence does not hold what the CRM %s later', async (_, people, applied) => {
    const stage = await mirrored();
    await leave(stage, range(4, 20));
    const { plan } = await stage.sync();
    reject(stage, plan);
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 0, delete: 0 });
    exportOf(stage, people);
    const after = await stage.sync();
    expect(after).toMatchObject({ status: 'done', contacts: { applied, held: { delete: 0 } } });
  });

  test('leaves no trace of a person who is erased', async () => {
    const { stage, plan } = await newcomers();
    reject(stage, plan);
    stage.snapshot.transaction(() =>
      stage.snapshot.purge.rows('contact', 'p20@example.com', ['1020']),
    );
    const { holds } = stage.snapshot;
    expect(
      holds.rejections().map(({ id }) => holds.counts({ list: id, approvals: [] }).held.opt_in),
    ).toEqual([3]);
  });
});

test('a run that approves its own plan leaves rejected what was rejected of it', async () => {
  const stage = await mirrored();
  exportOf(stage, range(0, 25));
  const { plan } = await stage.sync();
  reject(stage, plan, file('1020'));
  // The others are gone for a while, and then the same plan comes again.
  exportOf(stage, range(0, 21));
  await stage.sync();
  exportOf(stage, range(0, 25));
  const approved = await stage.sync({ mode: 'fast', approve: approving(plan) });
  expect(approved).toMatchObject({ plan, contacts: { applied: { create: 4 } } });
  for (const mode of ['fast', 'full'] as const)
    expect(await stage.sync({ mode })).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 0 }, held: { opt_in: 0 } },
    });
  expect(stage.emulator.world.contact(person(20).email)).toBeUndefined();
});
