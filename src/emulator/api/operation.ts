import type { z } from 'zod';
import type { Method } from '../../domain/exchange.ts';
import type { ApiOutcome } from '../shared/api-answer.ts';
import type { Route } from '../limits/route-limits.ts';
import type { Organization } from '../store/organization.ts';
import type { Reader } from './request-parsing.ts';

/** An operation of the platform's API: one row of the table in operation-table.ts. */
export interface Operation {
  method: Method;
  /** The path, with at most one parameter, written as {name}. */
  path: string;
  route: Route;
  /**
   * Whether the operation sends email. If so, its headers state when the window ends instead of how
   * long it is ("Limits 4").
   */
  sends: boolean;
  /** Whether the operation needs a user's session and accepts no API key ("Authentication 6"). */
  session: boolean;
  /** Whether error responses contain only a message ("Errors 1"). */
  brief: boolean;
  /** The schemas of the query and the body; undefined if the operation does not read that part. */
  schemas: { query: z.ZodType | undefined; body: z.ZodType | undefined };
  /** Checks a request against the schemas and executes it. */
  answer(organization: Organization, asked: Asked): ApiOutcome;
}

/** A request to one operation, before any check. */
interface Asked {
  /** The decoded path parameter; '' if the path has none. */
  id: string;
  query: URLSearchParams;
  body: string;
}

/** A request to one operation after it has been checked. */
export interface Call<Query, Body> {
  id: string;
  query: Query;
  body: Body;
}

interface Row<Query, Body> {
  method: Method;
  path: string;
  route: Route;
  sends?: true;
  session?: true;
  brief?: true;
  query: Reader<URLSearchParams, Query>;
  body: Reader<string, Body>;
  run(organization: Organization, call: Call<Query, Body>): ApiOutcome;
}

/** Creates an operation from a row of the table. */
export function operation<Query, Body>(row: Row<Query, Body>): Operation {
  return {
    method: row.method,
    path: row.path,
    route: row.route,
    sends: row.sends ?? false,
    session: row.session ?? false,
    brief: row.brief ?? false,
    schemas: { query: row.query.schema, body: row.body.schema },
    answer(organization, asked) {
      const query = row.query(asked.query);
      if (!query.ok) return query.refusal;
      const body = row.body(asked.body);
      if (!body.ok) return body.refusal;
      return row.run(organization, { id: asked.id, query: query.value, body: body.value });
    },
  };
}

/** The operation for a path and method, or the methods that the path allows. */
export type FoundRoute =
  | { operation: Operation; id: string }
  /** The methods that the path allows; empty if the path does not exist. */
  | { allowed: string[] };

/** Finds the operation for a method and a path without its query. Paths do not end in a slash. */
export function findOperation(
  operations: readonly Operation[],
  { method, path }: { method: string; path: string },
): FoundRoute {
  const segments = path.split('/');
  const allowed: string[] = [];
  for (const operation of operations) {
    const id = match(operation.path, segments);
    if (id === undefined) continue;
    if (operation.method === method) return { operation, id };
    allowed.push(operation.method);
  }
  return { allowed };
}

/**
 * Returns the decoded parameter, '' if the template has none, or undefined if the path does not
 * match.
 */
function match(template: string, segments: readonly string[]): string | undefined {
  const wanted = template.split('/');
  if (wanted.length !== segments.length) return undefined;
  let id: string | undefined = '';
  for (const [index, want] of wanted.entries()) {
    const segment = segments[index] ?? '';
    if (want.startsWith('{')) id = segment === '' ? undefined : decode(segment);
    else if (want !== segment) return undefined;
  }
  return id;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
