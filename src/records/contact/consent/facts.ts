/** Derives the input of the rules and gates from what is known about one person. */
import type { DesiredRow, RecordedRow } from '../../../domain/record.ts';
import { type AbsenceRules, mayDelete, notOursOf, oursOf } from './our-contacts.ts';
import { hasLeft, hasWaited, isDue } from './absence.ts';
import { isBar, newerWill, passGates } from './gates.ts';
import { isUnsure } from './platform-opt-outs.ts';
import type { PersonFacts, PersonRules } from './person-facts.ts';
import { type ChannelFacts, decideChannel } from './rules.ts';
import { isAwaited, isReplaced } from './changed-address.ts';
import { isChanged } from '../observe/observed-contact.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import { attributed, isTakenBack } from './own-opt-outs.ts';
import { isSettledIn, settledOut, stillSettled } from './settlements.ts';
import {
  type Channels,
  distrusted,
  doubted,
  memberships,
  outgrown,
  pastOf,
  recordedIn,
} from './past-consent.ts';
import { withEarlyMarked } from '../observe/consent-time.ts';
import type {
  ContactStates,
  ContactSuccessor,
  DesiredContactRow,
} from '../observe/contact-rows.ts';
import type { Membership, ObservedContact, RecordedContact } from '../observe/contact-state.ts';
import type { Observation } from '../observe/channel-observation.ts';
import { replacedBy, statingFor } from './replaced-channel.ts';
import { renamedOf, withoutOurs } from './renamed-contact.ts';
import { contactsOf, statedContacts } from '../observe/last-observed.ts';
import { type DesiredSubscription, strictest, strictestOf } from '../observe/strictest-consent.ts';
import type { ContactFields } from '../observe/desired-contact.ts';

/** Derives what is known about one person. It makes no requests; `states` contains everything. */
export function factsOf(known: ContactStates, rules: PersonRules): PersonFacts {
  const states = withBars(withEarlyMarked(known), rules);
  const seen = states.observed.map(({ value }) => value);
  const desired = wishesOf(states, rules.channels);
  const since = { ...states, wishes: desired };
  const before = states.recorded?.value;
  const recorded = before && states.restored ? distrusted(before, seen, since) : before;
  const shown = contactsOf(seen, states, recorded);
  const contacts = statedContacts(shown, states, recorded);
  const former = states.former
    .map((past) => pastOf(past, since, rules))
    .map((past) => ({ ...past, channels: stillSettled(past.channels, states.desired) }));
  const named = [...desired.values()].some((wish) => wish !== 'gone');
  // For a person who is no longer in the CRM, only our own contact counts.
  const ours = oursOf(contacts, states.recorded);
  const isOurs = hasLeft(states) ? ours.length > 0 : isOwned(states.recorded);
  const due = isDue(states, rules.absence);
  const isIn = rules.policy.absent === 'opt_out' && rules.channels.some(isInOf(ours));
  const waited = due && hasWaited(states, isIn, rules.absence);
  const deletes = mayDelete(states, rules.absence);
  const isKept =
    rules.protects.has(states.key) || isProtectedByRecord(states.desired, recorded) === true;
  const hasReplacement = deletes && isReplaced(states, rules.channels);
  const isOver = deletes && waited && !hasReplacement && !isAwaited(states, rules.channels);
  const replaced = hasReplacement && !isKept;
  const over = outgrown(recorded, contacts, rules.replaces);
  const seenIn = memberships(recorded, contacts, {
    channels: rules.channels.filter((channel) => !states.lost.has(channel)),
    replaces: rules.replaces,
    sight: sightOf(states, { recorded, shown }),
  });
  const theirs = doubted(seenIn, recorded, states);
  const still = withoutOurs(theirs, shown, former);
  return {
    states,
    rules,
    isProtected: isKept,
    mayDelete: isOver || hasReplacement,
    replaced,
    recorded,
    seen,
    shown,
    contacts,
    renamed: renamedOf(states, recorded),
    former,
    now: { channels: attributedAll(still, { states, rules }), outgrown: over },
    desired,
    operatorOut: (channel) => settledOut(states, partsOf(channel, rules, over), channel),
    status: {
      present: contacts.length > 0,
      // If the CRM contains the person, the contact is adopted, and is ours from now on.
      owned: isOurs || (contacts.length > 0 && named),
      left: contacts.some((contact) => contact.left),
      due,
      deletable: isOver && !isKept,
    },
  };
}

/** Adds to each new address of the person the channels that somebody's word bars there. */
function withBars(states: ContactStates, rules: PersonRules): ContactStates {
  const barredFor = (next: ContactSuccessor): ReadonlySet<string> => {
    const facts = next.states && factsOf(next.states, rules);
    return new Set(rules.channels.filter((channel) => facts && isBarred(facts, channel)));
  };
  const successors = states.successors.map((next) => ({ ...next, barred: barredFor(next) }));
  return { ...states, successors };
}

/** Returns whether nothing more is sent for the channel. A doubtful opt-out awaits an operator. */
function isBarred(facts: PersonFacts, channel: string): boolean {
  const { contacts, former, now, states } = facts;
  if (!isBar(verdictIn(facts, channel).verdict)) return false;
  const hasLeftAll = [...contacts, ...former.flatMap((one) => one.contacts)].some(
    ({ left }) => left,
  );
  const outs = [now, ...former].map(({ channels }) => channels[channel]);
  return hasLeftAll || !isUnsure(channel, outs, states);
}

/** Returns the channel, and the one that it replaces unless the person has joined it since. */
function partsOf(channel: string, rules: Channels, over: readonly string[]): string[] {
  const replaced = replacedBy(channel, rules, over);
  return replaced === undefined ? [channel] : [channel, replaced];
}

/** Returns the input of the rules for one channel of the person. */
export function channelFacts(person: PersonFacts, channel: string): ChannelFacts {
  const { states, rules, recorded, contacts } = person;
  const wanted = person.desired.get(channel) ?? null;
  const about = wanted === 'gone' ? oursOf(contacts, states.recorded) : contacts;
  return {
    ...person.status,
    wanted,
    recorded: recordedIn(recorded, contacts, channel),
    observed: strictestOf(about, channel),
    someIn: about.some(({ channels }) => channels[channel] === 'opt_in'),
    newer: newerWill(person, channel) !== undefined,
    takenBack: isTakenBack(person.now.channels[channel], channel, states),
    settledIn: isSettledIn(person.now.channels[channel]),
    unmanaged: wanted === 'gone' ? unmanagedAs({ ...states, contacts }, channel) : undefined,
    policy: rules.policy,
  };
}

/** Returns what rules and gates call for in one channel of a person. */
export function verdictIn(person: PersonFacts, channel: string): ReturnType<typeof passGates> {
  const asked = channelFacts(person, channel);
  return passGates({ person, channel, asked }, decideChannel(asked));
}

/**
 * Returns how the CRM names a person who is gone and subscribed with a contact that is not ours;
 * undefined if it does not name them, or if there is no such contact.
 */
export function unmanagedAs(
  { desired, contacts, recorded }: UnmanagedFacts,
  channel: string,
): ChannelFacts['unmanaged'] {
  const isIn = isInOf(notOursOf(contacts, recorded).filter(({ left }) => !left));
  if (desired.length === 0 || !isIn(channel)) return undefined;
  return desired.some(({ presence }) => presence === 'flagged') ? 'deleted' : 'outOfScope';
}

interface UnmanagedFacts {
  desired: readonly DesiredRow[];
  contacts: readonly ObservedContact[];
  recorded: RecordedRow | undefined;
}

/**
 * Returns whether a condition of contacts.protect holds for a CRM record of the person. The last
 * known result counts while no record provides one, because the person is no longer in the CRM or a
 * record is invalid.
 */
export function isProtectedByRecord(
  desired: readonly DesiredContactRow[],
  recorded: RecordedContact | undefined,
): true | undefined {
  const says = desired.some(({ value }) => value.protected === true);
  const isUnknown = desired.length === 0 || desired.some(({ invalid }) => invalid);
  return says || (isUnknown && recorded?.protected === true) || undefined;
}

function attributedAll(
  channels: RecordedContact['channels'],
  { states, rules }: Pick<PersonFacts, 'states' | 'rules'>,
): RecordedContact['channels'] {
  const known = Object.entries(stillSettled(channels, states.desired));
  const all = known.map(([channel, is]): [string, Membership] => {
    const stating = statingFor(channel, rules);
    return [channel, attributed(is, channel, { ...states, stating })];
  });
  return Object.fromEntries(all);
}

/** A contact that is merely noted is not ours. */
function isOwned(row: ContactStates['recorded']): boolean {
  return row !== undefined && row.ownership !== 'noted';
}

function isInOf(contacts: readonly ObservedContact[]): (channel: string) => boolean {
  return (channel) => contacts.some(({ channels }) => channels[channel] === 'opt_in');
}

/**
 * Returns what the CRM wants. An uncertified reading shows nothing about people it does not
 * contain.
 */
function wishesOf(
  { desired, certified }: ContactStates,
  channels: readonly string[],
): Map<string, DesiredSubscription> {
  const silent = desired.length === 0 && !certified;
  return silent ? new Map<string, DesiredSubscription>() : strictest(desired, channels);
}

function sightOf(
  states: ContactStates,
  { recorded, shown }: Pick<PersonFacts, 'recorded' | 'shown'>,
): Observation {
  return {
    present: shown.length > 0,
    before: states.recorded?.seenAt ?? null,
    by: states.latest,
    changed: isChanged(recorded?.contacts ?? [], shown),
  };
}

/** Returns the part of the configuration that decisions need. */
export function rulesOf(
  { channels, protect = [] }: Pick<ContactFields, 'channels' | 'protect'>,
  policy: PersonRules['policy'],
  absence: AbsenceRules,
): PersonRules {
  const replaced = channels.flatMap(({ id, replaces }): [string, string][] =>
    replaces === undefined ? [] : [[id, replaces]],
  );
  const protects = protect.flatMap((one) => (typeof one === 'string' ? [contactKey(one)] : []));
  return {
    channels: channels.map(({ id }) => id),
    replaces: new Map(replaced),
    protects: new Set(protects),
    policy,
    absence,
  };
}
