/**
 * Slows down who guesses passwords. Only attempts that fail are counted:
 *
 *   of one account from one address   5 a minute
 *   from one address                  30 a minute
 *   of one account, from addresses    20 in ten minutes
 *   from which nobody has signed in
 *
 * An attempt counts from its beginning, so that many at once are no way around it.
 */
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../domain/clock.ts';

/** An attempt that has begun. */
interface Attempt {
  /** Says that it did not fail. */
  succeed(): void;
}

/** Counts the attempts. */
export interface SignInAttempts {
  /** Begins an attempt; returns undefined if there were too many. '' is the account of a link. */
  begin(account: string, address: string): Attempt | undefined;
}

interface Rule {
  most: number;
  windowMs: number;
}

const minuteMs = 60_000;
const ofBoth: Rule = { most: 5, windowMs: minuteMs };
const ofAddress: Rule = { most: 30, windowMs: minuteMs };
const ofAccount: Rule = { most: 20, windowMs: 10 * minuteMs };
const mostKeys = 10_000;

/** Creates the counter, which a restart empties. */
export function createSignInAttempts({ monotonic }: Pick<Clock, 'monotonic'>): SignInAttempts {
  const failures = new Map<string, { count: number; until: number }>();
  const trusted = new Set<string>();
  const countOf = (key: string): number => {
    const found = failures.get(key);
    if (found && found.until > monotonic()) return found.count;
    failures.delete(key);
    return 0;
  };
  const count = (key: string, { windowMs }: Rule): void => {
    const known = countOf(key);
    const until = failures.get(key)?.until ?? monotonic() + windowMs;
    failures.set(key, { count: known + 1, until });
    dropOldest(failures);
  };
  const uncount = (key: string): void => {
    const found = failures.get(key);
    if (found) found.count -= 1;
  };
  return {
    begin(account, address) {
      const pair = JSON.stringify([account, address]);
      const rules: [key: string, rule: Rule][] = [
        [pair, ofBoth],
        [`from ${address}`, ofAddress],
      ];
      if (!trusted.has(pair)) rules.push([`of ${account}`, ofAccount]);
      if (rules.some(([key, { most }]) => countOf(key) >= most)) return undefined;
      for (const [key, rule] of rules) count(key, rule);
      return {
        succeed() {
          for (const [key] of rules) uncount(key);
          trusted.add(pair);
          dropOldest(trusted);
        },
      };
    },
  };
}

function dropOldest(kept: Set<string> | Map<string, unknown>): void {
  for (const key of kept.keys()) {
    if (kept.size <= mostKeys) return;
    kept.delete(key);
  }
}

/**
 * Returns the address of who sends a request. Proxies add the address that they see to
 * X-Forwarded-For, which counts only as far as these proxies have written it.
 */
export function addressOf(
  { socket, headers }: Pick<FastifyRequest, 'socket' | 'headers'>,
  proxies: ReadonlySet<string> = new Set(),
): string {
  const hops = [headers['x-forwarded-for'] ?? []].flat().join(',').split(',');
  let address = plainAddress(socket.remoteAddress ?? '');
  while (proxies.has(address)) {
    const hop = plainAddress(hops.pop()?.trim() ?? '');
    if (isIP(hop) === 0) break;
    address = hop;
  }
  return address;
}

/** Writes an IPv4 address that a socket of both families shows as IPv6. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:/, '');
}
