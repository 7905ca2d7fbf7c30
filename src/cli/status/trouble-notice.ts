/**
 * What is told of a mirror by itself: that something is wrong with it, once, and that it is over,
 * once. Stated opt-outs that a guard holds are told again each day: they pass when their time is
 * over. What is wrong is what needs a look (attention.ts); pure.
 */
import { z } from 'zod';
import type { Attention } from './attention-list.ts';

const troubles = ['held', 'opt_outs', 'quarantined', 'failed', 'stale'] as const;
export type Trouble = (typeof troubles)[number];

export interface Notice {
  type: `mirror.${Trouble | 'recovered'}`;
  /** What began, or is over. */
  trouble: Trouble;
  reason: string;
  fix: string;
}

/**
 * What was told and is not over: why, as it was told, and when. Earlier versions kept no time.
 */
export const told = z.partialRecord(
  z.enum(troubles),
  z.union([z.string(), z.object({ why: z.string(), at: z.number() })]),
);
export type NoticeLines = z.infer<typeof told>;

const dayMs = 86_400_000;

/** What has no row here mends itself, or is somebody's own doing. */
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
 * What is new since `before`, the gravest of each trouble; `now` in milliseconds since the epoch.
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

/** What is told once this notice is. */
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

/** A day ago, or by a clock that was ahead. */
function isOld(was: Was, now: number): boolean {
  return typeof was === 'string' || Math.abs(now - was.at) >= dayMs;
}

function standing(attention: readonly Attention[]): Map<Trouble, Attention> {
  const found = new Map<Trouble, Attention>();
  const isQuarantined = attention.some(({ code }) => code === 'quarantined');
  for (const one of attention) {
    const trouble = troubleOf[one.code];
    // While a mirror is quarantined every run fails for that.
    if (!trouble || (one.code === 'run_failed' && isQuarantined)) continue;
    const before = found.get(trouble);
    if (!before || (one.isDaily && !before.isDaily)) found.set(trouble, one);
  }
  return found;
}
