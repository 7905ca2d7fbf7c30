/**
 * How fast HubSpot may be asked. It has no clock and does not wait: monotonic milliseconds are
 * passed in.
 *
 *   the headers say that nothing is left   → nothing more until their interval is over
 *   search, of which no header tells       → four a second, of the five that an account has
 *   come later (429, 423, 477)             → as long as it says, or as its policy implies
 *   429 for the day                        → not waited out: that may be hours
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
  /** Returns how long to wait before the next question, which then counts as sent. */
  waitMs(question: { isSearch: boolean }, nowMs: number): number;
  /** Reads what an answer says is left. */
  hear(headers: Said['headers'], nowMs: number): void;
}

/** Creates the pace of an account that was not asked yet. */
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
 * Returns how many milliseconds to wait after such an answer, or that the day's requests are used
 * up. `nowMs` is the time of day, for headers that name one.
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
