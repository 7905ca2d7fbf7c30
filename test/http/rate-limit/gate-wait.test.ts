import { describe, expect, test } from 'vitest';
import { createGate, type Gate, type Stuck } from '../../../src/http/rate-limit/request-gate.ts';
import type { Answer } from '../../../src/domain/exchange.ts';
import { virtualClock } from '../../support/waiting.ts';

const ok: Answer = { status: 200, headers: {}, body: '' };
const refused: Answer = { status: 429, headers: { 'retry-after': '60' }, body: '' };
const spent: Answer = {
  status: 200,
  headers: {
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-window': '60',
  },
  body: '',
};
const reason = new Error('enough');

/** `armed`: timers of the gate that run. */
function setUp() {
  const clock = virtualClock();
  const armed = { count: 0 };
  const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    armed.count += 1;
    await clock.sleep(ms, signal).finally(() => (armed.count -= 1));
  };
  return { clock, armed, gate: createGate({ clock: { ...clock, sleep }, random: () => 0.5 }) };
}

const through = (gate: Gate, send: () => Promise<Answer>, signal?: AbortSignal) =>
  gate.through('route', send, { signal });

describe('the timer', () => {
  test('runs once while something waits', async () => {
    const { clock, armed, gate } = setUp();
    await clock.run(through(gate, async () => spent));
    expect(armed.count).toBe(0);
    const waiting = [1, 2, 3, 4].map(() => through(gate, async () => ok));
    await clock.advance(1000);
    expect(armed.count).toBe(1);
    const { waitMs = 0 } = gate.limits()['route'] ?? {};
    await clock.advance(5000);
    expect(gate.limits()['route']?.waitMs).toBe(waitMs - 5000);
    await clock.run(Promise.all(waiting));
    expect(clock.monotonic()).toBeGreaterThan(59_000);
    expect(gate.limits()['route']).not.toHaveProperty('waitMs');
    await clock.advance(0);
    expect(armed.count).toBe(0);
  });

  test('stops when the last waiting request is aborted, and starts with the next', async () => {
    const { clock, armed, gate } = setUp();
    const stop = new AbortController();
    const first = through(gate, async () => refused, stop.signal);
    const second = through(gate, async () => ok, stop.signal);
    await clock.advance(1000);
    expect(armed.count).toBe(1);
    stop.abort(reason);
    await expect(first).rejects.toBe(reason);
    await expect(second).rejects.toBe(reason);
    await clock.advance(0);
    expect(armed.count).toBe(0);
    const third = through(gate, async () => ok);
    await clock.advance(0);
    expect(armed.count).toBe(1);
    await clock.run(third);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(60_000);
  });

  test('does not run while the next answer will tell', async () => {
    const { clock, armed, gate } = setUp();
    const slow = async () => {
      await clock.sleep(5000);
      return ok;
    };
    const both = [through(gate, slow), through(gate, slow)];
    await clock.advance(1000);
    expect(armed.count).toBe(0);
    await clock.run(Promise.all(both));
    expect(clock.monotonic()).toBe(10_000);
  });
});

describe('refusals alone', () => {
  test('are reported once when they have lasted, and again when a request gets through', async () => {
    const clock = virtualClock();
    const told: Stuck[] = [];
    const gate = createGate({ clock, random: () => 0.5, stuck: (one) => void told.push(one) });
    let isBlocked = true;
    const send = async () => (isBlocked ? { ...refused, headers: {} } : ok);
    const both = Promise.all([through(gate, send), through(gate, send)]);
    await clock.advance(25_000);
    expect(told).toEqual([]);
    await clock.advance(300_000);
    expect(told).toEqual([{ route: 'route', forMs: expect.any(Number) }]);
    expect(told[0]?.forMs).toBeGreaterThanOrEqual(30_000);
    isBlocked = false;
    await clock.run(both);
    expect(told.slice(1)).toEqual([{ route: 'route', forMs: undefined }]);
  });
});

describe('a route', () => {
  test('delays no other when it is exhausted, blocked or silent', async () => {
    const { clock, gate } = setUp();
    const never = new Promise<Answer>(() => undefined);
    const stop = new AbortController();
    await clock.run(gate.through('spent', async () => spent));
    const waiting = [
      ...Array.from({ length: 40 }, () => gate.through('spent', async () => ok, stop)),
      ...Array.from({ length: 40 }, () => gate.through('blocked', async () => refused, stop)),
      ...Array.from({ length: 40 }, () => gate.through('silent', async () => never, stop)),
    ].map((one) => one.catch((error: unknown) => error));
    await clock.advance(100);
    for (let count = 0; count < 50; count += 1) await gate.through('free', async () => ok);
    expect(clock.monotonic()).toBe(100);
    stop.abort(reason);
    expect(new Set(await Promise.all(waiting.slice(0, 80)))).toEqual(new Set([reason]));
    expect(gate.counts()).toEqual({
      total: 52,
      byRoute: { spent: 1, blocked: 1, silent: 0, free: 50 },
      rateLimited: 1,
    });
  });
});

describe('priorities', () => {
  test('let a request that is not urgent through among endless urgent ones', async () => {
    const { clock, gate } = setUp();
    const stop = new AbortController();
    let events = 0;
    const send = async () => {
      events += 1;
      await clock.sleep(100);
      return ok;
    };
    const endless = async (): Promise<void> => {
      while (!stop.signal.aborted) await gate.through('route', send, { priority: 'event' });
    };
    const streams = Promise.all(Array.from({ length: 30 }, endless));
    await clock.advance(350);
    const before = events;
    const other = gate.through('route', async () => ok);
    await clock.run(other);
    // Only those that waited when it came are ahead of it, and none that comes again.
    expect(events - before).toBeLessThanOrEqual(30);
    stop.abort();
    await clock.run(streams);
  });
});
