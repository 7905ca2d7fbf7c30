/**
 * Manages a process's single connection to Redis, which the budgets of all its mirrors share.
 * Because Redis may be away, calls never wait long and never throw.
 *
 * OPENING  no response yet; calls wait for it briefly.
 *     ready                  → THERE
 *     refused, not in time   → LOST
 * THERE    calls are answered.
 *     one fails, or is late  → LOST
 * LOST     calls return nothing immediately. While the caller asks periodically, it is retried.
 *     three good pings       → THERE again; if it is soon lost again, the pings are further apart
 *     a bad one              → LOST, and the count restarts
 */
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Clock } from '../../../domain/clock.ts';
import { OPENING_MS } from './redis-reconnect.ts';

const texts = z.array(z.string());

const PING_EACH_MS = 250;
/** The longest time between pings to a server that is soon lost again: it may only answer these. */
const MOST_PING_EACH_MS = 10_000;
const SOON_MS = 10_000;
const GOOD_PINGS = 3;

/** A connection that may be away. */
export type Link = ReturnType<typeof openLink>;

/** A script that stores something, and returns texts. */
interface Script {
  name: string;
  lua: string;
}

interface LinkOptions {
  /** A redis:// or rediss:// URL. */
  url: string;
  clock: Clock;
  /** Called with the reason when Redis is lost, and with undefined when a script runs again. */
  notice(lost: string | undefined): void;
  /** Called when the connection is restored or lost. */
  changed(): void;
}

interface State {
  redis: Redis | undefined;
  options: LinkOptions;
  is: 'opening' | 'there' | 'lost';
  times: number;
  good: number;
  pinging: boolean;
  nextPingMs: number;
  pingEachMs: number;
  /** When the connection was last restored. */
  backMs: number;
  saidAway: boolean;
  reason: string;
}

/** Opens a connection. It never throws, because Redis may be away from the beginning. */
export function openLink(options: LinkOptions) {
  const state: State = {
    redis: undefined,
    options,
    is: 'opening',
    times: 0,
    good: 0,
    pinging: false,
    nextPingMs: 0,
    pingEachMs: PING_EACH_MS,
    backMs: Number.NEGATIVE_INFINITY,
    saidAway: false,
    reason: 'it does not answer',
  };
  const closed = new AbortController();
  const opened = open(state, closed.signal);
  return {
    /** Runs a script on a key. Returns undefined if Redis is away or the script failed. */
    async run(script: Script, key: string, args: readonly string[]): Promise<string[] | undefined> {
      await opened;
      const { redis } = state;
      if (state.is === 'lost' || !redis) return undefined;
      try {
        const found = texts.parse(await evaluate(redis, script, [key, ...args]));
        // A server that responds to pings, and stores nothing, would be reported repeatedly, so
        // Redis is reported to be back only once a script has stored something.
        if (state.saidAway && state.is === 'there') {
          state.saidAway = false;
          options.notice(undefined);
        }
        return found;
      } catch (error) {
        const isOwn = redis.status === 'ready' && error instanceof Error;
        // The position in the script is left out.
        const words = isOwn && error.message.replace(/,? script: [0-9a-f]{40}.*$/, '');
        lose(state, words === false ? state.reason : words);
        return undefined;
      }
    },
    /** Returns how often the connection was lost and restored; undefined while it is lost. */
    times: () => (state.is === 'lost' ? undefined : state.times),
    /** Tries a lost connection again if due. Returns the milliseconds until the next try. */
    tend(): number {
      const nowMs = options.clock.monotonic();
      if (!state.pinging && nowMs >= state.nextPingMs) {
        state.nextPingMs = nowMs + state.pingEachMs;
        void ping(state);
      }
      return Math.max(1, state.nextPingMs - nowMs);
    },
    close(): void {
      state.is = 'lost';
      closed.abort();
      state.redis?.disconnect();
    },
  };
}

/** Runs the script by its hash, or sends it in full if Redis does not know it yet. */
async function evaluate(
  redis: Redis,
  { name, lua }: Script,
  args: readonly string[],
): Promise<unknown> {
  if (!Object.hasOwn(redis, name)) redis.defineCommand(name, { numberOfKeys: 1, lua });
  const command: unknown = Reflect.get(redis, name);
  if (typeof command !== 'function') throw new Error(`${name} is no command`);
  return Reflect.apply(command, redis, args);
}

async function open(state: State, closed: AbortSignal): Promise<void> {
  // The client is loaded only if Redis is configured, because most commands start without it.
  const { QuickRedis } = await import('./quick-redis.ts');
  const redis = new QuickRedis(state.options.url);
  redis.on('error', ({ message }: Error) => (state.reason = message || state.reason));
  redis.on('ready', () => (state.reason = 'the connection was lost'));
  redis.on('close', () => lose(state, state.reason));
  if (closed.aborted) return redis.disconnect();
  state.redis = redis;
  const timer = new AbortController();
  const enough = AbortSignal.any([timer.signal, closed]);
  const late = state.options.clock.sleep(OPENING_MS, enough).catch(() => undefined);
  redis.once('ready', () => timer.abort());
  redis.once('close', () => timer.abort());
  await late;
  if (state.is === 'opening' && redis.status === 'ready') state.is = 'there';
  else lose(state, state.reason);
}

function lose(state: State, reason: string): void {
  if (state.is === 'lost') return;
  const nowMs = state.options.clock.monotonic();
  const isSoon = nowMs - state.backMs < SOON_MS;
  state.pingEachMs = isSoon ? Math.min(MOST_PING_EACH_MS, 2 * state.pingEachMs) : PING_EACH_MS;
  state.is = 'lost';
  state.good = 0;
  if (!state.saidAway) state.options.notice(reason);
  state.saidAway = true;
  state.options.changed();
}

async function ping(state: State): Promise<void> {
  state.pinging = true;
  const isGood = await state.redis?.ping().then(
    () => true,
    () => false,
  );
  state.pinging = false;
  state.good = isGood ? state.good + 1 : 0;
  if (state.good < GOOD_PINGS || state.is !== 'lost') return;
  state.is = 'there';
  state.backMs = state.options.clock.monotonic();
  state.times += 1;
  state.options.changed();
}

export type OpenLink = (options: LinkOptions) => Link;

/**
 * Returns a function that opens links over one connection for each Redis, to share it among the
 * budgets of all mirrors of a process. Each user has its own link, which it closes; the connection
 * ends with the last one.
 */
export function shareLinks(): OpenLink {
  const known = new Map<string, { link: Link; users: Set<LinkOptions> }>();
  return (options) => {
    const { url, clock } = options;
    const shared = known.get(url) ?? { users: new Set<LinkOptions>(), link: undefined };
    const { users } = shared;
    const link =
      shared.link ??
      openLink({
        url,
        clock,
        // The message names no mirror, so one of them says it for all.
        notice: (lost) => [...users][0]?.notice(lost),
        changed: () => users.forEach(({ changed }) => changed()),
      });
    known.set(url, { link, users });
    users.add(options);
    return {
      ...link,
      close() {
        users.delete(options);
        if (users.size > 0) return;
        known.delete(url);
        link.close();
      },
    };
  };
}
