/**
 * A gate under random schedules, in virtual time: three routes, each limited by an algorithm of its
 * own, requests that come when they like and are aborted, lost or broken on the way.
 */
import { describe, expect, test } from 'vitest';
import { algorithms } from '../../../src/emulator/limits/route-limits.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { createBudget } from '../../../src/http/rate-limit/route-budget.ts';
import { createGate } from '../../../src/http/rate-limit/request-gate.ts';
import { RateLimited, Unavailable } from '../../../src/domain/errors.ts';
import type { Answer } from '../../../src/domain/exchange.ts';
import { virtualClock, type VirtualClock } from '../../support/waiting.ts';
import { createServer, watch } from '../../support/rate-limit/limit-servers.ts';

const SEEDS = 50;
const REQUESTS = 120;
const FOR_MS = 20_000;
const ROUTES = ['a', 'b', 'c'];
const priorities = ['event', 'opt_out', 'other'] as const;
const stopped = new Error('enough');

/** The gate's clock: knows how many timers are armed. */
function counting(clock: VirtualClock) {
  const armed = { count: 0 };
  const sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    armed.count += 1;
    await clock.sleep(ms, signal).finally(() => (armed.count -= 1));
  };
  return { armed, clock: { ...clock, sleep } };
}

function world(seed: number) {
  const random = seeded(seed);
  const clock = virtualClock();
  const { armed, clock: counted } = counting(clock);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;
  const limit = () => ({ requests: pick([3, 5, 20, 60]), windowSeconds: pick([1, 5, 60]) });
  const servers = new Map(
    ROUTES.map((route) => {
      const { name } = pick(algorithms);
      return [route, createServer(name, { limit: limit(), epochMs: clock.now() })];
    }),
  );
  const fail = (why: string): never => {
    throw new Error(`seed ${seed}, at ${clock.monotonic()} ms: ${why}`);
  };
  const stop = new AbortController();
  const budgetOf = () => watch(createBudget({ random }), { fail });
  const gate = createGate({ clock: counted, random, signal: stop.signal, budgetOf });
  return { random, clock, armed, pick, servers, fail, stop, gate };
}

type World = ReturnType<typeof world>;

/** What the world saw, to compare with what the gate counted. */
interface Tally {
  left: Record<string, number>;
  refused: number;
  flying: number;
  mostFlying: number;
}

/** What goes wrong on the way: thrown, and then it may or may not have left. */
function breakdown({ random }: World): Error | undefined {
  const chance = random();
  if (chance < 0.03) return new Unavailable('no answer in time', { acted: 'maybe' });
  if (chance < 0.06) return new Unavailable('no connection', { acted: 'no' });
  return chance < 0.08 ? new TypeError('a bug') : undefined;
}

function sender(made: World, route: string, tally: Tally) {
  const { clock, random, servers, fail } = made;
  const leave = () => (tally.left[route] = (tally.left[route] ?? 0) + 1);
  const travel = async (signal: AbortSignal | undefined): Promise<Answer> => {
    const halfMs = () => (random() < 0.1 ? 500 : 40) * random();
    const broken = breakdown(made);
    await clock.sleep(halfMs(), signal);
    if (broken) throw broken;
    const { status, headers } = servers.get(route)?.take(clock.monotonic()) ?? fail('no route');
    try {
      await clock.sleep(halfMs(), signal);
    } catch (cause) {
      throw new Unavailable('aborted', { acted: 'maybe', cause });
    }
    leave();
    tally.refused += status === 429 ? 1 : 0;
    return { status, headers, body: '' };
  };
  return async (signal: AbortSignal | undefined): Promise<Answer> => {
    tally.mostFlying = Math.max(tally.mostFlying, (tally.flying += 1));
    try {
      return await travel(signal);
    } catch (error) {
      if (error instanceof Unavailable && error.acted === 'maybe') leave();
      throw error;
    } finally {
      tally.flying -= 1;
    }
  };
}

/** One request: comes at some time, and may be aborted at another. Never sent once it is done. */
async function one(made: World, tally: Tally): Promise<string> {
  const { clock, random, pick, gate, fail } = made;
  await clock.sleep(random() * FOR_MS);
  const route = pick(ROUTES);
  const own = new AbortController();
  const aborts = random() < 0.2;
  if (aborts) void clock.sleep(random() * FOR_MS).then(() => own.abort(stopped));
  const send = sender(made, route, tally);
  let done = false;
  let last: Answer | undefined;
  const passage = { priority: pick(priorities), ...(aborts && { signal: own.signal }) };
  const guarded = async (signal: AbortSignal | undefined) => {
    if (done) fail('sent after it was done');
    return (last = await send(signal));
  };
  try {
    const answer = await gate.through(route, guarded, passage);
    if (answer !== last || answer.status === 429) fail('another answer, or a 429');
    return 'answered';
  } catch (error) {
    const known = [Unavailable, RateLimited, TypeError].some((kind) => error instanceof kind);
    if (error !== stopped && !known) throw error;
    return 'thrown';
  } finally {
    if (done) fail('done twice');
    done = true;
  }
}

describe.each(Array.from({ length: SEEDS }, (_, seed) => seed))('seed %i', (seed) => {
  test('settles each request once, and counts all', async () => {
    const made = world(seed);
    const { clock, armed, gate, stop, random } = made;
    const tally: Tally = { left: {}, refused: 0, flying: 0, mostFlying: 0 };
    const all = Array.from({ length: REQUESTS }, () => one(made, tally));
    // Every fifth gate is stopped as a whole.
    if (seed % 5 === 0) void clock.sleep(random() * FOR_MS).then(() => stop.abort(stopped));
    const ends = await clock.run(Promise.all(all));
    await clock.advance(0);
    expect(ends).toHaveLength(REQUESTS);
    expect(ends).toContain('answered');
    expect(armed.count).toBe(0);
    expect(tally.flying).toBe(0);
    expect(tally.mostFlying).toBeLessThanOrEqual(64);
    const byRoute = Object.fromEntries(ROUTES.map((route) => [route, tally.left[route] ?? 0]));
    const total = Object.values(byRoute).reduce((sum, count) => sum + count, 0);
    expect(gate.counts()).toMatchObject({ total, byRoute, rateLimited: tally.refused });
  });
});
