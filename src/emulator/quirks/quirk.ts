import type { ApiOutcome } from '../shared/api-answer.ts';
import type { Route } from '../limits/route-limits.ts';
import type { Reading } from '../limits/algorithms.ts';
import type { Organization, PlatformBehaviour } from '../store/organization.ts';

/**
 * A difference between the specification and a real platform. The operations know the specification
 * only; a quirk surrounds them and does some of the four things below. Quirks compose: each sees
 * what those before it in the table (quirks.ts) have made.
 */
export interface Quirk {
  /** Changes how records are found and stored. */
  behaviour?: Partial<PlatformBehaviour>;
  /** Changes the request before the operation. */
  rewrites?(question: QuirkRequest): QuirkRequest;
  /** Answers instead of the operation; undefined lets the request pass. */
  answers?(question: QuirkRequest, organization: Organization): ApiOutcome | undefined;
  /** Changes the reply, also a refusal for a wrong key or a used-up limit. */
  turns?(reply: Reply): Reply;
  /** Forgets what it has counted, because the world returns to its beginning. */
  restart?(): void;
}

/** A request that reaches an operation: key and limit are checked, nothing else is. */
export interface QuirkRequest {
  route: Route;
  /** The path's parameter, decoded; '' if there is none. */
  id: string;
  query: URLSearchParams;
  body: string;
  headers: Record<string, string>;
}

/** A reply before it is sent. */
export interface Reply {
  /** Null: no operation has this method and path. */
  route: Route | null;
  /** The organization of the key or session; undefined: unknown. */
  organization?: Organization | undefined;
  outcome: ApiOutcome;
  headers: Record<string, string>;
  /** The request that reached the operation; undefined: none did. */
  question?: QuirkRequest | undefined;
  /** The limit's answer; undefined: nothing was counted. */
  reading?: Reading | undefined;
}

/** Returns the reply with another body. */
export function withBody(reply: Reply, body: object): Reply {
  return { ...reply, outcome: { ...reply.outcome, body } };
}

/** Returns the reply with another status. */
export function withStatus(reply: Reply, status: number): Reply {
  return { ...reply, outcome: { ...reply.outcome, status } };
}

/** Returns whether a value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
