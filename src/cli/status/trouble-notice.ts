/**
 * Decides which notices about a mirror to send. The problems come from attention-list.ts; each code
 * of them is reported by itself. All functions are pure.
 *
 *   told before   found now                                              notice
 *   no            yes                                                    it begins
 *   yes           yes, the same                                          none
 *   yes           yes, about another channel                             it begins
 *   yes           yes, a new plan withholds another class of changes     it begins again
 *   yes           yes, a new plan withholds over a tenth more than told  it begins again
 *   yes           yes, another new plan                                  none
 *   a day ago     yes, withheld opt-outs: they pass when their time ends it begins again
 *   yes           no                                                     it is over
 */
import { z } from 'zod';
import { type Trouble, troubles } from '../../config/schema/notices-schema.ts';
import { guardNames, type GuardClass } from '../../domain/guard-classes.ts';
import { type Attention, attentionOf } from './attention-list.ts';
import type { CurrentStatus } from './mirror-status.ts';

/** The plans that await approval, as far as it matters whether to report them again. */
const withheld = z.object({
  plans: z.array(z.string()),
  /** The number of people or templates of which changes are withheld. */
  size: z.number(),
  /** The guard classes of these changes. */
  classes: z.array(z.string()),
});

type Withheld = z.infer<typeof withheld>;

/** A notice. */
export interface Notice {
  type: `mirror.${Trouble | 'recovered'}`;
  /** The trouble that began or ended. */
  trouble: Trouble;
  /** What began or ended within the trouble: an attention code, with what it is about. */
  subject: string;
  reason: string;
  fix: string;
  withheld?: Withheld | undefined;
  /** Set if the trouble ended, at that time, before it could be reported. */
  solved?: { until: number };
}

const line = z.object({ why: z.string(), at: z.number(), withheld: withheld.optional() });
type Line = z.infer<typeof line>;

/**
 * The reported troubles that have not ended: for each subject the reason as it was reported, and
 * the time. Earlier versions stored one reason for each trouble, at first without a time.
 */
export const told = z.partialRecord(
  z.enum(troubles),
  z.union([z.string(), line, z.record(z.string(), line)]),
);
/** The reported troubles. */
export type NoticeLines = z.infer<typeof told>;

/** A line of the status, with what distinguishes it from others of the same code. */
export interface Found extends Attention {
  /** The channel that the line is about. */
  channel?: string;
  /** What the plan withholds that the line is about. */
  plan?: { hash: string; undecided: Readonly<Record<GuardClass, number>> };
}

const dayMs = 86_400_000;

/**
 * The trouble for each attention code, so that a new code cannot be forgotten. `null` is not sent:
 * it resolves itself, somebody chose it, or another trouble reports it.
 */
const troubleOf: Readonly<Record<Attention['code'], Trouble | null>> = {
  held: 'held',
  opt_outs_unreadable: 'unreadable',
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
  redis_away: 'failed',
  redis_evicts: 'failed',
  snapshot_unreadable: 'failed',
  alert_refused: 'alert',
  alert_run_time: 'alert',
  alert_deviation: 'alert',
  no_snapshot: null,
  never_proven: null,
  run_interrupted: null,
  outcomes_unknown: null,
  paused: null,
  restored: null,
  unmanaged: null,
};

/** Returns the lines of a status, each with what distinguishes it. */
export function foundIn(standing: CurrentStatus): Found[] {
  const { held, channelsLost } = standing;
  const without = { ...standing, held: [], channelsLost: [] };
  const linesOf = (part: Partial<CurrentStatus>, of: Attention['code']): Attention[] =>
    attentionOf({ ...without, ...part }).filter(({ code }) => code === of);
  return [
    ...channelsLost.flatMap((one) =>
      linesOf({ channelsLost: [one] }, 'channel_lost').map((is) => ({
        ...is,
        channel: one.channel,
      })),
    ),
    ...held.flatMap((one) => {
      const plan = { hash: one.plan, undecided: one.undecided };
      return linesOf({ held: [one] }, 'held').map((is) => ({ ...is, plan }));
    }),
    ...attentionOf(without),
  ];
}

/** Returns the notices that are due. `now` is in milliseconds since the epoch. */
export function noticesOf(before: NoticeLines, found: readonly Found[], now: number): Notice[] {
  const standing = groupsOf(found);
  return troubles.flatMap((trouble): Notice[] => {
    const stands = standing.get(trouble) ?? new Map<string, Group>();
    const was = linesOf(before[trouble], stands.keys().next().value ?? trouble);
    const begun = [...stands].flatMap(([subject, group]): Notice[] => {
      const due = lineDue(was[subject], group, now);
      if (!due) return [];
      const { text: reason, fix } = due;
      const is = { trouble, subject, reason, fix, withheld: withheldIn(group) };
      return [{ type: `mirror.${trouble}`, ...is }];
    });
    const over = Object.entries(was).flatMap(([subject, { why }]): Notice[] => {
      if (stands.has(subject)) return [];
      const is = { trouble, subject, reason: `no longer: ${why}`, fix: '' };
      return [{ type: 'mirror.recovered', ...is }];
    });
    return [...begun, ...over];
  });
}

/** Returns the reported troubles after a notice was sent. */
export function after(
  before: NoticeLines,
  { type, trouble, subject, reason: why, withheld: what }: Notice,
  at: number,
): NoticeLines {
  const { [trouble]: was, ...others } = before;
  const { [subject]: _, ...rest } = linesOf(was, subject);
  const lines =
    type === 'mirror.recovered'
      ? rest
      : { ...rest, [subject]: { why, at, ...(what && { withheld: what }) } };
  return Object.keys(lines).length === 0 ? others : { ...others, [trouble]: lines };
}

/** Returns what was told of a trouble; `subject` is that of a line of an earlier version. */
function linesOf(was: NoticeLines[Trouble], subject: string): Record<string, Line> {
  if (was === undefined) return {};
  if (typeof was === 'string') return { [subject]: { why: was, at: 0 } };
  return isLine(was) ? { [subject]: was } : was;
}

function isLine(was: Line | Record<string, Line>): was is Line {
  return typeof was['why'] === 'string';
}

/** Returns what stands, as `trouble subject`. */
export function subjectsIn(found: readonly Found[]): Set<string> {
  const all = [...groupsOf(found)];
  return new Set(all.flatMap(([trouble, of]) => [...of.keys()].map((one) => `${trouble} ${one}`)));
}

/** The lines about one subject, the most serious first. */
type Group = [Found, ...Found[]];

function groupsOf(found: readonly Found[]): Map<Trouble, Map<string, Group>> {
  const groups = new Map<Trouble, Map<string, Group>>();
  const isQuarantined = found.some(({ code }) => code === 'quarantined');
  for (const one of found) {
    const trouble = troubleOf[one.code];
    // While a mirror is quarantined, every run fails for that reason.
    if (trouble === null || (one.code === 'run_failed' && isQuarantined)) continue;
    const subject = one.channel === undefined ? one.code : `${one.code} ${one.channel}`;
    const subjects = groups.get(trouble) ?? new Map<string, Group>();
    const group = subjects.get(subject);
    if (group) group.push(one);
    else subjects.set(subject, [one]);
    groups.set(trouble, subjects);
  }
  return groups;
}

/** Returns the line to report of a subject, or undefined if nothing new is to be told. */
function lineDue(was: Line | undefined, group: Group, now: number): Found | undefined {
  const daily = group.find(({ isDaily }) => isDaily);
  if (was === undefined) return daily ?? group[0];
  const { plans = [] } = was.withheld ?? {};
  const isMore = exceeds(was.withheld, withheldIn(group));
  const news = group.filter(({ plan }) => isMore && plan && !plans.includes(plan.hash));
  // A clock that was ahead may have stored a time that is yet to come.
  const isOld = Math.abs(now - was.at) >= dayMs;
  return news.find(({ isDaily }) => isDaily) ?? news[0] ?? (isOld ? daily : undefined);
}

/** Returns whether plans withhold another class of changes, or over a tenth more than `was`. */
function exceeds(was: Withheld | undefined, is: Withheld | undefined): boolean {
  if (!was || !is) return false;
  const isOther = is.classes.some((one) => !was.classes.includes(one));
  return isOther || (is.size - was.size) * 10 > was.size;
}

function withheldIn(group: Group): Withheld | undefined {
  const plans = group.flatMap(({ plan }) => plan ?? []);
  if (plans.length === 0) return undefined;
  const classes = guardNames.filter((guard) => plans.some((one) => one.undecided[guard] > 0));
  const size = plans.reduce(
    (sum, { undecided }) => guardNames.reduce((all, guard) => all + undecided[guard], sum),
    0,
  );
  return { plans: plans.map(({ hash }) => hash), size, classes };
}
