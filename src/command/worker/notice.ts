/**
 * What is told of a mirror by itself: that something is wrong with it, once, and that it is over,
 * once. What is wrong is what needs a look (attention.ts); pure.
 */
import { z } from 'zod';
import type { Attention } from '../attention.ts';

const troubles = ['held', 'quarantined', 'failed', 'stale'] as const;
export type Trouble = (typeof troubles)[number];

export interface Notice {
  type: `mirror.${Trouble | 'recovered'}`;
  /** What began, or is over. */
  trouble: Trouble;
  reason: string;
  fix: string;
}

/** What was told and is not over: why, as it was told. */
export const told = z.partialRecord(z.enum(troubles), z.string());
export type Told = z.infer<typeof told>;

/** What has no row here mends itself, or is somebody's own doing. */
const troubleOf: Partial<Record<Attention['code'], Trouble>> = {
  held: 'held',
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

/** What is new since `before`, the gravest of each trouble. */
export function noticesOf(before: Told, after: readonly Attention[]): Notice[] {
  const now = standing(after);
  return troubles.flatMap((trouble): Notice[] => {
    const [was, is] = [before[trouble], now.get(trouble)];
    if (is && was === undefined) {
      return [{ type: `mirror.${trouble}`, trouble, reason: is.text, fix: is.fix }];
    }
    if (is || was === undefined) return [];
    return [{ type: 'mirror.recovered', trouble, reason: `no longer: ${was}`, fix: '' }];
  });
}

/** What is told once this notice is. */
export function after(before: Told, { type, trouble, reason }: Notice): Told {
  const { [trouble]: _, ...rest } = before;
  return type === 'mirror.recovered' ? rest : { ...rest, [trouble]: reason };
}

function standing(attention: readonly Attention[]): Map<Trouble, Attention> {
  const found = new Map<Trouble, Attention>();
  const isQuarantined = attention.some(({ code }) => code === 'quarantined');
  for (const one of attention) {
    const trouble = troubleOf[one.code];
    // While a mirror is quarantined every run fails for that.
    if (!trouble || (one.code === 'run_failed' && isQuarantined)) continue;
    if (!found.has(trouble)) found.set(trouble, one);
  }
  return found;
}
