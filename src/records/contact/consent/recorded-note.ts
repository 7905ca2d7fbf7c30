/** Builds the row to record for a person, both after a decision and for `allow`. */
import { canonicalJson, type Key, type RecordedRow } from '../../../domain/record.ts';
import type { Decision } from '../../record-type.ts';
import { hasLeft } from './absence.ts';
import { isProtectedByRecord } from './facts.ts';
import type { PersonFacts } from './person-facts.ts';
import { isOurs } from '../observe/channel-observation.ts';
import { leftSince } from './platform-opt-outs.ts';
import { hiddenOptOuts } from './renamed-contact.ts';
import type { RecordedContactRow } from '../observe/contact-rows.ts';
import type { Membership, RecordedContact } from '../observe/contact-state.ts';
import { earlyTimes } from '../observe/consent-time.ts';
import { defaultsIn } from '../observe/last-observed.ts';

/** Returns whether something is recorded about the person from now on. */
export function isToRecord(facts: PersonFacts): boolean {
  const { recorded, status } = facts;
  return recorded !== undefined || (status.present && status.owned) || hasEarly(facts);
}

/**
 * Returns whether nothing is recorded about a person that a limited run leaves alone. Our own
 * opt-outs are recorded, and that the person was subscribed, because that proves a later opt-out to
 * be the person's.
 */
export function isIrrelevant(facts: PersonFacts, { changes }: Pick<Decision, 'changes'>): boolean {
  const isNew = facts.states.recorded === undefined && changes.length === 0;
  return isNew && !wasSeenIn(facts) && !hasEarly(facts);
}

/** Returns whether the platform shows a person of the CRM as subscribed to one of the channels. */
function wasSeenIn({ contacts, states, rules }: PersonFacts): boolean {
  const isIn = (channel: string) => contacts.some(({ channels }) => channels[channel] === 'opt_in');
  return states.desired.length > 0 && rules.channels.some(isIn);
}

/** Returns whether a CRM record states a time of consent that is never evidence. */
function hasEarly({ states }: PersonFacts): boolean {
  return states.desired.some(({ value }) => value.early === true);
}

/**
 * Returns the row to record. `isSettled`: nothing is left to do, so no new decision is made until
 * the person changes in the CRM or on the platform.
 */
export function noteOf(facts: PersonFacts, isSettled: boolean): RecordedRow {
  const { states, recorded, shown, renamed, now } = facts;
  const body: RecordedContact = {
    allowed: isUnseen(states) ? recorded?.allowed : undefined,
    channels: now.channels,
    contacts: shown.length > 0 ? shown : (recorded?.contacts ?? []),
    defaults: recorded ? defaultsIn(shown, states, recorded) : [],
    early: earlyTimes(states.desired, recorded),
    hidden: shown.length > 0 ? hiddenOptOuts(recorded, shown, now.channels) : recorded?.hidden,
    left: leftSince(states, recorded, shown),
    outgrown: now.outgrown,
    protected: isProtectedByRecord(states.desired, recorded),
    renamed: renamed.length > 0 ? renamed.map(({ contact }) => contact) : undefined,
  };
  const [row, twin] = states.desired;
  return {
    kind: 'contact',
    key: states.key,
    id: idOf(facts),
    ownership: ownershipOf(facts),
    body: canonicalJson(body),
    desired: isSettled && !twin && !row?.invalid ? row?.fingerprint : undefined,
    ...shownOf(facts),
    ...(isSettled || !isOpenAndGone(facts) ? {} : { shown: undefined }),
  };
}

/**
 * Returns whether the person is gone from the CRM, and an operator opted the person out. Until that
 * is done, each full comparison decides again.
 */
function isOpenAndGone({ states, rules, operatorOut }: PersonFacts): boolean {
  return hasLeft(states) && rules.channels.some((channel) => operatorOut(channel) !== undefined);
}

function isUnseen({ observed, sight }: PersonFacts['states']): boolean {
  return observed.length === 0 && sight === 'assumed';
}

/**
 * Returns the id of the recorded contact while it exists. Another contact takes its place only if
 * the CRM contains the person.
 */
function idOf({ states, shown }: PersonFacts): string | undefined {
  const before = shown.find((contact) => contact.id === states.recorded?.id);
  const isOther = states.recorded && hasLeft(states);
  return before?.id ?? (isOther ? undefined : shown[0]?.id);
}

/**
 * Returns the ownership. A contact is not ours if no complete reading of the CRM ever contained the
 * person: a line of a broken file can be text that looks like a record. A contact with another id
 * is adopted.
 */
function ownershipOf(facts: PersonFacts): RecordedRow['ownership'] {
  const { recorded: before, desired, unchosen, certified } = facts.states;
  const isNamed = certified && desired.length > 0 && !hasLeft(facts.states) && !unchosen;
  // If an erasure was revoked, or only a time of consent is recorded, there may never have been a
  // contact.
  const isKnown = facts.shown.length > 0 || (before?.value.contacts ?? []).length > 0;
  if (!before || before.ownership === 'noted') return isNamed && isKnown ? 'adopted' : 'noted';
  return [undefined, before.id].includes(idOf(facts)) ? before.ownership : 'adopted';
}

/**
 * Returns the fingerprint of what the one recorded contact shows; undefined means that the next run
 * makes a new decision about the person.
 */
function shownOf(facts: PersonFacts): Pick<RecordedRow, 'shown' | 'seenAt'> {
  const { observed, recorded, desired, lost, at } = facts.states;
  if (lost.size > 0 && desired.length === 0) return { shown: undefined, seenAt: at };
  if (isUnseen(facts.states)) {
    return { shown: recorded?.shown, seenAt: recorded?.seenAt ?? 0 };
  }
  const isRecorded = idOf(facts) !== undefined && facts.shown.length === 1;
  return { shown: isRecorded ? observed[0]?.fingerprint : undefined, seenAt: at };
}

/**
 * Lets any record withdraw the opt-outs that the CRM stated and we made, as `allow` does. Returns
 * the row to record and the channels released, or undefined if there are none. Opt-outs made by the
 * person remain.
 */
export function release({
  value: recorded,
  ...row
}: RecordedContactRow): { row: RecordedRow; parts: string[] } | undefined {
  const stays = ({ cause, undone }: Membership): boolean =>
    cause !== undefined && cause !== 'stated' && !undone;
  const own = Object.entries(recorded.channels).filter(
    ([, is]) => isOurs(is) && !is.released && !stays(is),
  );
  if (own.length === 0) return undefined;
  const channels = { ...recorded.channels };
  for (const [channel, is] of own) channels[channel] = { ...is, released: true };
  const body = canonicalJson({ ...recorded, channels });
  return { row: { ...row, body, desired: undefined }, parts: own.map(([channel]) => channel) };
}

/**
 * Returns the row of a person whose erasure was revoked; `row` is the recorded row, if there is
 * one.
 */
export function unerased(key: Key, row: RecordedContactRow | undefined): RecordedRow {
  const before = row?.value ?? { channels: {}, contacts: [], defaults: [], outgrown: [] };
  const body = canonicalJson({ ...before, allowed: true });
  const { kind = 'contact', id, ownership = 'noted', shown, seenAt = 0 } = row ?? {};
  return { kind, key, id, ownership, body, shown, desired: undefined, seenAt };
}
