/** An approval releases a change once, and once more if it is given again, whatever the time. */
import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { publicKeyOf } from '../../../src/domain/values/ed25519-key.ts';
import {
  approvePlan,
  rejectPlan,
  signPart,
  signPlan,
  toSign,
} from '../../../src/engine/judge/plan-decisions.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import type { RunOptions } from '../../../src/engine/context/mirror-context.ts';
import {
  exportOf,
  flag,
  hour,
  mirrored,
  range,
  reject,
} from '../../support/engine/change-volume.ts';
import type { Stage, StageOptions } from '../../support/engine/engine-stage.ts';

const minute = hour / 60;
const all = range(0, 20);
/** The first four have opted out. */
const out = [...range(0, 4).map((one) => ({ ...one, ch_news: 'no' })), ...range(4, 20)];

/** A mirror whose guards hold opt-ins and deletes of four people, and whose clock may be ahead. */
async function arranged(options: StageOptions = {}) {
  const clock = { aheadMs: 0 };
  const few = { percent: 0, floor: 3 };
  const guards = { opt_out: { percent: 0, floor: 9 }, opt_in: few, delete: few };
  const stage = await mirrored({ guards, ahead: () => clock.aheadMs, ...options });
  return { stage, clock, ...acting(stage, clock) };
}

function acting(stage: Stage, clock: { aheadMs: number }) {
  return {
    async run(people: Record<string, unknown>[], options: Partial<RunOptions> = {}) {
      exportOf(stage, people);
      await stage.clock.advance(1000);
      const { contacts, plan, heldAs = plan } = await stage.sync(options);
      return { ...contacts, plan: heldAs };
    },
    async approve(plan: string, by = 'ann') {
      await stage.clock.advance(1000);
      const decision = { at: stage.clock.now() + clock.aheadMs, by, reason: null };
      return approvePlan(stage.snapshot, { plan, only: {}, decision });
    },
  };
}

const fast = { mode: 'fast' } as const;

test('an approval releases a change once, though the clock is set back after it', async () => {
  const { clock, run, approve } = await arranged();
  await run(out, fast);
  await approve((await run(all)).plan);
  clock.aheadMs = -10 * minute;
  expect((await run(all, fast)).applied).toMatchObject({ opt_in: 4 });
  expect((await run(out, fast)).applied).toMatchObject({ opt_out: 4 });
  expect(await run(all, fast)).toMatchObject({ applied: { opt_in: 0 }, held: { opt_in: 4 } });
});

/** A mirror of two approvers; `sign` gives the signatures of both. */
async function signed() {
  const { privateKey: ada } = generateKeyPairSync('ed25519');
  const { privateKey: ben } = generateKeyPairSync('ed25519');
  const keys = { ada: publicKeyOf(ada), ben: publicKeyOf(ben) };
  const approvers = { need: 2, mirror: 'test', platform: 'https://platform.test', keys };
  const found = await arranged({ approvers });
  const { snapshot, clock } = found.stage;
  const sign = (of: string, aheadMs = 0) => {
    let plan = of;
    for (const [name, key] of Object.entries({ ada, ben })) {
      const now = clock.now();
      const at = now + aheadMs;
      const about = toSign(snapshot, { plan, only: {} }, { approvers, now: at });
      const by = { approvers, key, name, at, reason: null };
      const signature = signPart(snapshot, about, by);
      const signing = { plan, only: {}, signature, caller: 'ada@host' };
      plan = signPlan(snapshot, signing, { approvers, now }).next;
    }
  };
  return { ...found, sign };
}

test('a signed approval is given again after a run whose clock was ahead', async () => {
  const { clock, run, sign } = await signed();
  await run(out, fast);
  sign((await run(all)).plan);
  clock.aheadMs = 96 * hour;
  expect((await run(all)).applied).toMatchObject({ opt_in: 4 });
  clock.aheadMs = 0;
  await run(out, fast);
  sign((await run(all)).plan);
  expect((await run(all)).applied).toMatchObject({ opt_in: 4 });
});

test.each([0, 4])('a signed approval releases once (signers %i minutes ahead)', async (ahead) => {
  const { run, sign } = await signed();
  await run(out, fast);
  sign((await run(all)).plan, ahead * minute);
  const released: unknown[] = [];
  for (let times = 0; times < 3; times += 1) {
    released.push((await run(all, fast)).applied['opt_in']);
    await run(out, fast);
  }
  expect(released).toEqual([4, 0, 0]);
});

test.each([0, 10])('an approval is given again (the first %i minutes ahead)', async (ahead) => {
  const { stage, clock, run, approve } = await arranged();
  await run(out);
  clock.aheadMs = ahead * minute;
  await approve((await run(all)).plan);
  clock.aheadMs = 0;
  expect((await run(all)).applied).toMatchObject({ opt_in: 4 });
  await run(out);
  const { plan, held } = await run(all);
  expect(held).toMatchObject({ opt_in: 4 });
  expect((await approve(plan, 'bob')).held).toMatchObject({ opt_in: 4 });
  const shown = stage.snapshot.recordHistory.changes('contact', all[0]!.email, 9);
  expect(shown.filter(({ approvedBy }) => approvedBy === 'bob')).toEqual([]);
  expect((await run(all)).applied).toMatchObject({ opt_in: 4 });
});

test('an approval is given again after another one was given while the clock was a year ahead', async () => {
  const { clock, run, approve } = await arranged();
  const flags = [10, 11, 12, 13].map(flag);
  const flagged = (people: Record<string, unknown>[]) => people.toSpliced(10, 4, ...flags);
  const first = await run(flagged(out));
  clock.aheadMs = 365 * 24 * hour;
  await approve(first.plan);
  clock.aheadMs = 0;
  expect((await run(flagged(out), fast)).applied).toMatchObject({ delete: 4 });
  await approve((await run(flagged(all), fast)).plan);
  expect((await run(flagged(all), fast)).applied).toMatchObject({ opt_in: 4 });
  await run(flagged(out));
  await approve((await run(flagged(all), fast)).plan);
  expect((await run(flagged(all))).applied).toMatchObject({ opt_in: 4 });
});

test('an approval ends after seven days, although it was given under a clock that was ahead', async () => {
  const { stage, clock, run, approve } = await arranged();
  await run(out, fast);
  const { plan } = await run(all);
  clock.aheadMs = 365 * 24 * hour;
  await approve(plan);
  clock.aheadMs = 0;
  Object.assign(stage.certificate, { complete: false, why: 'cut short', fix: 'mend it' });
  await run(all);
  await stage.clock.advance(8 * 24 * hour);
  Object.assign(stage.certificate, { complete: true });
  expect(await run(all, fast)).toMatchObject({ applied: { opt_in: 0 }, held: { opt_in: 4 } });
});

test('a rejection ends with the wish, although it was given under a clock that was ahead', async () => {
  const { stage, clock, run } = await arranged();
  await run(out, fast);
  const { plan } = await run(all);
  clock.aheadMs = 96 * hour;
  const decision = { at: stage.clock.now() + clock.aheadMs, by: 'ann', reason: 'no' };
  rejectPlan(stage.snapshot, { plan, only: {}, decision });
  clock.aheadMs = 0;
  await run(out);
  expect(await run(all)).toMatchObject({ held: { opt_in: 4 } });
});

test('runs are in the order in which they began, although a clock was ahead', async () => {
  const { stage, clock, run } = await arranged();
  clock.aheadMs = 96 * hour;
  await run(all);
  clock.aheadMs = 0;
  await run(all, fast);
  const [newest, before] = stage.snapshot.runs.newest(2);
  expect([newest?.mode, before?.mode]).toEqual(['fast', 'full']);
});

test('what a run holds after a later approval of the same wish can be approved, though it was rejected', async () => {
  const { stage, run, approve } = await arranged();
  const wants = (news: string) => [
    ...all,
    ...range(20, 24).map((one) => ({ ...one, ch_news: news, ch_product: 'yes' })),
  ];
  const both = await run(wants('yes'));
  const product = await run(wants('no'), fast);
  reject(stage, product.plan);
  await run(wants('no'));
  await approve(both.plan);
  // The first plan showed opt-ins that follow a creation, and these are creations.
  const { plan, held } = await run(wants('no'));
  expect(held).toMatchObject({ opt_in: 4 });
  expect((await approve(plan)).held).toMatchObject({ opt_in: 4 });
  expect((await run(wants('no'))).applied).toMatchObject({ create: 4 });
});

test('an approval of a plan is none of the undo that would change the same, nor the other way round', async () => {
  const { stage, run, approve } = await arranged();
  await run(out);
  const [{ id: undone } = { id: '' }] = stage.snapshot.runs.newest(1);
  const { plan } = await run(all);
  await approve(plan);
  const undo = { mode: 'undo', undo: { run: undone } } as const;
  expect(await run(all, undo)).toMatchObject({ applied: { opt_in: 0 }, held: { opt_in: 4 } });
  expect((await run(all)).applied).toMatchObject({ opt_in: 4 });
});

test('a rejection during a run stays, though another round of the run follows', async () => {
  const acts: (() => void)[] = [];
  const wire =
    (send: Send): Send =>
    async (request, signal) => {
      if (request.method !== 'GET') acts.shift()?.();
      return send(request, signal);
    };
  const { stage, run } = await arranged({ wire });
  const flags = range(10, 20).map((_, at) => flag(10 + at));
  const { plan } = await run([...range(0, 10), ...flags]);
  const moved = range(0, 2).map((one, at) => ({ ...one, email: `moved${at}@example.com` }));
  acts.push(() => void reject(stage, plan));
  const rounds: number[] = [];
  const people = [...moved, ...range(2, 10), ...flags];
  await run(people, { shows: async (_plan, round) => void rounds.push(round) });
  expect(rounds.length).toBeGreaterThan(1);
  expect(stage.snapshot.holds.rejections()).toHaveLength(1);
});
