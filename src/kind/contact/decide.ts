/**
 * What to do about one person and one channel: the consent of people as a three-way merge.
 *
 *   D = what the CRM wants (in, out, — no opinion, gone: left the CRM)
 *   R = recorded: last acknowledged or seen; for an opt-out, by whom (us, platform)
 *   O = observed effective subscription
 *   *present* = on the platform, whatever the status; *owned* = created or adopted by us
 *   *newer* = `resubscribe: newer`, and the will that the CRM states is later than the latest
 *   possible time of the opt-out, and not in the future
 *
 * The first matching row wins.
 *
 *   #   D     R                 O         contact                  →
 *   1   gone  any               any       absent, or foreign       nothing, silent
 *   2   gone  any               any       present, owned, due      delete
 *   3   gone  any               in        present, owned           absent: opt_out → opt_out
 *                                                                absent: keep → nothing
 *   4   gone  any               out, —    present, owned           nothing, silent
 *   5   —     any               any       any                      nothing
 *   6   out   any               in        present                  opt_out
 *   7   out   any               out, —    present                  nothing
 *   8   out   any               —         absent                   nothing
 *   9   in    any               any       present, left            conflict
 *  10   in    any               in        present                  nothing
 *  11   in    any               —         absent, was owned        missing: recreate → create
 *                                                                missing: respect → conflict
 *  12   in    any               —         absent                   create
 *  13   in    —, out by us      —         present                  opt_in
 *  14   in    in                —         present                  conflict: membership taken away
 *  15   in    in                out       present                  conflict: left on the platform
 *  16   in    out by us         out       present                  opt_in: it takes its own back
 *  17   in    out by platform,— out       present                  conflict; newer → opt_in
 *  18   in    out by platform   —         present                  conflict
 */
import type { Subscription } from '../../platform/request.ts';
import type { Membership } from './record.ts';

export interface ChannelStates {
  desired: Subscription | 'gone' | null;
  recorded: Membership | undefined;
  observed: Subscription | undefined;
  /** Whether what the CRM states is newer than the recorded opt-out. */
  newer: boolean;
}

export interface Person {
  present: boolean;
  /** Recorded as created or adopted by us; for an absent person: was. */
  owned: boolean;
  /** Unsubscribed from all mail, blocked or suppressed. */
  left: boolean;
  /** Left the CRM for long enough to be deleted by policy. */
  due: boolean;
}

export interface ConsentPolicy {
  absent: 'keep' | 'opt_out';
  resubscribe: 'never' | 'newer';
  missing: 'respect' | 'recreate';
}

export interface Verdict {
  /** The row of the table that decided; 0 = no row, which is reported. */
  row: number;
  do: 'nothing' | 'create' | 'opt_in' | 'opt_out' | 'delete' | 'conflict';
}

/** The table above, from the top. */
export function decideChannel(
  states: ChannelStates,
  person: Person,
  policy: ConsentPolicy,
): Verdict {
  const { desired } = states;
  if (desired === 'gone') return decideGone(states, person, policy);
  if (desired === null) return { row: 5, do: 'nothing' };
  if (desired === 'opt_out') return decideOut(states, person);
  if (!person.present) return decideMissing(states, person, policy);
  if (person.left) return { row: 9, do: 'conflict' };
  if (states.observed === 'opt_in') return { row: 10, do: 'nothing' };
  return states.observed === 'opt_out' ? decideLeft(states) : decideUnseen(states);
}

function decideGone(states: ChannelStates, person: Person, policy: ConsentPolicy): Verdict {
  if (!person.present || !person.owned) return { row: 1, do: 'nothing' };
  if (person.due) return { row: 2, do: 'delete' };
  if (states.observed !== 'opt_in') return { row: 4, do: 'nothing' };
  return { row: 3, do: policy.absent === 'opt_out' ? 'opt_out' : 'nothing' };
}

function decideOut(states: ChannelStates, person: Person): Verdict {
  if (!person.present)
    return states.observed ? { row: 0, do: 'conflict' } : { row: 8, do: 'nothing' };
  return states.observed === 'opt_in' ? { row: 6, do: 'opt_out' } : { row: 7, do: 'nothing' };
}

function decideMissing(states: ChannelStates, person: Person, policy: ConsentPolicy): Verdict {
  if (states.observed) return { row: 0, do: 'conflict' };
  if (!person.owned) return { row: 12, do: 'create' };
  return { row: 11, do: policy.missing === 'recreate' ? 'create' : 'conflict' };
}

function decideLeft({ recorded, newer }: ChannelStates): Verdict {
  if (recorded?.is === 'opt_in') return { row: 15, do: 'conflict' };
  if (recorded?.by === 'us') return { row: 16, do: 'opt_in' };
  return { row: 17, do: newer ? 'opt_in' : 'conflict' };
}

function decideUnseen({ recorded }: ChannelStates): Verdict {
  if (recorded?.is === 'opt_in') return { row: 14, do: 'conflict' };
  return recorded?.by === 'platform' ? { row: 18, do: 'conflict' } : { row: 13, do: 'opt_in' };
}

/** What was seen of one person, and when. */
export interface Sight {
  present: boolean;
  /** When the person was last seen before; null: never. */
  before: number | null;
  /** By when all this was seen. */
  by: number;
  /** Whether the contact is another than it was, or was changed in any way since then. */
  changed: boolean;
}

/**
 * What R becomes by what was seen, before anything is sent. An opt-out or a lost membership that no
 * acknowledged request of ours explains was made by the platform, whatever the CRM wants, and at
 * the latest when it was seen: again and again, while the contact changes.
 *
 *   R                O     present  →  R
 *   any              in    yes         in
 *   out by us        out   yes         out by us
 *   out by platform  out   yes         unchanged; made by now, if the contact was changed
 *   else             out   yes         out by platform, made since it was last seen in
 *   in               —     yes         the same   (membership was taken away)
 *   —, out           —     yes         unchanged
 *   any              —     no          unchanged  (vanished; nothing is known to have moved)
 */
export function seen(
  recorded: Membership | undefined,
  observed: Subscription | undefined,
  { present, before, by, changed }: Sight,
): Membership | undefined {
  if (!present) return recorded;
  if (observed === 'opt_in') return { is: 'opt_in', by: 'platform' };
  if (observed === undefined && recorded?.is !== 'opt_in') return recorded;
  if (recorded?.is !== 'opt_out') {
    const after = recorded ? before : null;
    return { is: 'opt_out', by: 'platform', made: { after, by } };
  }
  if (recorded.by === 'us' || !changed) return recorded;
  return { ...recorded, made: { after: recorded.made?.after ?? null, by } };
}

/** Row 17: whether the CRM's word is younger than an opt-out can be, and no slip of a clock. */
export function isNewer(
  consentAt: number | null,
  recorded: Membership | undefined,
  now: number,
): boolean {
  const made = recorded?.is === 'opt_out' ? recorded.made : undefined;
  return consentAt !== null && made !== undefined && consentAt > made.by && consentAt <= now;
}
