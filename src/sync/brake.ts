/**
 * When to send no more, decided from the outcomes so far. Pure; asked before every change.
 *
 *   the platform refuses the key                              → the run stops
 *   it refuses a route                                        → that route stops
 *   it knows no such channel                                  → that channel stops
 *   5 unknown addresses in one channel, and no success there  → that channel stops
 *   more than 40 % of at least 20 attempts rejected           → all but opt-outs stops (409 does not count)
 *   5 requests in a row without a usable answer               → the run stops
 */
import type { Change } from '../model/change.ts';
import type { Kind, Outcome } from '../kind/kind.ts';

export interface Brake {
  /** Whether this change must not be sent. */
  holds(kind: Kind, change: Change): boolean;
  note(kind: Kind, change: Change, outcome: Outcome): void;
  /** What was stopped and why, once each. */
  reasons(): string[];
  /** The whole run is stopped. */
  stopped(): boolean;
}

const unanswered = 5;
const attemptsAtLeast = 20;
const rejectedAtMost = 0.4;
const strangersAtMost = 5;

export function createBrake(): Brake {
  const stops = new Map<string, string>();
  const strangers = new Map<string, number>();
  const proven = new Set<string>();
  let attempted = 0;
  let rejected = 0;
  let silence = 0;
  const stop = (scope: string, why: string): void => {
    if (!stops.has(scope)) stops.set(scope, why);
  };
  const partOf = (kind: Kind, { part }: Change): string => `${kind.name}/${part}`;

  function noteRejection(kind: Kind, change: Change, status: number): void {
    if (status === 409) return;
    attempted += 1;
    rejected += 1;
    const scope = partOf(kind, change);
    if (status === 404 && change.op === 'create' && change.part !== '') {
      strangers.set(scope, (strangers.get(scope) ?? 0) + 1);
      if (!proven.has(scope) && strangers.get(scope) === strangersAtMost) {
        stop(
          scope,
          `the platform answered 404 to ${strangersAtMost} people in channel ${change.part} → check that the channel exists`,
        );
      }
    }
    if (attempted >= attemptsAtLeast && rejected / attempted > rejectedAtMost) {
      stop(
        'quarantine',
        `the platform refused ${rejected} of ${attempted} changes; only opt-outs go on → see the problems listed`,
      );
    }
  }

  return {
    holds: (kind, change) =>
      stops.has('run') ||
      stops.has(kind.route(change.op)) ||
      (change.part !== '' && stops.has(partOf(kind, change))) ||
      (stops.has('quarantine') && change.op !== 'opt_out'),
    note(kind, change, outcome) {
      silence = outcome.is === 'unsent' || outcome.is === 'unknown' ? silence + 1 : 0;
      if (silence >= unanswered && 'why' in outcome) {
        stop(
          'run',
          `${unanswered} requests in a row had no usable answer, the last: ${outcome.why} → run again when the platform is well`,
        );
      }
      if (outcome.is === 'acked') {
        attempted += 1;
        proven.add(partOf(kind, change));
      } else if (outcome.is === 'rejected') noteRejection(kind, change, outcome.status);
      else if (outcome.is === 'stopped') {
        const scope = { run: 'run', route: kind.route(change.op), part: partOf(kind, change) };
        stop(scope[outcome.scope], outcome.why);
      }
    },
    reasons: () => [...stops.values()],
    stopped: () => stops.has('run'),
  };
}
