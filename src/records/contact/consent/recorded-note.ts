/** Builds the row to record for a person, both after a decision and for `allow`. */
import { canonicalJson, type Key, type RecordedRow } from '../../../domain/record.ts';
import type { Decision } from '../../record-type.ts';
import { hasLeft } from './absence.ts';
import { isProtectedByRecord, type PersonFacts } from './facts.ts';
import { isOurs, defaultsIn } from '../observe/observed-contact.ts';
import { leftSince } from './platform-opt-outs.ts';
import { hiddenOptOuts } from './renamed-contact.ts';
import type {
  ContactStates,
  RecordedContactRow,
  RecordedContact,
} from '../observe/contact-state.ts';
import { earlyTimes } from '../observe/consent-time.ts';

/** Returns whether something is recorded about the person from now on. */
export function isToRecord(facts: PersonFacts): boolean {
  const { recorded, status } = facts;
  return recorded !== undefined || (status.present && status.owned) || hasEarly(facts.states);
}

/**
 * Returns whether nothing is recorded about a person that a limited run leaves alone. Our own
 * opt-outs are recorded, and that the person was subscribed, because that proves a later opt-out to
 * be the person's.
 */
export function isIrrelevant(facts: PersonFacts, { changes }: Decision): boolean {
  const { contacts, states, rules } = facts;
  const isIn = (channel: string) => contacts.some(({ channels }) => channels[channel] === 'opt_in');
  const wasSeenIn = states.desired.length > 0 && rules.channels.some(isIn);
  const isNew = states.recorded === undefined && changes.length === 0;
  return isNew && !wasSeenIn && !hasEarly(states);
}

/** Returns whether a CRM record states a time of consent that is never evidence. */
function hasEarly({ desired }: ContactStates): boolean {
  return desired.some(({ value }) => value.early === true);
}

/**
 * Returns the row to record. `isSettled`: nothing is left to do, so no new decision is made until
 * the person changes in the CRM or on the platform.
 */
export function noteOf(facts: PersonFacts, isSettled: boolean): RecordedRow {
  const { states, rules, recorded, shown, renamed, now, operatorOut } = facts;
  const isUnseen = states.observed.length === 0 && states.sight === 'assumed';
  const body: RecordedContact = {
    allowed: isUnseen ? recorded?.allowed : undefined,
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
  const before = states.recorded;
  const isGone = hasLeft(states);
  // The recorded contact while it exists. Another contact takes its place only if the CRM contains
  // the person.
  const same = shown.find((contact) => contact.id === before?.id);
  const id = same?.id ?? (before && isGone ? undefined : shown[0]?.id);
  // The next run makes a new decision about the person if no fingerprint is recorded.
  const isLost = states.lost.size > 0 && states.desired.length === 0;
  const isAlone = !isLost && id !== undefined && shown.length === 1;
  const sight =
    isUnseen && !isLost
      ? { shown: before?.shown, seenAt: before?.seenAt ?? 0 }
      : { shown: isAlone ? states.observed[0]?.fingerprint : undefined, seenAt: states.at };
  // The person is gone from the CRM, and an operator opted the person out: until that is done, each
  // full comparison decides again.
  const isOperatorOut = rules.channels.some((channel) => operatorOut(channel) !== undefined);
  return {
    kind: 'contact',
    key: states.key,
    id,
    ownership: ownershipOf(facts, id),
    body: canonicalJson(body),
    desired: isSettled && !twin && !row?.invalid ? row?.fingerprint : undefined,
    ...sight,
    ...(!isSettled && isGone && isOperatorOut && { shown: undefined }),
  };
}

/**
 * Returns the ownership. A contact is not ours if no complete reading of the CRM ever contained the
 * person: a line of a broken file can be text that looks like a record. A contact with another id
 * is adopted.
 */
function ownershipOf(facts: PersonFacts, id: string | undefined): RecordedRow['ownership'] {
  const { recorded: before, desired, unchosen, certified } = facts.states;
  const isNamed = certified && desired.length > 0 && !hasLeft(facts.states) && !unchosen;
  // If an erasure was revoked, or only a time of consent is recorded, there may never have been a
  // contact.
  const isKnown = facts.shown.length > 0 || (before?.value.contacts ?? []).length > 0;
  if (!before || before.ownership === 'noted') return isNamed && isKnown ? 'adopted' : 'noted';
  return [undefined, before.id].includes(id) ? before.ownership : 'adopted';
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
  const own = Object.entries(recorded.channels).filter(([, is]) => {
    const stays = is.cause !== undefined && is.cause !== 'stated' && !is.undone;
    return isOurs(is) && !is.released && !stays;
  });
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
