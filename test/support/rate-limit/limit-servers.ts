/** One limited route of the platform in virtual time: its own counting, its own headers. */
import { findAlgorithm, type Limit } from '../../../src/emulator/limits/algorithms.ts';
import { limitHeaders } from '../../../src/emulator/limits/route-limits.ts';

export interface Answered {
  status: number;
  headers: Record<string, string>;
}

export interface Server {
  /** One request that comes at this time, in milliseconds. */
  take(atMs: number): Answered;
  /** From now on; what was used begins anew. */
  change(limit: Limit): void;
}

/** `epochMs`: the server's time of day at 0. */
export function createServer(
  algorithm: string,
  { limit, epochMs }: { limit: Limit; epochMs: number },
): Server {
  let now = limit;
  let meter = findAlgorithm(algorithm)(now);
  return {
    take(atMs) {
      const reading = meter({ monotonic: atMs, epoch: epochMs + atMs });
      const nowMs = epochMs + atMs;
      const headers = limitHeaders({ limit: now, reading }, { sends: false, nowMs });
      const date = new Date(nowMs).toUTCString();
      return { status: reading.allowed ? 200 : 429, headers: { ...headers, date } };
    },
    change(other) {
      now = other;
      meter = findAlgorithm(algorithm)(other);
    },
  };
}

/**
 * The least time in which `requests` can pass, in milliseconds: without latency, each sent in the
 * instant in which it is allowed.
 */
export function leastMs(
  algorithm: string,
  job: { limit: Limit; epochMs: number; requests: number },
): number {
  const meter = findAlgorithm(algorithm)(job.limit);
  let atMs = 0;
  for (let done = 0; done < job.requests;) {
    const reading = meter({ monotonic: atMs, epoch: job.epochMs + atMs });
    if (reading.allowed) done += 1;
    // A little later than exactly: sums of fractions are not exact.
    else atMs += Math.max(0.01, reading.resetMs);
  }
  return atMs;
}
