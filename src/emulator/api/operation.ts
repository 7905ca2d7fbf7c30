/**
 * What an operation of the API is, how the one for a request is found, and how its query and body
 * are parsed and refused.
 */
import { z } from 'zod';
import type { Method } from '../../domain/exchange.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';
import type { Route } from '../limits/route-limits.ts';
import type { Organization } from '../store/organization.ts';
import type { AnswerName } from './answers.ts';

/** An operation of the platform's API: one row of the table in operation-table.ts. */
export interface Operation<Query = unknown, Body = unknown> {
  method: Method;
  /** The path, with at most one parameter, written as {name}. */
  path: string;
  /** Matches a path, and in it the encoded parameter. */
  pattern: RegExp;
  route: Route;
  summary: string;
  /** Describes mostly what the specification does not show and how the emulator behaves there. */
  description?: string;
  success: [status: 200 | 201, answer: AnswerName];
  /** The error responses by status, in addition to those that the fields below imply. */
  refusals?: Record<number, string>;
  /** Whether it sends email: then its headers state when the window ends ("Limits 4"). */
  sends?: true;
  /** Whether the operation needs a user's session and accepts no API key ("Authentication 6"). */
  session?: true;
  /** Whether error responses contain only a message ("Errors 1"). */
  brief?: true;
  /** The schemas of the query and the body. Without one, what the client sends is ignored. */
  query?: z.ZodType<Query>;
  body?: z.ZodType<Body>;
  /** Checks a request against the schemas and executes it. */
  answer(organization: Organization, asked: Asked): ApiOutcome;
}

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

interface Row<Query, Body> extends Omit<
  Operation<Query, Body>,
  'method' | 'path' | 'pattern' | 'answer'
> {
  run(organization: Organization, call: Call<Query, Body>): ApiOutcome;
}

/** Creates an operation of which `run` handles the checked requests. */
export function operation<Query, Body>(
  method: Method,
  path: string,
  { run, ...row }: Row<Query, Body>,
): Operation {
  const readQuery = query(row.query ?? z.custom<never>());
  const readBody = json(row.body ?? z.custom<never>());
  return {
    ...row,
    method,
    path,
    pattern: new RegExp(`^${path.replace(/\{\w+\}/, '([^/]+)')}$`),
    answer(organization, asked) {
      const query = readQuery(asked.query);
      if (!query.ok) return query.refusal;
      const body = readBody(row.body ? asked.body : 'null');
      if (!body.ok) return body.refusal;
      return run(organization, { id: asked.id, query: query.value, body: body.value });
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
  const allowed: string[] = [];
  for (const operation of operations) {
    const found = operation.pattern.exec(path);
    const id = found ? decode(found[1] ?? '') : undefined;
    if (id === undefined) continue;
    if (operation.method === method) return { operation, id };
    allowed.push(operation.method);
  }
  return { allowed };
}

/** Decodes a percent-encoded text; undefined if it is malformed. */
export function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** A checked value of one part of a request, or the error response. */
type Read<T> = { ok: true; value: T } | { ok: false; refusal: ApiOutcome };

/** Creates a reader for a query of this shape. Other parameters are ignored. */
export function query<T>(schema: z.ZodType<T>) {
  return (parameters: URLSearchParams): Read<T> =>
    check(schema, Object.fromEntries(parameters), 'query');
}

/** Creates a reader for JSON of this shape, whatever its content type. Other fields are ignored. */
export function json<T>(schema: z.ZodType<T>) {
  return (text: string): Read<T> => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return refused('Malformed JSON', {
        why: text === '' ? 'The request has no body.' : 'The body is not valid JSON.',
        fix: 'Send a JSON object as the body.',
      });
    }
    if (isDeeper(value, MOST_LEVELS)) {
      return refused('Invalid request', {
        why: `The body is nested more than ${MOST_LEVELS} levels deep.`,
        fix: 'Send a flatter body.',
      });
    }
    return check(schema, value, 'body');
  };
}

function check<T>(schema: z.ZodType<T>, value: unknown, part: 'query' | 'body'): Read<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const { issues } = parsed.error;
  // The specification prescribes a separate message for each format that it names ("Errors 3").
  const format = issues.find(({ code }) => code === 'invalid_format');
  const faults = issues.map(({ path, message }) => `${[part, ...path].join('.')}: ${message}`);
  const refusal = refuse(400, format?.message ?? 'Invalid request', {
    why: faults.join('; '),
    fix: `Correct the ${part} and send the request again.`,
  });
  return { ok: false, refusal: { ...refusal, misfit: true } };
}

function refused(message: string, detail: { why: string; fix: string }): Read<never> {
  return { ok: false, refusal: refuse(400, message, detail) };
}

/** Limits the nesting of a body, so that every response can be serialized. */
const MOST_LEVELS = 100;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
