/** What the rules of a configuration ask about: the whole engine against the whole emulator. */
import { describe, expect, test } from 'vitest';
import type { PlanRule } from '../../../src/domain/guards/plan-rule.ts';
import {
  approve,
  deletes,
  exportOf,
  flag,
  hour,
  leave,
  person,
  range,
  rule,
} from '../../support/engine/change-volume.ts';
import { openStage, type StageOptions } from '../../support/engine/engine-stage.ts';

/** A mirror of twenty people with these rules from then on. */
async function ruled(rules: PlanRule[], more: StageOptions = {}) {
  const options: StageOptions = { policy: { deletes: 'owned', absent: 'opt_out' }, ...more };
  const stage = openStage(options);
  stage.people.push(...range(0, 20));
  await stage.sync();
  stage.writes();
  Object.assign(options, { rules });
  return { stage, options };
}

/** The twenty, of whom the CRM opts out the first `n`. */
const statedOut = (n: number) => [
  ...range(0, n).map((one) => ({ ...one, ch_news: 'no' })),
  ...range(n, 20),
];

test.each([false, true])(
  '`mapping_changed` asks, whether or not a few people were tried before: %s',
  async (isTried) => {
    const { stage, options } = await ruled([rule('mapping_changed')], { manner: 'old' });
    await stage.sync();
    Object.assign(options, { manner: 'new' });
    exportOf(stage, range(0, 25));
    if (isTried)
      await stage.sync({
        onlyPeople: { file: 'a.txt', entries: [{ line: 1, word: person(0).email }] },
      });
    expect(await stage.sync()).toMatchObject({ status: 'held', contacts: { held: { opt_in: 5 } } });
  },
);

test('`usual` counts no opt-outs that the CRM stated', async () => {
  const { stage, options } = await ruled([]);
  exportOf(stage, statedOut(4));
  expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 4 });
  Object.assign(options, { rules: [rule('usual.opt_out > 0')] });
  exportOf(stage, [...statedOut(4), person(20)]);
  expect(await stage.sync()).toMatchObject({
    status: 'done',
    contacts: { applied: { create: 1 } },
  });
});

describe('a rule that is true', () => {
  test('withholds its class until it is approved, and lets the rest pass', async () => {
    const { stage } = await ruled([rule('plan.opt_in > 3', ['opt_in'], 'Ask Ann')]);
    exportOf(stage, [person(0, { ch_news: 'no' }), ...range(1, 24)]);
    const first = await stage.sync();
    expect(first).toMatchObject({
      status: 'held',
      contacts: { held: { opt_in: 4, delete: 0 }, applied: { opt_out: 1, create: 0 } },
      problems: [
        {
          class: 'held',
          key: 'opt_in',
          reason:
            '4 people would be created or opted in, and this awaits approval: Ask Ann (the rule `plan.opt_in > 3`)',
        },
      ],
    });
    expect(first.problems[0]?.fix).toContain(`crm-mirror approve ${first.plan}`);

    // What waits is not counted again, and a newcomer passes.
    stage.people.push(person(24));
    const second = await stage.sync();
    expect(second).toMatchObject({
      status: 'held',
      contacts: { held: { opt_in: 4 }, applied: { create: 1 } },
    });
    expect(second.problems[0]?.reason).toContain('nobody has approved it: Ask Ann');

    approve(stage, first.plan);
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { held: { opt_in: 0 }, applied: { create: 4 } },
    });
  });

  test.each(['full', 'fast'] as const)('asks in a %s run, and a plan shows it', async (mode) => {
    const { stage } = await ruled([rule('plan.create > 1')]);
    stage.people.push(...range(20, 22));
    const held = { status: 'held', contacts: { held: { opt_in: 2 } } };
    expect(await stage.sync({ mode, writes: false })).toMatchObject(held);
    expect(await stage.sync({ mode })).toMatchObject(held);
    expect(stage.emulator.world.contacts()).toHaveLength(20);
  });

  test('asks in a first load, too, and again in a backfill', async () => {
    const stage = openStage({ rules: [rule('first_load && plan.opt_in > 10')] });
    stage.people.push(...range(0, 20));
    expect(await stage.sync()).toMatchObject({ contacts: { held: { opt_in: 20 } } });
    stage.people.splice(5);
    Object.assign(stage.certificate, { reading: 'fewer' });
    const second = await stage.sync({ firstLoad: true });
    expect(second).toMatchObject({ status: 'held', contacts: { held: { opt_in: 5 } } });
    approve(stage, second.plan);
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 5 } } });
  });

  test('never withholds stated opt-outs and flagged deletions', async () => {
    const { stage } = await ruled([rule('true')]);
    exportOf(stage, [flag(0), flag(1), person(2, { ch_news: 'no' }), ...range(3, 22)]);
    expect(await stage.sync()).toMatchObject({
      status: 'held',
      contacts: { held: { opt_in: 2, delete: 0, opt_out: 0 }, applied: { opt_out: 3, delete: 2 } },
    });
  });

  test('withholds opt-outs for absence, but no longer once the CRM flags the people', async () => {
    const { stage } = await ruled([rule('plan.delete > 0 || plan.opt_out > 1', ['delete'])]);
    await leave(stage, range(2, 20));
    expect(await stage.sync()).toMatchObject({ contacts: { held: { delete: 2 } } });
    expect(deletes(stage)).toBe(0);
    await stage.clock.advance(hour);
    exportOf(stage, [flag(0), ...range(2, 20)]);
    expect(await stage.sync()).toMatchObject({
      contacts: { held: { delete: 1 }, applied: { delete: 1 } },
    });
  });

  test('releases no flagged people whom the limit holds', async () => {
    const asks = rule('plan.delete > 0 || plan.opt_out > 1', ['delete']);
    const { stage } = await ruled([asks], { guards: { delete: { percent: 0, floor: 3 } } });
    await leave(stage, range(2, 20));
    expect(await stage.sync()).toMatchObject({ contacts: { held: { delete: 2 } } });
    exportOf(stage, [...[2, 3, 4, 5].map(flag), ...range(6, 20)]);
    expect(await stage.sync()).toMatchObject({ contacts: { held: { delete: 6 } } });
    // Of the four, two are flagged no more: the others are few, and wait for an approval.
    exportOf(stage, [flag(2), ...range(3, 20)]);
    await stage.clock.advance(hour);
    expect(await stage.sync()).toMatchObject({ contacts: { applied: { opt_out: 0, delete: 0 } } });
    expect(deletes(stage)).toBe(0);
  });

  test('withholds changes of templates, and not new templates', async () => {
    const { stage } = await ruled([rule('templates_published > 0', ['template'])]);
    const letter = (at: number, subject: string) => ({
      key: `l${at}`,
      subject,
      status: 'published',
    });
    stage.templates.push(letter(1, 'Hello'));
    expect(await stage.sync()).toMatchObject({ templates: { held: 0, applied: { create: 1 } } });
    stage.templates.splice(0, 1, letter(1, 'New'), letter(2, 'Hello'));
    expect(await stage.sync()).toMatchObject({
      status: 'held',
      templates: { held: 1, applied: { create: 1 } },
    });
    expect(stage.emulator.world.templates().map(({ subject }) => subject)).toEqual([
      'Hello',
      'Hello',
    ]);
  });

  test('is judged by nothing that an event changes', async () => {
    const { stage } = await ruled([rule('true')]);
    stage.people.push(person(30));
    expect(await stage.sync({ mode: { single: person(30).email } })).toMatchObject({
      contacts: { applied: { create: 1 } },
    });
  });
});

describe('a rule reads', () => {
  test('whether the mapping changed since the last completed run', async () => {
    const { stage, options } = await ruled([rule('mapping_changed')]);
    stage.people.push(person(20));
    expect((await stage.sync()).contacts.applied).toMatchObject({ create: 1 });
    Object.assign(options, { manner: 'in another way' });
    stage.people.push(person(21));
    expect((await stage.sync({ writes: false })).contacts.held.opt_in).toBe(1);
    expect((await stage.sync()).contacts.held.opt_in).toBe(1);
    stage.people.push(person(22));
    expect((await stage.sync()).contacts).toMatchObject({
      held: { opt_in: 1 },
      applied: { create: 1 },
    });
  });

  test('the median of the last runs with changes, of the same mode', async () => {
    const { stage, options } = await ruled([]);
    for (const [from, to] of [
      [20, 22],
      [22, 24],
      [24, 27],
    ] as const) {
      stage.people.push(...range(from, to));
      await stage.sync();
      await stage.sync();
    }
    // The runs created 20, 2, 2 and 3 people; those without a change do not count.
    const sees = 'usual.runs == 4 && usual.opt_in == 2 && usual.create == 2 && usual.delete == 0';
    Object.assign(options, { rules: [rule(`${sees} && plan.opt_in > 3 * usual.opt_in`)] });
    stage.people.push(...range(27, 34));
    expect((await stage.sync({ mode: 'fast', writes: false })).status).toBe('done');
    expect((await stage.sync()).contacts.held.opt_in).toBe(7);
  });

  test('the percentage that the guard of the class refers to', async () => {
    const { stage } = await ruled([rule('percent.optIns >= 20.0'), rule('percent.deletes > 50')]);
    stage.people.push(...range(20, 24));
    expect((await stage.sync()).contacts.applied).toMatchObject({ create: 4 });
    stage.people.push(...range(24, 30));
    expect((await stage.sync()).contacts.held).toMatchObject({ opt_in: 6 });
  });

  test('the local hour and the day of the week', async () => {
    const rules = [rule('hour == 9 && weekday == "Mon"')];
    const { stage } = await ruled(rules, { timezone: 'Europe/Berlin' });
    // Monday, 2 March 2026, 07:30 UTC is 08:30 in Berlin.
    await stage.clock.advance(Date.parse('2026-03-02T07:30:00Z') - stage.clock.now());
    stage.people.push(person(20));
    expect((await stage.sync()).contacts.applied).toMatchObject({ create: 1 });
    await stage.clock.advance(hour);
    stage.people.push(person(21));
    expect((await stage.sync()).contacts.held.opt_in).toBe(1);
  });
});
