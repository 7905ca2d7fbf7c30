/**
 * Keeps what could not be sent, so that a receiver that was away hears of a problem that has ended
 * meanwhile. All functions are pure.
 *
 *   the attempt failed                the problem is kept, with the time of the first attempt
 *   it is sent later                  dropped
 *   it ends before it could be sent   reported as: from … to …, solved since; then dropped
 *   there are more than twenty        the oldest are dropped, and so is what is older than a week
 */
import { z } from 'zod';
import { type Trouble, troubles } from '../../config/schema/notices-schema.ts';
import {
  after,
  type Found,
  type Notice,
  type NoticeLines,
  subjectsIn,
} from '../../views/status/trouble-notice.ts';
import { instant } from '../../compose/output/format-values.ts';

/** The schema of what is kept. */
export const unsentSchema = z.array(
  z.object({
    trouble: z.enum(troubles),
    subject: z.string(),
    why: z.string(),
    /** When it was first tried, and when the problem was first found to be over. */
    from: z.number(),
    until: z.number().optional(),
  }),
);
/** The problems of which a receiver could not be told. */
export type Unsent = z.infer<typeof unsentSchema>;

/** What a receiver was told, and what it could not be told. */
export interface Told {
  lines: NoticeLines;
  unsent: Unsent;
}

/** What came of sending one notice. */
export interface Tried {
  notice: Notice;
  /** In milliseconds since the epoch. */
  at: number;
  isSent: boolean;
}

const most = 20;
const keptMs = 7 * 86_400_000;

/** Returns the state after an attempt. */
export function afterAttempt({ lines, unsent }: Told, { notice, at, isSent }: Tried): Told {
  const { trouble, subject, type, reason: why, solved } = notice;
  const before = unsent.find(isAbout(trouble, subject));
  const others = unsent.filter((one) => one !== before && at - one.from <= keptMs);
  if (isSent) return { lines: after(lines, notice, at), unsent: others };
  if (type === 'mirror.recovered') {
    const kept = before && solved ? [{ ...before, until: solved.until }] : (before ?? []);
    return { lines, unsent: others.concat(kept) };
  }
  const from = before?.from ?? at;
  return { lines, unsent: [...others, { trouble, subject, why, from }].slice(-most) };
}

/** Returns the notices about what has ended before it could be sent. */
export function solvedNotices(
  { lines, unsent }: Told,
  found: readonly Found[],
  now: number,
): Notice[] {
  const standing = subjectsIn(found);
  return unsent.flatMap(({ trouble, subject, why, from, until = now }): Notice[] => {
    // What was told before it could not be told again has a notice of its own.
    const isTold = lines[trouble] !== undefined && isIn(lines[trouble], subject);
    if (isTold || standing.has(`${trouble} ${subject}`) || now - from > keptMs) return [];
    const reason = `from ${instant(from)} to ${instant(until)}, solved since: ${why}`;
    const about = { trouble, subject, reason, fix: '' };
    return [{ type: 'mirror.recovered', ...about, solved: { until } }];
  });
}

function isIn(told: NonNullable<NoticeLines[Trouble]>, subject: string): boolean {
  return typeof told === 'object' && subject in told;
}

function isAbout(trouble: Trouble, subject: string): (one: Unsent[number]) => boolean {
  return (one) => one.trouble === trouble && one.subject === subject;
}
