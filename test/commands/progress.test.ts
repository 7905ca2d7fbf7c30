/** The line that is redrawn on a terminal while a run is under way. */
import { expect, test } from 'vitest';
import { createProgress } from '../../src/cli/run/progress-line.ts';
import { forecast } from '../../src/engine/report/duration-forecast.ts';
import type { RouteLimit } from '../../src/domain/route-limit.ts';
import { virtualClock } from '../support/clock.ts';

const enrolments = 10_000;
const limit: RouteLimit = { limit: 30, windowMs: 60_000, left: 0, others: 0 };

/** A terminal, and the limits that are known by now. */
function terminal() {
  const clock = virtualClock();
  const limits: Record<string, RouteLimit> = {};
  const lines: string[] = [];
  const shell = { interactive: true, progress: (line: string) => void lines.push(line) };
  const line = createProgress(shell, { clock, limits: () => limits, reserve: 0 });
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
  expect(lines.at(-1)).toBe('contacts applied 30 of 10,000, 50/s, 5 h 33 min left');
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
    'contacts applied 30 of 10,000, 0.7/s, 5 h 33 min left, waiting for 45 s',
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
  expect(lines.at(-1)).toBe('contacts applied 5,000 of 10,000, 17/s, 5 min 2 s left');
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
  expect(lines.at(-1)).toMatch(/, 11 s left, waiting for 49 s$/);
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
  expect(lines.at(-1)).toBe('contacts applied 302 of 10,000, 0.5/s, 5 h 22 min left');
  line.close();
});

test('unfinished changes are shown, and the size of the plan before the first answer', async () => {
  const { clock, lines, line } = terminal();
  const limits = {};
  const needs = { 'contacts.enrol': 40, 'contacts.list': 40, 'templates.create': 2 };
  line.progress({ stage: 'deciding', kind: 'template', done: 9, of: undefined });
  line.foresees(forecast(needs, { limits, reserve: 0, readMs: 0 }));
  line.progress({ stage: 'applying', kind: 'template', done: 2, of: 2 });
  await clock.advance(3000);
  expect(lines.at(-1)).toBe('contacts applied 0 of 40, waiting for 3 s');
  line.close();
});

test('no progress is drawn when stderr is no terminal', async () => {
  const clock = virtualClock();
  const shell = { interactive: false, progress: () => expect.unreachable('it draws') };
  const line = createProgress(shell, { clock, limits: () => ({}), reserve: 0 });
  line.progress({ stage: 'listing', kind: 'contact', done: 1, of: 2 });
  await clock.advance(5000);
  line.close();
});
