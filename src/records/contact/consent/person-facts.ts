import type { Key } from '../../../domain/record.ts';
import type { Entry } from '../../../domain/do-not-contact.ts';
import type { AbsenceRules } from './absent-people.ts';
import type { ConsentPolicy, PersonStatus } from './rules.ts';
import type { Channels, Past } from './past-consent.ts';
import type { ContactStates, ObservedContact, RecordedContact } from '../observe/contact-state.ts';
import type { RenamedContact } from './renamed-contact.ts';
import type { DesiredSubscription } from '../observe/consent-time.ts';

export interface PersonRules extends Channels {
  protects: ReadonlySet<Key>;
  policy: ConsentPolicy;
  absence: AbsenceRules;
}

export interface PersonFacts {
  states: ContactStates;
  rules: PersonRules;
  status: PersonStatus;
  /** Whether contacts.protect covers the person, by address or by a condition on a CRM record. */
  isProtected: boolean;
  /** Whether the policy would delete this contact now: gone, or replaced by a new address. */
  mayDelete: boolean;
  /** Whether another contact has replaced this one, and the policy deletes this one. */
  replaced: boolean;
  desired: Map<string, DesiredSubscription>;
  recorded: RecordedContact | undefined;
  former: RecordedContact[];
  seen: ObservedContact[];
  /** The contacts as just read, or as last known if nothing was read. */
  shown: ObservedContact[];
  /** `shown` without the opt-outs that a creation set by default, which no person made. */
  contacts: ObservedContact[];
  /** The person's contacts that now have another address on the platform. */
  renamed: RenamedContact[];
  /** Returns the opt-out from a channel that an operator stated and that still applies. */
  operatorOut: (channel: string) => Entry | undefined;
  /** The recorded state of the person, updated with what is observed now. */
  now: Past;
}
