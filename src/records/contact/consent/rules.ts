/**
 * Decides which action one channel of one person calls for. The first rule that matches wins; the
 * gates (gates.ts) then decide whether the action is allowed. The two lists together are the
 * consent decision of a run. A delete concerns the person, not a channel: see `planDeletes` in
 * decide.ts. `forget` erases on request and uses no rule.
 *
 *   wanted     what the CRM wants: in, out, no opinion, or gone (it does not contain the person, or
 *              marks the person as deleted or out of scope)
 *   recorded   what was last acknowledged or observed; for an opt-out, also who made it
 *   observed   what the platform shows; for a person who is gone, on our contact only
 *   present    on the platform, whatever the status
 *   owned      created or adopted by this mirror
 *   due        gone for long enough, or flagged, so that the absence counts
 *   deletable  due, and the policy deletes: immediately, or `deleteAfter` after the opt-out
 *   unmanaged  gone, although the CRM has a record of the person, which is flagged as deleted or
 *              out of scope; and a contact that is not ours is subscribed
 *   newer      `resubscribe: newer`, and the CRM's statement is later than the opt-out can be
 *   takenBack  our opt-out was not stated by the CRM, or may be withdrawn now (own-opt-outs.ts)
 *   settledIn  an operator resolved this very opt-out as an opt-in (own-opt-outs.ts)
 */
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { Membership } from '../observe/contact-state.ts';
import type { DesiredSubscription } from '../observe/consent-time.ts';

/** The input of the rules: one channel of one person. */
export interface ChannelFacts extends PersonStatus {
  wanted: DesiredSubscription;
  recorded: Membership | undefined;
  observed: Subscription | undefined;
  /** Whether one of several contacts with this address is subscribed. */
  someIn: boolean;
  newer: boolean;
  takenBack: boolean;
  settledIn: boolean;
  unmanaged: 'deleted' | 'outOfScope' | undefined;
  policy: ConsentPolicy;
}

export interface PersonStatus {
  present: boolean;
  /** For an absent person: whether the contact was ours. */
  owned: boolean;
  /** Whether the person is unsubscribed from all mail, blocked or suppressed. */
  left: boolean;
  due: boolean;
  deletable: boolean;
}

export interface ConsentPolicy {
  absent: 'keep' | 'opt_out';
  resubscribe: 'never' | 'newer';
  missing: 'respect' | 'recreate';
  optIns: 'on' | 'off';
}

export type Action = 'nothing' | 'create' | 'opt_in' | 'opt_out' | 'delete' | 'conflict';

/** Why an opt-out or delete is made: the CRM states it, lacks the person, or has a new address. */
export type Cause = 'stated' | 'absence' | 'address';

export interface Verdict {
  action: Action;
  cause: Cause;
  by: string;
}

export interface Rule {
  id: string;
  /** States in words when the rule matches, provided that no earlier rule does. */
  asks: string;
  /** The conditions, all of which must hold. */
  when: readonly Condition[];
  action: Action;
  /** Default: stated. */
  cause?: Cause;
  /** Whether somebody's word bars the channel; see `isBar` in gates.ts. */
  bars?: true;
}

type Condition = (facts: ChannelFacts) => boolean;

const gone: Condition = ({ wanted }) => wanted === 'gone';
const wantedIn: Condition = ({ wanted }) => wanted === 'opt_in';
const wantedOut: Condition = ({ wanted }) => wanted === 'opt_out';
const noOpinion: Condition = ({ wanted }) => wanted === null;
const isPresent: Condition = ({ present }) => present;
const isAbsent: Condition = ({ present }) => !present;
const wasOurs: Condition = ({ owned }) => owned;
const isNotOurs: Condition = ({ present, owned }) => !present || !owned;
const hasLeft: Condition = ({ left }) => left;
const isDeletable: Condition = ({ deletable }) => deletable;
const isDue: Condition = ({ due }) => due;
const showsIn: Condition = ({ observed }) => observed === 'opt_in';
const isUnmanaged =
  (as: 'deleted' | 'outOfScope'): Condition =>
  ({ unmanaged }) =>
    unmanaged === as;
/** Nothing is left to do about a contact of ours with the same address. */
const isOursDone: Condition = ({ observed, deletable }) => observed !== 'opt_in' && !deletable;
const showsOut: Condition = ({ observed }) => observed === 'opt_out';
const showsNothing: Condition = ({ observed }) => observed === undefined;
const oneShowsIn: Condition = ({ someIn }) => someIn;
const wasNothing: Condition = ({ recorded }) => recorded === undefined;
const wasIn: Condition = ({ recorded }) => recorded?.is === 'opt_in';
const wasOutByUs: Condition = ({ recorded }) => recorded?.is === 'opt_out' && recorded.by === 'us';
const isTakenBack: Condition = ({ takenBack }) => takenBack;
const isUndone: Condition = ({ recorded, takenBack }) =>
  recorded?.is === 'opt_out' && recorded.undone !== undefined && !takenBack;
const isNewer: Condition = ({ newer }) => newer;
const optsOutAbsent: Condition = ({ policy }) => policy.absent === 'opt_out';
const recreatesMissing: Condition = ({ policy }) => policy.missing === 'recreate';

/** Wanted in, on the platform, and in all mail, so that the channel itself decides. */
const open: Condition = ({ wanted, present, left }) => wanted === 'opt_in' && present && !left;

export const rules: readonly Rule[] = [
  {
    id: 'deleted-unmanaged',
    asks: 'flagged as deleted; subscribed, and not ours',
    when: [gone, isUnmanaged('deleted'), isOursDone],
    action: 'conflict',
  },
  {
    id: 'out-of-scope-unmanaged',
    asks: 'out of scope; subscribed, and not ours',
    when: [gone, isUnmanaged('outOfScope'), isOursDone],
    action: 'conflict',
  },
  {
    id: 'gone-not-ours',
    asks: 'missing from the CRM, flagged as deleted, or out of scope; not on the platform, or not ours',
    when: [gone, isNotOurs],
    action: 'nothing',
  },
  {
    id: 'gone-deletable',
    asks: 'missing from the CRM, flagged as deleted, or out of scope; ours, and due for deletion (policy.deletes)',
    when: [gone, isDeletable],
    action: 'delete',
    cause: 'absence',
  },
  {
    id: 'gone-due',
    asks: 'missing from the CRM, flagged as deleted, or out of scope; ours, subscribed, and due to be opted out (policy.absent)',
    when: [gone, showsIn, isDue, optsOutAbsent],
    action: 'opt_out',
    cause: 'absence',
  },
  {
    id: 'gone-kept',
    asks: 'missing from the CRM, flagged as deleted, or out of scope; ours and subscribed, but not due yet, or kept by policy.absent',
    when: [gone, showsIn],
    action: 'nothing',
  },
  {
    id: 'gone-unsubscribed',
    asks: 'missing from the CRM, flagged as deleted, or out of scope; ours, and not subscribed',
    when: [gone],
    action: 'nothing',
  },
  {
    id: 'no-opinion',
    asks: 'the CRM has no opinion',
    when: [noOpinion],
    action: 'nothing',
  },
  {
    id: 'stated-out',
    asks: 'opt-out wanted; subscribed',
    when: [wantedOut, isPresent, showsIn],
    action: 'opt_out',
  },
  {
    id: 'stated-out-one-in',
    asks: 'opt-out wanted; one of several contacts with this address is subscribed',
    when: [wantedOut, isPresent, oneShowsIn],
    action: 'opt_out',
  },
  {
    id: 'stated-out-already',
    asks: 'opt-out wanted; on the platform, and not subscribed',
    when: [wantedOut, isPresent],
    action: 'nothing',
  },
  {
    id: 'stated-out-absent',
    asks: 'opt-out wanted; not on the platform',
    when: [wantedOut, showsNothing],
    action: 'nothing',
  },
  {
    id: 'left-all-mail',
    asks: 'opt-in wanted; unsubscribed from all mail, blocked or suppressed',
    when: [wantedIn, isPresent, hasLeft],
    action: 'conflict',
    bars: true,
  },
  {
    id: 'already-in',
    asks: 'opt-in wanted; subscribed',
    when: [wantedIn, isPresent, showsIn],
    action: 'nothing',
  },
  {
    id: 'undone',
    asks: 'opt-in wanted; `undo` took our opt-in back, and the CRM has stated nothing else since',
    when: [wantedIn, isUndone],
    action: 'conflict',
    bars: true,
  },
  {
    id: 'vanished-recreate',
    asks: 'opt-in wanted; was ours and vanished (policy.missing: recreate)',
    when: [wantedIn, isAbsent, wasOurs, showsNothing, recreatesMissing],
    action: 'create',
  },
  {
    id: 'vanished-respect',
    asks: 'opt-in wanted; was ours and vanished (policy.missing: respect)',
    when: [wantedIn, isAbsent, wasOurs, showsNothing],
    action: 'conflict',
  },
  {
    id: 'not-on-platform',
    asks: 'opt-in wanted; not on the platform',
    when: [wantedIn, isAbsent, showsNothing],
    action: 'create',
  },
  {
    id: 'never-refused',
    asks: 'opt-in wanted; on the platform, and no subscription or opt-out is known',
    when: [open, showsNothing, wasNothing],
    action: 'opt_in',
  },
  {
    id: 'membership-removed',
    asks: 'opt-in wanted; was subscribed, and the subscription was removed on the platform',
    when: [open, showsNothing, wasIn],
    action: 'conflict',
  },
  {
    id: 'left-channel',
    asks: 'opt-in wanted; was subscribed, and unsubscribed on the platform',
    when: [open, showsOut, wasIn],
    action: 'conflict',
    bars: true,
  },
  {
    id: 'our-opt-out-taken-back',
    asks: 'opt-in wanted; opted out by us, and the CRM says in now',
    when: [open, wasOutByUs, isTakenBack],
    action: 'opt_in',
  },
  {
    id: 'our-opt-out-stands',
    asks: 'opt-in wanted; opted out by us, and no CRM record that stated the opt-out now states an opt-in',
    when: [open, wasOutByUs],
    action: 'conflict',
    bars: true,
  },
  {
    id: 'settled-in',
    asks: 'opt-in wanted; opted out, and an operator resolved this very opt-out as an opt-in (`resolve --in`)',
    when: [open, showsOut, ({ settledIn }) => settledIn],
    action: 'opt_in',
  },
  {
    id: 'stated-later',
    asks: 'opt-in wanted; stated later than the opt-out can have been made (policy.resubscribe: newer)',
    when: [open, showsOut, isNewer],
    action: 'opt_in',
  },
  {
    id: 'left-or-unknown',
    asks: 'opt-in wanted; opted out by the person, or before the mirror first saw the person',
    when: [open, showsOut],
    action: 'conflict',
    bars: true,
  },
  {
    id: 'left-then-removed',
    asks: 'opt-in wanted; unsubscribed on the platform, which no longer shows the channel',
    when: [open, showsNothing],
    action: 'conflict',
    bars: true,
  },
];

/** Returns what the first matching rule calls for. A case that no rule lists is a conflict. */
export function decideChannel(facts: ChannelFacts): Verdict {
  const noRule = { action: 'conflict', cause: 'stated', id: 'no-rule' } as const;
  const { action, cause = 'stated', id } = ruleFor(facts) ?? noRule;
  return { action, cause, by: id };
}

export function ruleFor(facts: ChannelFacts): Rule | undefined {
  return rules.find(({ when }) => when.every((holds) => holds(facts)));
}
