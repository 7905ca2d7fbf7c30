/**
 * Stops sending when the outcomes so far show that it is pointless. It is pure, and it is consulted
 * before every change. What it stopped in one run may keep the next ones from sending, too: the
 * quarantine, below.
 *
 *   the platform refuses the key                              → the run stops
 *   it refuses a route                                        → that route stops
 *   it does not know a channel                                → that channel stops
 *   5 unknown addresses in one channel, and no success there  → that channel stops
 *   over 40 % of at least 20 attempts rejected (409s aside)   → everything but opt-outs stops
 *   5 requests in a row without a usable response             → the run stops
 *   20 readings in a row refused, each for its record         → their route stops
 */
import { isStatedOptOut, type Change, type Op } from '../../domain/change.ts';
import { type Problem, Rejected } from '../../domain/errors.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import type { RunContext } from './run-context.ts';
import { outcomeOf, type SendOutcome } from '../../records/change-outcome.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { contactRoute, lookRoute } from '../../records/contact/contacts.ts';
import { templateRoute } from '../../records/template/templates.ts';

/** The routes of changes, and of the reads that they need before they are sent. */
export const routesOf: Readonly<
  Record<RecordTypeName, { change(op: Op): string; look(op: Op): string }>
> = {
  contact: { change: contactRoute, look: lookRoute },
  template: { change: templateRoute, look: () => 'templates.list' },
};

/**
 * The verdict on all attempts, not counting 409s. `refused`: over 40 % of fewer than 20 were
 * rejected. `stopped`: over 40 % of at least 20 were rejected at some time, and most of the run was
 * stopped.
 */
type BreakerVerdict = 'nothing' | 'fine' | 'refused' | 'stopped';

const personOps: readonly Op[] = ['create', 'opt_in', 'opt_out', 'delete'];
const unanswered = 5;
const attemptsAtLeast = 20;
const rejectedAtMost = 0.4;
const strangersAtMost = 5;

export const refusedTooMany = `the platform refused over ${100 * rejectedAtMost} % of the changes of a run`;

export type CircuitBreaker = ReturnType<typeof createCircuitBreaker>;

export function createCircuitBreaker() {
  const stops = new Map<string, Problem>();
  const strangers = new Map<string, number>();
  const proven = new Set<string>();
  let [silence, unread, attempted, rejected] = [0, 0, 0, 0];
  let lastUnsent: string | undefined;

  function stop(scope: string, why: { reason: string; fix?: string }): void {
    if (!stops.has(scope)) stops.set(scope, { code: 'circuit-open', ...why });
  }

  function noteRejected(change: Change, scope: string, status: number): void {
    if (status === 409) return;
    attempted += 1;
    rejected += 1;
    if (status === 404 && change.op === 'create' && change.part !== '') {
      const count = (strangers.get(scope) ?? 0) + 1;
      strangers.set(scope, count);
      const reason = `the platform answered 404 to ${count} people in ${change.part}`;
      if (!proven.has(scope) && count >= strangersAtMost)
        stop(scope, { reason, fix: 'is that channel there?' });
    }
    if (attempted < attemptsAtLeast || rejected / attempted <= rejectedAtMost) return;
    const changes = `${rejected} of ${attempted} changes`;
    const reason = `the platform refused ${changes}; only opt-outs are still sent`;
    stop('most', { reason, fix: 'see the problems' });
  }

  return {
    holds: (change: Change): boolean =>
      stops.has('run') ||
      stops.has(routesOf[change.kind].change(change.op)) ||
      (change.part !== '' && stops.has(partOf(change))) ||
      (stops.has('most') && !isStatedOptOut(change)),
    /** Returns whether the read that the change needs before it is sent is stopped. */
    blinds: ({ kind, op }: Change): boolean =>
      op !== 'opt_out' && stops.has(routesOf[kind].look(op)),
    note(change: Change, outcome: SendOutcome): void {
      const part = partOf(change);
      if (!['held', 'unsent'].includes(outcome.is)) unread = 0;
      if (outcome.is === 'held' || outcome.is === 'stale') return;
      if (outcome.is === 'unsent') lastUnsent = outcome.why;
      if (outcome.is === 'unknown' || (outcome.is === 'unsent' && !outcome.isAnswered)) {
        silence += 1;
        const reason = `${unanswered} requests in a row had no usable answer, the last: ${outcome.why}`;
        if (silence >= unanswered)
          stop('run', { reason, fix: 'run again when the platform is well' });
        return;
      }
      silence = 0;
      if (outcome.is === 'unsent') {
        unread += 1;
        const reason = `the platform refused ${unread} readings in a row, the last: ${outcome.why}`;
        if (unread >= attemptsAtLeast) stop(routesOf[change.kind].look(change.op), { reason });
        return;
      }
      if (outcome.is === 'acked') {
        attempted += 1;
        if (change.op === 'create') proven.add(part);
      } else if (outcome.is === 'rejected') noteRejected(change, part, outcome.status);
      else if (outcome.scope === 'route') stop(outcome.route, { reason: outcome.why });
      else if (outcome.scope === 'run') stop('run', { reason: outcome.why });
      else {
        const fix = 'correct its id in contacts.channels, or create it on the platform';
        stop(part, { reason: outcome.why, fix });
      }
    },
    /** Returns whether an error means that a route may not be used; if so, stops that route. */
    refuses(error: unknown): boolean {
      const outcome = error instanceof Rejected ? outcomeOf(error) : undefined;
      if (outcome?.is !== 'stopped' || outcome.scope !== 'route') return false;
      stop(outcome.route, { reason: outcome.why });
      return true;
    },
    /** Returns why the last change that certainly had no effect was not sent. */
    lastUnsent: () => lastUnsent,
    reasons: (): Problem[] => [...stops.values()],
    verdict(): BreakerVerdict {
      if (stops.has('most')) return 'stopped';
      if (attempted === 0) return 'nothing';
      return rejected / attempted > rejectedAtMost ? 'refused' : 'fine';
    },
    stopped: (): boolean => stops.has('run'),
    /** Returns whether more than single channels are stopped: the run, most of it, or a route. */
    endsEarly(kind: RecordTypeName): boolean {
      const { change, look } = routesOf[kind];
      const routes = personOps.flatMap((op) => [change(op), look(op)]);
      return ['run', 'most', ...routes].some((scope) => stops.has(scope));
    },
  };
}

function partOf({ kind, part }: Change): string {
  return `${kind}/${part}`;
}

/*
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

/** Updates the stored quarantine when a run that writes ends. Returns lines for the summary. */
export function storeQuarantine(
  run: RunContext,
  breaker: CircuitBreaker,
): { reason?: Problem; note?: Problem } {
  const { meta, transaction } = run.snapshot;
  const now = run.clock.now();
  const before = quarantineOf(meta);
  const isNew = isInForce(before, now) && before.until - before.delayMs >= run.startedAt;
  const verdict = breaker.verdict();
  if (!run.writes || run.quarantined || isNew || verdict === 'nothing') return {};
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
