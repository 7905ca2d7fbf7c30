/**
 * Whether a run asks for so much of one class that a person should look first. Pure.
 *
 *   what the class asks for in this run                          → held, as
 *   whom an earlier run held, until they are approved            standing
 *   nobody else new                                              passes
 *   stated opt-outs of four people or more: nobody else is       everybody
 *     subscribed, and the percentage is not 100
 *   more people than max(floor, percent)                         run
 *   those who were not approved, and the last seven days:        week
 *     more than twice that
 *   deletes, more new people than the floor: all of one mail     domain
 *     domain, where nine in ten of our people are not
 *   deletes, more new people than the floor: as many CRM ids     block
 *     in a row as exports have on a page
 *   else                                                         passes
 *
 * The first matching row wins; the first of all is the caller's, and holds those people alone.
 * People are counted, not changes. Only who is new is held; those who are held since an earlier run
 * count with them. Whom an approval names passes, and counts in this run alone. Stated opt-outs
 * that were held or approved count with nobody: a later one passes below the limit.
 */
import { guardRows, type GuardClass, type Limit } from '../../domain/guard-classes.ts';

export type Guards = Readonly<Record<GuardClass, Limit>>;

/** What one class asks for, in people. */
export interface ChangeVolume {
  guard: GuardClass;
  /** Not approved, and not let through earlier in this run. */
  fresh: number;
  /** All of this run: also who was let through, approved, or held since an earlier run. */
  all: number;
  /** Those of this run who were not approved, the held ones too. */
  unapproved: number;
  /** Those of the last seven days who were not approved, without this run. */
  week: number;
  /** What `percent` is of; counting it takes long, and of few (isFew) nobody asks. */
  readonly of: number;
  /** Of so many stated opt-outs that it matters: whether nobody else is subscribed. */
  isEverybody?: boolean;
}

/** What the new ones have in common. */
export interface Shape {
  /** What part of the owned people is of their one mail domain, 0 to 1; undefined: of several. */
  domainShare: number | undefined;
  /** How many of them stand in a row, nobody else's CRM id between: each length that there is. */
  rows: Iterable<number>;
}

/** How far back the guards look, and how long an approval lasts at most; milliseconds. */
export const weekMs = 7 * 86_400_000;

/** Pages of a CRM's export, or of the program that makes it. */
const pages: readonly number[] = [100, 200, 250, 500, 1000];
const oneDomainFrom = 0.9;
/** 0.57 % of 10000 is 57, and a little less as a computer has it. */
const rounding = 1e-6;

export type HoldReason =
  { by: 'standing' | 'everybody' | 'run' | 'week' | 'domain' } | { by: 'block'; length: number };

/** By how many they are; undefined: that is not too many. */
export function judge(volume: ChangeVolume, limit: Limit): HoldReason | undefined {
  if (volume.fresh === 0) return undefined;
  if (volume.isEverybody && limit.percent < 100) return { by: 'everybody' };
  const most = isFew(volume, limit) ? limit.floor : mostOf(volume, limit);
  if (volume.all > most) return { by: 'run' };
  return volume.week + volume.unapproved > 2 * most ? { by: 'week' } : undefined;
}

/** Whether the floor lets them pass, whatever a percentage is of. */
export function isFew(
  { all, unapproved, week }: Omit<ChangeVolume, 'of'>,
  { floor }: Limit,
): boolean {
  return all <= floor && week + unapproved <= 2 * floor;
}

/** Whether it matters what those have in common who are not too many. */
export function hasShape({ guard, fresh }: ChangeVolume, { floor }: Limit): boolean {
  return guardRows[guard].shapes && fresh > floor;
}

/** By what they have in common; undefined: nothing that a person should look at. */
export function judgeShape({ domainShare, rows }: Shape): HoldReason | undefined {
  if (domainShare !== undefined && domainShare < oneDomainFrom) return { by: 'domain' };
  const length = [...rows].find((one) => pages.includes(one));
  return length === undefined ? undefined : { by: 'block', length };
}

/** More than so many are too many. */
export function mostOf({ of }: Pick<ChangeVolume, 'of'>, { percent, floor }: Limit): number {
  return Math.max(floor, Math.floor((of * percent) / 100 + rounding));
}
