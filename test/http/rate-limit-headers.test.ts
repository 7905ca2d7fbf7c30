import { describe, expect, test } from 'vitest';
import { httpDate, observe } from '../../src/http/rate-limit-headers.ts';

const NOW = Date.UTC(2026, 0, 1, 12, 0, 0);
const DATE = 'Thu, 01 Jan 2026 10:00:00 GMT';
const DATED = Date.UTC(2026, 0, 1, 10, 0, 0);
const DAY_MS = 86_400_000;

type Headers = Record<string, string>;
const prefixed = (headers: Headers) =>
  Object.fromEntries(Object.entries(headers).map(([name, text]) => [`x-ratelimit-${name}`, text]));

describe('limit, remaining, window', () => {
  const rows: [string, Headers, object][] = [
    ['nothing', {}, {}],
    [
      'all',
      { limit: '60', remaining: '59', window: '60' },
      { limit: 60, remaining: 59, windowMs: 60_000 },
    ],
    ['nothing left', { limit: '60', remaining: '0' }, { limit: 60, remaining: 0 }],
    [
      'one malformed',
      { limit: 'many', remaining: '5', window: '60' },
      { remaining: 5, windowMs: 60_000 },
    ],
    ['another', { limit: '60', remaining: '1e3', window: 'PT1M' }, { limit: 60 }],
    ['given twice', { limit: '60, 60', remaining: '5' }, { remaining: 5 }],
    ['negative', { limit: '-1', remaining: '-1', window: '-60' }, {}],
    ['zero', { limit: '0', remaining: '0', window: '0' }, { remaining: 0 }],
    ['more than the limit', { limit: '60', remaining: '99' }, { limit: 60, remaining: 60 }],
    ['empty', { limit: '', remaining: ' ', window: '' }, {}],
    ['padded', { limit: ' 60 ', remaining: ' 5' }, { limit: 60, remaining: 5 }],
    ['part of a second', { window: '0.5' }, { windowMs: 500 }],
    ['absurd', { window: '99999999', limit: '9'.repeat(30) }, { windowMs: DAY_MS }],
    ['no decimals of a request', { limit: '60.5', remaining: '1.5' }, {}],
  ];
  test.each(rows)('%s', (_, headers, expected) => {
    expect(observe(200, prefixed(headers), NOW)).toEqual({ refused: false, ...expected });
  });
});

describe('reset', () => {
  const rows: [string, Headers, number | undefined][] = [
    ['seconds left', { 'x-ratelimit-reset': '30' }, 30_000],
    ['none left', { 'x-ratelimit-reset': '0' }, 0],
    ['epoch, against here', { 'x-ratelimit-reset': String(NOW / 1000 + 30) }, 30_000],
    ['epoch, against Date', { 'x-ratelimit-reset': String(DATED / 1000 + 30), date: DATE }, 30_000],
    ['epoch in milliseconds', { 'x-ratelimit-reset': String(NOW + 30_000) }, 30_000],
    ['epoch of the past', { 'x-ratelimit-reset': String(NOW / 1000 - 30) }, 0],
    ['seconds below 1e9, absurd', { 'x-ratelimit-reset': '999999999' }, DAY_MS],
    ['a date', { 'x-ratelimit-reset': 'Thu, 01 Jan 2026 12:00:30 GMT' }, 30_000],
    ['malformed', { 'x-ratelimit-reset': 'soon' }, undefined],
  ];
  test.each(rows)('%s', (_, headers, resetInMs) => {
    expect(observe(200, headers, NOW).resetInMs).toBe(resetInMs);
  });
});

describe('Retry-After', () => {
  const rows: [string, Headers, number | undefined][] = [
    ['seconds', { 'retry-after': '3' }, 3000],
    ['zero', { 'retry-after': '0' }, 0],
    ['absent', {}, undefined],
    ['negative', { 'retry-after': '-5' }, undefined],
    ['absurd', { 'retry-after': '999999999' }, DAY_MS],
    ['epoch, against here', { 'retry-after': String(NOW / 1000 + 3) }, 3000],
    ['epoch, against its Date', { 'retry-after': String(DATED / 1000 + 3), date: DATE }, 3000],
    ['epoch in milliseconds', { 'retry-after': String(NOW + 3000) }, 3000],
    ['epoch of the past', { 'retry-after': String(NOW / 1000 - 60) }, 0],
    ['part of a second', { 'retry-after': '0.493' }, 493],
    ['malformed', { 'retry-after': 'later' }, undefined],
    [
      'a date, against Date',
      { 'retry-after': 'Thu, 01 Jan 2026 10:00:30 GMT', date: DATE },
      30_000,
    ],
    ['a date, against here', { 'retry-after': 'Thu, 01 Jan 2026 12:00:30 GMT' }, 30_000],
    ['a date, Date wrong', { 'retry-after': 'Thu, 01 Jan 2026 12:00:30 GMT', date: 'x' }, 30_000],
    ['a date of the past', { 'retry-after': 'Thu, 01 Jan 2026 09:00:00 GMT', date: DATE }, 0],
  ];
  test.each(rows)('%s', (_, headers, retryAfterMs) => {
    expect(observe(429, headers, NOW)).toMatchObject({ refused: true, retryAfterMs });
  });

  test('means nothing on a success', () => {
    expect(observe(200, { 'retry-after': '3' }, NOW).retryAfterMs).toBeUndefined();
  });
});

test.each([
  [DATE, DATED],
  ['2026-01-01T10:00:00Z', undefined],
  ['-5', undefined],
  ['Foo, 99 Bar 2026 10:00:00 GMT', undefined],
  [undefined, undefined],
])('httpDate(%j)', (text, time) => {
  expect(httpDate(text)).toBe(time);
});
