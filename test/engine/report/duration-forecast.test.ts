import { describe, expect, test } from 'vitest';
import type { RouteLimit } from '../../../src/domain/route-limit.ts';
import {
  forecast,
  forecastAgain,
  restOf,
  renderForecast,
} from '../../../src/engine/report/duration-forecast.ts';
import { lasting } from '../../../src/compose/output/format-values.ts';

const limit = (more: Partial<RouteLimit> = {}): RouteLimit => ({
  limit: 30,
  windowMs: 60_000,
  left: 30,
  others: 0,
  ...more,
});

test.each([
  { what: 'what fits into one window takes no time', requests: 30, seen: limit(), ms: 0 },
  { what: 'each window more takes its length', requests: 90, seen: limit(), ms: 120_000 },
  { what: 'one that is begun, too', requests: 100, seen: limit(), ms: 180_000 },
  { what: 'ten thousand enrolments at 30 a minute', requests: 10_000, seen: limit(), ms: 19.98e6 },
  {
    what: 'others take their share',
    requests: 60,
    seen: limit({ others: 0.5 }),
    ms: 180_000,
  },
  { what: 'a limit nobody saw says nothing', requests: 60, seen: undefined, ms: null },
  {
    what: 'nor does one without a window',
    requests: 60,
    seen: limit({ windowMs: undefined }),
    ms: null,
  },
])('$what', ({ requests, seen, ms }) => {
  const limits = seen ? { 'contacts.enrol': seen } : {};
  const told = forecast({ 'contacts.enrol': requests }, { limits, reserve: 0, readMs: 0 });
  expect(told.ms).toBe(ms);
  expect(told.routes).toMatchObject([{ route: 'contacts.enrol', requests, ms }]);
});

test('the forecast leaves out the reserved share of a limit', () => {
  const limits = { 'contacts.enrol': limit({ limit: 100 }) };
  expect(forecast({ 'contacts.enrol': 180 }, { limits, reserve: 0.1, readMs: 0 }).ms).toBe(60_000);
});

test('the slowest route decides; deletes of contacts come after enrolments', () => {
  const limits = {
    'contacts.enrol': limit(),
    'contacts.delete': limit({ limit: 10 }),
    'contacts.retrieve': limit({ limit: 20 }),
    'templates.create': limit(),
    'templates.update': limit(),
  };
  const contacts = { 'contacts.enrol': 60, 'contacts.delete': 40, 'contacts.retrieve': 40 };
  const needs = { ...contacts, 'templates.create': 120, 'templates.update': 90, 'keys.list': 0 };
  const told = forecast(needs, { limits, reserve: 0, readMs: 0 });
  expect(told.ms).toBe(240_000);
  expect(told.routes.map(({ route, ms }) => [route, ms])).toEqual([
    ['contacts.delete', 180_000],
    ['templates.create', 180_000],
    ['templates.update', 120_000],
    ['contacts.enrol', 60_000],
    ['contacts.retrieve', 60_000],
  ]);
});

test('the forecast uses the current state of a limit', () => {
  const limits = { 'contacts.enrol': limit() };
  const needs = { 'contacts.enrol': 120, 'contacts.delete': 30 };
  const before = forecast(needs, { limits, reserve: 0, readMs: 7 });
  expect(before.ms).toBeNull();
  const seen = { 'contacts.delete': limit({ limit: 10 }), 'contacts.list': limit() };
  const now = forecastAgain(before, { limits: seen, reserve: 0 });
  expect(now).toMatchObject({ ms: 300_000, readMs: 7 });
  expect(now.routes.map(({ ms }) => ms)).toEqual([180_000, 120_000]);
});

describe('the forecast for the rest of a record type', () => {
  const limits = { 'contacts.enrol': limit(), 'contacts.delete': limit({ limit: 10, left: 2 }) };
  const needs = { 'contacts.delete': 30, 'contacts.enrol': 120, 'templates.create': 9 };
  const rest = (done: number, { left, looks }: { left: number; looks: number }) => {
    const all = { ...needs, 'contacts.list': looks };
    const list = limit({ limit: 10, left: 0 });
    const now = { ...limits, 'contacts.enrol': limit({ left }), 'contacts.list': list };
    const told = forecast(all, { limits, reserve: 0, readMs: 0 });
    return restOf(told, { kind: 'contact', done }, { limits: now, reserve: 0 }).ms;
  };

  test.each([
    { what: 'nothing is done: all windows but two that are begun', done: 0, left: 0, ms: 300_000 },
    {
      what: 'what is left of this window is no longer than a moment',
      done: 1,
      left: 29,
      ms: 300_000,
    },
    { what: 'one that is used up is waited for', done: 30, left: 0, ms: 300_000 },
    { what: 'the last of a route, and then the deletes', done: 119, left: 0, ms: 180_000 },
    { what: 'deletes come last, by what is left of theirs', done: 125, left: 0, ms: 180_000 },
    { what: 'looks go beside', done: 60, left: 0, ms: 540_000, looks: 150 },
    { what: 'all is done', done: 150, left: 0, ms: 0 },
  ])('$what', ({ done, left, ms, looks = 0 }) => {
    expect(rest(done, { left, looks })).toBe(ms);
  });

  test('counts what is known', () => {
    const { 'contacts.enrol': enrol } = limits;
    const seen = { limits: { 'contacts.enrol': enrol }, reserve: 0 };
    const unseen = forecast(needs, { limits: {}, reserve: 0, readMs: 0 });
    const left = (kind: string) => restOf(unseen, { kind, done: 0 }, seen);
    expect(left('contact')).toEqual({ ms: 180_000, windowMs: 60_000 });
    expect(left('template')).toEqual({ ms: 0, windowMs: 0 });
  });
});

test('the duration is forecast under three assumed limits where a limit is unknown', () => {
  const needs = { 'contacts.enrol': 3400, 'contacts.delete': 90 };
  const known = { 'contacts.delete': limit() };
  const times = (limits: Record<string, RouteLimit>, reserve = 0): number[] =>
    forecast(needs, { limits, reserve, readMs: 0 }).assumed.map(({ ms }) => ms / 1000);
  expect(times(known)).toEqual([459, 33 * 60 + 120, 113 * 60 + 120]);
  // The reserve is left to other programs under an assumed limit, too.
  expect(times({}, 0.5)).toEqual([679 + 17, 67 * 60 + 60, 226 * 60 + 300]);
  expect(times({ ...known, 'contacts.enrol': limit() })).toEqual([]);
});

test('the forecast is printed as lines', () => {
  const limits = { 'contacts.enrol': limit({ others: 0.3 }) };
  const needs = { 'contacts.enrol': 4200, 'templates.create': 2 };
  const told = (known: Record<string, RouteLimit>, all: Record<string, number>, readMs = 0) =>
    renderForecast(forecast(all, { limits: known, reserve: 0, readMs }), lasting);
  expect(told(limits, needs)).toEqual([
    'Duration: at least 3 h 19 min, by the rate limits observed so far:',
    '  contacts.enrol  4,200 requests, 30 every 60 s, 30 % used by others',
    'No rate limit observed yet for templates.create (2 requests).',
  ]);
  expect(told(limits, {})).toEqual([]);
  expect(told(limits, { 'contacts.enrol': 1 })).toEqual([
    'Duration: a moment, by the rate limits observed so far:',
    '  contacts.enrol  1 request, 30 every 60 s, 30 % used by others',
  ]);
  expect(told({}, { 'contacts.enrol': 3406 })).toEqual([
    'Duration unknown: no rate limit observed yet for contacts.enrol (3,406 requests). ' +
      'At 10 a second: 5 min 40 s; at 100 a minute: 34 min; at 30 a minute: 1 h 53 min.',
  ]);
  expect(told({}, { 'contacts.enrol': 2, 'templates.create': 1 })).toEqual([
    'Duration unknown: no rate limit observed yet for contacts.enrol (2 requests) and ' +
      'templates.create (1 request). At 30 a minute or more: a moment.',
  ]);
  expect(told({}, needs, 90_000)[0]).toMatch(
    /^Duration unknown, after 90 s of reading both sides: no rate limit observed yet for /,
  );
});
