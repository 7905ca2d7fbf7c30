/**
 * Decides which notices about a mirror to send. The problems come from attention.ts; each code
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
import { type Trouble, troubles } from '../../config/schema/notices-schema.ts';
import { guardNames, type GuardClass } from '../../domain/guard-classes.ts';
import { type Attention, attentionOf, causes, isExplained } from './attention.ts';
import type { CurrentStatus } from './status-document.ts';

/** The plans that await approval, as far as it matters whether to report them again. */
interface Withheld {
  plans: string[];
  /** The number of people or templates of which changes are withheld. */
  size: number;
  classes: string[];
}

export interface Notice {
  type: `mirror.${Trouble | 'recovered'}`;
  trouble: Trouble;
  /** What began or ended within the trouble: an attention code, with what it is about. */
  subject: string;
  reason: string;
  fix: string;
  withheld?: Withheld | undefined;
  /** Set if the trouble ended, at that time, before it could be reported. */
  solved?: { until: number };
}

interface Line {
  why: string;
  at: number;
  withheld?: Withheld | undefined;
}

/** The reported troubles that have not ended: for each subject what was told, and when. */
export type NoticeLines = Partial<Record<Trouble, Record<string, Line>>>;

/** A line of the status, with what distinguishes it from others of the same code. */
export interface Found extends Attention {
  channel?: string;
  /** Whether an outage, which is told by itself, made the run fail. */
  isExplained?: boolean;
  /** What the plan withholds that the line is about. */
  plan?: { hash: string; undecided: Readonly<Record<GuardClass, number>> };
}

const dayMs = 86_400_000;

/** Returns the title of a notice: what began, or what works again. */
export function titleOfNotice(notice: { type: Notice['type']; subject: string }): string {
  const { type, subject } = notice;
  const [, begins, ends] = causes[subject.split(' ')[0] ?? ''] ?? [];
  return (type === 'mirror.recovered' ? ends : begins) ?? subject;
}

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
    ...attentionOf(without).map((one) => ({
      ...one,
      isExplained: Boolean(one.lastAt) && isExplained(standing.outages, one.lastAt ?? ''),
    })),
  ];
}

/** Returns the notices that are due. `now` is in milliseconds since the epoch. */
export function noticesOf(before: NoticeLines, found: readonly Found[], now: number): Notice[] {
  const standing = groupsOf(found);
  return troubles.flatMap((trouble): Notice[] => {
    const stands = standing.get(trouble) ?? new Map<string, Group>();
    const was = before[trouble] ?? {};
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
  const { [subject]: _, ...rest } = was ?? {};
  const lines =
    type === 'mirror.recovered'
      ? rest
      : { ...rest, [subject]: { why, at, ...(what && { withheld: what }) } };
  return Object.keys(lines).length === 0 ? others : { ...others, [trouble]: lines };
}

/** Returns what stands, as `trouble subject`. */
export function subjectsIn(found: readonly Found[]): Set<string> {
  const all = [...groupsOf(found)];
  return new Set(all.flatMap(([trouble, of]) => [...of.keys()].map((one) => `${trouble} ${one}`)));
}

type Group = [Found, ...Found[]];

function groupsOf(found: readonly Found[]): Map<Trouble, Map<string, Group>> {
  const groups = new Map<Trouble, Map<string, Group>>();
  const isQuarantined = found.some(({ code }) => code === 'quarantined');
  for (const one of found) {
    const [trouble = null] = causes[one.code] ?? [];
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

function lineDue(was: Line | undefined, all: Group, at: number): Found | undefined {
  const [first, ...more] = all.filter((one) => !one.isExplained);
  if (!first) return undefined;
  const group: Group = [first, ...more];
  const daily = group.find(({ isDaily }) => isDaily);
  if (was === undefined) return daily ?? group[0];
  // News is another class of changes, or over a tenth more than was told.
  const [before, now] = [was.withheld, withheldIn(group)];
  const isOther = now?.classes.some((one) => !before?.classes.includes(one));
  const isMore = before && now && (isOther || (now.size - before.size) * 10 > before.size);
  const news = group.filter(({ plan }) => isMore && plan && !before.plans.includes(plan.hash));
  // A clock that was ahead may have stored a time that is yet to come.
  const isOld = Math.abs(at - was.at) >= dayMs;
  return news.find(({ isDaily }) => isDaily) ?? news[0] ?? (isOld ? daily : undefined);
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
