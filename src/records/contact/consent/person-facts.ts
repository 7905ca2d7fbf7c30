/** What is known of one person when they are decided upon, decoded. */
import type { Key } from '../../../domain/record.ts';
import { type AbsenceRules, hasLeft, mayDelete, oursOf } from './crm-absence.ts';
import type { ConsentPolicy, Person } from './consent-rules.ts';
import { hasWaited, isDue } from './absence-due.ts';
import { isAwaited, isReplaced } from './changed-address.ts';
import { contactKey, isChanged } from '../observe/observed-contact.ts';
import { attributed } from './own-opt-outs.ts';
import { type Channels, distrusted, memberships, outgrown, pastOf } from './past-consent.ts';
import type { ContactStates } from '../observe/contact-rows.ts';
import type { ObservedContact, RecordedContact } from '../observe/contact-state.ts';
import { isProtected } from './protection.ts';
import { isNewer, type Observation } from '../observe/channel-observation.ts';
import { type RenamedContact, renamedOf, withoutOurs } from './renamed-contact.ts';
import { contactsOf, statedContacts } from '../observe/last-observed.ts';
import { statedAt, strictest, type DesiredSubscription } from '../observe/strictest-consent.ts';
import type { ContactFields } from '../observe/desired-contact.ts';

export interface PersonRules extends Channels {
  /** The addresses that contacts.protect names. */
  protects: ReadonlySet<Key>;
  policy: ConsentPolicy;
  absence: AbsenceRules;
}

/** What is known of one person, decoded. */
export interface Facts {
  states: ContactStates;
  rules: PersonRules;
  person: Person;
  /** Whether contacts.protect names the person. */
  isProtected: boolean;
  /** Whether policy would delete the person now, or the contact of a former address. */
  mayDelete: boolean;
  /** Another contact stands for this one by now, which policy has deleted. */
  replaced: boolean;
  desired: Map<string, DesiredSubscription>;
  recorded: RecordedContact | undefined;
  /** The same person under former addresses. */
  former: RecordedContact[];
  /** Her contacts on the platform, as they were read just now. */
  seen: ObservedContact[];
  /** The same, or as they were last when nothing was read. */
  shown: ObservedContact[];
  /** These, without what nobody ever said: an opt-out that the creation left by default. */
  contacts: ObservedContact[];
  /** Contacts of hers that have another address on the platform by now. */
  renamed: RenamedContact[];
  /** What is recorded of her by what is seen now. */
  now: Pick<RecordedContact, 'channels' | 'outgrown'>;
}

export function factsOf(states: ContactStates, rules: PersonRules): Facts {
  const known = states.recorded?.value;
  const seen = states.observed.map(({ value }) => value);
  const desired = wishesOf(states, rules.channels);
  const since = { ...states, wishes: desired };
  const recorded = known && states.restored ? distrusted(known, seen, since) : known;
  const shown = contactsOf(seen, states, recorded);
  const contacts = statedContacts(shown, states, recorded);
  const former = states.former.map((past) => pastOf(past, since, rules));
  const named = [...desired.values()].some((wish) => wish !== 'gone');
  // To somebody who left nothing is done but what is ours.
  const ours = oursOf(contacts, states.recorded);
  const isOurs = hasLeft(states) ? ours.length > 0 : isOwned(states.recorded);
  const due = isDue(states, rules.absence);
  const isIn = rules.policy.absent === 'opt_out' && rules.channels.some(isInOf(ours));
  const waited = due && hasWaited(states, isIn, rules.absence);
  const deletes = mayDelete(states, rules.absence);
  const isKept = isProtected({ ...states, recorded, protects: rules.protects });
  const hasReplacement = deletes && isReplaced(states, rules.channels);
  const isOver = deletes && waited && !hasReplacement && !isAwaited(states, rules.channels);
  const replaced = hasReplacement && !isKept;
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
    now: {
      channels: attributedAll(
        withoutOurs(
          memberships(recorded, contacts, {
            channels: rules.channels.filter((channel) => !states.lost.has(channel)),
            replaces: rules.replaces,
            sight: sightOf(states, { recorded, shown }),
          }),
          shown,
          former,
        ),
        states,
      ),
      outgrown: outgrown(recorded, contacts, rules.replaces),
    },
    desired,
    person: {
      present: contacts.length > 0,
      // Somebody on the platform whom the CRM names is adopted, and so ours from now on.
      owned: isOurs || (contacts.length > 0 && named),
      left: contacts.some((contact) => contact.left),
      due,
      deletable: isOver && !isKept,
    },
  };
}

function attributedAll(
  channels: RecordedContact['channels'],
  states: ContactStates,
): RecordedContact['channels'] {
  return Object.fromEntries(
    Object.entries(channels).map(([channel, is]) => [channel, attributed(is, channel, states)]),
  );
}

/** What is merely noted of somebody does not make them ours. */
function isOwned(row: ContactStates['recorded']): boolean {
  return row !== undefined && row.ownership !== 'noted';
}

function isInOf(contacts: readonly ObservedContact[]): (channel: string) => boolean {
  return (channel) => contacts.some(({ channels }) => channels[channel] === 'opt_in');
}

/** When what the CRM states was stated, if that is newer than the opt-out can be, and counts. */
export function newerWill(facts: Facts, channel: string): number | undefined {
  const { states, rules, now } = facts;
  if (rules.policy.resubscribe === 'never') return undefined;
  const at = statedAt(states.desired, channel);
  return at !== null && isNewer(at, now.channels[channel], states.by) ? at : undefined;
}

/** A reading without a certificate proves nobody gone: whom it does not name it says nothing of. */
function wishesOf(
  { desired, certified }: ContactStates,
  channels: readonly string[],
): Map<string, DesiredSubscription> {
  const silent = desired.length === 0 && !certified;
  return silent ? new Map<string, DesiredSubscription>() : strictest(desired, channels);
}

function sightOf(
  states: ContactStates,
  { recorded, shown }: Pick<Facts, 'recorded' | 'shown'>,
): Observation {
  return {
    present: shown.length > 0,
    before: states.recorded?.seenAt ?? null,
    by: states.latest,
    changed: isChanged(recorded?.contacts ?? [], shown),
  };
}

/** By what people are decided upon, as the configuration has it. */
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
