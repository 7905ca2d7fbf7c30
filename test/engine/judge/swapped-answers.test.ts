/** A column that was shifted by a row, or sorted alone: no turns into yes, and yes into no. */
import { describe, expect, test } from 'vitest';
import type { RunOptions } from '../../../src/engine/context/mirror-context.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';
import { approve, exportOf, hour, person } from '../../support/engine/change-volume.ts';

const count = ({ emulator }: Stage): number => emulator.world.contacts().length;

/** The CRM's answers, one for each person. */
const answered = (answers: readonly string[]) =>
  answers.map((ch_news, at) => person(at, { ch_news }));

const shifted = (answers: readonly string[]): string[] => [
  ...answers.slice(1),
  ...answers.slice(0, 1),
];

/** Of `all` people every third says no; those who say so are in blocks of `block`. */
const mixed = (all: number, block = 1): string[] =>
  Array.from({ length: all }, (_, at) => (Math.floor(at / block) % 3 === 0 ? 'no' : 'yes'));

async function loaded(answers: readonly string[], options: StageOptions = {}): Promise<Stage> {
  const stage = openStage(options);
  exportOf(stage, answered(answers));
  await stage.sync();
  expect(count(stage)).toBe(answers.filter((one) => one === 'yes').length);
  stage.writes();
  return stage;
}

test.each([
  ['a full run', {}],
  ['a fast run', { mode: 'fast' as const }],
  ['a first load', { firstLoad: true }],
])('%s holds both classes, and subscribes nobody who said no', async (_, options) => {
  // A third of those who said no: that alone is no mass withdrawal.
  const answers = mixed(360, 3);
  const stage = await loaded(answers);
  exportOf(stage, answered(shifted(answers)));
  const planned = await stage.sync({ ...options, writes: false });
  const { plan, problems, ...summary } = await stage.sync(options);
  expect(summary).toMatchObject({
    status: 'held',
    contacts: { held: { opt_in: 40, opt_out: 40 } },
  });
  expect(planned).toMatchObject({ plan, status: 'held', contacts: summary.contacts });
  expect(problems[0]?.reason).toContain(
    'in this export 40 people turn to yes, and 40 others turn away from it',
  );
  expect(stage.writes()).toEqual([]);
  // They stay held until somebody approves them, and the opt-outs until their time is over.
  expect(await stage.sync(options)).toMatchObject({
    contacts: { held: { opt_in: 40, opt_out: 40 } },
  });
  await stage.clock.advance(73 * hour);
  expect(await stage.sync()).toMatchObject({
    status: 'held',
    contacts: { applied: { opt_out: 40 }, held: { opt_in: 40, opt_out: 0 } },
  });
  approve(stage, plan);
  expect(await stage.sync()).toMatchObject({ contacts: { applied: { create: 40 } } });
});

test('a mirror that has lost its snapshot releases nothing that a fast run held', async () => {
  const answers = mixed(360, 3);
  const stage = await loaded(answers);
  stage.loseSnapshot();
  Object.assign(stage.certificate, { complete: false, why: 'it was cut', fix: 'again' });
  await stage.sync();
  Object.assign(stage.certificate, { complete: true });
  await stage.sync({ mode: 'fast' });
  exportOf(stage, answered(shifted(answers)));
  const held = { status: 'held', contacts: { held: { opt_in: 40 } } };
  expect(await stage.sync({ mode: 'fast' })).toMatchObject(held);
  stage.people.push(person(360));
  expect(await stage.sync()).toMatchObject({ ...held, contacts: { applied: { create: 1 } } });
  expect(await stage.sync({ firstLoad: true })).toMatchObject(held);
});

describe('a shifted column is held although an earlier run has sent its opt-outs', () => {
  const cut = { complete: false, why: 'it was cut', fix: 'again' };
  const few = { file: 'a.txt', entries: [{ line: 1, word: person(0).email }] };

  test.each<[string, object, Partial<RunOptions>, 'full' | 'fast']>([
    ['from an incomplete reading', cut, {}, 'full'],
    ['from an incomplete reading, and then fast runs follow', cut, { mode: 'fast' }, 'fast'],
    ['in a run about a few people', {}, { onlyPeople: few }, 'full'],
  ])('%s', async (_, certificate, options, mode) => {
    const stage = await loaded(mixed(360, 3));
    await stage.sync();
    exportOf(stage, answered(shifted(mixed(360, 3))));
    Object.assign(stage.certificate, certificate);
    expect((await stage.sync(options)).contacts.applied).toMatchObject({ opt_out: 40, create: 0 });
    Object.assign(stage.certificate, { complete: true });
    const held = { status: 'held', contacts: { held: { opt_in: 40 }, applied: { create: 0 } } };
    for (let nth = 0; nth < 2; nth += 1) expect(await stage.sync({ mode })).toMatchObject(held);
    expect(stage.snapshot.stated.isAnyTurned()).toBe(false);
  });

  test.each(['no', ''])('in a quarantine (%s)', async (answer) => {
    const answers = mixed(360, 3).map((one) => (one === 'no' ? answer : one));
    const stage = await loaded(answers);
    exportOf(stage, answered(shifted(answers)));
    const [since, delayMs] = [stage.clock.now(), hour];
    stage.snapshot.meta.set('quarantine', JSON.stringify({ since, until: since + hour, delayMs }));
    expect((await stage.sync()).status).toBe('failed');
    await stage.clock.advance(2 * hour);
    exportOf(stage, [...stage.people]);
    expect(await stage.sync()).toMatchObject({
      status: 'held',
      contacts: { held: { opt_in: 40 } },
    });
  });
});

test('who is opted out by one shifted column is not opted in later by another one', async () => {
  const answers = mixed(360, 3);
  const both = (ch_news: readonly string[]) =>
    answered(ch_news).map((one, at) => ({
      ...one,
      ch_product: ch_news[at] === 'yes' ? '' : 'yes',
    }));
  const stage = await loaded(answers, { guards: { opt_in: { percent: 100, floor: 1000 } } });
  exportOf(stage, both(answers));
  await stage.sync();
  stage.writes();
  exportOf(stage, both(shifted(answers)));
  const held = { opt_in: 80 };
  expect((await stage.sync()).contacts).toMatchObject({ held: { ...held, opt_out: 40 } });
  await stage.clock.advance(73 * hour);
  for (let nth = 0; nth < 2; nth += 1) {
    expect((await stage.sync()).contacts).toMatchObject({ applied: { opt_in: 0 }, held });
  }
});

test('people without an answer do not get that of their neighbours', async () => {
  const answers = mixed(120).map((one) => (one === 'no' ? '' : one));
  const stage = await loaded(answers);
  exportOf(stage, answered(shifted(answers)));
  expect(await stage.sync()).toMatchObject({ status: 'held', contacts: { held: { opt_in: 40 } } });
  expect(stage.writes()).toEqual([]);
});

test('first answers and withdrawn ones at once are no swap', async () => {
  const answers = mixed(120).map((one) => (one === 'no' ? '' : one));
  const stage = await loaded(answers);
  const next = answers.map((one, at) => (at < 30 ? 'no' : one || 'yes'));
  exportOf(stage, answered(next));
  expect(await stage.sync()).toMatchObject({
    status: 'done',
    contacts: { applied: { create: 30, opt_out: 20 } },
  });
});

test('holds a column that was sorted alone', async () => {
  const answers = mixed(60, 5);
  const stage = await loaded(answers);
  exportOf(stage, answered(answers.toSorted()));
  expect(await stage.sync()).toMatchObject({ status: 'held', contacts: { applied: {} } });
  expect(stage.writes()).toEqual([]);
});

test('holds a column of addresses that was shifted', async () => {
  const answers = mixed(60);
  const stage = await loaded(answers);
  const emails = shifted(answered(answers).map(({ email }) => email));
  exportOf(
    stage,
    answered(answers).map((one, at) => ({ ...one, email: emails[at] ?? '' })),
  );
  await stage.sync();
  const saidNo = answered(answers).filter(({ ch_news }) => ch_news === 'no');
  expect(saidNo.filter(({ email }) => stage.emulator.world.contact(email))).toEqual([]);
});

test('lets pass what few people say otherwise, and what only turns one way', async () => {
  const answers = mixed(120);
  const stage = await loaded(answers, { guards: { opt_out: { percent: 100, floor: 100 } } });
  // Nine change places, and more of them say no than yes.
  const some = answers.map((one, at) => (at < 27 ? (shifted(answers)[at] ?? one) : one));
  exportOf(stage, answered(some));
  expect(await stage.sync()).toMatchObject({
    status: 'done',
    contacts: { applied: { create: 9, opt_out: 9 } },
  });
  const more = some.map((one, at) => (at >= 60 && at < 90 ? 'no' : one));
  exportOf(stage, answered(more));
  expect(await stage.sync()).toMatchObject({
    status: 'done',
    contacts: { applied: { opt_out: 20 } },
  });
});
