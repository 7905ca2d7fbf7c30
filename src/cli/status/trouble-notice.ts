/**
 * Decides which notices about a mirror to send: one when a trouble begins, and one when it is over.
 * Opt-outs that a guard holds are reported again each day, because they pass when their time is
 * over. The troubles come from attention-list.ts. It is pure.
 */
import { z } from 'zod';
import type { Attention } from './attention-list.ts';

const troubles = ['held', 'opt_outs', 'quarantined', 'failed', 'stale'] as const;
/** A trouble that is reported. */
export type Trouble = (typeof troubles)[number];

/** One notice. */
export interface Notice {
  type: `mirror.${Trouble | 'recovered'}`;
  /** The trouble that began, or is over. */
  trouble: Trouble;
  reason: string;
  fix: string;
}

/**
 * The troubles that were reported and are not over: the reason as it was reported, and when.
 * Earlier versions kept no time.
 */
export const told = z.partialRecord(
  z.enum(troubles),
  z.union([z.string(), z.object({ why: z.string(), at: z.number() })]),
);
/** The troubles that were reported. */
export type NoticeLines = z.infer<typeof told>;

const dayMs = 86_400_000;

/**
 * The trouble of each attention code; codes without a row mend themselves, or were somebody's
 * choice.
 */
const troubleOf: Partial<Record<Attention['code'], Trouble>> = {
  held: 'held',
  opt_outs_many: 'opt_outs',
  quarantined: 'quarantined',
  stale: 'stale',
  ledger: 'failed',
  opt_outs_refused: 'failed',
  returns_stuck: 'failed',
  returns_rejected: 'failed',
  erasure_unfinished: 'failed',
  channel_lost: 'failed',
  run_failed: 'failed',
};

/**
 * Returns the notices that are due, the gravest of each trouble. `now`: milliseconds since the
 * epoch.
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

/** Returns whether it was reported a day ago, or by a clock that was ahead. */
function isOld(was: Was, now: number): boolean {
  return typeof was === 'string' || Math.abs(now - was.at) >= dayMs;
}

function standing(attention: readonly Attention[]): Map<Trouble, Attention> {
  const found = new Map<Trouble, Attention>();
  const isQuarantined = attention.some(({ code }) => code === 'quarantined');
  for (const one of attention) {
    // While a mirror is quarantined every run fails because of it.
    const trouble = troubleOf[one.code];
    // While a mirror is quarantined every run fails for that.
    if (!trouble || (one.code === 'run_failed' && isQuarantined)) continue;
    const before = found.get(trouble);
    if (!before || (one.isDaily && !before.isDaily)) found.set(trouble, one);
  }
  return found;
}
