/**
 * Whether a run asks for so much of one kind that a person should look first. Pure.
 *
 *   what the class asks for in this run                          → held, as
 *   whom an earlier run held, until they are approved            standing
 *   nobody else new                                              passes
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
 * count with them. Whom an approval names passes, and counts in this run alone.
 */
import type { GuardClass } from '../model/change.ts';
import type { Fault } from '../model/record.ts';

export interface Limit {
  /** Of the people the class is about: owned ones, or those the CRM wants. */
  percent: number;
  /** That many always pass. */
  floor: number;
}

export type Guards = Readonly<Record<GuardClass, Limit>>;

/** What one class asks for, in people. */
export interface Rush {
  guard: GuardClass;
  /** Not approved, and not let through earlier in this run. */
  fresh: number;
  /** All of this run: also who was let through, approved, or held since an earlier run. */
  all: number;
  /** Those of this run who were not approved, the held ones too. */
  unapproved: number;
  /** Those of the last seven days who were not approved, without this run. */
  week: number;
  /** What `percent` is of; counting it takes long, and below the floor nobody asks. */
  readonly of: number;
  /** Asked for only above the floor. */
  shape(): Shape;
}

/** What the new ones have in common. */
export interface Shape {
  /** Of how many mail domains they are. */
  domains: number;
  /** What part of the owned people is of the first of them, 0 to 1. */
  ownedShare: number;
  /** For every known CRM id, in their order, whether it is one of them. */
  ids: Iterable<boolean>;
}

/** How far back the guards look, and how long an approval lasts at most; milliseconds. */
export const weekMs = 7 * 86_400_000;

/** Pages of a CRM's export, or of the program that makes it. */
const pages: readonly number[] = [100, 200, 250, 500, 1000];
const oneDomainFrom = 0.9;
/** 0.57 % of 10000 is 57, and a little less as a computer has it. */
const rounding = 1e-6;

export type Held = { by: 'standing' | 'run' | 'week' | 'domain' } | { by: 'block'; length: number };

/** Undefined: it passes. */
export function judge(rush: Rush, limit: Limit): Held | undefined {
  if (rush.fresh === 0) return undefined;
  const isFew = rush.all <= limit.floor && rush.week + rush.unapproved <= 2 * limit.floor;
  const most = isFew ? limit.floor : mostOf(rush, limit);
  if (rush.all > most) return { by: 'run' };
  if (rush.week + rush.unapproved > 2 * most) return { by: 'week' };
  if (rush.guard !== 'delete' || rush.fresh <= limit.floor) return undefined;
  const { domains, ownedShare, ids } = rush.shape();
  if (domains === 1 && ownedShare < oneDomainFrom) return { by: 'domain' };
  const length = pageIn(ids);
  return length === undefined ? undefined : { by: 'block', length };
}

function mostOf({ of }: Pick<Rush, 'of'>, { percent, floor }: Limit): number {
  return Math.max(floor, Math.floor((of * percent) / 100 + rounding));
}

/** The length of a block that is as long as a page. */
function pageIn(ids: Iterable<boolean>): number | undefined {
  let length = 0;
  for (const isFresh of ids) {
    if (isFresh) length += 1;
    else if (pages.includes(length)) return length;
    else length = 0;
  }
  return pages.includes(length) ? length : undefined;
}

/** What a tired person reads: what is held and why, what it often is, and how to let it pass. */
export function explainHeld(
  held: Held,
  rush: Rush,
  { limit, plan }: { limit: Limit; plan: string },
): Fault {
  const { guard, fresh } = rush;
  const whom = fresh === 1 ? '1 person' : `${fresh} people`;
  const what =
    guard === 'delete'
      ? `${whom} who left the CRM, or an address there, would be deleted or opted out`
      : `${whom} would be created or opted in`;
  const cause =
    guard === 'delete' ? causes[held.by] : 'often a column or a condition that changed its meaning';
  return {
    reason: `${what}, and this was held: ${whyOf(held, rush, limit)}`,
    fix: `${cause}; see \`crm-mirror plan\`, and if it is right: \`crm-mirror approve ${plan}\``,
  };
}

const causes: Record<Held['by'], string> = {
  standing: 'often an export that lacks people',
  run: 'often an export that lacks people',
  week: 'often an export that lacks more people every day',
  domain: 'often a filter that was put on the export',
  block: 'often a page that got lost on the way',
};

function whyOf(held: Held, rush: Rush, limit: Limit): string {
  const of = rush.guard === 'delete' ? 'people we own' : 'people the CRM wants';
  const most = mostOf(rush, limit);
  const greater = `the greater of ${limit.floor} and ${limit.percent} % of ${rush.of} ${of}`;
  const approved = rush.all - rush.fresh;
  const others = approved > 0 ? `with ${approved} others of this run ` : '';
  switch (held.by) {
    case 'standing':
      return 'an earlier run held them, and nobody has approved it';
    case 'run':
      return `${others}more than ${most} in one run (${greater})`;
    case 'week':
      return `with ${rush.week} of the last seven days more than twice ${most} (${greater})`;
    case 'domain':
      return 'all are of one mail domain, and our people as a whole are not';
    default:
      return `${held.length} of them stand in a row by their CRM ids, just as many as a page has`;
  }
}

/** What a run leaves alone that may not delete. */
export function sayWaiting(people: number): string {
  const whom = people === 1 ? '1 person waits' : `${people} people wait`;
  return `${whom} for the next full run, as approved: it deletes, this one does not`;
}

/** Said to who approves it all the same. */
export function nothingLeft(plan: string): string {
  return `nothing of the plan ${plan} is left: it was done, or nobody wants it any more`;
}

/** Says what could be approved instead. */
export function unknownPlan(
  current: readonly { plan: string }[],
  plan: string,
  own?: string,
): string {
  const now = current.map((one) => one.plan).join(', ');
  const mine = own === undefined ? '' : `, and this run plans ${own}`;
  const fix =
    now === '' ? 'nothing is held now' : `held now: ${now}; \`crm-mirror status\` tells what`;
  return `nothing was held under the plan ${plan}${mine} → ${fix}`;
}
