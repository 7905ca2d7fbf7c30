/**
 * What to do about one person and one channel: the consent of people as a three-way merge.
 *
 *   D = what the CRM wants (in, out, — no opinion, gone: left the CRM)
 *   R = recorded: last acknowledged or seen; for an opt-out, by whom (us, platform)
 *   O = observed effective subscription; of somebody who is gone, of our contact alone
 *   *present* = on the platform, whatever the status; *owned* = created or adopted by us
 *   *due* = gone for so long, or so plainly, that it counts; *deletable* = due, and policy deletes:
 *   at once, or `deleteAfter` after the opt-out
 *   *newer* = `resubscribe: newer`, and the will that the CRM states is later than the latest
 *   possible time of the opt-out, and not in the future
 *   *taken back* = our opt-out was not stated by the CRM, or the CRM may take it back by what it
 *   says now (own-opt-outs.ts)
 *
 * The first matching row wins.
 *
 *   #   D     R                 O         contact                  →
 *   1   gone  any               any       absent, or foreign       nothing, silent
 *   2   gone  any               any       present, owned,          delete; where subscribed,
 *                                         deletable                opted out first
 *   3   gone  any               in        present, owned           absent: opt_out, due → opt_out
 *                                                                  else → nothing
 *   4   gone  any               out, —    present, owned           nothing, silent
 *   5   —     any               any       any                      nothing
 *   6   out   any               in        present                  opt_out
 *   7   out   any               out, —    present                  nothing
 *   8   out   any               —         absent                   nothing
 *   9   in    any               any       present, left            conflict
 *  10   in    any               in        present                  nothing
 *  11   in    any               —         absent, was owned        missing: recreate → create
 *                                                                  missing: respect → conflict
 *  12   in    any               —         absent                   create
 *  13   in    —                 —         present                  opt_in
 *  14   in    in                —         present                  conflict: membership taken away
 *  15   in    in                out       present                  conflict: left on the platform
 *  16   in    out by us         out, —    present                  taken back → opt_in
 *                                                                  else → conflict
 *  17   in    out by platform,— out       present                  conflict; newer → opt_in
 *  18   in    out by platform   —         present                  conflict
 */
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { Membership } from '../observe/contact-state.ts';

export interface ChannelStates {
  desired: Subscription | 'gone' | null;
  recorded: Membership | undefined;
  observed: Subscription | undefined;
  /** Whether what the CRM states is newer than the recorded opt-out. */
  newer: boolean;
  /** Whether the CRM takes our opt-out back by what it says now. */
  takenBack: boolean;
}

export interface Person {
  present: boolean;
  /** Recorded as created or adopted by us; for an absent person: was. */
  owned: boolean;
  /** Unsubscribed from all mail, blocked or suppressed. */
  left: boolean;
  /** Left the CRM for long enough, or so plainly, that it counts. */
  due: boolean;
  /** Due, and to be deleted by policy. */
  deletable: boolean;
}

export interface ConsentPolicy {
  absent: 'keep' | 'opt_out';
  resubscribe: 'never' | 'newer';
  missing: 'respect' | 'recreate';
  optIns: 'on' | 'off';
}

export interface Verdict {
  /** The row of the table that decided; 0 = no row, which is reported. */
  row: number;
  do: 'nothing' | 'create' | 'opt_in' | 'opt_out' | 'delete' | 'conflict';
}

/** One row of the table above, or a part of it. */
export interface Rule {
  row: number;
  /** What it asks for, in words. */
  asks: string;
  matches(known: { states: ChannelStates; person: Person; policy: ConsentPolicy }): boolean;
  do: Verdict['do'];
}

type Known = Parameters<Rule['matches']>[0];

const isGone = ({ states }: Known): boolean => states.desired === 'gone';
const isOurs = ({ person }: Known): boolean => person.present && person.owned;
const isIn = ({ states }: Known): boolean => states.observed === 'opt_in';
const isOut = ({ states }: Known): boolean => states.observed === 'opt_out';
const isUnseen = ({ states }: Known): boolean => states.observed === undefined;
const wantsIn = ({ states }: Known): boolean => states.desired === 'opt_in';
const wantsOut = ({ states }: Known): boolean => states.desired === 'opt_out';
const wasIn = ({ states }: Known): boolean => states.recorded?.is === 'opt_in';
const wasOutByUs = ({ states: { recorded } }: Known): boolean =>
  recorded?.is === 'opt_out' && recorded.by === 'us';

/** From the top: what a row asks, the rows above it have left open. */
export const rules: readonly Rule[] = [
  {
    row: 1,
    asks: 'not named by the CRM, or gone there; not on the platform, or not ours',
    matches: (known) => isGone(known) && !isOurs(known),
    do: 'nothing',
  },
  {
    row: 2,
    asks: 'not named by the CRM, or gone there; ours, and due for deletion (policy.deletes)',
    matches: (known) => isGone(known) && known.person.deletable,
    do: 'delete',
  },
  {
    row: 3,
    asks: 'not named by the CRM, or gone there; ours, subscribed, and due to be opted out (policy.absent)',
    matches: (known) =>
      isGone(known) && isIn(known) && known.person.due && known.policy.absent === 'opt_out',
    do: 'opt_out',
  },
  {
    row: 3,
    asks: 'not named by the CRM, or gone there; ours and subscribed, but kept, or not due yet',
    matches: (known) => isGone(known) && isIn(known),
    do: 'nothing',
  },
  {
    row: 4,
    asks: 'not named by the CRM, or gone there; ours, and not subscribed',
    matches: isGone,
    do: 'nothing',
  },
  {
    row: 5,
    asks: 'the CRM has no opinion',
    matches: ({ states }) => states.desired === null,
    do: 'nothing',
  },
  {
    row: 6,
    asks: 'wanted out; subscribed',
    matches: (known) => wantsOut(known) && known.person.present && isIn(known),
    do: 'opt_out',
  },
  {
    row: 7,
    asks: 'wanted out; on the platform, and not subscribed',
    matches: (known) => wantsOut(known) && known.person.present,
    do: 'nothing',
  },
  {
    row: 8,
    asks: 'wanted out; not on the platform',
    matches: (known) => wantsOut(known) && isUnseen(known),
    do: 'nothing',
  },
  {
    row: 9,
    asks: 'wanted in; left all mail, is blocked or suppressed',
    matches: (known) => wantsIn(known) && known.person.present && known.person.left,
    do: 'conflict',
  },
  {
    row: 10,
    asks: 'wanted in; subscribed',
    matches: (known) => wantsIn(known) && known.person.present && isIn(known),
    do: 'nothing',
  },
  {
    row: 11,
    asks: 'wanted in; was ours and vanished (policy.missing: recreate)',
    matches: (known) => isVanished(known) && known.policy.missing === 'recreate',
    do: 'create',
  },
  {
    row: 11,
    asks: 'wanted in; was ours and vanished (policy.missing: respect)',
    matches: (known) => isVanished(known),
    do: 'conflict',
  },
  {
    row: 12,
    asks: 'wanted in; not on the platform',
    matches: (known) => wantsIn(known) && !known.person.present && isUnseen(known),
    do: 'create',
  },
  {
    row: 13,
    asks: 'wanted in; no subscription, and nobody ever said no',
    matches: (known) => isOpen(known) && isUnseen(known) && !known.states.recorded,
    do: 'opt_in',
  },
  {
    row: 14,
    asks: 'wanted in; was subscribed, and that was taken away on the platform',
    matches: (known) => isOpen(known) && isUnseen(known) && wasIn(known),
    do: 'conflict',
  },
  {
    row: 15,
    asks: 'wanted in; was subscribed, and left on the platform',
    matches: (known) => isOpen(known) && isOut(known) && wasIn(known),
    do: 'conflict',
  },
  {
    row: 16,
    asks: 'wanted in; opted out by us, and the CRM takes that back',
    matches: (known) => isOpen(known) && wasOutByUs(known) && known.states.takenBack,
    do: 'opt_in',
  },
  {
    row: 16,
    asks: 'wanted in; opted out by us, and no record that stated it says in',
    matches: (known) => isOpen(known) && wasOutByUs(known),
    do: 'conflict',
  },
  {
    row: 17,
    asks: 'wanted in; stated later than the opt-out can have been made (policy.resubscribe)',
    matches: (known) => isOpen(known) && isOut(known) && known.states.newer,
    do: 'opt_in',
  },
  {
    row: 17,
    asks: 'wanted in; opted out by the person, or before we knew them',
    matches: (known) => isOpen(known) && isOut(known),
    do: 'conflict',
  },
  {
    row: 18,
    asks: 'wanted in; left on the platform, and the subscription is gone since',
    matches: (known) => isOpen(known) && isUnseen(known),
    do: 'conflict',
  },
];

function isVanished(known: Known): boolean {
  const { present, owned } = known.person;
  return wantsIn(known) && !present && owned && isUnseen(known);
}

/** Wanted in, there, and not out of all mail: what is known of the channel decides. */
function isOpen(known: Known): boolean {
  return wantsIn(known) && known.person.present && !known.person.left;
}

/** The first rule that matches; what none of them lists is told, and nothing is done. */
export function decideChannel(
  states: ChannelStates,
  person: Person,
  policy: ConsentPolicy,
): Verdict {
  const known = { states, person, policy };
  const { row, do: verdict } = rules.find(({ matches }) => matches(known)) ?? unlisted;
  return { row, do: verdict };
}

const unlisted: Verdict = { row: 0, do: 'conflict' };
