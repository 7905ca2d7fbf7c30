/** What canaries let pass first: the whole engine against the whole emulator, in virtual time. */
import { describe, expect, test } from 'vitest';
import { storedCanaries } from '../../../src/engine/judge/canaries.ts';
import {
  approve,
  exportOf,
  flag,
  hour,
  leave,
  person,
  range,
  begun,
  canaryOf,
  created,
  minute,
  policy,
  watchedCanary,
} from '../../support/engine/change-volume.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

describe('without an occasion', () => {
  test('nothing waits, and a mirror without the key has no canaries', async () => {
    const { stage, options } = await watchedCanary();
    stage.people.push(...range(20, 40));
    expect(await stage.sync()).toMatchObject({
      canaries: [],
      contacts: { applied: { create: 20 } },
    });
    delete options.canary;
    expect(await stage.sync()).not.toHaveProperty('canaries');
  });

  test('few people pass at once, by a new mapping too', async () => {
    const { stage, options } = await watchedCanary();
    Object.assign(options, { manner: 'new' });
    stage.people.push(...range(20, 25));
    expect(await stage.sync()).toMatchObject({
      deferred: { opt_in: 0 },
      contacts: { applied: { create: 5 } },
    });
    expect(canaryOf(stage)).toBeUndefined();
  });
});

describe('after a change of the mapping', () => {
  test('a slice is changed, and the rest waits for it', async () => {
    const { stage, run } = await begun();
    expect(run).toMatchObject({
      status: 'done',
      deferred: { opt_in: 25, delete: 0, template: 0 },
      contacts: { changes: { create: 5 }, applied: { create: 5 }, held: { opt_in: 0 } },
      canaries: [{ class: 'opt_in', state: 'waiting', because: 'mapping', size: 5, of: 30 }],
    });
    const from = new Date(stage.clock.now() + policy.waitMs).toISOString().slice(0, 16);
    expect(run.reasons[0]).toContain(
      `25 people to be created or opted in wait for the canary of 5 people (policy.canary), which is read back from ${from}`,
    );
    expect(run.reasons[0]).toContain('run again then; a worker goes on by itself');
    expect(stage.snapshot.runs.proven()?.id).not.toBe(run.run);
  });

  test.each(['full', 'fast'] as const)('a %s run goes on after the wait', async (mode) => {
    const { stage } = await begun();
    await stage.clock.advance(20 * minute);
    expect(await stage.sync({ mode })).toMatchObject({
      status: 'done',
      deferred: { opt_in: 25 },
      contacts: { applied: { create: 0 } },
    });
    await stage.clock.advance(11 * minute);
    expect(await stage.sync({ mode })).toMatchObject({
      status: 'done',
      reasons: [],
      deferred: { opt_in: 0 },
      contacts: { applied: { create: 25 } },
      canaries: [{ state: 'passed' }],
    });
    // What has passed once does not begin again for the same mapping.
    stage.people.push(...range(50, 70));
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 20 } } });
  });

  test.each(['full', 'fast'] as const)('our clock alone ends no wait in a %s run', async (mode) => {
    let aheadMs = 0;
    const { stage } = await begun({ ahead: () => aheadMs });
    aheadMs = hour;
    expect(await stage.sync({ mode })).toMatchObject({
      status: 'done',
      deferred: { opt_in: 25 },
      contacts: { applied: { create: 0 } },
      canaries: [{ state: 'waiting' }],
    });
    await stage.clock.advance(31 * minute);
    expect(await stage.sync({ mode })).toMatchObject({
      contacts: { applied: { create: 25 } },
      canaries: [{ state: 'passed' }],
    });
  });

  test('a plan shows the same, and stores nothing', async () => {
    const { stage, options } = await watchedCanary();
    Object.assign(options, { manner: 'new' });
    exportOf(stage, range(0, 50));
    expect(await stage.sync({ writes: false })).toMatchObject({
      deferred: { opt_in: 25 },
      contacts: { changes: { create: 5 } },
    });
    expect(storedCanaries(stage.snapshot.meta)).toBeUndefined();
  });

  test('a try with a few people before does not count', async () => {
    const options: StageOptions = { manner: 'old' };
    const stage = openStage(options);
    stage.people.push(...range(0, 20));
    await stage.sync();
    Object.assign(options, { canary: policy, manner: 'new' });
    exportOf(stage, range(0, 50));
    await stage.sync({
      onlyPeople: { file: 'a.txt', entries: [{ line: 1, word: person(0).email }] },
    });
    expect(await stage.sync()).toMatchObject({
      deferred: { opt_in: 25 },
      contacts: { applied: { create: 5 } },
    });
  });

  test('another mirror of the same name, people and mapping has the same slice', async () => {
    const emails = (stage: Stage) => created(stage).map(({ email }) => email);
    const [{ stage }, { stage: other }] = [await begun(), await begun({ seed: 7 })];
    expect(canaryOf(stage)?.run).not.toBe(canaryOf(other)?.run);
    expect(emails(stage).toSorted()).toEqual(emails(other).toSorted());
  });

  test('people who unsubscribe make the rest await approval, with what was found', async () => {
    const { stage } = await begun();
    const [one, two] = created(stage);
    stage.emulator.dashboard.unsubscribe(one?.email ?? '');
    stage.emulator.dashboard.leave(two?.email ?? '', 'ch_news');
    await stage.clock.advance(31 * minute);
    const run = await stage.sync();
    expect(run).toMatchObject({
      status: 'held',
      deferred: { opt_in: 0 },
      contacts: { held: { opt_in: 25 }, applied: { create: 0 } },
      canaries: [{ state: 'failed' }],
    });
    expect(run.problems[0]?.reason).toBe(
      '25 people would be created or opted in, and this awaits approval: ' +
        '2 of 5 people of the canary unsubscribed or were blocked within 31 minutes',
    );
    expect(run.problems[0]?.fix).toContain(`crm-mirror approve ${run.plan}`);

    // Newcomers are asked about, too, until somebody has approved what was shown.
    stage.people.push(person(50));
    const again = await stage.sync({ mode: 'fast' });
    expect(again).toMatchObject({ contacts: { held: { opt_in: 26 } } });
    approve(stage, again.plan);
    stage.people.push(person(51));
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 27 }, held: { opt_in: 0 } },
      canaries: [{ state: 'passed' }],
    });
  });

  test('an opt-out that the CRM states meanwhile is made, and does not count', async () => {
    const { stage } = await begun();
    const emails = new Set(
      created(stage)
        .slice(0, 3)
        .map(({ email }) => email),
    );
    const said = stage.people.map((one) =>
      emails.has(String(one['email'])) ? { ...one, ch_news: 'no' } : one,
    );
    exportOf(stage, said);
    await stage.clock.advance(5 * minute);
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { opt_out: 3 } } });
    await stage.clock.advance(31 * minute);
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 25 } },
    });
  });

  test('people whom the platform no longer shows are drift', async () => {
    const { stage } = await begun();
    for (const one of created(stage).slice(0, 2)) stage.emulator.dashboard.deleteContact(one.id);
    await stage.clock.advance(31 * minute);
    const run = await stage.sync({ mode: 'fast' });
    expect(run.problems[0]?.reason).toContain(
      '2 of 5 people of the canary do not show what was written',
    );
  });

  test('stated opt-outs, flagged deletions and events pass while it waits', async () => {
    const { stage } = await begun();
    exportOf(stage, [flag(0), person(1, { ch_news: 'no' }), ...range(2, 51)]);
    expect(await stage.sync()).toMatchObject({
      deferred: { delete: 0 },
      contacts: { applied: { opt_out: 2, delete: 1 } },
    });
    stage.people.push(person(51));
    expect(await stage.sync({ mode: { single: person(51).email } })).toMatchObject({
      contacts: { applied: { create: 1 } },
    });
  });

  test('another mapping begins another canary', async () => {
    const { stage, options } = await begun();
    const first = canaryOf(stage);
    Object.assign(options, { manner: 'newer' });
    const run = await stage.sync();
    expect(run).toMatchObject({ deferred: { opt_in: 20 }, contacts: { applied: { create: 5 } } });
    expect(canaryOf(stage)).toMatchObject({ state: 'waiting', of: 25 });
    expect(canaryOf(stage)?.run).not.toBe(first?.run);
  });

  test('people who are missing by it have a canary of their own, days later', async () => {
    const { stage, options } = await watchedCanary({
      guards: { delete: { percent: 100, floor: 30 } },
    });
    Object.assign(options, { manner: 'new' });
    await leave(stage, range(0, 4));
    expect(await stage.sync()).toMatchObject({
      deferred: { delete: 11 },
      contacts: { applied: { delete: 5 } },
      canaries: [{ class: 'delete', state: 'waiting' }],
    });
    await stage.clock.advance(hour);
    exportOf(stage, range(0, 4));
    expect(await stage.sync()).toMatchObject({
      deferred: { delete: 0 },
      contacts: { applied: { delete: 11 } },
    });
  });

  test('a mapping that is older than a week is no occasion any more', async () => {
    const { stage, options } = await watchedCanary();
    Object.assign(options, { manner: 'new' });
    await stage.sync();
    await stage.clock.advance(8 * 24 * hour);
    stage.people.push(...range(20, 40));
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 20 } } });
  });
});

describe('in a first load', () => {
  test.each([
    ['backfill', true],
    ['sync', false],
  ])('by %s, the rest follows in the next run after the wait', async (_, firstLoad) => {
    const stage = openStage({ canary: policy });
    stage.people.push(...range(0, 60));
    expect(await stage.sync({ firstLoad })).toMatchObject({
      status: 'done',
      deferred: { opt_in: 54 },
      contacts: { applied: { create: 6 } },
      canaries: [{ because: 'first load', size: 6, of: 60 }],
    });
    expect(stage.snapshot.meta.get('loaded')).toBeUndefined();
    await stage.clock.advance(31 * minute);
    expect(await stage.sync({ firstLoad })).toMatchObject({
      status: 'done',
      deferred: { opt_in: 0 },
      contacts: { applied: { create: 54 } },
    });
    expect(stage.snapshot.meta.get('loaded')).toBeDefined();
    expect(stage.snapshot.runs.proven()).toBeDefined();
    // The guards count again, and no canary is left.
    stage.people.push(...range(60, 80));
    expect(await stage.sync()).toMatchObject({
      canaries: [],
      contacts: { applied: { create: 20 } },
    });
  });
});
