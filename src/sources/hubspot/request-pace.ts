/**
 * Determines how fast requests may be sent to HubSpot. The pace has no clock and does not wait; the
 * caller passes in monotonic milliseconds.
 *
 *   headers state that nothing is left   → no requests until their interval is over
 *   search, which has no such headers    → four per second, of the five that an account has
 *   retry later (429, 423, 477)          → waits as long as stated, or as the policy implies
 *   429 for the day                      → does not wait, because it could take hours
 */
import { observe } from '../../http/rate-limit-headers.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import type { Said } from '../shared/crm-request.ts';

const INTERVAL_MS = 10_000;
const SEARCH_MS = 250;
const LEAST_MS = 1_000;
const LOCKED_MS = 2_000;

/** The pace of one account. */
export interface Pace {
  /** Returns how long to wait before the next request, and counts that request as sent. */
  waitMs(question: { isSearch: boolean }, nowMs: number): number;
  /** Reads from the response headers how many requests are left. */
  hear(headers: Said['headers'], nowMs: number): void;
}

/** Creates the pace of an account to which no request has been sent. */
export function createPace(): Pace {
  let freeAt = Number.NEGATIVE_INFINITY;
  let searchAt = Number.NEGATIVE_INFINITY;
  return {
    waitMs({ isSearch }, nowMs) {
      const leaves = Math.max(nowMs, freeAt, isSearch ? searchAt : nowMs);
      if (isSearch) searchAt = leaves + SEARCH_MS;
      return leaves - nowMs;
    },
    hear(headers, nowMs) {
      if (headers['x-hubspot-ratelimit-remaining'] !== '0') return;
      freeAt = Math.max(freeAt, nowMs + intervalOf(headers));
    },
  };
}

/**
 * Returns how many milliseconds to wait after such a response, or 'day' if the day's requests are
 * used up. `nowMs` is the wall-clock time, needed for headers that state a time.
 */
export function laterBy({ status, headers, value }: Said, nowMs: number): number | 'day' {
  const said = `${textOf(value, 'policyName')} ${textOf(value, 'message')}`.toLowerCase();
  if (/\bdaily\b/.test(said)) return 'day';
  const { retryAfterMs } = observe(429, headers, nowMs);
  const ofPolicyMs = /\bsecondly\b/.test(said) ? LEAST_MS : intervalOf(headers);
  return Math.max(retryAfterMs ?? (status === 423 ? LOCKED_MS : ofPolicyMs), LEAST_MS);
}

function intervalOf(headers: Said['headers']): number {
  const given = headers['x-hubspot-ratelimit-interval-milliseconds'] ?? '';
  return /^\d{1,6}$/.test(given) ? Number(given) : INTERVAL_MS;
}

function textOf(value: unknown, field: string): string {
  const found = fieldAt(value, field);
  return typeof found === 'string' ? found : '';
}
