/** How long a change stays held by a guard, and what ends that. */
import { describe, expect, test } from 'vitest';
import { Interrupted } from '../../../src/domain/errors.ts';
import { isAnyLeft } from '../../../src/engine/judge/plan-decisions.ts';
import {
  approve,
  approving,
  deletes,
  exportOf,
  flag,
  hour,
  mirrored,
  mortal,
  person,
  range,
  reject,
} from '../../support/engine/change-volume.ts';
import type { StageOptions } from '../../support/engine/engine-stage.ts';

/** The first so many are flagged, the others are there as before. */
const flagged = (...at: number[]) => [
  ...at.map(flag),
  ...range(0, 20).filter((_, one) => !at.includes(one)),
];

describe('a change held by a full run stays held in the next ones', () => {
  test('when a person returns, and few remain', async () => {
    const stage = await mirrored();
    exportOf(stage, flagged(0, 1, 2, 3));
    expect((await stage.sync()).contacts.held.delete).toBe(4);
    exportOf(stage, flagged(1, 2, 3));
    for (const writes of [true, false, true]) {
      expect(await stage.sync({ writes })).toMatchObject({
        status: 'held',
        contacts: { held: { delete: 3 }, applied: { delete: 0 } },
        problems: [
          {
            class: 'held',
            reason: expect.stringMatching(
              /it has waited since an earlier run.*: more than 3 in one run \(.*0 % of 20 people/,
            ),
          },
        ],
      });
    }
    expect(deletes(stage)).toBe(0);
    const { holds } = stage.snapshot;
    expect(holds.current()).toMatchObject([{ held: { delete: 3, opt_in: 0 } }]);
  });

  test('together with new people', async () => {
    const stage = await mirrored();
    exportOf(stage, flagged(0, 1, 2, 3));
    await stage.sync();
    exportOf(stage, flagged(2, 3, 4));
    expect((await stage.sync()).contacts).toMatchObject({
      held: { delete: 2 },
      applied: { delete: 1 },
    });
    exportOf(stage, [flag(4), ...flagged(2, 3, 5, 6)]);
    const { contacts, problems } = await stage.sync();
    expect(contacts.held.delete).toBe(4);
    expect(problems[0]?.reason).toMatch(/^4 people .* more than 3 in one run/);
  });

  test('until nobody wants it any more; then it is judged anew', async () => {
    const stage = await mirrored();
    exportOf(stage, flagged(0, 1, 2, 3));
    await stage.sync();
    exportOf(stage, flagged());
    expect((await stage.sync()).status).toBe('done');
    exportOf(stage, flagged(0, 1, 2));
    expect((await stage.sync()).contacts.applied).toMatchObject({ delete: 3 });
  });

  test('when a run in between could not decide', async () => {
    const stage = await mirrored();
    exportOf(stage, flagged(0, 1, 2, 3));
    await stage.sync();
    exportOf(stage, flagged(1, 2, 3));
    const whole = { ...stage.certificate };
    Object.assign(stage.certificate, { complete: false, why: 'cut off', fix: 'again' });
    await stage.sync();
    Object.assign(stage.certificate, whole);
    expect((await stage.sync()).contacts.held.delete).toBe(3);
  });
});

describe('an approval of changes held since earlier runs', () => {
  test.each(['then', 'now'])(
    'under the plan of %s releases the people that remain',
    async (when) => {
      const stage = await mirrored();
      exportOf(stage, flagged(0, 1, 2, 3));
      const first = await stage.sync();
      exportOf(stage, flagged(1, 2, 3));
      await stage.sync();
      const last = await stage.sync();
      approve(stage, when === 'then' ? first.plan : last.plan);
      expect(await stage.sync()).toMatchObject({
        status: 'done',
        contacts: { applied: { delete: 3 }, held: { delete: 0 } },
      });
      expect(stage.snapshot.holds.counts({ list: last.plan, approvals: [] }).held).toMatchObject({
        delete: 0,
        opt_in: 0,
      });
    },
  );

  test('leaves newcomers held, also after a killed run', async () => {
    const { dying, wire } = mortal();
    const stage = await mirrored({ wire });
    exportOf(stage, flagged(0, 1, 2, 3));
    approve(stage, (await stage.sync()).plan);
    exportOf(stage, flagged(0, 1, 2, 3, 4));
    dying.after = 3;
    await expect(stage.sync()).rejects.toThrow('killed');
    delete dying.after;
    for (const gone of [4, 0, 0]) {
      const { contacts, plan } = await stage.sync();
      expect(contacts.held.delete).toBe(1);
      expect(deletes(stage)).toBe(gone);
      expect(stage.snapshot.holds.counts({ list: plan, approvals: [] }).held).toMatchObject({
        delete: 1,
        opt_in: 0,
      });
    }
  });

  test('leaves the rest held once it has expired', async () => {
    const stage = await mirrored();
    exportOf(stage, flagged(0, 1, 2, 3));
    approve(stage, (await stage.sync()).plan);
    const stop = new AbortController();
    stop.abort(new Interrupted('SIGTERM'));
    await stage.sync({ stop: stop.signal });
    await stage.clock.advance(7 * 24 * hour);
    exportOf(stage, flagged(0, 1, 2));
    expect((await stage.sync()).contacts.held.delete).toBe(3);
  });
});

describe('people flagged by the CRM whose deletion is approved', () => {
  const policy = { deletes: 'owned', absent: 'opt_out' } as const;

  test.each([
    ['a fast run deletes them', { mode: 'fast' }, { opt_out: 4, delete: 4 }],
    [
      'a run about one person deletes that one',
      { mode: { single: person(0).email }, only: 'contacts' },
      { opt_out: 1, delete: 1 },
    ],
    ['a backfill only opts them out', { firstLoad: true }, { opt_out: 4, delete: 0 }],
  ] as const)('%s', async (_, options, applied) => {
    const stage = await mirrored({ policy });
    exportOf(stage, flagged(0, 1, 2, 3));
    const { plan } = await stage.sync();
    await stage.sync({ mode: 'fast' });
    approve(stage, plan);
    const { counts, current, approvals } = stage.snapshot.holds;
    const ids = approvals(0).map(({ id }) => id);
    expect(
      current().filter((one) => isAnyLeft(counts({ list: one.plan, approvals: ids }).undecided)),
    ).toEqual([]);
    expect(await stage.sync(options)).toMatchObject({
      status: 'done',
      contacts: { applied, held: { delete: 0 } },
      reasons: [],
      problems: [],
    });
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { delete: 4 - applied.delete } },
    });
  });
});

test('what a later round withholds is shown by the next run, and approved there', async () => {
  const guards = { delete: { percent: 0, floor: 3 }, opt_in: { percent: 0, floor: 9 } };
  const stage = await mirrored({ guards });
  const moved = range(0, 4).map((one, at) => ({ ...one, email: `moved${at}@example.com` }));
  exportOf(stage, [...moved, ...range(4, 20)]);
  // The old addresses wait until the new ones exist.
  const first = await stage.sync();
  expect(first.contacts).toMatchObject({ applied: { create: 4 }, held: { delete: 4 } });
  expect(stage.snapshot.holds.current()).toEqual([]);
  expect(first.problems[0]?.fix).toMatch(/a run will ask for approval$/);
  const next = await stage.sync();
  expect(next.problems[0]?.fix).toContain(`crm-mirror approve ${next.plan}`);
  approve(stage, next.plan);
  expect((await stage.sync()).contacts).toMatchObject({ held: { delete: 0 } });
});

describe('what a run withholds besides the approved changes of the same plan', () => {
  const guards = { opt_out: { percent: 0, floor: 3 }, opt_in: { percent: 0, floor: 3 } };
  const both = { ch_news: 'no', ch_product: 'yes' };
  const listed = [...range(0, 4).map((one) => ({ ...one, ...both })), ...range(4, 20)];

  /** The opt-outs of four people are held, and with them their opt-ins to another channel. */
  async function shown(options: Parameters<typeof mirrored>[0] = {}) {
    const stage = await mirrored({ guards, ...options });
    exportOf(stage, listed);
    const { plan, contacts } = await stage.sync();
    expect(contacts.held).toMatchObject({ opt_out: 4, opt_in: 0 });
    return { stage, plan };
  }

  test('is listed and approved under a hash of its own', async () => {
    const { stage, plan } = await shown();
    const run = await stage.sync({ approve: approving(plan) });
    // All that is planned has the same hash as before; the opt-ins were not shown.
    expect(run.plan).toBe(plan);
    expect(run.contacts).toMatchObject({ applied: { opt_out: 4 }, held: { opt_in: 4 } });
    const [rest, ...others] = stage.snapshot.holds.current();
    expect(others).toEqual([]);
    expect(rest).toMatchObject({ held: { opt_out: 0, opt_in: 4 } });
    expect(rest?.plan).not.toBe(plan);
    expect(run.problems[0]?.fix).toContain(`crm-mirror approve ${rest?.plan}`);
    const last = await stage.sync({ approve: approving(rest?.plan ?? '') });
    expect(last).toMatchObject({ status: 'done', contacts: { applied: { opt_in: 4 } } });
    expect(stage.snapshot.holds.current()).toEqual([]);
  });

  test.each([0, 1])(
    'is not released by a second approval after the platform refused (%i runs between)',
    async (between) => {
      const { refuse, wire } = refusing();
      const { stage, plan } = await shown({ wire });
      refuse(true);
      const first = await stage.sync({ approve: approving(plan) });
      expect(first.contacts).toMatchObject({ applied: { opt_out: 0 }, held: { opt_in: 4 } });
      await stage.clock.advance(hour);
      for (let n = 0; n < between; n += 1) await stage.sync();
      refuse(false);
      await stage.clock.advance(hour);
      const again = await stage.sync({ approve: approving(plan) });
      expect(again.contacts.applied['opt_in']).toBe(0);
    },
  );

  test('is named by a plan that is only shown', async () => {
    const { stage } = await shown({
      guards: { ...guards, opt_out: { ...guards.opt_out, holdForMs: 72 * hour } },
    });
    await stage.clock.advance(80 * hour);
    const look = await stage.sync({ writes: false });
    expect(look.heldAs).not.toBe(look.plan);
    const run = await stage.sync();
    expect(run).toMatchObject({ plan: look.plan, heldAs: look.heldAs });
    const last = await stage.sync({ approve: approving(look.heldAs ?? '') });
    expect(last.contacts.applied).toMatchObject({ opt_in: 4 });
  });
});

test('what the platform refused after its approval is rejected by the hash that is named', async () => {
  const { refuse, wire } = refusing();
  const stage = await mirrored({ wire, policy: { absent: 'opt_out' } });
  exportOf(stage, [...[0, 1, 2, 3].map(flag), ...range(4, 20)]);
  approve(stage, (await stage.sync()).plan);
  refuse(true);
  await stage.sync({ mode: 'fast' });
  refuse(false);
  await stage.clock.advance(hour);
  expect((await stage.sync({ mode: 'fast' })).contacts.held.delete).toBe(4);
  const [held, ...others] = stage.snapshot.holds.current();
  expect(others).toEqual([]);
  expect(reject(stage, held?.plan ?? '')).toMatchObject({ held: { delete: 4 }, approved: 0 });
});

/** A platform that answers every change with 422 while it is to refuse. */
function refusing() {
  let refuses = false;
  const wire: StageOptions['wire'] = (send) => async (request, signal) =>
    refuses && request.method !== 'GET'
      ? { status: 422, headers: {}, body: '{"error":"no"}' }
      : send(request, signal);
  return { refuse: (is: boolean) => void (refuses = is), wire };
}
