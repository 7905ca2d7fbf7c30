/** What windows leave to later runs: the whole engine against the whole emulator. */
import { describe, expect, test } from 'vitest';
import { type ChangeWindow, hoursOf } from '../../../src/domain/guards/change-window.ts';
import type { AskedClass } from '../../../src/domain/guards/plan-rule.ts';
import {
  approve,
  exportOf,
  flag,
  hour,
  leave,
  person,
  range,
} from '../../support/engine/change-volume.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

function allowed(text: string, classes?: AskedClass[]): ChangeWindow {
  const allow = hoursOf(text);
  if ('reason' in allow) throw new Error(allow.reason);
  return { allow, for: classes };
}

const office = 'Mon-Fri 08:00-18:00';

/** Advances to a time of a day in November 2026; the 23rd is a Monday. */
async function at(stage: Stage, day: number, time: string): Promise<void> {
  await stage.clock.advance(Date.parse(`2026-11-${day}T${time}:00Z`) - stage.clock.now());
}

/** A mirror of twenty people at 20:00 on a Monday, with these windows from then on. */
async function closed(windows: ChangeWindow[], more: StageOptions = {}) {
  const options: StageOptions = { policy: { deletes: 'owned', absent: 'opt_out' }, ...more };
  const stage = openStage(options);
  stage.people.push(...range(0, 20));
  await stage.sync();
  await at(stage, 23, '20:00');
  stage.writes();
  Object.assign(options, { windows });
  return { stage, options };
}

describe('outside of its window', () => {
  test('a class waits for a later run, and the run is done', async () => {
    const { stage } = await closed([allowed(office, ['opt_in'])]);
    exportOf(stage, [person(0, { ch_news: 'no' }), ...range(1, 24)]);
    const waiting = { deferred: { opt_in: 4, delete: 0, template: 0 } };
    const foreseen = await stage.sync({ writes: false });
    expect(foreseen).toMatchObject({
      status: 'done',
      ...waiting,
      contacts: { changes: { create: 0 } },
    });
    const run = await stage.sync();
    expect(run).toMatchObject({
      status: 'done',
      ...waiting,
      contacts: { applied: { opt_out: 1, create: 0 }, held: { opt_in: 0 } },
    });
    expect(run.reasons).toEqual([
      '4 people to be created or opted in wait for Tue 08:00 UTC (windows)',
    ]);
    await at(stage, 24, '08:00');
    expect(await stage.sync({ mode: 'fast' })).toMatchObject({
      status: 'done',
      reasons: [],
      deferred: { opt_in: 0 },
      contacts: { applied: { create: 4 } },
    });
  });

  test('stated opt-outs, flagged deletions and other classes are made', async () => {
    const { stage } = await closed([allowed(office)]);
    stage.templates.push({ key: 'letter', subject: 'Hello' });
    exportOf(stage, [flag(0), person(1, { ch_news: 'no' }), ...range(2, 21)]);
    expect(await stage.sync()).toMatchObject({
      deferred: { opt_in: 1, delete: 0 },
      contacts: { applied: { opt_out: 2, delete: 1, create: 0 } },
      templates: { applied: { create: 1 } },
    });
  });

  test('changes of templates wait, and absent people stay until it opens', async () => {
    const { stage } = await closed([allowed(office, ['delete', 'template'])]);
    stage.templates.push({ key: 'letter', subject: 'Hello' });
    await stage.sync();
    stage.templates.splice(0, 1, { key: 'letter', subject: 'New' });
    await leave(stage, range(2, 20));
    await at(stage, 25, '20:00');
    expect(await stage.sync()).toMatchObject({ deferred: { delete: 2, template: 1 } });
    await at(stage, 26, '09:00');
    exportOf(stage, range(2, 20));
    expect(await stage.sync()).toMatchObject({
      deferred: { delete: 0, template: 0 },
      contacts: { applied: { opt_out: 2, delete: 2 } },
      templates: { applied: { update: 1 } },
    });
  });

  test('the cursor of the CRM does not pass what waits', async () => {
    const { stage } = await closed([allowed(office, ['opt_in'])], { tellsChanges: true });
    await stage.sync();
    stage.people.push(person(20));
    stage.changed.push(person(20).id);
    for (let run = 0; run < 2; run += 1)
      expect((await stage.sync({ mode: 'fast' })).deferred.opt_in).toBe(1);
    await at(stage, 24, '08:00');
    expect((await stage.sync({ mode: 'fast' })).contacts.applied).toMatchObject({ create: 1 });
  });

  test('an event waits, too, and a later fast run makes the change', async () => {
    const { stage } = await closed([allowed(office, ['opt_in'])], { tellsChanges: true });
    await stage.sync();
    stage.people.push(person(20));
    expect(await stage.sync({ mode: { single: person(20).email } })).toMatchObject({
      status: 'done',
      deferred: { opt_in: 1 },
      contacts: { applied: { create: 0 } },
    });
    await at(stage, 24, '08:00');
    expect((await stage.sync({ mode: 'fast' })).contacts.applied).toMatchObject({ create: 1 });
  });

  test('an approval remains in force until the window opens', async () => {
    const guards = { opt_in: { percent: 0, floor: 3 } };
    const { stage } = await closed([allowed(office, ['opt_in'])], { guards });
    exportOf(stage, range(0, 24));
    const first = await stage.sync();
    expect(first).toMatchObject({ status: 'held', contacts: { held: { opt_in: 4 } } });
    approve(stage, first.plan);
    expect(await stage.sync()).toMatchObject({ status: 'done', deferred: { opt_in: 4 } });
    expect(await stage.sync()).toMatchObject({ status: 'done', deferred: { opt_in: 4 } });
    await at(stage, 24, '08:00');
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 4 } },
    });
  });

  test('a first load lasts until its people are in', async () => {
    const guards = { opt_in: { percent: 0, floor: 3 } };
    const stage = openStage({ windows: [allowed(office, ['opt_in'])], guards });
    stage.people.push(...range(0, 20));
    await at(stage, 23, '20:00');
    expect(await stage.sync()).toMatchObject({ status: 'done', deferred: { opt_in: 20 } });
    expect(stage.snapshot.runs.proven()).toBeUndefined();
    await at(stage, 24, '08:00');
    expect(await stage.sync()).toMatchObject({
      status: 'done',
      contacts: { applied: { create: 20 } },
    });
    expect(stage.snapshot.runs.proven()).toBeDefined();
  });
});

test('a run that crosses the end of a window sends no more of the class', async () => {
  const limits = ['contacts.enrol=5/1200'];
  const { stage } = await closed([allowed(office, ['opt_in'])], { limits });
  exportOf(stage, [person(0, { ch_news: 'no' }), ...range(1, 60)]);
  await at(stage, 24, '17:30');
  const run = await stage.sync();
  const { create = 0, opt_out: outs } = run.contacts.applied;
  expect(outs).toBe(1);
  expect(create).toBeGreaterThan(4);
  expect(run).toMatchObject({ status: 'done', deferred: { opt_in: 40 - create } });
  expect(stage.clock.now() - Date.parse('2026-11-24T18:00:00Z')).toBeLessThan(hour);
  const sent = stage.writes().map((request) => request.at);
  expect(sent).toHaveLength(create + 1);
  expect(sent.filter((one) => one >= '2026-11-24T18:00')).toEqual([]);
  await at(stage, 25, '08:00');
  expect((await stage.sync()).contacts.applied['create']).toBe(40 - create);
});
