/**
 * A canary (docs/guards-and-approvals.md): a slice of what a run would change is changed first, and
 * the rest waits until the slice has been read back. Each class of changes has its own canary.
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
import type { BothTimes } from '../clock.ts';
import { guardRows } from '../guard-classes.ts';
import { type AskedClass, askedClasses } from './plan-rule.ts';

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

/** How many records of a slice were read back (`of`), and how many of them are out of line. */
export type CanaryCounts = Record<CanaryBound | 'of', number>;

/**
 * The end of a canary.
 *
 *   passed     the slice was within the bounds
 *   approved   it was not (`says`), and a person has approved the rest
 *   replaced   it was not, and the mapping has changed since
 *   unwanted   it was not, and a complete run plans nothing of the class any more
 */
export interface CanaryEnd {
  class: AskedClass;
  is: 'passed' | 'approved' | 'replaced' | 'unwanted';
  /** When it ended, by our clock, in milliseconds since the epoch. */
  at: number;
  run: string;
  size: number;
  of: number;
  says?: string | undefined;
  counts?: CanaryCounts | undefined;
}

interface Slice {
  because: 'first load' | 'mapping' | 'templates';
  /** The id of the run that began it. */
  run: string;
  /** What decides, together with the key of a record, whether it is in the slice. */
  seed: string;
  /** When it began, by our clock, in milliseconds since the epoch. */
  begunAt: number;
  /** The largest hash in the slice. */
  through: string;
  /** The number of people or templates in the slice, and of all that were planned. */
  size: number;
  of: number;
}

export type Canary = Slice &
  (
    | { state: 'applying' | 'passed' }
    | { state: 'waiting'; since: BothTimes }
    | {
        state: 'failed';
        says: string;
        counts: CanaryCounts;
        /** How many approvals and signatures had been given when that was found. */
        approvalsGiven: number;
      }
  );

/** The canaries of a mirror by class, and the occasion of those about people. */
export interface CanaryBook {
  /** The hash of the mapping that the canaries about people belong to; null if there is none. */
  mapping: string | null;
  /** Null if people need no canary. */
  occasion: 'first load' | 'mapping' | null;
  /** When that began, by our clock, in milliseconds since the epoch. */
  since: number;
  begun: number;
  classes: Partial<Record<AskedClass, Canary | undefined>>;
  /** How the last one ended; undefined if none has. */
  last?: CanaryEnd | undefined;
}

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

const aboutPeople = askedClasses.filter((of) => guardRows[of].recordType === 'contact');

/** Returns the canaries of a run, given those stored by earlier runs. */
export function bookOf(before: CanaryBook | undefined, facts: MappingFacts): CanaryBook {
  const { mapping = null, last, isFirstLoad, at } = facts;
  const none = { mapping: last ?? mapping, occasion: null, since: at, begun: 0, classes: {} };
  const known: CanaryBook = before ?? none;
  const classes = { ...known.classes };
  for (const of of aboutPeople) classes[of] = undefined;
  if (known.mapping !== mapping) {
    const occasion = isFirstLoad ? 'first load' : 'mapping';
    // The canaries about people that have failed end by another mapping.
    const ends = aboutPeople.flatMap((guard) => {
      const canary = known.classes[guard];
      const end = { guard, after: undefined, at };
      return canary ? (endOf({ ...end, before: canary }, 'replaced') ?? []) : [];
    });
    const ended = ends.at(-1) ?? known.last;
    return { mapping, occasion, since: at, begun: known.begun, classes, last: ended };
  }
  if (isFirstLoad) return { ...known, occasion: known.occasion ?? 'first load' };
  const isOld = known.occasion === 'first load' || at - known.since > occasionMs;
  const open = aboutPeople.map((of) => known.classes[of]?.state ?? 'passed');
  const isAnyOpen = open.some((state) => state !== 'passed');
  return isOld && !isAnyOpen ? { ...known, occasion: null, classes } : known;
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
  { percent, floor }: { percent: number; floor: number },
  planned: number,
): number {
  return Math.max(guard === 'template' ? 1 : floor, Math.ceil((planned * percent) / 100), 1);
}

/** What happens to a canary; see the table above. */
export type CanaryEvent =
  | { is: 'applied'; time: BothTimes }
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

interface Ending {
  guard: CanaryEnd['class'];
  before: Pick<CanaryEnd, 'run' | 'size' | 'of' | 'says' | 'counts'> & { state: string };
  after: { state: string } | undefined;
  at: number;
}

/** Returns the end of a canary; undefined if it goes on, or has ended before. */
export function endOf(
  { guard, before, after, at }: Ending,
  without: 'replaced' | 'unwanted',
): CanaryEnd | undefined {
  const { run, size, of, says, counts } = before;
  const about = { class: guard, at, run, size, of, says, counts };
  if (before.state === 'waiting') {
    return after?.state === 'passed' ? { ...about, is: 'passed' } : undefined;
  }
  if (before.state !== 'failed' || after?.state === 'failed') return undefined;
  return { ...about, is: after ? 'approved' : without };
}

/** Returns how long a canary has waited by the slower clock, in milliseconds. */
export function waitedMs({ at, platformAt }: BothTimes, now: BothTimes): number {
  const waited = [now.at - at];
  if (platformAt !== null && now.platformAt !== null) waited.push(now.platformAt - platformAt);
  return Math.max(0, Math.min(...waited));
}

/** Returns the times without those that lie in the future, because a clock was set back. */
export function mended(since: BothTimes, now: BothTimes): BothTimes {
  const { platformAt } = now;
  const isAhead = since.platformAt !== null && platformAt !== null && since.platformAt > platformAt;
  return {
    at: Math.min(since.at, now.at),
    platformAt: isAhead ? platformAt : (since.platformAt ?? platformAt),
  };
}
