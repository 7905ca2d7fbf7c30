/**
 * The platform as a library, `import { createPlatform } from 'crm-mirror/platform'`: the typed
 * client of api-client.ts with everything it needs. This is a composition root: by default it uses
 * the network, clock and random numbers of this machine.
 *
 *   const platform = createPlatform({ url: 'https://…', apiKey });
 *   for await (const contact of platform.contacts.all({ status: 'subscribed' })) …
 *   await platform.close();
 */
import { type BudgetOf, type Counts, createGate, urgently } from '../rate-limit/request-gate.ts';
import type { Stuck } from '../rate-limit/route-queue.ts';
import type { RouteLimit } from '../domain/route-limit.ts';
import { createSend } from '../http/send-request.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Clock, Random } from '../domain/clock.ts';
import { createPlatform as createClient, type Platform } from './api-client.ts';
export { Invalid, RateLimited, Rejected, Unavailable } from '../domain/errors.ts';
export type {
  ApiKey,
  Contact,
  ContactList,
  DnsRecord,
  Domain,
  DomainList,
  Enrolment,
  Nameservers,
  Template,
  TemplateList,
  Verification,
} from './answer-schemas.ts';
export type { CallOptions } from './api-call.ts';
export type { Platform } from './api-client.ts';
export type { Enrol } from './contacts.ts';
export type {
  DomainCreateBody,
  Subscription,
  TemplateCreateBody,
  TemplateUpdateBody,
  TestSendBody,
} from './request-schemas.ts';

export type { BudgetOf, Clock, Counts, Random };

/** How to reach one organization of the platform. */
export interface PlatformOptions {
  /**
   * The base address with its path. The key is sent there, so use https unless it is this machine.
   */
  url: string;
  /** The key of the organization, sent as x-api-key (Authentication 1). */
  apiKey: string;
  /**
   * The time for one request in milliseconds, from waiting for a connection to the last byte.
   * Default 10,000.
   */
  timeoutMs?: number | undefined;
  /** The share of every route's budget that is left to other programs, 0 to 0.9. Default 0. */
  reserve?: number | undefined;
  /** Creates each route's budget. Default: it is learnt from this client's answers alone. */
  budgetOf?: BudgetOf | undefined;
  /** Called when a route gives nothing but 429s, and when a request gets through again. */
  stuck?: ((told: Stuck) => void) | undefined;
  /** The number of attempts for one request; 429s do not count. Default 4. */
  maxAttempts?: number | undefined;
  /** Ends everything that waits or is in flight. */
  signal?: AbortSignal | undefined;
  /** Default 'crm-mirror'. The platform may refuse an empty one. */
  userAgent?: string | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
}

/** The platform over a network, with its counts and limits. */
export interface ConnectedPlatform extends Platform {
  /** Returns how many requests left so far, 429s included. */
  requests(): Counts;
  /** Returns the limit of each route, as its answers show it. */
  limits(): Record<string, RouteLimit>;
  /**
   * Returns the platform's time of day in epoch milliseconds, from the Date of the newest answer
   * and the time since; undefined: no answer had a Date.
   */
  platformNow(): number | undefined;
  /**
   * Returns the same platform for requests that go ahead of all others. It counts its own requests.
   */
  urgent(): Pick<ConnectedPlatform, keyof Platform | 'requests'>;
  /** Closes the connections and ends the requests in flight. */
  close(): Promise<void>;
}

/**
 * Connects to one organization of the platform. Requests are paced by what the answers say about
 * each route's budget, and wait out its 429s; so use one platform per organization, and close it
 * when done. Throws Invalid when `url` is no http(s) address.
 */
export function createPlatform(options: PlatformOptions): ConnectedPlatform {
  const { url, apiKey, maxAttempts, reserve = 0, budgetOf, signal, stuck } = options;
  const { timeoutMs = 10_000, userAgent = 'crm-mirror' } = options;
  const { clock = systemClock, random = Math.random } = options;
  const { send, close } = createSend({ url, timeoutMs, userAgent });
  const gate = createGate({ clock, random, reserve, budgetOf, signal, stuck });
  const clientOf = (through: typeof gate) => ({
    ...createClient({ send, gate: through, clock, random, apiKey, maxAttempts }),
    requests: through.counts,
  });
  const { limits, platformNow } = gate;
  return { ...clientOf(gate), limits, platformNow, urgent: () => clientOf(urgently(gate)), close };
}
