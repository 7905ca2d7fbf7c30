/**
 * The platform as a library, `import { createPlatform } from 'crm-mirror/platform'`: the typed
 * client of api-client.ts with everything it needs. This is a composition root: by default it uses
 * the network, clock and random numbers of this machine.
 *
 *   const platform = createPlatform({ url: 'https://…', apiKey });
 *   for await (const contact of platform.contacts.all({ status: 'subscribed' })) …
 *   await platform.close();
 */
import {
  type BudgetOf,
  type Counts,
  createGate,
  urgently,
  type Stuck,
} from '../http/rate-limit/request-gate.ts';
import type { RouteLimit } from '../domain/route-limit.ts';
import type { Attempt, Send } from '../domain/exchange.ts';
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
export type { Enrol, Platform } from './api-client.ts';
export type {
  DomainCreateBody,
  Subscription,
  TemplateCreateBody,
  TemplateUpdateBody,
  TestSendBody,
} from './request-schemas.ts';

export type { BudgetOf, Clock, Counts, Random };

/** The options for connecting to one organization of the platform. */
export interface PlatformOptions {
  /** The base URL with its path. The key is sent there, so use https unless it is this machine. */
  url: string;
  /** The key of the organization, sent as x-api-key (Authentication 1). */
  apiKey: string;
  /** The limit of one request in milliseconds, to its last byte. The default is 10,000. */
  timeoutMs?: number | undefined;
  /** The share of every budget left to other programs, from 0 to 0.9. The default is 0. */
  reserve?: number | undefined;
  /** Creates each route's budget. By default, it is learned from this client's responses alone. */
  budgetOf?: BudgetOf | undefined;
  /** Called when a route returns nothing but 429s, and when a request succeeds again. */
  stuck?: ((told: Stuck) => void) | undefined;
  /** The number of attempts for one request; 429s do not count. The default is 4. */
  maxAttempts?: number | undefined;
  /** Ends everything that is waiting or in flight. */
  signal?: AbortSignal | undefined;
  /** The User-Agent header; the default is 'crm-mirror'. The platform may refuse an empty one. */
  userAgent?: string | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
  /** Receives every attempt that was made, for a log. It must not throw. */
  record?: ((attempt: Attempt) => void) | undefined;
  /** Sends each request once; by default over a network connection to `url`. */
  transport?: { send: Send; close(): Promise<void> } | undefined;
}

/** The platform over a network, with its request counts and limits. */
export interface ConnectedPlatform extends Platform {
  /** Returns how many requests have left so far, including 429s. */
  requests(): Counts;
  limits(): Record<string, RouteLimit>;
  /** The platform's time in epoch milliseconds, by the newest Date; undefined without any. */
  platformNow(): number | undefined;
  /** The same platform with precedence. It counts its requests; `record` gets its attempts. */
  urgent(record?: PlatformOptions['record']): Platform & { requests(): Counts };
  /** Closes the connections and ends the requests in flight. */
  close(): Promise<void>;
}

/**
 * Connects to one organization of the platform. Requests are paced by what the responses state
 * about each route's budget, and wait for the end of its 429s. Therefore, use one platform per
 * organization, and close it when done. Throws Invalid if `url` is not an http(s) URL.
 */
export function createPlatform(options: PlatformOptions): ConnectedPlatform {
  const { url, apiKey, maxAttempts, reserve = 0, budgetOf, signal, stuck } = options;
  const { timeoutMs = 10_000, userAgent = 'crm-mirror' } = options;
  const { clock = systemClock, random = Math.random } = options;
  const { send, close } = options.transport ?? createSend({ url, timeoutMs, userAgent });
  const gate = createGate({ clock, random, reserve, budgetOf, signal, stuck });
  const clientOf = (through: typeof gate, record: PlatformOptions['record']) => ({
    ...createClient({ send, gate: through, clock, random, apiKey, maxAttempts, record }),
    requests: through.counts,
  });
  const { limits, platformNow } = gate;
  const urgent: ConnectedPlatform['urgent'] = (record) => clientOf(urgently(gate), record);
  return { ...clientOf(gate, options.record), limits, platformNow, urgent, close };
}
