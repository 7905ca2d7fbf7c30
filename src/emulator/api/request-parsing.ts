import type { z } from 'zod';
import { refuse, type ApiOutcome } from '../shared/api-answer.ts';

/** Reads a checked value from one part of a request, or returns the error response. */
export interface Reader<From, To> {
  (from: From): Read<To>;
  /** The schema; undefined accepts any value. */
  schema?: z.ZodType<To>;
}
type Read<T> = { ok: true; value: T } | { ok: false; refusal: ApiOutcome };

/**
 * Reads nothing, for an operation that takes no query or no body. What the client sends there is
 * ignored.
 */
export function nothing(): Read<undefined> {
  return { ok: true, value: undefined };
}

/**
 * Creates a reader for a query of this shape. Parameters that the schema does not name are ignored.
 */
export function query<T>(schema: z.ZodType<T>): Reader<URLSearchParams, T> {
  const read = (parameters: URLSearchParams) =>
    check(schema, Object.fromEntries(parameters), 'query');
  return Object.assign(read, { schema });
}

/**
 * Creates a reader for a JSON body of this shape, regardless of the content type. Unknown fields
 * are ignored.
 */
export function json<T>(schema: z.ZodType<T>): Reader<string, T> {
  const read = (text: string) => {
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
  return Object.assign(read, { schema });
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

/**
 * Limits the nesting of a body. No real body comes near this depth, and at this depth every
 * response can be serialized without overflowing the stack.
 */
const MOST_LEVELS = 100;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
