/**
 * The forms of a contact: desired, observed and recorded, as staging and the snapshot hold them.
 * The fields of observed and recorded contacts are in the order of canonical JSON, so that nothing
 * needs to be sorted.
 */
import { z } from 'zod';
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { Change } from '../../../domain/change.ts';
import { type Entry, settlement } from '../../../domain/do-not-contact.ts';
import {
  type Absence,
  canonicalJson,
  type DesiredRow,
  type Key,
  type ObservedRow,
  type RecordedRow,
} from '../../../domain/record.ts';
import { type Decoded, decoder } from '../../../domain/stored-json.ts';
import type { PlatformFacts } from '../../platform-facts.ts';

const subscription = z.enum(['opt_in', 'opt_out']);

/** What one CRM record wants: its presence, and a subscription by channel, null for any. */
export const desiredBody = z.object({
  presence: z.enum(['present', 'flagged', 'outside']),
  channels: z.record(z.string(), subscription.nullable()),
  /** The channels from which a value that cannot be read may opt out. */
  unread: z.array(z.string()).optional(),
  /** The fields that state the opt-out from a channel. */
  outBy: z.record(z.string(), z.string()).optional(),
  /** The CRM's spelling of the address, trimmed and in lower case, if the key is another one. */
  spelling: z.string().optional(),
  /** When the person last stated consent in the CRM, in epoch milliseconds; null if never. */
  consentAt: z.number().nullable().default(null),
  /** Whether that time is no evidence, because it was in the future when it was first read. */
  early: z.literal(true).optional(),
  protected: z.literal(true).optional(),
});
export type DesiredContact = z.infer<typeof desiredBody>;

/** The desired body of a CRM record that states only that the person exists. */
export const silentBody = canonicalJson({
  presence: 'present',
  channels: {},
  consentAt: null,
} satisfies DesiredContact);

/** A contact as the platform shows it, in the configured channels and those they replace. */
export const observedBody = z.object({
  /** The reasons why the contact receives no mail; undefined if it receives mail. */
  causes: z
    .array(z.enum(['unsubscribed', 'blocked', 'bounce', 'complaint', 'suppressed']))
    .optional(),
  /**
   * When the contact last changed, as the platform's own text. It is never compared with our time:
   * a different text means that the person may have resubscribed and unsubscribed again, unnoticed.
   */
  changed: z.string().optional(),
  channels: z.record(z.string(), subscription),
  id: z.string(),
  /** Whether it receives no mail: suppressed, or with another status than `subscribed`. */
  left: z.boolean(),
  /** Whether the contact shows anything in a channel that the configuration does not name. */
  others: z.literal(true).optional(),
});
export type ObservedContact = z.infer<typeof observedBody>;

/** A contact of the person that now has another address on the platform, as last observed. */
const renamedBody = observedBody.extend({
  /** The channels from which we opted the contact out by its id, while it shows that. */
  outByUs: z.array(z.string()).optional(),
});
export type RecordedRenamed = z.infer<typeof renamedBody>;

/**
 * The time range of an event without a date, in milliseconds since the epoch: later than `after` by
 * our clock (null if unknown), and not later than `by`, by whichever of our clock and the
 * platform's is ahead.
 */
const bracket = z.object({ after: z.number().nullable(), by: z.number() });
export type Bracket = z.infer<typeof bracket>;

const optOutCause = z.enum(['stated', 'absence', 'flag', 'address', 'undone']);

/** An opt-in that `undo` took back: its run, and what the CRM `said` then, if it was read. */
const undone = z.object({ run: z.string(), said: z.string().optional() });
export type UndoneOptIn = z.infer<typeof undone>;

/** The state of one channel: what was last acknowledged or observed, and who made an opt-out. */
const membership = z.object({
  /** When our opt-out was acknowledged, by the later clock, in milliseconds since the epoch. */
  acked: z.number().optional(),
  /**
   * The ids of all CRM records that have had the address since the CRM stated our opt-out. If these
   * records get another address, the opt-out applies there too.
   */
  bound: z.array(z.string()).optional(),
  by: z.enum(['us', 'platform']),
  cause: optOutCause.optional(),
  /** Whether a silent request of ours may have made the opt-out, or it was there before. */
  doubtful: z.literal(true).optional(),
  is: subscription,
  /** When it was made: after the person was last seen subscribed (null: never), and by then. */
  made: bracket.optional(),
  /** Whether `allow` lets any record of the CRM withdraw our opt-out. */
  released: z.literal(true).optional(),
  /**
   * The decision of an operator that this very opt-out does not count (`resolve --in`). It is
   * dropped as soon as the opt-out may be another one, or one of the CRM records that stated the
   * opt-in then (`stating`) no longer does.
   */
  settled: settlement.extend({ stating: z.array(z.string()).optional() }).optional(),
  /** The ids of the CRM records that state our opt-out. */
  stated: z.array(z.string()).optional(),
  /** Set while an opt-out by `undo` stands, because the CRM has stated nothing else since. */
  undone: undone.optional(),
});
export type Membership = z.infer<typeof membership>;

/**
 * An opt-out that an opt-in of ours overrode. `undo` restores it. `after`: the lower end of the
 * time in which the person made it. It holds no other time, so that equal plans have equal hashes.
 */
const overridden = membership
  .pick({ bound: true, by: true, cause: true, doubtful: true, stated: true })
  .extend({ after: z.number().nullable() });
export type OverriddenOptOut = z.infer<typeof overridden>;

export const recordedBody = z.object({
  /** Whether `allow` revoked an erasure and the platform was not read since: ours may show. */
  allowed: z.literal(true).optional(),
  channels: z.record(z.string(), membership),
  /** The contacts with this address as last shown; one that vanishes is kept. */
  contacts: z.array(observedBody),
  /** The channels in which the creation itself set an opt-out that no person made. */
  defaults: z.array(z.string()),
  /** Times of consent that were in the future when first read, which never are evidence. */
  early: z.array(z.number()).optional(),
  /** When one of the contacts left all mail; undefined if unknown, or if none did. */
  left: bracket.optional(),
  /** By contact, channels we opted it out of while another contact's opt-out is in `channels`. */
  hidden: z.record(z.string(), z.array(z.string())).optional(),
  /** Channels that the person joined after leaving those that these replace. */
  outgrown: z.array(z.string()).default([]),
  renamed: z.array(renamedBody).optional(),
  /** Whether a condition of contacts.protect held in the CRM's last statement of the person. */
  protected: z.literal(true).optional(),
});
export type RecordedContact = z.infer<typeof recordedBody>;

/** What is recorded of a person before anything is known. */
export const emptyRecord: RecordedContact = {
  channels: {},
  contacts: [],
  defaults: [],
  outgrown: [],
};

export type EnrolmentBody = z.infer<typeof enrolmentBody>;
export const enrolmentBody = z.object({
  /** The address with which to enrol a person who has no contact, if it is not the key. */
  spelling: z.string().optional(),
  /** Whether the CRM wants an opt-out from another channel. */
  forbids: z.boolean().default(false),
  /** Whether the person has another CRM address and none states it; counts as absence. */
  moved: z.boolean().default(false),
  /** Why an opt-out: stated, or missing, flagged as deleted, or moved to another address. */
  cause: optOutCause.optional(),
  /** The opt-in that an opt-out of `undo` takes back. */
  undone: undone.optional(),
  /** The ids of the CRM records that state an opt-out, and of all records that it is bound to. */
  stated: z.array(z.string()).optional(),
  bound: z.array(z.string()).optional(),
  /** The fingerprint of the contact to delete, if none is recorded. */
  shown: z.string().optional(),
  /**
   * The `changed` value that the contact must still have for an opt_in that overrides an opt-out,
   * and when the overriding consent was stated, in milliseconds since the epoch.
   */
  changed: z.string().optional(),
  newer: z.number().optional(),
  /** When the CRM stated an opt-in after an operator's opt-out, in milliseconds since the epoch. */
  since: z.number().optional(),
  /** The person's contacts under former addresses as last observed, as sorted fingerprints. */
  former: z.array(z.object({ key: z.string(), shown: z.array(z.string()) })).default([]),
  /** The opt-out that an opt_in or creation overrides, and the one that `undo` restores. */
  overrides: overridden.optional(),
  restores: overridden.optional(),
  /** Whether an opt_in or creation withdraws an opt-out that the CRM had stated. */
  withdraws: z.literal(true).optional(),
  /** Whether nothing is left to do after a creation (`settles`). */
  settles: z.literal(true).optional(),
});

export function enrolment(change: Change): { channel: string; subscription: Subscription } {
  return { channel: change.part, subscription: change.op === 'opt_out' ? 'opt_out' : 'opt_in' };
}

/** The order in which a person's changes are sent: opt-outs first, deletes last. */
export const phase = { optOut: 0, optIn: 1, delete: 2 } as const;

// The rows and changes of contacts with their decoded bodies.
export type DesiredContactRow = Decoded<DesiredRow, DesiredContact>;
export type ObservedContactRow = Decoded<ObservedRow, ObservedContact>;
export type RecordedContactRow = Decoded<RecordedRow, RecordedContact>;
export type ContactChange = Decoded<Change, z.infer<typeof enrolmentBody>>;

/** The facts about one record that `decide` needs. Times are in milliseconds since the epoch. */
export interface ContactStates {
  key: Key;
  /** The source records with this key, including invalid ones. */
  desired: readonly DesiredContactRow[];
  recorded: RecordedContactRow | undefined;
  /**
   * Recorded rows with other keys that are this record under a former name: the platform shows the
   * same id, or the source once gave that key the same id. `seen`: what the platform shows for that
   * key.
   */
  former: readonly { row: RecordedContactRow; seen: readonly ObservedContactRow[] }[];
  /** Other keys that the source gives to this key's ids now; empty while it has the key. */
  successors: readonly ContactSuccessor[];
  /** The platform records that are recorded under this key and now have another one. */
  renamed: readonly ContactRenamed[];
  /**
   * Whether a source id that once had this key is missing from the source now. Looked up only if
   * there are successors, or if the key is gone according to a complete reading; otherwise false.
   */
  strays: boolean;
  origins: readonly string[];
  /** The parts for which a source record of this key, or one of these ids, has opted out. */
  statedOut: readonly string[];
  /** The parts of the record ('' for the whole record) in which the platform refused a change. */
  parked: readonly string[];
  /** The entries of the do-not-contact list about this key or its source ids. */
  entries: readonly Entry[];
  /** The platform records with this key that were read. */
  observed: readonly ObservedContactRow[];
  /** listed: what was read is all there is. assumed: not read; the recorded state counts. */
  sight: 'listed' | 'assumed';
  certified: boolean;
  /** Whether the recorded rows were restored from a backup and nothing has been listed since. */
  restored: boolean;
  /** How long it has been missing from the source; undefined if that does not count. */
  absence: Absence | undefined;
  /** Whether this run may delete. False in a first load, and after an incomplete full listing. */
  mayDelete: boolean;
  /** When the reading of the platform began, by our clock. Later changes may be missing from it. */
  at: number;
  /** When that reading ended, by our clock. */
  by: number;
  /** The same time as `by`, by our clock or the platform's, whichever is ahead. */
  latest: number;
  /** The parts that so many records lost together that the loss does not count as an opt-out. */
  lost: ReadonlySet<string>;
  /** Whether the run is limited to other people. */
  unchosen?: true;
  /** The parts from which an operator opted out a record that is neither in the CRM nor ours. */
  unmanagedOut?: readonly string[];
  facts: PlatformFacts;
}

/** A key that the source now gives to an id that previously had another key. */
export interface ContactSuccessor {
  desired: readonly DesiredContactRow[];
  recorded: RecordedContactRow | undefined;
  vanished: boolean;
  /** Everything known about the key, without successors of its own; undefined if not looked up. */
  states?: ContactStates | undefined;
  /** The channels in which nothing is sent for the new address, because somebody said no. */
  barred?: ReadonlySet<string> | undefined;
}

/**
 * A contact that is recorded under one key and now has another. The fields that ContactStates has,
 * too, describe its current key; `recorded` is set only if the CRM was not read completely.
 */
export interface ContactRenamed {
  desired: readonly DesiredContactRow[];
  recorded: RecordedContactRow | undefined;
  successors: readonly ContactSuccessor[];
  origins: readonly string[];
  id: string;
  /** The record as this run read it; undefined if it was not read. */
  row: ObservedContactRow | undefined;
}

export const decodeContact = {
  desired: decoder(desiredBody),
  observed: decoder(observedBody),
  recorded: decoder(recordedBody),
  change: decoder(enrolmentBody),
};
