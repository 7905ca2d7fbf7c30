import type { DesiredRow, RecordedRow } from '../../../domain/record.ts';
import {
  type AbsenceRules,
  policyDeletes,
  notOursOf,
  oursOf,
  hasLeft,
  hasWaited,
  isDue,
  isAwaited,
  isReplaced,
} from './absent-people.ts';
import { isBar, newerWill, passGates } from './gates.ts';
import type { PersonFacts, PersonRules } from './person-facts.ts';
import { isUnsure } from './platform-opt-outs.ts';
import { type ChannelFacts, decideChannel } from './rules.ts';
import { isChanged, contactsOf, statedContacts } from '../observe/observed-contact.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import { attributed, isTakenBack, settledOut, stillSettled } from './own-opt-outs.ts';
import {
  distrusted,
  doubted,
  memberships,
  outgrown,
  pastOf,
  recordedIn,
  replacedBy,
  statingFor,
} from './past-consent.ts';
import { withEarlyMarked, strictest, strictestOf } from '../observe/consent-time.ts';
import type {
  ContactStates,
  DesiredContactRow,
  ObservedContact,
  RecordedContact,
} from '../observe/contact-state.ts';
import { renamedOf, withoutOurs } from './renamed-contact.ts';
import type { ContactFields } from '../observe/desired-contact.ts';

/** Derives what is known about one person. It makes no requests. */
export function factsOf(known: ContactStates, rules: PersonRules): PersonFacts {
  const states = withBars(withEarlyMarked(known), rules);
  const { recorded: row, certified } = states;
  const seen = states.observed.map(({ value }) => value);
  // An uncertified reading shows nothing about people it does not contain.
  const isSilent = states.desired.length === 0 && !certified;
  const desired = strictest(states.desired, isSilent ? [] : rules.channels);
  const since = { ...states, wishes: desired };
  const before = row?.value;
  const recorded = before && states.restored ? distrusted(before, seen, since) : before;
  const shown = contactsOf(seen, states, recorded);
  const contacts = statedContacts(shown, states, recorded);
  const former = states.former
    .map((past) => pastOf(past, since, rules))
    .map((past) => ({ ...past, channels: stillSettled(past.channels, states.desired) }));
  const named = [...desired.values()].some((wish) => wish !== 'gone');
  // Of a person who is gone from the CRM, only our own contact counts, not one merely noted.
  const ours = oursOf(contacts, row);
  const isOwned = row !== undefined && row.ownership !== 'noted';
  const isOurs = hasLeft(states) ? ours.length > 0 : isOwned;
  const due = isDue(states, rules.absence);
  const isIn = rules.policy.absent === 'opt_out' && rules.channels.some(isInOf(ours));
  const waited = due && hasWaited(states, isIn, rules.absence);
  const deletes = policyDeletes(row, rules.absence) && states.mayDelete && certified;
  const isKept =
    rules.protects.has(states.key) || isProtectedByRecord(states.desired, recorded) === true;
  const hasReplacement = deletes && isReplaced(states, rules.channels);
  const isOver = deletes && waited && !hasReplacement && !isAwaited(states, rules.channels);
  const over = outgrown(recorded, contacts, rules.replaces);
  const seenIn = memberships(recorded, contacts, {
    channels: rules.channels.filter((channel) => !states.lost.has(channel)),
    replaces: rules.replaces,
    sight: {
      present: shown.length > 0,
      before: row?.seenAt ?? null,
      by: states.latest,
      changed: isChanged(recorded?.contacts ?? [], shown),
    },
  });
  const still = withoutOurs(doubted(seenIn, recorded, states), shown, former);
  const channels = Object.entries(stillSettled(still, states.desired)).map(([channel, is]) => {
    const stating = statingFor(channel, rules);
    return [channel, attributed(is, channel, { ...states, stating })] as const;
  });
  return {
    states,
    rules,
    isProtected: isKept,
    mayDelete: isOver || hasReplacement,
    replaced: hasReplacement && !isKept,
    recorded,
    seen,
    shown,
    contacts,
    renamed: renamedOf(states, recorded),
    former,
    now: { channels: Object.fromEntries(channels), outgrown: over },
    desired,
    operatorOut(channel) {
      const replaced = replacedBy(channel, rules, over);
      const parts = replaced === undefined ? [channel] : [channel, replaced];
      return settledOut(states, parts, channel);
    },
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

/** Adds to each new address the channels barred there by somebody's word, if no doubtful one. */
function withBars(states: ContactStates, rules: PersonRules): ContactStates {
  const successors = states.successors.map((next) => {
    const facts = next.states && factsOf(next.states, rules);
    if (!facts) return { ...next, barred: new Set<string>() };
    const all = [facts.now, ...facts.former];
    const contacts = [...facts.contacts, ...facts.former.flatMap((one) => one.contacts)];
    const hasLeftAll = contacts.some(({ left }) => left);
    const isBarred = (channel: string): boolean => {
      if (!isBar(verdictIn(facts, channel).verdict)) return false;
      const outs = all.map(({ channels }) => channels[channel]);
      return hasLeftAll || !isUnsure(channel, outs, facts.states);
    };
    return { ...next, barred: new Set(rules.channels.filter(isBarred)) };
  });
  return { ...states, successors };
}

/** Returns the input of the rules for one channel of the person. */
export function channelFacts(person: PersonFacts, channel: string): ChannelFacts {
  const { states, rules, recorded, contacts } = person;
  const wanted = person.desired.get(channel) ?? null;
  const about = wanted === 'gone' ? oursOf(contacts, states.recorded) : contacts;
  const is = person.now.channels[channel];
  return {
    ...person.status,
    wanted,
    recorded: recordedIn(recorded, contacts, channel),
    observed: strictestOf(about, channel),
    someIn: about.some(({ channels }) => channels[channel] === 'opt_in'),
    newer: newerWill(person, channel) !== undefined,
    takenBack: isTakenBack(is, channel, states),
    settledIn: is?.is === 'opt_out' && is.settled !== undefined,
    unmanaged: wanted === 'gone' ? unmanagedAs({ ...states, contacts }, channel) : undefined,
    policy: rules.policy,
  };
}

/** Returns what rules and gates call for in one channel of a person. */
export function verdictIn(person: PersonFacts, channel: string): ReturnType<typeof passGates> {
  const asked = channelFacts(person, channel);
  return passGates({ person, channel, asked }, decideChannel(asked));
}

/** Returns how the CRM names a person who is gone, and subscribed with a contact not ours. */
export function unmanagedAs(
  {
    desired,
    contacts,
    recorded,
  }: {
    desired: readonly DesiredRow[];
    contacts: readonly ObservedContact[];
    recorded: RecordedRow | undefined;
  },
  channel: string,
): ChannelFacts['unmanaged'] {
  const isIn = isInOf(notOursOf(contacts, recorded).filter(({ left }) => !left));
  if (desired.length === 0 || !isIn(channel)) return undefined;
  return desired.some(({ presence }) => presence === 'flagged') ? 'deleted' : 'outOfScope';
}

/**
 * Returns whether a condition of contacts.protect holds for a CRM record of the person. The last
 * known result counts while no record tells: none is left, or one is invalid.
 */
export function isProtectedByRecord(
  desired: readonly DesiredContactRow[],
  recorded: RecordedContact | undefined,
): true | undefined {
  const says = desired.some(({ value }) => value.protected === true);
  const isUnknown = desired.length === 0 || desired.some(({ invalid }) => invalid);
  return says || (isUnknown && recorded?.protected === true) || undefined;
}

function isInOf(contacts: readonly ObservedContact[]): (channel: string) => boolean {
  return (channel) => contacts.some(({ channels }) => channels[channel] === 'opt_in');
}

export function rulesOf(
  { channels, protect = [] }: ContactFields,
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
