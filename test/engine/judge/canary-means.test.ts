/** Canaries beside guards, rules and windows, and what may happen to a slice. */
import { describe, expect, test } from 'vitest';
import { hoursOf } from '../../../src/domain/guards/change-window.ts';
import {
  approve,
  approving,
  exportOf,
  hour,
  person,
  range,
  reject,
  rule,
  begun,
  canaryOf,
  created,
  minute,
  policy,
  watchedCanary,
} from '../../support/engine/change-volume.ts';
import { openStage, type StageOptions } from '../../support/engine/engine-stage.ts';

describe('with other means', () => {
  test('a window that is closed begins no canary, and one that closes makes the slice wait', async () => {
    const { stage, options } = await watchedCanary();
    const allow = hoursOf('08:00-18:00');
    if ('reason' in allow) throw new Error(allow.reason);
    Object.assign(options, { manner: 'new', windows: [{ allow, for: ['opt_in'] }] });
    exportOf(stage, range(0, 50));
    await stage.clock.advance(Date.parse('2026-02-02T20:00Z') - stage.clock.now());
    expect(await stage.sync()).toMatchObject({ deferred: { opt_in: 30 }, canaries: [] });
    await stage.clock.advance(13 * hour);
    const run = await stage.sync();
    expect(run).toMatchObject({ deferred: { opt_in: 25 }, contacts: { applied: { create: 5 } } });
    await stage.clock.advance(12 * hour);
    const late = await stage.sync();
    expect(late).toMatchObject({ deferred: { opt_in: 25 }, canaries: [{ state: 'passed' }] });
    expect(late.reasons).toEqual([
      '25 people to be created or opted in wait for Wed 08:00 UTC (windows)',
    ]);
  });

  test('guards judge first; what is approved then waits for the canary', async () => {
    const guards = { opt_in: { percent: 0, floor: 10 } };
    const { stage, run } = await begun({ guards });
    expect(run).toMatchObject({ status: 'held', contacts: { held: { opt_in: 30 } }, canaries: [] });
    approve(stage, run.plan);
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      deferred: { opt_in: 25 },
      contacts: { applied: { create: 5 }, held: { opt_in: 0 } },
    });
    await stage.clock.advance(31 * minute);
    // The approval is still in force, because the first run could not do everything.
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 25 } },
    });
  });

  test('what is approved in the command that first withholds it waits for the canary', async () => {
    const { stage, options } = await watchedCanary({
      guards: { opt_in: { percent: 0, floor: 10 } },
    });
    Object.assign(options, { manner: 'new' });
    exportOf(stage, range(0, 50));
    const { plan } = await stage.sync({ writes: false });
    expect(await stage.sync({ approve: approving(plan) })).toMatchObject({
      status: 'done',
      deferred: { opt_in: 25 },
      contacts: { applied: { create: 5 }, held: { opt_in: 0 } },
      canaries: [{ state: 'waiting', size: 5, of: 30 }],
    });
    await stage.clock.advance(31 * minute);
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 25 } } });
  });

  test.each([
    ['a guard', { guards: { opt_in: { percent: 0, floor: 10 } } }],
    ['a rule', { rules: [rule('mapping_changed')] }],
  ])('what was approved of %s before it failed awaits approval again', async (_, more) => {
    const { stage, run } = await begun(more);
    approve(stage, run.plan);
    expect(await stage.sync()).toMatchObject({
      deferred: { opt_in: 25 },
      contacts: { applied: { create: 5 } },
    });
    for (const { email } of created(stage)) stage.emulator.dashboard.unsubscribe(email);
    await stage.clock.advance(31 * minute);
    const failed = await stage.sync();
    expect(failed).toMatchObject({ status: 'held', contacts: { held: { opt_in: 25 } } });
    expect(canaryOf(stage)).toMatchObject({ state: 'failed' });
    // Approved once more, by whoever has read what was found, it passes.
    await stage.clock.advance(minute);
    approve(stage, failed.plan);
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 25 } } });
    expect(canaryOf(stage)).toMatchObject({ state: 'passed' });
  });

  test('an approval counts although the canary failed under a clock that was ahead', async () => {
    const clock = { aheadMs: 0 };
    const { stage } = await begun({ ahead: () => clock.aheadMs });
    for (const { email } of created(stage)) stage.emulator.dashboard.unsubscribe(email);
    clock.aheadMs = 96 * hour;
    await stage.clock.advance(31 * minute);
    const failed = await stage.sync();
    expect(failed).toMatchObject({ status: 'held', contacts: { held: { opt_in: 25 } } });
    clock.aheadMs = 0;
    approve(stage, failed.plan);
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 25 } } });
  });

  test('a rule and a failed canary are one question', async () => {
    const { stage, options } = await begun();
    for (const one of created(stage).slice(0, 3)) stage.emulator.dashboard.unsubscribe(one.email);
    await stage.clock.advance(31 * minute);
    Object.assign(options, { rules: [rule('plan.create > 10', undefined, 'Ask Ann')] });
    const run = await stage.sync();
    expect(run.problems[0]?.reason).toContain('within 31 minutes; Ask Ann (the rule');
    expect(run).toMatchObject({ contacts: { held: { opt_in: 25 } } });
  });
});

/** The same as `watchedCanary`, on a platform that a run dies of after some changes. */
async function interruptible() {
  let left = Infinity;
  const wire: StageOptions['wire'] = (send) => async (request, signal) => {
    if (request.method === 'POST' && left-- <= 0) throw new Error('killed');
    return send(request, signal);
  };
  const found = await watchedCanary({
    wire,
    limits: ['contacts.enrol=1/10'],
    guards: { opt_in: { percent: 100, floor: 100_000 } },
  });
  return { ...found, stopAfter: (n: number) => void (left = n) };
}

test('templates have a canary each time, although somebody has rejected one of them', async () => {
  const many = { template: { percent: 100, floor: 100 } };
  const options: StageOptions = { guards: many, policy: { templates: 'overwrite' } };
  const stage = openStage(options);
  const change = (subject: string, from: number, to: number) => {
    for (let at = from; at < to; at += 1)
      stage.templates[at] = { key: `l${at}`, name: `l${at}`, subject, status: 'draft' };
    Object.assign(stage.certificate, { reading: `templates at ${stage.clock.now()}` });
  };
  change('one', 0, 20);
  await stage.sync();
  await stage.sync();
  Object.assign(options, { guards: { template: { percent: 0, floor: 0 } } });
  change('wrong', 0, 1);
  const { plan } = await stage.sync();
  reject(stage, plan);
  Object.assign(options, { guards: many, canary: policy });
  for (const subject of ['two', 'three']) {
    change(subject, 1, 20);
    expect((await stage.sync()).templates.applied['update']).toBe(2);
    await stage.clock.advance(31 * minute);
    expect((await stage.sync()).templates.applied['update']).toBe(17);
    await stage.sync();
  }
});

describe('a slice', () => {
  test('takes in nobody who is new while it waits', async () => {
    const guards = { opt_in: { percent: 100, floor: 100_000 } };
    const { stage, options } = await watchedCanary({ guards });
    Object.assign(options, { manner: 'new' });
    // The slice is 5 of 26 people, so a fifth of the newcomers have a hash below its threshold.
    exportOf(stage, range(0, 46));
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 5 } } });
    exportOf(stage, range(0, 146));
    expect(await stage.sync()).toMatchObject({
      deferred: { opt_in: 121 },
      contacts: { applied: { create: 0 } },
    });
    await stage.clock.advance(31 * minute);
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 121 } } });
  });

  test('that is undone is out of bounds', async () => {
    const { stage, run } = await begun();
    const undone = await stage.sync({ mode: 'undo', undo: { run: run.run } });
    expect(undone).toMatchObject({ contacts: { applied: { opt_out: 5 } } });
    await stage.clock.advance(31 * minute);
    const next = await stage.sync();
    expect(next).toMatchObject({ contacts: { applied: { create: 0 }, held: { opt_in: 25 } } });
    expect(canaryOf(stage)).toMatchObject({
      state: 'failed',
      says: '5 of 5 people of the canary do not show what was written within 31 minutes',
    });
  });

  test('of which the CRM has opted out everybody is out of bounds', async () => {
    const { stage } = await begun();
    const emails = new Set(created(stage).map(({ email }) => email));
    const saysNo = (one: Record<string, unknown>) =>
      emails.has(String(one['email'])) ? { ...one, ch_news: 'no' } : one;
    exportOf(stage, stage.people.map(saysNo));
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { opt_out: 5 } } });
    await stage.clock.advance(31 * minute);
    expect(await stage.sync()).toMatchObject({
      contacts: { applied: { create: 0 }, held: { opt_in: 25 } },
    });
    const says = 'nobody of the canary is left to be read back';
    expect(canaryOf(stage)).toMatchObject({ state: 'failed', says });
  });

  test.each([
    ['', 0],
    [' under a clock that was ahead', 96],
  ])(
    'is the same after a process dies%s, and waits once all of it is changed',
    async (_, ahead) => {
      const { stage, stopAfter, options } = await interruptible();
      let aheadMs = ahead * hour;
      Object.assign(options, { manner: 'new', ahead: () => aheadMs });
      exportOf(stage, range(0, 50));
      stopAfter(2);
      await expect(stage.sync()).rejects.toThrow('killed');
      stopAfter(Infinity);
      expect(canaryOf(stage)).toMatchObject({ state: 'applying', size: 5, of: 30 });
      const before = canaryOf(stage);
      await stage.clock.advance(hour);
      aheadMs = 0;
      const run = await stage.sync();
      expect(run).toMatchObject({ status: 'done', deferred: { opt_in: 25 } });
      expect(stage.emulator.world.contacts()).toHaveLength(25);
      expect(canaryOf(stage)).toMatchObject({ state: 'waiting', run: before?.run });
      for (const { email } of created(stage)) stage.emulator.dashboard.unsubscribe(email);
      await stage.clock.advance(31 * minute);
      await stage.sync();
      expect(canaryOf(stage)).toMatchObject({ state: 'failed', counts: { of: 5 } });
    },
  );

  test('that the platform refuses in part is out of bounds', async () => {
    let posts = 0;
    const wire: StageOptions['wire'] = (send) => async (request, signal) => {
      posts += request.method === 'POST' ? 1 : 0;
      const isRefused = request.method === 'POST' && (posts === 21 || posts === 22);
      return isRefused
        ? { status: 422, headers: {}, body: '{"message":"not now"}' }
        : send(request, signal);
    };
    const { stage } = await begun({ wire });
    await stage.clock.advance(31 * minute);
    const run = await stage.sync();
    expect(run.problems.find((one) => one.class === 'held')?.reason).toContain('refused');
  });

  test('waits for both clocks: one that jumps ahead shortens nothing', async () => {
    let ahead = 0;
    const { stage } = await begun({ ahead: () => ahead });
    ahead = 2 * hour;
    await stage.clock.advance(minute);
    expect(await stage.sync()).toMatchObject({ deferred: { opt_in: 25 } });
    // A clock that is set back begins the wait anew by that clock.
    ahead = -2 * hour;
    await stage.clock.advance(31 * minute);
    expect(await stage.sync()).toMatchObject({ deferred: { opt_in: 25 } });
    await stage.clock.advance(31 * minute);
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 25 } } });
  });

  test('is read back by runs about all people only', async () => {
    const { stage } = await begun();
    await stage.clock.advance(31 * minute);
    const run = await stage.sync({ mode: { single: person(1).email } });
    expect(run.canaries).toEqual([]);
    expect(canaryOf(stage)).toMatchObject({ state: 'waiting' });
  });
});
