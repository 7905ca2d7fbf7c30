/**
 * Many processes that share one limited route, in virtual time and from one seed: gates and shared
 * budgets as the product uses them, a server that counts as servers do, and a log as
 * the script in Redis keeps it.
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
  /** Round trips to the log, for each request. */
  trips: number;
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
  let [trips, entries] = [0, 0];
  let log: { id: string; at: string; message: string; copy: string }[] = [];
  // As the script in Redis does.
  const run: Link['run'] = async (_script, _key, [lastId, lastAt, message = '', wanted = '']) => {
    trips += 1;
    await travel(0.2, 1);
    if (delayed > 0 && random() < delayed) await clock.sleep(100 + 200 * random());
    const last = log.findIndex(({ id, at }) => id === lastId && at === lastAt);
    const found = last < 0 ? log : log.slice(last + 1);
    const copy = last < 0 || found.some((one) => one.copy !== '') ? '' : wanted;
    entries += 1;
    const own = { id: `${entries}-0`, at: (clock.now() / 1000).toFixed(6), message, copy };
    const told = [...found, own].flatMap((one) => {
      const { id, at, message } = one;
      return [id, at, message, `${one.copy.length}`, last < 0 ? one.copy : ''];
    });
    log.push(own);
    if (copy !== '') log = log.slice(last);
    await travel(0.2, 1);
    return [own.id, last < 0 ? 'all' : 'next', ...told];
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
  const tripsDone = trips;
  await clock.run(Promise.all(all.map(({ close }) => close())));
  const refused = all.reduce((sum, { gate }) => sum + gate.counts().rateLimited, 0);
  const ratio = ms / leastMs(algorithm, { limit, requests, epochMs });
  return { ratio, refused, trips: tripsDone / requests };
}
