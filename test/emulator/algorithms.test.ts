import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  algorithms,
  findAlgorithm,
  type Limit,
  type MeterReading,
} from '../../src/emulator/limits/route-limits.ts';
import { NOON, stage } from '../support/emulator/emulator-stage.ts';

const names = algorithms.map(({ name }) => name);

/** A meter of 4 requests in 10 seconds, unless told otherwise, asked at seconds since noon. */
function meterOf(name: string, limit: Limit = { requests: 4, windowSeconds: 10 }) {
  const meter = findAlgorithm(name)(limit);
  return (second: number): MeterReading => {
    // Whole milliseconds: 1.001 * 1000 is not 1001.
    const ms = Math.round(second * 1000);
    return meter({ epoch: NOON + ms, monotonic: ms });
  };
}

/** Asked at each second in turn: what is left, or `429` and the seconds until one is allowed. */
function story(name: string, seconds: readonly number[]) {
  const ask = meterOf(name);
  return seconds.map((second) => {
    const { allowed, remaining, resetMs } = ask(second);
    return allowed ? remaining : `429 ${resetMs / 1000}`;
  });
}

describe('how a server counts: 4 requests in 10 seconds', () => {
  test.each([
    // A whole limit at once, then nothing until the window that began with the first has ended.
    ['fixed', [3, 3, 3, 3, 3, 12.9, 13], [3, 2, 1, 0, '429 10', '429 0.1', 3]],
    // So a limit just before the end and another after it.
    ['fixed', [3, 12, 12, 12, 13, 13], [3, 2, 1, 0, 3, 2]],
    // Windows begin at 0, 10, 20, whenever requests come.
    ['aligned', [3, 3, 3, 3, 3, 9.9, 10, 19, 20], [3, 2, 1, 0, '429 7', '429 0.1', 3, 2, 3]],
    // Each request counts for 10 seconds of its own.
    ['sliding-log', [0, 4, 5, 6, 7, 9, 10, 10, 14], [3, 2, 1, 0, '429 3', '429 1', 0, '429 4', 0]],
    // At 15, half of the 4 from before count: 2 are free; at 17.5 a quarter.
    ['sliding-counter', [9, 9, 9, 9, 9, 15, 15, 15], [3, 2, 1, 0, '429 3.5', 1, 0, '429 2.5']],
    ['sliding-counter', [9, 9, 9, 9, 12.4, 12.5, 17.5], [3, 2, 1, 0, '429 0.1', 0, 1]],
    // A window in which nothing came makes the one after it whole again.
    ['sliding-counter', [9, 9, 9, 9, 25], [3, 2, 1, 0, 3]],
    // One unit each 2.5 seconds, saved up to 4.
    ['gcra', [0, 0, 0, 0, 0, 2.4, 2.5, 5, 7.5], [3, 2, 1, 0, '429 2.5', '429 0.1', 0, 0, 0]],
    ['gcra', [0, 0, 0, 5, 100], [3, 2, 1, 2, 3]],
  ] as const)('%s at %j', (name, seconds, expected) => {
    const seen = story(name, seconds).map((one) =>
      typeof one === 'string' ? `429 ${Number(Number(one.slice(4)).toFixed(6))}` : one,
    );
    expect(seen).toEqual(expected);
  });

  test('aligned follows the wall clock, fixed does not', () => {
    const limit = { requests: 1, windowSeconds: 10 };
    const jump = (name: string) => {
      const meter = findAlgorithm(name)(limit);
      meter({ epoch: NOON, monotonic: 0 });
      return meter({ epoch: NOON + 3_600_000, monotonic: 1 }).allowed;
    };
    expect([jump('aligned'), jump('fixed')]).toEqual([true, false]);
  });

  test('an unknown name is refused with the existing ones', () => {
    expect(() => stage({ algorithm: 'token-bucket' })).toThrow(
      'algorithm "token-bucket" is not known: use one of fixed, aligned, sliding-log, ' +
        'sliding-counter, gcra',
    );
  });
});

const limit = fc.record({
  requests: fc.integer({ min: 1, max: 12 }),
  windowSeconds: fc.constantFrom(0.25, 1, 1.7, 2, 10, 60),
});
/** Gaps between requests as a share of the window: bursts, steady work and long rests. */
const gaps = fc.array(
  fc.oneof(
    fc.constant(0),
    fc.double({ min: 0, max: 0.2, noNaN: true }),
    fc.double({ min: 0, max: 3, noNaN: true }),
  ),
  { minLength: 1, maxLength: 80 },
);

describe.each(names)('the algorithm %s, for any sequence of requests', (name) => {
  test('tells how many more succeed at once, and when the next one does', () => {
    fc.assert(
      fc.property(limit, gaps, (bounds, pauses) => {
        const ask = meterOf(name, bounds);
        let ms = 0;
        let seen = ask(0);
        for (const pause of pauses) {
          ms += Math.round(pause * bounds.windowSeconds * 1000);
          seen = ask(ms / 1000);
          expect(seen.remaining).toBeLessThan(bounds.requests);
          expect(seen.resetMs).toBeGreaterThan(0);
        }
        for (let left = seen.remaining; left > 0; left -= 1) {
          expect(ask(ms / 1000)).toMatchObject({ allowed: true, remaining: left - 1 });
        }
        const refused = ask(ms / 1000);
        expect(refused).toMatchObject({ allowed: false, remaining: 0 });
        const waitMs = Math.ceil(refused.resetMs - 1e-3);
        if (waitMs > 1) expect(ask((ms + waitMs - 1) / 1000).allowed).toBe(false);
        expect(ask((ms + waitMs) / 1000).allowed).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('a refusal changes nothing', () => {
    fc.assert(
      fc.property(limit, gaps, (bounds, pauses) => {
        const [patient, eager] = [meterOf(name, bounds), meterOf(name, bounds)];
        let ms = 0;
        for (const pause of pauses) {
          ms += Math.round(pause * bounds.windowSeconds * 1000);
          const once = patient(ms / 1000);
          expect(eager(ms / 1000)).toEqual(once);
          if (!once.allowed) for (let more = 0; more < 3; more += 1) eager(ms / 1000);
        }
      }),
      { numRuns: 200 },
    );
  });
});

/** The times, in milliseconds, of what a client that never waits is allowed. */
function allowedTimes(name: string, bounds: Limit, pauses: readonly number[]): number[] {
  const ask = meterOf(name, bounds);
  const times: number[] = [];
  let ms = 0;
  for (const pause of pauses) {
    ms += Math.round(pause * bounds.windowSeconds * 1000);
    for (let burst = 0; burst <= bounds.requests; burst += 1) {
      if (ask(ms / 1000).allowed) times.push(ms);
    }
  }
  return times;
}

/** The most in any window, wherever it begins. */
function mostInAnyWindow(times: readonly number[], windowMs: number): number {
  const counts = times.map((from) => times.filter((at) => at >= from && at < from + windowMs));
  return Math.max(0, ...counts.map(({ length }) => length));
}

describe('a client that never waits', () => {
  // Both windows that touch at a border, and a burst with what comes back meanwhile, may be full.
  test.each([
    ['sliding-log', 1],
    ['fixed', 2],
    ['aligned', 2],
    ['sliding-counter', 2],
    ['gcra', 2],
  ] as const)('under %s gets at most %i times the limit in any window', (name, times) => {
    fc.assert(
      fc.property(limit, gaps, (bounds, pauses) => {
        const allowed = allowedTimes(name, bounds, pauses);
        const most = mostInAnyWindow(allowed, bounds.windowSeconds * 1000);
        expect(most).toBeLessThanOrEqual(bounds.requests * times);
      }),
      { numRuns: 200 },
    );
  });
});

describe.each(names)('%s over the API', (algorithm) => {
  test('Retry-After is in whole seconds, and waiting for it is enough', () => {
    for (let step = 0; step < 200; step += 1) {
      const platform = stage({ limits: ['contacts.list=3/1.7'], algorithm });
      const list = () => platform.ask('GET /api/contacts/list');
      platform.pass(Math.round(step * 3.3));
      while (list().status === 200) platform.pass(step);
      const refused = list();
      expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
      platform.pass(Number(refused.headers['retry-after']) * 1000);
      expect(list().status).toBe(200);
    }
  });
});
