/**
 * A canary (docs/canary.md): a slice of what a run would change is changed first, and the rest
 * waits until the slice has been read back. Each class of changes has a canary of its own.
 *
 *   none      more than the policy's floor is planned, and there is an occasion  →  applying
 *   applying  a run has made what it planned for the slice                       →  waiting
 *             nothing of it was made: another slice has to show it               →  none
 *   waiting   the wait is over, and the slice is within the bounds               →  passed
 *             the wait is over, and it is not                                    →  failed
 *   failed    a person has approved, since then, all that was shown              →  passed
 *             a complete run plans nothing of the class any more                 →  none
 *   passed    nothing waits, until there is another occasion                     →  none
 *
 * While a canary is applying or waiting, only its slice passes: no more records than its size, and
 * once it is waiting, only those that were changed. Once it has failed, its class
 * awaits approval. The occasion of people is the first load or a new mapping: another mapping ends
 * the canaries of the one before, in any state. The occasion of templates is that many of them
 * change, and it ends once all have been changed. A time is never less than what both clocks, ours
 * and the platform's, show; a clock that is set back only makes the wait longer.
 */
import { z } from 'zod';
import { type CanaryCounts, canaryCounts, canaryEnd, endOf } from './canary-end.ts';
import { canaryTime, type CanaryTime } from './canary-time.ts';
import type { AskedClass } from './plan-rule.ts';

/** What a canary of the configuration states; the bounds are percentages of the slice. */
export interface CanaryPolicy {
  percent: number;
  floor: number;
  waitMs: number;
  bounds: Readonly<Record<CanaryBound, number>>;
}

/**
 * What is counted when a slice is read back. unsubscribed: people who have opted out since, or
 * receive no mail at all. refused: those whose change the platform refused. drift: those for whom
 * the platform does not show what was written.
 */
export const canaryBounds = ['unsubscribed', 'refused', 'drift'] as const;
export type CanaryBound = (typeof canaryBounds)[number];

const slice = {
  because: z.enum(['first load', 'mapping', 'templates']),
  /** The id of the run that began it. */
  run: z.string(),
  /** What decides, together with the key of a record, whether it is in the slice. */
  seed: z.string().default(''),
  /** When it began, by our clock, in milliseconds since the epoch. */
  begunAt: z.number(),
  /** The largest hash in the slice. */
  through: z.string(),
  /** The number of people or templates in the slice, and of all that were planned. */
  size: z.number(),
  of: z.number(),
};

const canary = z.discriminatedUnion('state', [
  z.object({ ...slice, state: z.literal('applying') }),
  z.object({ ...slice, state: z.literal('waiting'), since: canaryTime }),
  z.object({ ...slice, state: z.literal('passed') }),
  z.object({
    ...slice,
    state: z.literal('failed'),
    says: z.string(),
    counts: canaryCounts,
    /** How many approvals and signatures had been given when that was found. */
    approvalsGiven: z.number(),
  }),
]);
export type Canary = z.infer<typeof canary>;

/** The canaries of a mirror by class, and the occasion of those about people. */
export const canaryBook = z.object({
  /** The hash of the mapping that the canaries about people belong to; null if there is none. */
  mapping: z.string().nullable(),
  /** Null if people need no canary. */
  occasion: z.enum(['first load', 'mapping']).nullable(),
  /** When that began, by our clock, in milliseconds since the epoch. */
  since: z.number(),
  /** The number of canaries so far. */
  begun: z.number().default(0),
  classes: z.object({
    delete: canary.optional(),
    opt_in: canary.optional(),
    template: canary.optional(),
  }),
  /** How the last one ended; undefined if none has. */
  last: canaryEnd.optional(),
});
export type CanaryBook = z.infer<typeof canaryBook>;

/** What a run knows about the mapping. */
export interface MappingFacts {
  mapping: string | undefined;
  /** The mapping of the last completed run before; undefined if there was none. */
  last: string | undefined;
  isFirstLoad: boolean;
  /** In milliseconds since the epoch. */
  at: number;
}

/**
 * How long a mapping is an occasion. People who are missing by a new mapping are opted out only
 * after `guards.absentFor`, so a canary about them may begin days later.
 */
const occasionMs = 7 * 86_400_000;

/** Returns the canaries of a run, given those stored by earlier runs. */
export function bookOf(before: CanaryBook | undefined, facts: MappingFacts): CanaryBook {
  const { mapping = null, last, isFirstLoad, at } = facts;
  const known = before ?? {
    mapping: last ?? mapping,
    occasion: null,
    since: at,
    begun: 0,
    classes: {},
  };
  const { begun } = known;
  const { template } = known.classes;
  if (known.mapping !== mapping) {
    const occasion = isFirstLoad ? 'first load' : 'mapping';
    const last = replacedIn(known, at) ?? known.last;
    return { mapping, occasion, since: at, begun, classes: { template }, last };
  }
  if (isFirstLoad) return { ...known, occasion: known.occasion ?? 'first load' };
  const isOld = known.occasion === 'first load' || at - known.since > occasionMs;
  return isOld && !isAnyOpen(known) ? { ...known, occasion: null, classes: { template } } : known;
}

/** Returns the end of a canary about people that has failed, and ends by another mapping. */
function replacedIn({ classes }: CanaryBook, at: number): CanaryBook['last'] {
  const ends = (['delete', 'opt_in'] as const).flatMap((guard) => {
    const before = classes[guard];
    return before ? (endOf({ guard, before, after: undefined, at }, 'replaced') ?? []) : [];
  });
  return ends.at(-1);
}

function isAnyOpen({ classes }: CanaryBook): boolean {
  return [classes.delete, classes.opt_in].some((one) => one && one.state !== 'passed');
}

/**
 * Returns the seed of the next canary. The same mirror, mapping and number of canaries give the
 * same slice, so that `plan` and `rehearse` show the one that a run begins with, and the next
 * canary has other people in it.
 */
export function seedOf(mirror: string, { mapping, begun }: CanaryBook): string {
  return JSON.stringify([mirror, mapping, begun]);
}

/** Returns how many of those planned are in a slice. */
export function sliceSize(
  guard: AskedClass,
  { percent, floor }: Pick<CanaryPolicy, 'percent' | 'floor'>,
  planned: number,
): number {
  return Math.max(guard === 'template' ? 1 : floor, Math.ceil((planned * percent) / 100), 1);
}

/** What happens to a canary; see the table above. */
export type CanaryEvent =
  | { is: 'applied'; time: CanaryTime }
  | { is: 'read'; says: string | undefined; counts: CanaryCounts; approvalsGiven: number }
  | { is: 'approved' | 'not applied' | 'nothing planned' | 'all made' };

/** Returns the canary after an event; undefined if there is none any more. */
export function advance(before: Canary, event: CanaryEvent): Canary | undefined {
  const { because, run, seed, begunAt, through, size, of } = before;
  const same = { because, run, seed, begunAt, through, size, of };
  switch (before.state) {
    case 'applying':
      if (event.is === 'not applied') return undefined;
      return event.is === 'applied' ? { ...same, state: 'waiting', since: event.time } : before;
    case 'waiting':
      if (event.is !== 'read') return before;
      if (event.says === undefined) return { ...same, state: 'passed' };
      const { says, counts, approvalsGiven } = event;
      return { ...same, state: 'failed', says, counts, approvalsGiven };
    case 'failed':
      if (event.is === 'nothing planned') return undefined;
      return event.is === 'approved' ? { ...same, state: 'passed' } : before;
    default:
      return because === 'templates' && event.is === 'all made' ? undefined : before;
  }
}
