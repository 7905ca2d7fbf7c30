import type { ApiOutcome } from '../shared/api-answer.ts';
import type { Route } from '../limits/route-limits.ts';
import type { MeterReading } from '../limits/algorithms.ts';
import type { Organization, PlatformBehaviour } from '../store/organization.ts';

/**
 * A difference between the specification and a real platform. Operations implement the
 * specification only; a quirk wraps them and does some of the four things below. Quirks compose:
 * each one sees the result of those before it in the table (quirks.ts).
 */
export interface Quirk {
  /** Changes how records are found and stored. */
  behaviour?: Partial<PlatformBehaviour>;
  /** Changes the request before it reaches the operation. */
  rewrites?(question: QuirkRequest): QuirkRequest;
  /** Responds in place of the operation; undefined lets the request through. */
  answers?(question: QuirkRequest, organization: Organization): ApiOutcome | undefined;
  /** Changes the reply, including the error response for a wrong key or an exhausted limit. */
  turns?(reply: Reply): Reply;
  /** Clears the quirk's counters when the world is reset. */
  restart?(): void;
}

/** A request that is about to reach an operation. Only its key and limit have been checked. */
export interface QuirkRequest {
  route: Route;
  /** The decoded path parameter; '' if the path has none. */
  id: string;
  query: URLSearchParams;
  body: string;
  headers: Record<string, string>;
}

/** A reply before it is sent. */
export interface Reply {
  /** The route; null if no operation has this method and path. */
  route: Route | null;
  /** The organization of the key or session; undefined if unknown. */
  organization?: Organization | undefined;
  outcome: ApiOutcome;
  headers: Record<string, string>;
  /** The request that reached the operation; undefined if none did. */
  question?: QuirkRequest | undefined;
  /** The result of the limit check; undefined if the request was not counted. */
  reading?: MeterReading | undefined;
}

/** Returns the reply with a different body. */
export function withBody(reply: Reply, body: object): Reply {
  return { ...reply, outcome: { ...reply.outcome, body } };
}

/** Returns the reply with a different status. */
export function withStatus(reply: Reply, status: number): Reply {
  return { ...reply, outcome: { ...reply.outcome, status } };
}

/** Returns whether a value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
