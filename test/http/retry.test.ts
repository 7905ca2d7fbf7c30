import { describe, expect, test } from 'vitest';
import { createRetry, resend } from '../../src/http/retry.ts';
import { Invalid, RateLimited, Rejected, Unavailable } from '../../src/domain/errors.ts';
import { virtualClock } from '../support/waiting.ts';

type Rule = keyof typeof resend;
type Failure = 'unsent' | 'unanswered' | number;

const failures: Record<string, Failure> = {
  unsent: 'unsent',
  unanswered: 'unanswered',
  garbage: 200,
  500: 500,
  501: 501,
  502: 502,
  503: 503,
  504: 504,
  520: 520,
};

function unavailable(failure: Failure): Unavailable {
  if (failure === 'unsent') return new Unavailable('away', { acted: 'no' });
  if (failure === 'unanswered') return new Unavailable('away', { acted: 'maybe' });
  return new Unavailable('away', { acted: 'maybe', status: failure });
}

/** Fails with each of `errors` in turn, then succeeds. */
async function attempt(rule: Rule, errors: Error[], random = 1) {
  const clock = virtualClock();
  const retry = createRetry({ clock, random: () => random });
  const atMs: number[] = [];
  const left = [...errors];
  const result = await clock.run(
    retry(resend[rule], async () => {
      atMs.push(clock.monotonic());
      const error = left.shift();
      if (error) throw error;
      return 'done';
    }).catch((error: unknown) => error),
  );
  return { result, atMs };
}

/** Which failures each kind of operation is sent again after. */
const table: Record<Rule, string[]> = {
  freely: Object.keys(failures),
  repeatable: ['500', '501', '502', '503', '504', '520', 'unsent'],
  afterOwnFailure: ['500', 'unsent'],
  never: ['unsent'],
};

describe.each(Object.keys(resend) as Rule[])('%s', (rule) => {
  test.each(Object.entries(failures))('%s', async (name, failure) => {
    const once = await attempt(rule, [unavailable(failure)]);
    if (table[rule].includes(name)) {
      expect(once.result).toBe('done');
      const always = await attempt(rule, Array(9).fill(unavailable(failure)));
      expect(always.atMs).toHaveLength(4);
      const acted = failure === 'unsent' || rule === 'freely' ? 'no' : 'maybe';
      expect(always.result).toMatchObject({ acted, message: 'away, after 4 attempts' });
    } else {
      expect(once.result).toMatchObject({ acted: 'maybe', message: 'away' });
      expect(once.atMs).toHaveLength(1);
    }
  });
});

test('one attempt that may have acted outweighs those that did not', async () => {
  const errors = [500, 'unsent', 'unsent', 'unsent'] as const;
  const { result } = await attempt('repeatable', errors.map(unavailable));
  expect(result).toMatchObject({ acted: 'maybe' });
});

test('waits grow each time to at most 5 s, a random part of each', async () => {
  const clock = virtualClock();
  const retry = createRetry({ clock, random: () => 0.5, maxAttempts: 8 });
  const atMs: number[] = [];
  const lost = retry(resend.freely, async () => {
    atMs.push(clock.monotonic());
    throw unavailable(503);
  });
  await clock.run(lost.catch(() => undefined));
  const waits = atMs.slice(1).map((ms, i) => ms - (atMs[i] ?? 0));
  expect(waits).toEqual([125, 250, 500, 1000, 2000, 2500, 2500]);
});

describe('final outcomes', () => {
  const errors = [
    new Rejected('no', { status: 400, why: '', fix: '', route: 'r' }),
    new RateLimited('no', { retryAfterMs: 1000, route: 'r' }),
    new Invalid('no'),
    new TypeError('a bug'),
  ];
  test.each(errors)('%s', async (error) => {
    expect(await attempt('freely', [error])).toEqual({ result: error, atMs: [0] });
  });

  test('a refusal after an attempt that may have acted stays a refusal', async () => {
    const rejected = new Rejected('no', { status: 409, why: '', fix: '', route: 'r' });
    const { result } = await attempt('repeatable', [unavailable(500), rejected]);
    expect(result).toEqual(
      new Rejected('no', { status: 409, why: '', fix: '', route: 'r', acted: 'maybe' }),
    );
  });

  test('giving up after an attempt that may have acted is unknown', async () => {
    const { result } = await attempt('repeatable', [
      unavailable(500),
      new RateLimited('no', { retryAfterMs: 1, route: 'r' }),
    ]);
    expect(result).toMatchObject({ name: 'Unavailable', acted: 'maybe' });
  });
});

describe('abort between attempts', () => {
  const reason = new Error('enough');
  test.each([
    ['freely', 500, reason],
    ['repeatable', 'unsent', reason],
    ['repeatable', 500, { name: 'Unavailable', acted: 'maybe', cause: reason }],
  ] as const)('%s after %s', async (rule, failure, expected) => {
    const clock = virtualClock();
    const stop = new AbortController();
    const retry = createRetry({ clock, random: () => 1, signal: new AbortController().signal });
    const lost = retry(
      resend[rule],
      async () => {
        throw unavailable(failure);
      },
      stop.signal,
    ).catch((error: unknown) => error);
    await clock.advance(100);
    stop.abort(reason);
    const error = await lost;
    if (expected === reason) expect(error).toBe(reason);
    else expect(error).toMatchObject(expected);
    expect(clock.monotonic()).toBe(100);
  });
});
