/**
 * Many processes that share one limited route, in virtual time and from one seed: gates and shared
 * budgets as the product uses them, a server that counts as servers do, and a store that compares
 * and stores as the script in Redis does.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import type { Limit } from '../../../src/emulator/limits/algorithms.ts';
import { createGate } from '../../../src/rate-limit/request-gate.ts';
import { sharedBudgets } from '../../../src/rate-limit/shared/shared-budget.ts';
import type { Link } from '../../../src/rate-limit/shared/redis-connection.ts';
import { createVirtualClock } from '../../../src/rehearsal/virtual-clock.ts';
import { createServer, leastMs } from './limit-servers.ts';

export interface FleetJob {
  algorithm: string;
  limit: Limit;
  processes: number;
  /** Of all of them. */
  requests: number;
  seed: number;
  /** Share of the calls that Redis keeps waiting, for 100 to 300 ms. */
  delayed?: number;
}

export interface FleetOutcome {
  /** Time / least time. */
  ratio: number;
  refused: number;
  /** Round trips to the store, for each request. */
  trips: number;
  /** Those of them that found another process's budget. */
  stale: number;
}

const EPOCH_MS = Date.UTC(2026, 0, 1);

export async function playFleet(job: FleetJob): Promise<FleetOutcome> {
  const { algorithm, limit, processes, requests, seed, delayed = 0 } = job;
  const random = seeded(seed);
  const epochMs = EPOCH_MS + Math.floor(random() * limit.windowSeconds * 1000);
  const clock = createVirtualClock({ startMs: epochMs, pause: () => nextTurn() });
  const server = createServer(algorithm, { limit, epochMs });
  const travel = (least: number, most: number) =>
    clock.sleep((least + random() * (most - least)) / 2);
  let [kept, trips, stale] = ['', 0, 0];
  let turn = { worker: '', untilMs: 0 };
  const run: Link['run'] = async (_script, _keys, [version, budget = '', , worker = '', ms]) => {
    trips += 1;
    await travel(0.2, 1);
    if (delayed > 0 && random() < delayed) await clock.sleep(100 + 200 * random());
    const isTaken = turn.untilMs > clock.now();
    const isStale = kept.split('\n')[0] !== version || (isTaken && turn.worker !== worker);
    const seconds = (clock.now() / 1000).toFixed(6);
    const answer = isStale ? `${seconds}\n${kept}` : seconds;
    if (isStale && !isTaken) turn = { worker, untilMs: clock.now() + Number(ms) };
    if (isStale) stale += 1;
    else [kept, turn] = [budget, { worker, untilMs: 0 }];
    await travel(0.2, 1);
    return answer;
  };
  const link: Link = { run, times: () => 0, tend: () => 250, close: () => undefined };
  const all = Array.from({ length: processes }, (_, at) => {
    const own = { url: '', organization: 'all', worker: `w${at}`, clock, random };
    const { budgetOf, close } = sharedBudgets({ ...own, openLink: () => link });
    const gate = createGate({ clock, random, budgetOf });
    const send = async () => {
      await travel(20, 50);
      const { status, headers } = server.take(clock.monotonic());
      await travel(20, 50);
      return { status, headers, body: '' };
    };
    const share = Math.floor((requests + at) / processes);
    const done = Promise.all(Array.from({ length: share }, () => gate.through('route', send)));
    return { done, gate, close };
  });
  await clock.run(Promise.all(all.map(({ done }) => done)));
  const ms = clock.monotonic();
  const [tripsDone, staleDone] = [trips, stale];
  await clock.run(Promise.all(all.map(({ close }) => close())));
  const refused = all.reduce((sum, { gate }) => sum + gate.counts().rateLimited, 0);
  const ratio = ms / leastMs(algorithm, { limit, requests, epochMs });
  return { ratio, refused, trips: tripsDone / requests, stale: staleDone / tripsDone };
}
