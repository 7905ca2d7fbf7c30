/** Records which requests are in flight. */
import type { LearnedLimits, Lease } from './learned-limits.ts';
import { inFlight, unused } from './limit-standing.ts';

/** Records that requests leave, and returns their lease. */
export function depart(
  memory: LearnedLimits,
  leaving: Pick<Lease, 'id' | 'n' | 'sentMs' | 'worker' | 'untilMs'>,
): Lease {
  const { id, n, sentMs } = leaving;
  const least = unused(memory, sentMs) - inFlight(memory) - n;
  memory.sent += n;
  const lease = { ...leaving, answers: memory.answers, sent: memory.sent, least };
  memory.leases.push(lease);
  if (memory.blocked || memory.unknown !== undefined) memory.probe = id;
  return lease;
}

/** Records that `n` requests of a lease are no longer in flight; returns the lease, if known. */
export function land(memory: LearnedLimits, id: string, n: number): Lease | undefined {
  const at = memory.leases.findIndex((lease) => lease.id === id);
  const lease = memory.leases[at];
  if (!lease) return undefined;
  lease.n -= n;
  if (memory.probe === id) memory.probe = undefined;
  if (lease.n <= 0) memory.leases.splice(at, 1);
  return lease;
}
