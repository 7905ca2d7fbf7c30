/** Lists the opt-outs that people made on the platform, with their times if known. */
import { all, type Entry } from '../../../domain/do-not-contact.ts';
import type { ReturnCause } from '../../../domain/opt-out-report.ts';
import type { DesiredRow, ObservedRow, RecordedRow, RecordedBody } from '../../../domain/record.ts';
import { mayBeDefault, type PlatformFacts } from '../../platform-facts.ts';
import type { ConsentPolicy } from './rules.ts';
import { isTheirs } from '../observe/observed-contact.ts';
import {
  type ContactStates,
  decodeContact,
  type Bracket,
  type Membership,
  type ObservedContact,
  type RecordedContact,
} from '../observe/contact-state.ts';

/**
 * An opt-out that the platform shows and that we did not send, made after `after` (null if unknown)
 * and not later than `by`, in milliseconds since the epoch. A doubtful one may be the default of a
 * channel, or the result of a request of ours without a response. It is not reported to the source.
 */
export interface PlatformOptOut {
  channel: string;
  cause: ReturnCause | 'doubtful';
  after: number | null;
  by: number;
}

export type PlatformOptOuts = ReturnType<typeof outsOf>;

/** Returns what is reported to the CRM: opt-outs from known channels, and from all mail. */
export function outsOf(
  channels: readonly string[],
  { resubscribe }: { resubscribe: ConsentPolicy['resubscribe'] },
) {
  const isKept = ({ channel }: PlatformOptOut): boolean =>
    channel === all || channels.includes(channel);
  return {
    recorded: (row: RecordedBody, facts: PlatformFacts) =>
      optOutsOf(decodeContact.recorded(row), facts).filter(isKept),
    /** Returns the opt-out that a do-not-contact entry stands for, if it is about one. */
    remembered(entry: Entry, facts: PlatformFacts): PlatformOptOut | undefined {
      const out = optOutOf(entry, facts);
      return out && isKept(out) ? out : undefined;
    },
    /** Returns whether the platform shows the person subscribed again. */
    isBack(rows: readonly ObservedRow[], { channel }: Pick<PlatformOptOut, 'channel'>): boolean {
      const shown = rows.map((row) => decodeContact.observed(row).value);
      const is = shown.map((one) => (channel === all ? !one.left : one.channels[channel]));
      return is.length > 0 && is.every((one) => one === true || one === 'opt_in');
    },
    /** Returns whether a CRM record states the opt-out, which then needs no report. */
    saysSo(row: DesiredRow, { channel }: Pick<PlatformOptOut, 'channel'>): boolean {
      const wishes = decodeContact.desired(row).value.channels;
      const about = channel === all ? channels : [channel];
      return about.every((id) => wishes[id] === 'opt_out');
    },
    /** Returns whether a CRM record states something newer that the policy lets count. */
    isNewer(
      row: DesiredRow,
      { by }: Pick<PlatformOptOut, 'by'>,
      recorded: RecordedRow | undefined,
    ): boolean {
      const { consentAt, early } = decodeContact.desired(row).value;
      if (resubscribe !== 'newer' || consentAt === null || early) return false;
      const known = recorded && decodeContact.recorded(recorded).value;
      return consentAt > by && !known?.early?.includes(consentAt);
    },
    spelling: (row: DesiredRow) => decodeContact.desired(row).value.spelling,
  };
}

/** Returns when the person left all mail, since last observed receiving it; undefined: did not. */
export function leftSince(
  { observed, recorded: row, latest: by }: ContactStates,
  recorded: RecordedContact | undefined,
  shown: readonly ObservedContact[],
): Bracket | undefined {
  if (observed.length === 0) return recorded?.left;
  if (!shown.some(({ left }) => left)) return undefined;
  if (recorded?.left) return recorded.left;
  const known = recorded?.contacts ?? [];
  const wasIn = known.length > 0 && !known.some(({ left }) => left);
  return { after: wasIn ? (row?.seenAt ?? null) : null, by };
}

/** Returns the opt-out that a list entry stands for, if it is about unsubscribing. */
export function optOutOf(
  { part, cause, through, after, by }: Entry,
  facts: PlatformFacts,
): PlatformOptOut | undefined {
  // An entry found by the CRM id belongs to another address and is reported there.
  if (through === 'id' || cause === 'vanished' || cause === 'erasure') return undefined;
  // The CRM is told what people did, not what an operator decided.
  if (cause === 'operator') return undefined;
  const isDefault = cause === 'opt_out' && after === null && mayBeDefault(facts, part);
  return { channel: part, cause: isDefault ? 'doubtful' : cause, after, by };
}

/** Returns whether the opt-out may be of a request without a response, or a default. */
export function isDoubtful(
  membership: Membership | undefined,
  channel: string,
  facts: PlatformFacts,
): boolean {
  if (membership?.is !== 'opt_out' || membership.by !== 'platform') return false;
  const wasIn = membership.made !== undefined && membership.made.after !== null;
  return membership.doubtful === true || (!wasIn && mayBeDefault(facts, channel));
}

/** Returns whether no opt-out from the channel is certain to be a person's, and one may be. */
export function isUnsure(
  channel: string,
  outs: readonly (Membership | undefined)[],
  { entries, facts }: ContactStates,
): boolean {
  const theirs = outs.filter((one) => isTheirs(one));
  const listed = entries.filter(
    ({ part, cause }) => (part === channel || part === all) && cause !== 'vanished',
  );
  const isVague = ({ cause, after, part }: Entry): boolean =>
    cause === 'doubtful' || (cause === 'opt_out' && after === null && mayBeDefault(facts, part));
  const doubts = [
    ...theirs.map((one) => isDoubtful(one, channel, facts)),
    ...listed.map((entry) => isVague(entry)),
  ];
  return doubts.length > 0 && doubts.every(Boolean);
}

/** Returns the recorded opt-outs, all mail last. One without a time was made by `seenAt`. */
export function optOutsOf(
  { value, seenAt }: { value: RecordedContact; seenAt: number },
  facts: PlatformFacts,
): PlatformOptOut[] {
  const { channels, contacts, left } = value;
  const undated = { after: null, by: seenAt };
  const outs = Object.entries(channels).flatMap(([channel, membership]): PlatformOptOut[] => {
    const { is, by, made } = membership;
    if (is !== 'opt_out' || by !== 'platform') return [];
    const cause = isDoubtful(membership, channel, facts) ? 'doubtful' : 'opt_out';
    return [{ channel, cause, ...(made ?? undated) }];
  });
  const gone = contacts.find((contact) => contact.left);
  if (!gone) return outs;
  const [cause = 'all_mail'] = gone.causes ?? [];
  return [...outs, { channel: '*', cause, ...(left ?? undated) }];
}
