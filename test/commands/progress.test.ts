/** The line that is redrawn on a terminal while a run is under way. */
import { expect, test } from 'vitest';
import {
  createProgress,
  outletsOf,
  createMeter,
  type Measured,
  progressForms,
  stepWords,
} from '../../src/compose/run-progress.ts';
import type { Progress } from '../../src/engine/context/mirror-context.ts';
import { forecast } from '../../src/engine/report/duration-forecast.ts';
import type { RouteLimit } from '../../src/domain/route-limit.ts';
import { shellThat } from '../support/commands/mirrored-contacts.ts';
import { virtualClock } from '../support/waiting.ts';

const enrolments = 10_000;
const limit: RouteLimit = { limit: 30, windowMs: 60_000, left: 0, others: 0 };

/** A terminal, and the limits that are known by now. */
function terminal() {
  const clock = virtualClock();
  const limits: Record<string, RouteLimit> = {};
  const lines: string[] = [];
  const draw = (line: string): void => void lines.push(line);
  const line = createProgress({ draw }, { clock, limits: () => limits, reserve: 0 });
  const applied = (done: number): void =>
    line.progress({ stage: 'applying', kind: 'contact', done, of: enrolments });
  const needs = { 'contacts.enrol': enrolments };
  line.foresees(forecast(needs, { limits, reserve: 0, readMs: 0 }));
  return { clock, limits, lines, line, applied };
}

test('the remaining time follows the known limit, not the burst of the first window', async () => {
  const { clock, limits, lines, line, applied } = terminal();
  applied(1);
  limits['contacts.enrol'] = limit;
  await clock.advance(600);
  applied(30);
  expect(lines.at(-1)).toBe(
    'applying: 30 of 10,000 contact changes, 0.5/s, 5 h 33 min left, done at about 05:33 UTC',
  );
  line.close();
});

test('the line shows every second how long it still waits', async () => {
  const { clock, limits, lines, line, applied } = terminal();
  limits['contacts.enrol'] = limit;
  applied(30);
  const before = lines.length;
  await clock.advance(45_000);
  expect(lines.length).toBe(before + 45);
  expect(lines.at(-1)).toBe(
    'applying: 30 of 10,000 contact changes, 0.5/s, 5 h 33 min left, done at about 05:33 UTC, ' +
      'has waited 45 s for the platform',
  );
  line.close();
  await clock.advance(5000);
  expect(lines.length).toBe(before + 45);
});

test('the remaining time follows the measured rate after some windows', async () => {
  const { clock, limits, lines, line, applied } = terminal();
  limits['contacts.enrol'] = { ...limit, limit: 3000, left: 2900 };
  applied(1);
  await clock.advance(1500);
  applied(100);
  expect(lines.at(-1)).toMatch(/, 3 min left$/);
  await clock.advance(299_800);
  applied(5000);
  expect(lines.at(-1)).toBe('applying: 5,000 of 10,000 contact changes, 17/s, 5 min 2 s left');
  line.close();
});

test('the remaining time counts down to the next window in the last windows', async () => {
  const { clock, limits, lines, line, applied } = terminal();
  limits['contacts.enrol'] = { ...limit, left: 1 };
  applied(1);
  await clock.advance(500);
  applied(enrolments - 9);
  expect(lines.at(-1)).toMatch(/, 60 s left$/);
  await clock.advance(49_500);
  expect(lines.at(-1)).toMatch(/, 11 s left, has waited 49 s for the platform$/);
  line.close();
});

test('the rate is measured from the beginning, even when changes were planned again', async () => {
  const { clock, lines, line, applied } = terminal();
  applied(1);
  await clock.advance(600_000);
  applied(300);
  line.progress({ stage: 'reading', kind: 'contact', done: 10, of: undefined });
  await clock.advance(1500);
  applied(302);
  expect(lines.at(-1)).toBe(
    'applying: 302 of 10,000 contact changes, 0.5/s, 5 h 22 min left, done at about 05:31 UTC',
  );
  line.close();
});

test('a run that continues another one goes on from what that has applied', async () => {
  const clock = virtualClock();
  const pace = { clock, limits: () => ({}), reserve: 0 };
  const meter = createMeter(pace, new Map([['contact', 60]]));
  meter.hear({ stage: 'listing', kind: 'contact', done: 5, of: 10 });
  expect(meter.now()).toMatchObject({ done: 5, total: 10 });
  const needs = { 'contacts.enrol': 40 };
  meter.foresee(forecast(needs, { limits: {}, reserve: 0, readMs: 0 }));
  await clock.advance(2000);
  meter.hear({ stage: 'applying', kind: 'contact', done: 20, of: 40 });
  expect(meter.now()).toMatchObject({ done: 80, total: 100, share: 0.8, perSecond: 10 });
  expect(meter.now()?.leftMs).toBe(2000);
});

test('unfinished changes are shown, and the size of the plan before the first answer', async () => {
  const { clock, lines, line } = terminal();
  const limits = {};
  const needs = { 'contacts.enrol': 40, 'contacts.list': 40, 'templates.create': 2 };
  line.progress({ stage: 'deciding', kind: 'template', done: 9, of: undefined });
  line.foresees(forecast(needs, { limits, reserve: 0, readMs: 0 }));
  line.progress({ stage: 'applying', kind: 'template', done: 2, of: 2 });
  await clock.advance(3000);
  expect(lines.at(-1)).toBe('applying: 0 of 40 contact changes, has waited 3 s for the platform');
  line.close();
});

test.each([
  ['one part in a hundred, however long it took', 60_000, 0.01, false],
  ['a tenth within seconds', 5_000, 0.1, false],
  ['a fiftieth after 20 s', 20_000, 0.02, true],
  ['a quarter within seconds', 5_000, 0.25, true],
])('the end is foretold from enough work: %s', async (_, ms, share, isTold) => {
  const clock = virtualClock();
  const meter = createMeter({ clock, limits: () => ({}), reserve: 0 });
  meter.hear({ stage: 'reading', kind: 'contact', done: 0, of: undefined, share: 0 });
  await clock.advance(ms);
  meter.hear({ stage: 'reading', kind: 'contact', done: 100, of: undefined, share });
  expect(meter.now()?.leftMs ?? null).toEqual(isTold ? expect.any(Number) : null);
});

test('without a terminal a line is printed every ten seconds', async () => {
  const clock = virtualClock();
  const lines: string[] = [];
  const outlets = outletsOf(
    shellThat({
      progress: () => expect.unreachable('it draws'),
      note: (line) => void lines.push(line),
    }),
  );
  const line = createProgress(outlets, { clock, limits: () => ({}), reserve: 0 });
  const read = (done: number, share?: number): void =>
    line.progress({ stage: 'reading', kind: 'contact', done, of: undefined, share });
  read(500, 0);
  await clock.advance(9900);
  read(120_000, 0.48);
  expect(lines).toEqual([]);
  await clock.advance(100);
  expect(lines).toEqual(['reading the CRM: 120,000 rows (48 %), 12,000/s, 11 s left']);
  await clock.advance(10_000);
  expect(lines[1]).toBe(
    'reading the CRM: 120,000 rows (48 %), 6,000/s, 22 s left, has waited 10 s for the CRM',
  );
  line.close();
  await clock.advance(20_000);
  expect(lines).toHaveLength(2);
});

test.each<[Progress, string]>([
  [{ stage: 'asking', kind: 'contact', done: 0, of: undefined }, 'asking the platform'],
  [{ stage: 'reading', kind: 'contact', done: 1, of: undefined }, 'reading the CRM: 1 row'],
  [
    { stage: 'reading', kind: 'template', done: 3, of: undefined },
    'reading the templates: 3 templates',
  ],
  [
    { stage: 'listing', kind: 'contact', done: 100, of: 4000 },
    'listing the platform: 100 of 4,000 contacts',
  ],
  [{ stage: 'deciding', kind: 'contact', done: 250, of: undefined }, 'deciding: 250 contacts'],
  [{ stage: 'applying', kind: 'template', done: 0, of: 1 }, 'applying: 0 of 1 template change'],
])('the line names the phase: %j', (progress, words) => {
  const meter = createMeter({ clock: virtualClock(), limits: () => ({}), reserve: 0 });
  meter.hear(progress);
  expect(progressForms(meter.now() ?? expect.unreachable('nothing'), 0)[0]).toBe(words);
});

test.each<[string, Partial<Measured>, string]>([
  ['a long rest ends by the clock', { leftMs: 3_600_000 }, ', 1 h left, done at about 01:00 UTC'],
  ['a short one does not', { leftMs: 30_000 }, ', 30 s left'],
  ['what should be over has no rest', { leftMs: 0 }, ''],
  [
    'the next window is waited for',
    { quietMs: 44_000, waitMs: 16_000 },
    ', the rate limit is used up, sends again in 16 s',
  ],
  ['the platform is waited for', { quietMs: 44_000 }, ', has waited 44 s for the platform'],
  [
    'nothing is left, and it waits',
    { leftMs: 0, quietMs: 3_000 },
    ', has waited 3 s for the platform',
  ],
])('%s', (_, news, words) => {
  const still = {
    total: 2,
    share: 0.5,
    perSecond: null,
    leftMs: null,
    quietMs: 0,
    limit: null,
    waitMs: null,
  };
  const measured = { phase: 'listing', kind: 'contact', done: 1, ...still, ...news } as const;
  expect(progressForms(measured, 0)[0]).toBe(`listing the platform: 1 of 2 contacts${words}`);
});

test('a narrow terminal gets a shorter line', async () => {
  const clock = virtualClock();
  const meter = createMeter({ clock, limits: () => ({}), reserve: 0 });
  meter.hear({ stage: 'reading', kind: 'contact', done: 0, of: undefined, share: 0 });
  await clock.advance(10_000);
  meter.hear({ stage: 'reading', kind: 'contact', done: 5000, of: undefined, share: 0.5 });
  expect(progressForms(meter.now() ?? expect.unreachable('nothing'), 0)).toEqual([
    'reading the CRM: 5,000 rows (50 %), 500/s, 10 s left',
    'reading the CRM: 5,000 rows (50 %), 10 s left',
    'reading the CRM: 5,000 rows (50 %), 10 s left',
    'reading: 50 %, 10 s left',
  ]);
});

test('a run that is to be quiet shows no progress', () => {
  const say = (): void => expect.unreachable('it speaks');
  const loud = { quiet: true, progress: say, note: say };
  expect(outletsOf(shellThat({ ...loud, interactive: true }))).toEqual({});
  expect(outletsOf(shellThat(loud))).toEqual({});
});

test.each([
  ['full', 'asking', null, 'read · list · apply'],
  ['full', 'reading', 0.48, 'read 48 % · list · apply'],
  ['full', 'listing', null, 'read ✓ · list · apply'],
  ['full', 'deciding', null, 'read ✓ · list ✓ · apply'],
  ['fast', 'reading', null, 'read · apply'],
  ['fast', 'applying', 0.5, 'read ✓ · apply 50 %'],
] as const)('a %s run has its steps while it is %s', (mode, phase, share, words) => {
  expect(stepWords({ mode, phase, share })).toBe(words);
});
