import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { algorithms, type Limit } from '../../../src/emulator/limits/route-limits.ts';
import { CEILING, createBudget, type Budget } from '../../../src/http/rate-limit/route-budget.ts';
import { observe } from '../../../src/http/rate-limit-headers.ts';
import type { Random } from '../../../src/domain/clock.ts';
import { createServer, leastMs, type Answered, type Server, watch } from './limit-servers.ts';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createGate } from '../../../src/http/rate-limit/request-gate.ts';
import { sharedBudgets } from '../../../src/http/rate-limit/shared/shared-budget.ts';
import type { Link } from '../../../src/http/rate-limit/shared/redis-connection.ts';
import { createVirtualClock } from '../../../src/trials/rehearsal/virtual-clock.ts';

// A job of many requests under one limited route, in virtual time and from one seed: budgets as the
// product uses them, a server that counts as servers do, and a network in between.

export interface Job {
  algorithm: string;
  limit: Limit;
  requests: number;
  seed: number;
  /** Processes that know nothing of each other and share the requests. */
  clients?: number;
  /** Share of the limit that another program takes, evenly, whatever happens. */
  foreign?: number;
  /** It ends after so many windows. */
  foreignWindows?: number;
  /** Taken from the limit before we came. */
  used?: number;
  /** Share of each window that is left to others. */
  reserve?: number;
  /** There and back. */
  latencyMs?: readonly [least: number, most: number];
  /** What the network and the server do beside that. */
  fault?: Fault;
  make?: typeof createBudget;
}

export interface Fault {
  /** Share of the answers that never come. */
  lost?: number;
  /** Makes of the headers what it likes. */
  headers?(headers: Record<string, string>, nth: number): Record<string, string>;
  /** The limit from this time on. */
  change?: { atMs: number; limit: Limit };
  /** Nothing of ours happens for a while: the machine is asleep. */
  sleep?: { atMs: number; forMs: number };
  /** From this time on our clock shows so much more, or less: it stood still in our sleep. */
  leap?: { atMs: number; byMs: number };
}

export interface Outcome {
  ms: number;
  /** The least time in which it can be done. */
  leastMs: number;
  ratio: number;
  sent: number;
  refused: number;
  /** Share of what was sent. */
  refusedShare: number;
}

interface Event {
  atMs: number;
  happen(): void;
}

const EPOCH_MS = Date.UTC(2026, 0, 1);
const LOST_AFTER_MS = 10_000;
/** No timer rings at once: a clock counted in fractions would ring for ever. */
const LEAST_TIMER_MS = 0.001;
const MOST_EVENTS = 2_000_000;

export function play(job: Job): Outcome {
  const random = seeded(job.seed);
  const epochMs = EPOCH_MS + Math.floor(random() * job.limit.windowSeconds * 1000);
  const world = createWorld(job, { random, epochMs });
  const { clients = 1 } = job;
  const all = Array.from({ length: clients }, (_, at) => {
    const share = Math.floor((job.requests + at) / clients);
    return createClient(world, share);
  });
  all.forEach((client) => client.pump());
  for (let events = 0; all.some((one) => one.open() > 0); events += 1) {
    const next = world.take() ?? world.fail('requests wait, and nothing is under way');
    if (events > MOST_EVENTS) world.fail('it does not come to an end');
    next.happen();
    for (const one of all) one.check();
  }
  const least = leastMs(job.algorithm, { limit: rest(job), requests: job.requests, epochMs });
  const sent = all.reduce((sum, one) => sum + one.sent(), 0);
  const refused = all.reduce((sum, one) => sum + one.refused(), 0);
  const ms = world.now();
  return { ms, leastMs: least, ratio: ms / least, sent, refused, refusedShare: refused / sent };
}

/** What the others leave of the limit. */
function rest({ limit, foreign = 0, reserve = 0 }: Job): Limit {
  return { ...limit, requests: Math.floor(limit.requests * (1 - foreign - reserve)) };
}

/** When the nth foreign request comes. */
function foreignTimes(job: Job): (nth: number) => number {
  const { foreign = 0, foreignWindows = Number.POSITIVE_INFINITY, limit } = job;
  const inWindow = limit.requests * foreign;
  const eachMs = (limit.windowSeconds * 1000) / inWindow;
  const isOver = (nth: number): boolean => nth >= inWindow * foreignWindows;
  return (nth) => (isOver(nth) ? Number.POSITIVE_INFINITY : (nth + 0.5) * eachMs);
}

interface World {
  job: Job;
  random: Random;
  server: Server;
  now(): number;
  at(atMs: number, happen: () => void): void;
  take(): Event | undefined;
  /** Something is not as it must be. */
  fail(why: string): never;
}

function createWorld(job: Job, { random, epochMs }: { random: Random; epochMs: number }): World {
  const server = createServer(job.algorithm, { limit: job.limit, epochMs });
  const events: Event[] = [];
  let nowMs = 0;
  const world: World = {
    job,
    random,
    server,
    now: () => nowMs,
    at(atMs, happen) {
      let place = events.length;
      while (place > 0 && (events[place - 1]?.atMs ?? 0) <= atMs) place -= 1;
      events.splice(place, 0, { atMs, happen });
    },
    take() {
      const next = events.pop();
      if (next) nowMs = next.atMs;
      return next;
    },
    fail(why) {
      throw new Error(`seed ${job.seed}, ${job.algorithm}, at ${nowMs} ms: ${why}`);
    },
  };
  for (let nth = 0; nth < (job.used ?? 0); nth += 1) server.take(0);
  const times = foreignTimes(job);
  const come = (nth: number): void => {
    if (times(nth) === Number.POSITIVE_INFINITY) return;
    world.at(times(nth), () => {
      server.take(nowMs);
      come(nth + 1);
    });
  };
  come(0);
  const { change } = job.fault ?? {};
  if (change) world.at(change.atMs, () => server.change(change.limit));
  return world;
}

interface Client {
  pump(): void;
  /** Requests that are not done. */
  open(): number;
  sent(): number;
  refused(): number;
  /** Throws when something is not as it must be. */
  check(): void;
}

/** Does with a budget what the gate does with it, and holds it to its promises. */
function createClient(world: World, requests: number): Client {
  const { job, random, fail } = world;
  const make = job.make ?? createBudget;
  const budget = watch(make({ random, reserve: job.reserve ?? 0 }), { fail });
  const clock = createClock(world);
  let [waiting, flying, sent, refused, settled, timer] = [requests, 0, 0, 0, 0, 0];
  let armed = false;

  const pump = (): void => {
    armed = false;
    const { leave, waitMs } = budget.decide(clock.now(), waiting);
    if (leave === 0) return wake(waitMs);
    for (let count = 0; count < leave; count += 1) send();
    pump();
  };
  const wake = (waitMs: number): void => {
    timer += 1;
    const own = timer;
    if (waitMs === Number.POSITIVE_INFINITY) return;
    armed = true;
    clock.after(Math.max(waitMs, LEAST_TIMER_MS), () => own === timer && pump());
  };
  const send = (): void => {
    [waiting, flying, sent] = [waiting - 1, flying + 1, sent + 1];
    const ticket = budget.ticket(clock.now());
    const [least, most] = job.latencyMs ?? [20, 50];
    const half = () => (least + random() * (most - least)) / 2;
    world.at(world.now() + half(), () => {
      const answered = world.server.take(world.now());
      const isLost = random() < (job.fault?.lost ?? 0);
      clock.after(isLost ? LOST_AFTER_MS : half(), () => {
        flying -= 1;
        if (isLost) lose(ticket);
        else land(ticket, answered);
        pump();
      });
    });
  };
  const lose = (ticket: ReturnType<Budget['ticket']>): void => {
    settled += 1;
    budget.lose(ticket, clock.now());
  };
  const land = (ticket: ReturnType<Budget['ticket']>, { status, headers }: Answered): void => {
    if (status === 429) [waiting, refused] = [waiting + 1, refused + 1];
    else settled += 1;
    if (status === 429 && isSafe(job)) fail('a 429, though alone and told the truth');
    const shown = job.fault?.headers?.(headers, sent) ?? headers;
    budget.answer(ticket, observe(status, shown, EPOCH_MS + world.now()), clock.now());
  };
  return {
    pump,
    open: () => waiting + flying,
    sent: () => sent,
    refused: () => refused,
    check() {
      if (waiting + flying + settled !== requests) fail('a request was lost, or done twice');
      if (waiting > 0 && flying === 0 && !armed) fail('requests wait, and no timer is armed');
    },
  };
}

/** Nobody else sends, the server hides nothing and changes nothing, and no way takes no time. */
function isSafe({ algorithm, clients = 1, foreign = 0, used = 0, ...job }: Job): boolean {
  const { fault, latencyMs, make } = job;
  const isTrue = !fault?.headers && !fault?.change && !fault?.leap && latencyMs?.[0] !== 0;
  const isAlone = clients === 1 && foreign === 0 && used < job.limit.requests;
  return algorithm !== 'sliding-counter' && isAlone && isTrue && !make;
}

/** The clock of our machine: it may sleep, and its clock may go wrong. */
function createClock({ job, now, at }: World) {
  const { sleep, leap } = job.fault ?? {};
  const awake = (atMs: number): number => {
    if (!sleep) return atMs;
    const endsMs = sleep.atMs + sleep.forMs;
    return atMs >= sleep.atMs && atMs < endsMs ? endsMs : atMs;
  };
  return {
    now: () => now() + (leap && now() >= leap.atMs ? leap.byMs : 0),
    after: (ms: number, happen: () => void) => at(awake(now() + ms), happen),
  };
}

// A table of jobs and what each may cost: the least time times so much, and so many 429s.

const SEEDS = 8;

/** Over all seeds: the mean of time / least time, and the share of 429s, in percent. */
export interface Cost {
  ratio: number;
  refused: number;
}

/** Plays one job from each seed. */
export function measure(job: Omit<Job, 'seed'>): Cost {
  const played: Outcome[] = [];
  for (let seed = 1; seed <= SEEDS; seed += 1) played.push(play({ ...job, seed }));
  const sum = (of: (one: Outcome) => number) => played.reduce((total, one) => total + of(one), 0);
  const ratio = sum((one) => one.ratio) / SEEDS;
  return { ratio, refused: (100 * sum((one) => one.refused)) / sum((one) => one.sent) };
}

/**
 * One row per line: a name, then `time 429s` for each algorithm, in the order of `algorithms`.
 * Lines without figures are headings.
 */
export function readTable(text: string): { name: string; algorithm: string; most: Cost }[] {
  return text.split('\n').flatMap((line) => {
    const [, name = '', figures = ''] = /^(.*?)((?:\s+[\d.]+ +[\d.]+%)+)\s*$/.exec(line) ?? [];
    const cells = [...figures.matchAll(/([\d.]+) +([\d.]+)%/g)];
    return cells.map(([, ratio, refused], at) => {
      const { name: algorithm } = algorithms[at]!;
      return {
        name: name.trim(),
        algorithm,
        most: { ratio: Number(ratio), refused: Number(refused) },
      };
    });
  });
}

// Counts the requests that may arrive late because this process was suspended.

const SAMPLE_MS = 20;
/** Some delay is part of every machine; a window that is a second long allows for it. */
const SUSPENDED_MS = 200;

/**
 * Returns how many requests may have reached the platform a window late since this was called, and
 * stops counting. Whenever this process is suspended, all requests in flight may, up to CEILING of
 * each worker. No more than half of all requests are allowed to, so that a bound can still fail.
 */
export function countLate(requests: number, workers = 1): () => number {
  let suspended = 0;
  let sampledMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (nowMs - sampledMs > SAMPLE_MS + SUSPENDED_MS) suspended += 1;
    sampledMs = nowMs;
  }, SAMPLE_MS).unref();
  return () => {
    clearInterval(timer);
    return Math.min(requests / 2, CEILING * workers * suspended);
  };
}

// Many processes that share one limited route, in virtual time and from one seed: gates and shared
// budgets as the product uses them, a server that counts as servers do, and a log as
// the script in Redis keeps it.

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

export async function playFleet(job: FleetJob): Promise<FleetOutcome> {
  const { algorithm, limit, processes, requests, seed, delayed = 0 } = job;
  const random = seeded(seed);
  const epochMs = EPOCH_MS + Math.floor(random() * limit.windowSeconds * 1000);
  const clock = createVirtualClock(epochMs, () => nextTurn());
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
