/**
 * Decides whether a run requests so many changes of one class that a person should check them
 * first. All functions are pure.
 *
 *   what the class requests in this run                          → held, as
 *   opt-ins of four people or more, and of more than half of     withdrawn
 *     those whose opt-out the CRM had stated: these people only
 *   people that an earlier run held, until they are approved     earlier run
 *   people who turn to yes in the CRM, while about as many turn  swap
 *     away from it (change-shape.ts)
 *   no other people are new                                      passes
 *   stated opt-outs of four people or more: no other person is   everybody
 *     subscribed, and the percentage is not 100
 *   more people than max(floor, percent)                         run
 *   people not approved, together with the last seven days:      week
 *     more than twice that
 *   deletes, more new people than the floor: all in one mail     domain
 *     domain that has less than nine in ten of our people
 *   deletes, more new people than the floor: as many CRM ids     block
 *     in a row as exports have on a page
 *   anything else                                                passes
 *
 * The first matching row wins. The first two rows hold only the people that they name, and the rows
 * below are applied to all others; the caller does this. No limit and no exemption of a class
 * switches `withdrawn` and `swap` off. People are counted, not changes. Only new people are held;
 * those held since an earlier run count with them. People covered by an approval pass, and count in
 * this run only. Stated opt-outs that were held or approved do not count against others, so a later
 * one passes below the limit.
 */
import { guardRows, type GuardClass, type Limit } from '../guard-classes.ts';

export type Guards = Readonly<Record<GuardClass, Limit>>;

/** How many changes of one class a run requests, counted in people. */
export interface ChangeVolume {
  guard: GuardClass;
  /** People who are not approved, and not released earlier in this run. */
  fresh: number;
  /** All people of this run, including those released, approved, or held since an earlier run. */
  all: number;
  /** People of this run who were not approved, including held ones. */
  unapproved: number;
  /** People of the last seven days who were not approved, excluding this run. */
  week: number;
  /**
   * The number that `percent` refers to; 0 if the floor decides (isFew), because counting is slow.
   */
  readonly of: number;
  /**
   * Whether no other person is subscribed; set only if there are enough stated opt-outs for it to
   * matter.
   */
  isEverybody?: boolean;
}

/** The traits that the new people share. */
export interface Shape {
  /**
   * The share of all owned people who are in the new people's one mail domain, from 0 to 1;
   * undefined if they have several domains.
   */
  domainShare: number | undefined;
  /** The lengths of the runs that their CRM ids form without another person's id in between. */
  rows: Iterable<number>;
}

/** How far back the guards look, and the maximum duration of an approval, in milliseconds. */
export const weekMs = 7 * 86_400_000;

/** Common page sizes of CRM exports, and of the programs that produce them. */
const pages: readonly number[] = [100, 200, 250, 500, 1000];
const oneDomainFrom = 0.9;
/** For floating-point rounding: 0.57 % of 10000 is computed as slightly less than 57. */
const rounding = 1e-6;

export type HoldReason =
  | { by: 'everybody' | 'run' | 'week' | 'domain' }
  | { by: 'earlier run'; says?: string | undefined }
  | { by: 'rule' | 'canary'; says: string }
  | { by: 'block'; length: number }
  | { by: 'withdrawn'; people: number; of: number }
  | { by: 'swap'; toYes: number; toNo: number };

/** Judges by the number of people. Returns undefined if there are not too many. */
export function judge(volume: ChangeVolume, limit: Limit): HoldReason | undefined {
  if (volume.fresh === 0) return undefined;
  if (volume.isEverybody && limit.percent < 100) return { by: 'everybody' };
  const most = isFew(volume, limit) ? limit.floor : mostOf(volume, limit);
  if (volume.all > most) return { by: 'run' };
  return volume.week + volume.unapproved > 2 * most ? { by: 'week' } : undefined;
}

/** Returns whether the floor lets them pass, regardless of the percentage. */
export function isFew(
  { all, unapproved, week }: { all: number; unapproved: number; week: number },
  { floor }: Limit,
): boolean {
  return all <= floor && week + unapproved <= 2 * floor;
}

/** Returns whether shared traits matter for people who are not too many. */
export function hasShape({ guard, fresh }: ChangeVolume, { floor }: Limit): boolean {
  return guardRows[guard].shapes.includes('page') && fresh > floor;
}

/**
 * Judges by the traits that the people share. Returns undefined if nothing needs a person's
 * attention.
 */
export function judgeShape({ domainShare, rows }: Shape): HoldReason | undefined {
  if (domainShare !== undefined && domainShare < oneDomainFrom) return { by: 'domain' };
  const length = [...rows].find((one) => pages.includes(one));
  return length === undefined ? undefined : { by: 'block', length };
}

/** Returns the largest number of people that passes. */
export function mostOf({ of }: { of: number }, { percent, floor }: Limit): number {
  return Math.max(floor, Math.floor((of * percent) / 100 + rounding));
}
