/**
 * Decides which notices about a mirror to send: one when a trouble begins, and one when it ends.
 * Opt-outs that a guard withholds are reported again each day, because they pass without approval
 * when their time is over. The troubles come from attention-list.ts. All functions are pure.
 */
import { z } from 'zod';
import { type Trouble, troubles } from '../../config/schema/notices-schema.ts';
import type { Attention } from './attention-list.ts';

/** A notice. */
export interface Notice {
  type: `mirror.${Trouble | 'recovered'}`;
  /** The trouble that began or ended. */
  trouble: Trouble;
  reason: string;
  fix: string;
}

/**
 * The reported troubles that have not ended: the reason as it was reported, and the time. Earlier
 * versions stored no time.
 */
export const told = z.partialRecord(
  z.enum(troubles),
  z.union([z.string(), z.object({ why: z.string(), at: z.number() })]),
);
/** The reported troubles. */
export type NoticeLines = z.infer<typeof told>;

const dayMs = 86_400_000;

/**
 * The trouble for each attention code, so that a new code cannot be forgotten. `null` is not sent:
 * it resolves itself, somebody chose it, or another trouble reports it.
 */
const troubleOf: Readonly<Record<Attention['code'], Trouble | null>> = {
  held: 'held',
  opt_outs_many: 'opt_outs',
  quarantined: 'quarantined',
  stale: 'stale',
  ledger: 'failed',
  audit_log: 'failed',
  opt_outs_refused: 'failed',
  returns_stuck: 'failed',
  returns_rejected: 'failed',
  erasure_unfinished: 'failed',
  channel_lost: 'failed',
  run_failed: 'failed',
  alert_refused: 'alert',
  alert_run_time: 'alert',
  alert_deviation: 'alert',
  no_snapshot: null,
  never_proven: null,
  run_interrupted: null,
  outcomes_unknown: null,
  paused: null,
  restored: null,
};

/**
 * Returns the notices that are due, with the most serious line of each trouble. `now` is in
 * milliseconds since the epoch.
 */
export function noticesOf(before: NoticeLines, after: readonly Attention[], now: number): Notice[] {
  const stands = standing(after);
  return troubles.flatMap((trouble): Notice[] => {
    const [was, is] = [before[trouble], stands.get(trouble)];
    if (is && (was === undefined || (is.isDaily && isOld(was, now)))) {
      return [{ type: `mirror.${trouble}`, trouble, reason: is.text, fix: is.fix }];
    }
    if (is || was === undefined) return [];
    return [{ type: 'mirror.recovered', trouble, reason: `no longer: ${whyOf(was)}`, fix: '' }];
  });
}

/** Returns the reported troubles after a notice was sent. */
export function after(
  before: NoticeLines,
  { type, trouble, reason }: Notice,
  now: number,
): NoticeLines {
  const { [trouble]: _, ...rest } = before;
  return type === 'mirror.recovered' ? rest : { ...rest, [trouble]: { why: reason, at: now } };
}

type Was = NonNullable<NoticeLines[Trouble]>;

function whyOf(was: Was): string {
  return typeof was === 'string' ? was : was.why;
}

/** Returns whether a notice was reported at least a day ago, or by a clock that was ahead. */
function isOld(was: Was, now: number): boolean {
  return typeof was === 'string' || Math.abs(now - was.at) >= dayMs;
}

function standing(attention: readonly Attention[]): Map<Trouble, Attention> {
  const found = new Map<Trouble, Attention>();
  const isQuarantined = attention.some(({ code }) => code === 'quarantined');
  for (const one of attention) {
    const trouble = troubleOf[one.code];
    // While a mirror is quarantined, every run fails for that reason.
    if (!trouble || (one.code === 'run_failed' && isQuarantined)) continue;
    const before = found.get(trouble);
    if (!before || (one.isDaily && !before.isDaily)) found.set(trouble, one);
  }
  return found;
}
