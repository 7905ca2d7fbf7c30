/** How long a run takes is said before it begins. */
import { expect, test } from 'vitest';
import { foreseeing, sayForecast } from '../../src/compose/run-progress.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import type { RouteLimit } from '../../src/domain/route-limit.ts';
import { ann, bob, mirrored, shellThat } from '../support/commands/mirrored-contacts.ts';

const enrolments = (requests: number, known: boolean) => ({
  route: 'contacts.enrol',
  requests,
  limit: known ? 1_000_000 : null,
  windowMs: known ? 1000 : null,
  others: 0,
  ms: known ? 0 : null,
});

test('a plan prints the requests of each route, and their duration where it is known', async () => {
  const world = await mirrored();
  const first = await world.call('plan', '--json');
  expect(first.json.forecast).toEqual({
    readMs: expect.any(Number),
    ms: null,
    routes: [enrolments(2, false)],
    assumed: [
      { limit: 10, windowMs: 1000, ms: 0 },
      { limit: 100, windowMs: 60_000, ms: 0 },
      { limit: 30, windowMs: 60_000, ms: 0 },
    ],
  });
  expect((await world.seen('plan')).out).toContain(
    'Duration unknown: no rate limit observed yet for contacts.enrol (2 requests). ' +
      'At 30 a minute or more: a moment.',
  );

  expect((await world.call('sync')).code).toBe(0);
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'no' },
    { email: 'carl@example.com', news: 'yes' },
  ]);
  const next = await world.call('plan', '--json');
  expect(next.json.forecast).toMatchObject({ ms: 0, routes: [enrolments(2, true)], assumed: [] });
});

test('a first load prints the forecast before it begins', async () => {
  const world = await mirrored();
  const { err } = await world.call('backfill');
  expect(err).toMatch(/no rate limit observed yet for contacts\.enrol \(2 requests\)/);
  expect((await world.call('sync')).err).not.toMatch(/contacts\.enrol/);
});

const config = {
  mirror: 'acme',
  schedule: {
    patterns: { full: '*/5 * * * *', fast: undefined, templates: undefined, sentinel: undefined },
    timezone: 'Europe/Berlin',
  },
};
const at = Date.parse('2026-11-22T10:00:01Z');

test('a run that will exceed its schedule warns before it begins', () => {
  const said: string[] = [];
  const shell = shellThat({ note: (line) => void said.push(line) });
  const forecast = (ms: number, readMs = 0) => {
    return { readMs, ms, routes: [{ ...enrolments(9, true), ms }], assumed: [] };
  };
  const about = { config, mode: 'full', now: at } as const;
  sayForecast(forecast(4 * 60_000), shell, about);
  sayForecast(forecast(60 * 60_000), shell, { ...about, mode: 'fast' });
  expect(said.filter((line) => line.includes('cannot finish'))).toEqual([]);
  sayForecast(forecast(6 * 60_000), shell, about);
  expect(said.at(-1)).toMatch(/acme: this run cannot finish within its schedule: .* 6 min.* 5 min/);
  // What it took to read both sides is part of it, also where nothing is left to do.
  sayForecast(forecast(2 * 60_000, 5 * 60_000), shell, about);
  expect(said.at(-1)).toMatch(/acme: this run cannot finish within its schedule: .* 7 min.* 5 min/);
  const unknown = { readMs: 8 * 60_000, ms: null, routes: [enrolments(9, false)], assumed: [] };
  sayForecast(unknown, shell, about);
  expect(said.at(-1)).toMatch(
    /acme: this run cannot finish within its schedule: .* at least 8 min.* 5 min/,
  );
});

test('an unknown rate limit is reported once, with the first answer that names it', () => {
  const said: string[] = [];
  const limits: Record<string, RouteLimit> = {};
  const clock = { ...systemClock, now: () => at };
  const mirror = { limits: () => limits, reserve: 0, clock };
  const shell = shellThat({ note: (line) => void said.push(line) });
  const { foresees, progress } = foreseeing(shell, mirror, { config, mode: 'full' });
  foresees({ readMs: 0, ms: null, routes: [enrolments(10_000, false)], assumed: [] });
  progress({ stage: 'applying' });
  expect(said).toEqual([]);
  limits['contacts.enrol'] = { limit: 30, windowMs: 60_000, left: 29, others: 0 };
  for (let times = 0; times < 3; times += 1) progress({ stage: 'applying' });
  expect(said.filter((line) => line.includes('cannot finish'))).toHaveLength(1);
  expect(said.at(-1)).toMatch(/it takes about 5 h 33 min/);
});
