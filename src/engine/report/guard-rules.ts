/**
 * Decides whether a run asks for so much of one class that a person should look first. Pure.
 *
 *   what the class asks for in this run                          → held, as
 *   people that an earlier run held, until they are approved     earlier run
 *   no other people are new                                      passes
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
 * The first matching row wins. The caller applies the first row, which holds those people alone.
 * People are counted, not changes. Only new people are held; those held since an earlier run count
 * with them. People that an approval names pass, and count in this run alone. Stated opt-outs that
 * were held or approved do not count against others: a later one passes below the limit.
 */
import { guardRows, type GuardClass, type Limit } from '../../domain/guard-classes.ts';

export type Guards = Readonly<Record<GuardClass, Limit>>;

/** How much of one class a run asks for, in people. */
export interface ChangeVolume {
  guard: GuardClass;
  /** People not approved, and not let through earlier in this run. */
  fresh: number;
  /** All people of this run, also those let through, approved, or held since an earlier run. */
  all: number;
  /** People of this run who were not approved, the held ones too. */
  unapproved: number;
  /** People of the last seven days who were not approved, without this run. */
  week: number;
  /** The number that `percent` is of; 0 where the floor decides (isFew): counting takes long. */
  readonly of: number;
  /** Whether nobody else is subscribed; only of so many stated opt-outs that it matters. */
  isEverybody?: boolean;
}

/** The traits that the new people have in common. */
export interface Shape {
  /** The share of owned people in their one mail domain, 0 to 1; undefined: they have several. */
  domainShare: number | undefined;
  /** The lengths of the rows that their CRM ids form, with nobody else's id between. */
  rows: Iterable<number>;
}

/** How far back the guards look, and how long an approval lasts at most; milliseconds. */
export const weekMs = 7 * 86_400_000;

/** Page sizes of a CRM's export, or of the program that makes it. */
const pages: readonly number[] = [100, 200, 250, 500, 1000];
const oneDomainFrom = 0.9;
/** 0.57 % of 10000 is 57, and a little less as a computer has it. */
const rounding = 1e-6;

export type HoldReason =
  { by: 'earlier run' | 'everybody' | 'run' | 'week' | 'domain' } | { by: 'block'; length: number };

/** Judges the people by their number; undefined: they are not too many. */
export function judge(volume: ChangeVolume, limit: Limit): HoldReason | undefined {
  if (volume.fresh === 0) return undefined;
  if (volume.isEverybody && limit.percent < 100) return { by: 'everybody' };
  const most = isFew(volume, limit) ? limit.floor : mostOf(volume, limit);
  if (volume.all > most) return { by: 'run' };
  return volume.week + volume.unapproved > 2 * most ? { by: 'week' } : undefined;
}

/** Returns whether the floor lets them pass, whatever a percentage is of. */
export function isFew(
  { all, unapproved, week }: Omit<ChangeVolume, 'of'>,
  { floor }: Limit,
): boolean {
  return all <= floor && week + unapproved <= 2 * floor;
}

/** Returns whether it matters what people have in common who are not too many. */
export function hasShape({ guard, fresh }: ChangeVolume, { floor }: Limit): boolean {
  return guardRows[guard].shapes && fresh > floor;
}

/** Judges people by their common traits; undefined: nothing that a person should look at. */
export function judgeShape({ domainShare, rows }: Shape): HoldReason | undefined {
  if (domainShare !== undefined && domainShare < oneDomainFrom) return { by: 'domain' };
  const length = [...rows].find((one) => pages.includes(one));
  return length === undefined ? undefined : { by: 'block', length };
}

/** Returns the largest number that is not too many. */
export function mostOf({ of }: Pick<ChangeVolume, 'of'>, { percent, floor }: Limit): number {
  return Math.max(floor, Math.floor((of * percent) / 100 + rounding));
}
