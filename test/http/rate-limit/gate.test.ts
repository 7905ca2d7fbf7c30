import { describe, expect, test } from 'vitest';
import { createGate, type Gate } from '../../../src/http/rate-limit/request-gate.ts';
import { RateLimited, Unavailable } from '../../../src/domain/errors.ts';
import type { Answer } from '../../../src/domain/exchange.ts';
import { virtualClock, type VirtualClock } from '../../support/waiting.ts';

const LATENCY_MS = 40;

/** A fixed window that begins with its first request; a 429 does not count. */
function fixedWindow(clock: VirtualClock, limit: number, windowMs: number) {
  let endsMs = -1;
  let used = 0;
  let most = 0;
  let flying = 0;
  const refusedMs: number[] = [];
  async function send(latencyMs = LATENCY_MS): Promise<Answer> {
    most = Math.max(most, (flying += 1));
    await clock.sleep(latencyMs / 2);
    const nowMs = clock.monotonic();
    if (nowMs >= endsMs) [endsMs, used] = [nowMs + windowMs, 0];
    const refused = used >= limit;
    if (refused) refusedMs.push(nowMs);
    else used += 1;
    const headers: Record<string, string> = {
      'x-ratelimit-limit': String(limit),
      'x-ratelimit-remaining': String(limit - used),
      'x-ratelimit-window': String(windowMs / 1000),
    };
    if (refused) headers['retry-after'] = String(Math.max(1, Math.ceil((endsMs - nowMs) / 1000)));
    await clock.sleep(latencyMs / 2);
    flying -= 1;
    return { status: refused ? 429 : 200, headers, body: '' };
  }
  return { send, refusedMs, most: () => most };
}

const ok: Answer = { status: 200, headers: {}, body: '' };
const wait = (retryAfter: string): Answer => ({
  status: 429,
  headers: { 'retry-after': retryAfter },
  body: '',
});

function setUp(signal?: AbortSignal) {
  const clock = virtualClock();
  return { clock, gate: createGate({ clock, random: () => 0.5, signal }) };
}

const many = (gate: Gate, count: number, send: () => Promise<Answer>) =>
  Promise.all(Array.from({ length: count }, () => gate.through('route', send)));

describe('a route with a fixed window', () => {
  test('is used up window by window, without a refusal', async () => {
    const { clock, gate } = setUp();
    const platform = fixedWindow(clock, 60, 60_000);
    const answers = await clock.run(many(gate, 290, () => platform.send()));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(platform.refusedMs).toEqual([]);
    expect(platform.most()).toBeGreaterThan(8);
    expect(platform.most()).toBeLessThanOrEqual(32);
    expect(clock.monotonic()).toBeLessThan(4 * 60_000 * 1.02);
    expect(gate.counts()).toEqual({ total: 290, byRoute: { route: 290 }, rateLimited: 0 });
  });

  test.each([2, 3, 5])('is used up with a limit of %i requests, too', async (limit) => {
    const { clock, gate } = setUp();
    const platform = fixedWindow(clock, limit, 2000);
    await clock.run(many(gate, limit * 5, () => platform.send()));
    expect(platform.refusedMs).toEqual([]);
    expect(clock.monotonic()).toBeLessThan(4 * 2000 * 1.2);
  });

  test('is hardly refused while another program uses a third of it', async () => {
    const { clock, gate } = setUp();
    const platform = fixedWindow(clock, 60, 60_000);
    const stop = new AbortController();
    const other = (async () => {
      for (;;) {
        await clock.sleep(3000, stop.signal);
        await platform.send();
      }
    })().catch(() => undefined);
    await clock.run(many(gate, 300, () => platform.send()));
    stop.abort();
    await clock.run(other);
    expect(gate.counts().rateLimited).toBeLessThanOrEqual(3);
  });

  test('is not overdrawn by answers that overtake each other', async () => {
    const { clock, gate } = setUp();
    const platform = fixedWindow(clock, 30, 10_000);
    let seed = 1;
    const slow = () => platform.send((seed = (seed * 48_271) % 2_147_483_647) % 500);
    await clock.run(many(gate, 200, slow));
    expect(platform.refusedMs).toEqual([]);
  });
});

describe('429', () => {
  test('is waited out and sent again, before what waits', async () => {
    const { clock, gate } = setUp();
    const order: string[] = [];
    const answers = { a: [wait('3'), ok], b: [wait('3'), ok], c: [ok], d: [ok] };
    const sendAs = (name: keyof typeof answers) => async () => {
      order.push(`${name}@${clock.monotonic()}`);
      return answers[name].shift() ?? ok;
    };
    const names = ['a', 'b', 'c', 'd'] as const;
    await clock.run(Promise.all(names.map((name) => gate.through('route', sendAs(name)))));
    // One, as nothing is known; one, to find out; two, and b comes back ahead of d.
    expect(order).toEqual(['a@0', 'a@3525', 'b@3525', 'c@3525', 'b@7050', 'd@7050']);
    expect(gate.counts()).toEqual({ total: 6, byRoute: { route: 6 }, rateLimited: 2 });
  });

  test('on an unknown route keeps one request in flight until the first answer', async () => {
    const { clock, gate } = setUp();
    const atMs: number[] = [];
    const send = async () => {
      atMs.push(clock.monotonic());
      await clock.sleep(1000);
      return ok;
    };
    await clock.run(many(gate, 3, send));
    expect(atMs).toEqual([0, 1000, 1000]);
  });

  test('for a burst lets one probe out, and the rest after its answer', async () => {
    const { clock, gate } = setUp();
    let flying = 0;
    let refusing = false;
    const probes: number[] = [];
    const send = async () => {
      flying += 1;
      if (refusing) probes.push(flying);
      await clock.sleep(100);
      flying -= 1;
      if (clock.monotonic() < 1000) return ok;
      refusing = clock.monotonic() < 20_000;
      return refusing ? wait('2') : ok;
    };
    await clock.run(many(gate, 200, send));
    expect(Math.max(...probes)).toBe(1);
    expect(probes.length).toBeGreaterThan(2);
  });

  test('without end makes the request fail with the reason', async () => {
    const { clock, gate } = setUp();
    const lost = gate.through('route', async () => wait('1'));
    const error = await clock.run(lost.catch((reason: unknown) => reason));
    expect(error).toBeInstanceOf(RateLimited);
    expect(error).toMatchObject({ retryAfterMs: 1000 });
    expect(String(error)).toMatch(/route: one request was refused 20 times/);
    expect(gate.counts().rateLimited).toBe(20);
    expect(await clock.run(gate.through('route', async () => ok))).toBe(ok);
  });
});

test('requests leave by priority, then in order of arrival', async () => {
  const { clock, gate } = setUp();
  const order: string[] = [];
  const send = (name: string) => async () => {
    order.push(name);
    await clock.sleep(10);
    return ok;
  };
  const urgencies = ['other', 'other', 'other', 'opt_out', 'event', 'opt_out', 'event'] as const;
  await clock.run(
    Promise.all(
      urgencies.map((priority, i) => gate.through('route', send(`${priority} ${i}`), { priority })),
    ),
  );
  expect(order.slice(0, 4)).toEqual(['event 4', 'event 6', 'opt_out 3', 'opt_out 5']);
});

describe('abort', () => {
  const reason = new Error('enough');

  test('while queued: never sent, and the others continue', async () => {
    const { clock, gate } = setUp();
    const stop = new AbortController();
    const sent: number[] = [];
    const send = (i: number) => async () => {
      sent.push(i);
      await clock.sleep(100);
      return ok;
    };
    const all = Array.from({ length: 6 }, (_, i) =>
      gate.through('route', send(i), i === 4 ? { signal: stop.signal } : {}),
    );
    await clock.advance(10);
    stop.abort(reason);
    await expect(all[4]).rejects.toBe(reason);
    void all.splice(4, 1);
    await clock.run(Promise.all(all));
    expect(sent).toEqual([0, 1, 2, 3, 5]);
  });

  test('while a 429 is waited out', async () => {
    const { clock, gate } = setUp();
    const stop = new AbortController();
    const refused = gate.through('route', async () => wait('60'), { signal: stop.signal });
    await clock.advance(1000);
    stop.abort(reason);
    await expect(refused).rejects.toBe(reason);
    expect(await clock.run(gate.through('route', async () => ok))).toBe(ok);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(60_000);
  });

  test('in flight: returns the answer, or the failure of sending', async () => {
    const { clock, gate } = setUp();
    const stop = new AbortController();
    // Of a route of which something is known, two may be in flight.
    await gate.through('route', async () => ok);
    const answered = gate.through(
      'route',
      async () => {
        await clock.sleep(100);
        return ok;
      },
      { signal: stop.signal },
    );
    const refused = gate.through(
      'route',
      async () => {
        await clock.sleep(100);
        return wait('60');
      },
      { signal: stop.signal },
    );
    await clock.advance(50);
    stop.abort(reason);
    const both = Promise.allSettled([answered, refused]);
    expect(await clock.run(both)).toEqual([
      { status: 'fulfilled', value: ok },
      { status: 'rejected', reason },
    ]);
    expect(clock.monotonic()).toBe(100);
  });

  test('for the whole gate: everything that waits, and what comes later', async () => {
    const stop = new AbortController();
    const { clock, gate } = setUp(stop.signal);
    const never = many(gate, 5, async () => wait('60'));
    await clock.advance(1000);
    stop.abort(reason);
    await expect(never).rejects.toBe(reason);
    await expect(gate.through('route', async () => ok)).rejects.toBe(reason);
  });

  test('reaches the request as its signal', async () => {
    const stop = new AbortController();
    const { clock, gate } = setUp(stop.signal);
    const own = new AbortController();
    const sent = gate.through(
      'route',
      async (signal) => {
        await clock.sleep(1000, signal);
        return ok;
      },
      { signal: own.signal },
    );
    await clock.advance(1);
    stop.abort(reason);
    await expect(sent).rejects.toBe(reason);
    expect(gate.counts().total).toBe(0);
  });
});

describe('failures', () => {
  test('pass through; what may have been sent counts', async () => {
    const { clock, gate } = setUp();
    const fail = (acted: 'no' | 'maybe') =>
      gate.through('route', async () => {
        throw new Unavailable('away', { acted });
      });
    await expect(clock.run(fail('no'))).rejects.toThrow('away');
    await expect(clock.run(fail('maybe'))).rejects.toThrow('away');
    expect(gate.counts()).toEqual({ total: 1, byRoute: { route: 1 }, rateLimited: 0 });
  });

  test('from a bug in sending are passed on, and free the place', async () => {
    const { clock, gate } = setUp();
    const bugs = Array.from({ length: 5 }, () =>
      gate.through('route', () => {
        throw new TypeError('bug');
      }),
    );
    const ends = await clock.run(Promise.allSettled(bugs));
    expect(ends.map(({ status }) => status)).toEqual(Array(5).fill('rejected'));
    expect(await clock.run(gate.through('route', async () => ok))).toBe(ok);
  });
});
