/** Ways to send many requests under one limit. Only ours does not know the limit beforehand. */
import Bottleneck from 'bottleneck';
import pLimit from 'p-limit';
import pThrottle from 'p-throttle';
import { pid } from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { createGate } from '../../src/http/rate-limit/request-gate.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { organizationOf, sharedBudgets } from '../../src/http/rate-limit/shared/shared-budget.ts';
import type { Limit } from '../../src/emulator/limits/route-limits.ts';
import type { Answer } from '../../src/domain/exchange.ts';

/** One attempt. */
type Send = () => Promise<Answer>;
/** Sends one request until it is no longer refused. */
type Client = (send: Send) => Promise<unknown>;

export interface Told {
  limit: Limit;
  /** Share of the limit that is left to others. */
  reserve: number;
  /** Where processes share one budget; undefined: each has its own. */
  redis: string | undefined;
  /** Of the platform. */
  url: string;
}

const route = 'contacts.retrieve';
const atOnce = 32;

export const clients: Record<string, (told: Told) => Client> = {
  ours({ reserve, redis, url }) {
    const own = { clock: systemClock, random: Math.random, reserve };
    const organization = organizationOf({ url, apiKey: 'key_bench' });
    const shared = redis && sharedBudgets({ ...own, url: redis, organization, worker: `${pid}` });
    const gate = createGate({ ...own, ...(shared && { budgetOf: shared.budgetOf }) });
    return async (send) => gate.through(route, send);
  },
  'p-limit'() {
    const limited = pLimit(atOnce);
    return async (send) => limited(async () => again(send));
  },
  bottleneck({ limit: { requests, windowSeconds } }) {
    const limiter = new Bottleneck({
      maxConcurrent: atOnce,
      reservoir: requests,
      reservoirRefreshAmount: requests,
      reservoirRefreshInterval: windowSeconds * 1000,
    });
    const attempt = async (send: Send) => limiter.schedule(send);
    return async (send) => again(async () => attempt(send));
  },
  'p-throttle'({ limit: { requests, windowSeconds } }) {
    const throttle = pThrottle({ limit: requests, interval: windowSeconds * 1000, strict: true });
    const limited = pLimit(atOnce);
    const attempt = throttle(async (send: Send) => limited(send));
    return async (send) => again(async () => attempt(send));
  },
};

/** As most programs do: after a 429 it waits for as long as it is told to. */
async function again(attempt: Send): Promise<void> {
  for (;;) {
    const { status, headers } = await attempt();
    if (status !== 429) return;
    await pause(Number(headers['retry-after'] ?? 1) * 1000);
  }
}
