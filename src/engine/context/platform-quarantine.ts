/**
 * Keeps the runs of a mirror from sending to a platform that refuses nearly everything. The
 * snapshot stores the quarantine.
 *
 *   quarantine   the run                                                then the quarantine
 *   none         was stopped by the circuit breaker: over 40 % of at    begins, for 1 hour
 *                least 20 changes refused
 *   in force     sends opt-outs only; reads, lists and records          stays as it is
 *   expired      had over 40 % of its changes refused                   lasts twice as long, at
 *                                                                       most a day
 *   expired      had a smaller share refused                            is lifted
 *   expired      sent nothing                                           stays: the next run tries
 *   any          overlapped with a run that began the quarantine        stays as it is
 *
 * `retry` without a name lifts the quarantine. Opt-outs are never quarantined.
 */
import type { Problem } from '../../domain/errors.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { type CircuitBreaker, refusedTooMany } from './circuit-breaker.ts';
import type { RunContext } from './run-context.ts';

/** Times in milliseconds since the epoch. */
interface Quarantine {
  since: number;
  until: number;
  delayMs: number;
}
const stored = storedFact<Quarantine>('quarantine', 'the quarantine');

/** Returns the quarantine that the snapshot stores, whether in force or expired. */
export function quarantineOf(meta: Meta): Quarantine | undefined {
  return stored.read(meta);
}

/** Lifts the quarantine. Returns whether there was one. Must be called within a transaction. */
export function liftQuarantine(meta: Meta): boolean {
  const before = stored.read(meta);
  stored.write(meta, undefined);
  return before !== undefined;
}

/** Returns whether it is in force. One that ends later than its delay allows does not count. */
export function isInForce(
  quarantine: Quarantine | undefined,
  now: number,
): quarantine is Quarantine {
  if (!quarantine) return false;
  const { until, delayMs } = quarantine;
  return until > now && until - now <= delayMs;
}

/** Updates the stored quarantine when a run ends. Returns the lines for the summary. */
export function storeQuarantine(
  run: RunContext,
  breaker: CircuitBreaker,
): { reason?: Problem; note?: Problem } {
  const { meta, transaction } = run.snapshot;
  const now = run.clock.now();
  const before = quarantineOf(meta);
  const isNew = isInForce(before, now) && before.until - before.delayMs >= run.startedAt;
  const verdict = breaker.verdict();
  if (run.quarantined || isNew || verdict === 'nothing') return {};
  if (!before && verdict !== 'stopped') return {};
  if (verdict === 'fine') {
    transaction(() => stored.write(meta, undefined));
    const reason = 'the quarantine is over: the platform took what this run sent';
    return { note: { code: 'note', reason } };
  }
  const { firstMs, factor, longestMs } = retrySchedules.quarantine;
  const delayMs = before ? Math.min(factor * before.delayMs, longestMs) : firstMs;
  const next = { since: before?.since ?? now, until: now + delayMs, delayMs };
  transaction(() => stored.write(meta, next));
  return { reason: sayQuarantine(next) };
}

/** States since when and until when the quarantine is in force. */
export function sayQuarantine({ since, until }: Quarantine): Problem {
  const time = (at: number) => new Date(at).toISOString().replace(/\.\d+/, '');
  return {
    code: 'quarantined',
    reason:
      `quarantined since ${time(since)}, since ${refusedTooMany}: until ` +
      `${time(until)} only opt-outs are sent`,
    fix: 'mend what it refuses, then `crm-mirror retry`',
  };
}
