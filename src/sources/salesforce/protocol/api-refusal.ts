/**
 * Explains an error of the API in one line. The API's own words are not repeated, because they
 * quote the query, and conditions may contain anything. Only field names are taken from them.
 */
import { z } from 'zod';
import { Invalid, RateLimited, Unavailable } from '../../../domain/errors.ts';
import type { Said } from '../../shared/crm-request.ts';
import { quoted } from '../../shared/field-suggestions.ts';

const LIMIT_WAIT_MS = 60 * 60_000;

const errors = z.array(z.object({ errorCode: z.string(), message: z.string().default('') }));

export interface Refusal {
  status: number;
  /** The error code, such as INVALID_FIELD; '' if the response contains none. */
  code: string;
  message: string;
  /** How many of the organization's daily requests are used up, if the response states it. */
  usage: string | undefined;
}

export function refusalOf({ status, value, headers }: Said): Refusal {
  const [first] = errors.safeParse(value).data ?? [];
  const code = /^[A-Z][A-Z_]{1,60}$/.exec(first?.errorCode ?? '')?.[0] ?? '';
  const limits = /\bapi-usage=(\d+)\/(\d+)/.exec(headers['sforce-limit-info'] ?? '');
  const usage = limits ? `${limits[1]} of ${limits[2]}` : undefined;
  return { status, code, message: first?.message ?? '', usage };
}

type Line = (refusal: Refusal) => [what: string, fix: string];

const toMend: Record<string, Line> = {
  INVALID_SESSION_ID: () => [
    'does not accept the token it has just given',
    'give the app the scope api, and its user the permission "API Enabled"; are addresses restricted?',
  ],
  INVALID_FIELD: ({ message }) => [
    `has no such field${fieldIn(message)}, or its user may not see it`,
    'correct the fields of the configuration or where of the source, or let the user see it',
  ],
  INVALID_TYPE: () => [
    'does not show an object that is to be read',
    'correct objects of the source, or give its user the right to read them',
  ],
  MALFORMED_QUERY: () => ['does not understand the query', 'correct where of the source'],
  INVALID_QUERY_FILTER_OPERATOR: () => [
    'cannot compare a field as the query does',
    'correct where of the source',
  ],
  API_DISABLED_FOR_ORG: () => ['has no API in its edition', 'have it enabled for the organization'],
  NOT_FOUND: () => [
    'has no such thing',
    'correct version and objects of the source, or give its user the right to read them',
  ],
  INSUFFICIENT_ACCESS: () => [
    'does not let its user read this',
    'give the user the right to read the objects and fields',
  ],
};

const passing: Record<string, Line> = {
  QUERY_TIMEOUT: () => [
    'took too long for the query',
    'narrow where of the source, to fields that are indexed',
  ],
  INVALID_QUERY_LOCATOR: () => ['has closed the list in the middle of it', 'read it again'],
  API_CURRENTLY_DISABLED: () => ['has its API switched off for a while', 'try again later'],
  SERVER_UNAVAILABLE: () => ['is too busy', 'try again later'],
  UNABLE_TO_LOCK_ROW: () => ['is busy with the same records', 'try again later'],
};

/** Returns the error for a refusal; `host` is for the message. */
export function errorOf(refusal: Refusal, host: string): Error {
  const { status, code, message, usage } = refusal;
  if (code === 'REQUEST_LIMIT_EXCEEDED') {
    if (/concurrent/i.test(message)) {
      const what = `${host} has too many long requests at once`;
      return new Unavailable(what, { fix: 'try again later', acted: 'maybe', status });
    }
    // The daily limit is no permission problem, whatever the status says.
    const used = usage === undefined ? '' : ` (${usage})`;
    return new RateLimited(`${host} has used up its API requests of 24 hours${used}`, {
      fix: 'run less often, or have them raised',
      retryAfterMs: LIMIT_WAIT_MS,
      route: host,
    });
  }
  const temporary = passing[code]?.(refusal);
  if (temporary) {
    const [what, fix] = temporary;
    return new Unavailable(`${host} ${what}`, { fix, acted: 'maybe', status });
  }
  const [what, fix] = toMend[code]?.(refusal) ?? [
    `refused the request (${[status, code].join(' ').trim()})`,
    status === 401 || status === 403
      ? 'correct auth of the source, or the rights of its user'
      : 'correct where of the source, and the fields of the configuration',
  ];
  return new Invalid(`${host} ${what}`, { fix });
}

function fieldIn(message: string): string {
  const found =
    /No such column '([\w.]{1,200})'/.exec(message) ??
    /relationship '([\w.]{1,200})' in field path/.exec(message) ??
    /\bfield '([\w.]{1,200})'/.exec(message);
  return found?.[1] === undefined ? '' : `: ${quoted(found[1])}`;
}
