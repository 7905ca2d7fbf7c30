/**
 * A job of many requests under one limited route, in virtual time and from one seed: budgets as the
 * product uses them, a server that counts as servers do, and a network in between.
 */
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import type { Limit } from '../../../src/emulator/limits/algorithms.ts';
import { type Budget, createBudget } from '../../../src/rate-limit/route-budget.ts';
import { observe } from '../../../src/http/rate-limit-headers.ts';
import type { Random } from '../../../src/domain/clock.ts';
import { type Answered, createServer, leastMs, type Server } from './limit-servers.ts';
import { watch } from './limit-watch.ts';

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
