import type { ApiOutcome } from '../shared/api-answer.ts';
import type { Route } from '../limits/route-limits.ts';
import type { Reading } from '../limits/limit-meter.ts';
import type { PlatformBehaviour } from '../store/platform-behaviour.ts';
import type { Organization } from '../store/organization.ts';

/**
 * A difference between the specification and a platform that was seen. The operations know the
 * specification alone; a quirk lies around them and does some of the four things
 * below. Quirks compose: each sees what the ones before it in the table (quirks.ts) have made.
 */
export interface Quirk {
  /** How records are found and kept. */
  behaviour?: Partial<PlatformBehaviour>;
  /** Before the operation: other words than those that came. */
  rewrites?(question: QuirkRequest): QuirkRequest;
  /** Instead of the operation: an answer of its own, or undefined to let it pass. */
  answers?(question: QuirkRequest, organization: Organization): ApiOutcome | undefined;
  /** After all: refusals for a wrong key or a used-up limit as well. */
  turns?(reply: Reply): Reply;
  /** Forgets what it has counted: the world is led back to its beginning. */
  restart?(): void;
}

/** What reaches an operation: whoever asks may, the limit not used up, nothing else is checked. */
export interface QuirkRequest {
  route: Route;
  /** The path's parameter, decoded; empty when it has none. */
  id: string;
  query: URLSearchParams;
  body: string;
  headers: Record<string, string>;
}

/** What is about to be answered. */
export interface Reply {
  /** Null when no operation has this method and path. */
  route: Route | null;
  /** In whose name; none where nobody is known by the key or session. */
  organization?: Organization | undefined;
  outcome: ApiOutcome;
  headers: Record<string, string>;
  /** What reached the operation; none where nothing did. */
  question?: QuirkRequest | undefined;
  /** What the limit said; none where nothing was counted. */
  reading?: Reading | undefined;
}

/** The same reply with another body. */
export function withBody(reply: Reply, body: object): Reply {
  return { ...reply, outcome: { ...reply.outcome, body } };
}

/** The same reply with another status. */
export function withStatus(reply: Reply, status: number): Reply {
  return { ...reply, outcome: { ...reply.outcome, status } };
}

/** A JSON object: what an operation answers, or a request brings. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
