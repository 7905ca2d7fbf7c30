/**
 * The platform as a library, `import { createPlatform } from 'crm-mirror/platform'`: the typed
 * client of api-client.ts with everything it needs. This is a composition root: what is not given
 * is the real thing, this machine's network, clock and chance.
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

export interface PlatformOptions {
  /** Base address; its path is kept. The key goes there: https, but on this machine. */
  url: string;
  /** Of the organization; sent as x-api-key (Authentication 1). */
  apiKey: string;
  /** For one request, from waiting for a connection to the last byte. Default 10,000. */
  timeoutMs?: number | undefined;
  /** Share of every route's budget left to other programs, 0 to 0.9. Default 0. */
  reserve?: number | undefined;
  /** Where each route's budget comes from. Default: from its answers to this platform alone. */
  budgetOf?: BudgetOf | undefined;
  /** Told when nothing but 429s comes of a route, and when a request gets through again. */
  stuck?: ((told: Stuck) => void) | undefined;
  /** How often one request is tried, 429s not counted. Default 4. */
  maxAttempts?: number | undefined;
  /** Stops everything that waits or is under way. */
  signal?: AbortSignal | undefined;
  /** Default 'crm-mirror'; the platform may refuse an empty one. */
  userAgent?: string | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
}

export interface ConnectedPlatform extends Platform {
  /** Requests that left so far, 429s included. */
  requests(): Counts;
  /** By route, as the answers so far tell. */
  limits(): Record<string, RouteLimit>;
  /** Its time of day by the Date of the newest answer, and since; undefined: none had any. */
  platformNow(): number | undefined;
  /** The same platform for what goes ahead of everything else; it counts its own requests. */
  urgent(): Pick<ConnectedPlatform, keyof Platform | 'requests'>;
  /** Ends the connections, and what is still under way on them. */
  close(): Promise<void>;
}

/**
 * One organization of the platform, over the network. Requests are paced by what the answers say
 * about each route's budget, and wait out its 429s; so use one platform per organization, and
 * close it when done. Throws Invalid when `url` is no http(s) address.
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
