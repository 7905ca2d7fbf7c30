/**
 * What to do about one person: every channel through the truth table, and what is known afterwards.
 */
import type { Change } from '../../model/change.ts';
import { canonicalJson, type ObservedRow, type RecordedRow } from '../../model/record.ts';
import type { Decision, States } from '../kind.ts';
import { hasLeft, isDeletable, isDue, oursOf, type AbsenceRules } from './absence.ts';
import { act, conflictProblem, remove } from './act.ts';
import { beyond, contradiction } from './conflict.ts';
import {
  decideChannel,
  isNewer,
  seen,
  type ConsentPolicy,
  type Person,
  type Verdict,
} from './decide.ts';
import { contradict, statedAt, strictest, strictestOf, type Wish } from './strictest.ts';
import {
  observedBody,
  recordedBody,
  type Membership,
  type ObservedContact,
  type RecordedContact,
} from './record.ts';

export interface PersonRules {
  /** Configured channels, in the order of the configuration. */
  channels: readonly string[];
  policy: ConsentPolicy;
  absence: AbsenceRules;
}

export function decidePerson(states: States, rules: PersonRules): Decision {
  const facts = factsOf(states, rules);
  const decision: Decision = {
    changes: [],
    note: undefined,
    adopts: false,
    forgets: [],
    problems: [],
  };
  for (const channel of rules.channels) decideOne(decision, channel, facts);
  if (facts.person.deletable) remove(decision, states.key, oursOf(facts.contacts, states.recorded));
  markEnrolments(decision, facts);
  const allowed = ({ op }: Change): boolean => states.certified || op === 'opt_out';
  const isSettled = states.certified && decision.changes.length + decision.problems.length === 0;
  decision.changes = decision.changes.filter(allowed);
  if (facts.recorded || (facts.person.present && facts.person.owned)) {
    decision.note = noteOf(facts, isSettled);
    decision.adopts = states.recorded === undefined && decision.note.ownership !== 'noted';
  }
  return decision;
}

/** What is known of one person, decoded. */
interface Facts {
  states: States;
  rules: PersonRules;
  person: Person;
  desired: Map<string, Wish>;
  recorded: RecordedContact | undefined;
  /** The same person under former addresses. */
  former: RecordedContact[];
  /** Her contacts on the platform, as they are shown or were last. */
  shown: ObservedContact[];
  /** The same, without what nobody ever said: an opt-out that the creation left by default. */
  contacts: ObservedContact[];
}

function factsOf(states: States, rules: PersonRules): Facts {
  const recorded = states.recorded && recordedBody.parse(JSON.parse(states.recorded.body));
  const shown = contactsOf(states, recorded);
  const defaults = new Set(recorded && defaultsIn(shown, states, recorded));
  const contacts = shown.map((contact) => withoutDefaults(contact, defaults));
  const desired = wishesOf(states, rules.channels);
  const named = [...desired.values()].some((wish) => wish !== 'gone');
  // To somebody who left nothing is done but what is ours.
  const ours = hasLeft(states) ? oursOf(contacts, states.recorded).length > 0 : recorded;
  return {
    states,
    rules,
    recorded,
    shown,
    contacts,
    former: states.former.map(({ row, seen: rows }) => pastOf(row, rows, rules.channels)),
    desired,
    person: {
      present: contacts.length > 0,
      // Somebody on the platform whom the CRM names is adopted, and so ours from now on.
      owned: Boolean(ours) || (contacts.length > 0 && named),
      left: contacts.some((contact) => contact.left),
      due: isDue(states, rules.absence),
      deletable: isDeletable(states, rules.absence, { recorded, contacts }),
    },
  };
}

function decideOne(decision: Decision, channel: string, facts: Facts): void {
  const { states, rules, person, desired, contacts } = facts;
  const known = {
    desired: desired.get(channel) ?? null,
    recorded: recordedIn(facts, channel),
    observed: strictestOf(contacts, channel),
    newer: rules.policy.resubscribe === 'newer' && outweighs(facts, channel),
  };
  const verdict = guarded(decideChannel(known, person, rules.policy), channel, facts);
  const about = verdict.row === 3 ? oursOf(contacts, states.recorded) : contacts;
  act(decision, verdict, { key: states.key, channel, contacts: about });
  if (!contradict(states.desired, channel)) return;
  const fault = contradiction(states.desired.length, channel);
  decision.problems.push(conflictProblem(states.key, channel, fault));
}

/** Whether what the CRM states is newer than the opt-out can be. */
function outweighs(facts: Facts, channel: string): boolean {
  const { desired, by } = facts.states;
  return isNewer(statedAt(desired, channel), seenNow(facts, channel), by);
}

/** What is known of somebody under a former address: what was recorded, and what is shown since. */
function pastOf(
  row: RecordedRow,
  rows: readonly ObservedRow[],
  all: readonly string[],
): RecordedContact {
  const recorded = recordedBody.parse(JSON.parse(row.body));
  const shown = rows.map((one) => observedBody.parse(JSON.parse(one.body)));
  const channels = { ...recorded.channels };
  for (const channel of all) {
    const sight = { present: shown.length > 0, before: row.seenAt, by: row.seenAt, changed: false };
    const is = seen(channels[channel], strictestOf(shown, channel), sight);
    if (is) channels[channel] = is;
  }
  return { ...recorded, contacts: [...recorded.contacts, ...shown], channels };
}

/** A reading without a certificate proves nobody gone: whom it does not name it says nothing of. */
function wishesOf({ desired, certified }: States, channels: readonly string[]): Map<string, Wish> {
  const silent = desired.length === 0 && !certified;
  return silent ? new Map<string, Wish>() : strictest(desired, channels);
}

/** The person's contacts as they are seen, or as they were when nothing was read. */
function contactsOf(states: States, recorded: RecordedContact | undefined): ObservedContact[] {
  if (states.observed.length > 0 || states.sight === 'listed') {
    return states.observed.map((row) => observedBody.parse(JSON.parse(row.body)));
  }
  return recorded && states.recorded?.id !== undefined ? recorded.contacts : [];
}

/** The channels on which the contact we made still shows the opt-out it was made with. */
function defaultsIn(
  shown: ObservedContact[],
  { recorded: row }: States,
  { defaults }: RecordedContact,
): string[] {
  const ours = shown.find((contact) => contact.id === row?.id);
  return defaults.filter((channel) => ours?.channels[channel] === 'opt_out');
}

function withoutDefaults(contact: ObservedContact, defaults: ReadonlySet<string>): ObservedContact {
  const said = Object.entries(contact.channels).filter(([channel]) => !defaults.has(channel));
  return { ...contact, channels: Object.fromEntries(said) };
}

/**
 * A person who left before vanishing is not made anew, whatever the policy on missing people says;
 * and who left under a former address stays out under the new one.
 */
function guarded(verdict: Verdict, channel: string, { recorded, former }: Facts): Verdict {
  if (verdict.do !== 'create' && verdict.do !== 'opt_in') return verdict;
  const leftThis = ({ contacts, channels }: RecordedContact): boolean => {
    const membership = channels[channel];
    const out = membership?.is === 'opt_out' && membership.by === 'platform';
    return out || contacts.some((contact) => contact.left);
  };
  if (former.some(leftThis)) return { row: beyond.formerAddress, do: 'conflict' };
  const vanished = verdict.do === 'create' && recorded;
  return vanished && leftThis(recorded) ? { row: beyond.leftBefore, do: 'conflict' } : verdict;
}

/**
 * A creation may bring channels along that nobody asked for; it says whether that would matter. And
 * whoever is brought in is looked at under former addresses, where nothing was listed just now; and
 * as they were, where an opt-out is outweighed.
 */
function markEnrolments(decision: Decision, { states, desired, recorded, shown }: Facts): void {
  const forbids = [...desired.values()].includes('opt_out');
  const former = states.former.flatMap(({ row: { key, id, shown }, seen: [now] }) =>
    id === undefined ? [] : [{ key, id, shown: now?.fingerprint ?? shown }],
  );
  const mark = (change: Change): Change => {
    if (change.op !== 'create' && change.op !== 'opt_in') return change;
    const isOut = recorded?.channels[change.part]?.made !== undefined;
    const changed = isOut ? shown[0]?.changed : undefined;
    return { ...change, body: canonicalJson({ forbids, former, changed }) };
  };
  decision.changes = decision.changes.map(mark);
}

/** Our opt-out was made on a contact that we know: one that stands on another is not ours. */
function recordedIn({ recorded, contacts }: Facts, channel: string): Membership | undefined {
  const membership = recorded?.channels[channel];
  if (membership?.is !== 'opt_out' || membership.by !== 'us') return membership;
  const isOther = ({ id, channels }: ObservedContact): boolean =>
    channels[channel] === 'opt_out' && !recorded?.contacts.some((known) => known.id === id);
  return contacts.some(isOther) ? undefined : membership;
}

/** What is recorded of a channel by what is seen of it now. */
function seenNow(facts: Facts, channel: string): Membership | undefined {
  const { states, recorded, shown, contacts } = facts;
  const known = recorded?.contacts ?? [];
  const isKnown = (contact: ObservedContact): boolean =>
    known.some(({ id, changed }) => id === contact.id && changed === contact.changed);
  return seen(recordedIn(facts, channel), strictestOf(contacts, channel), {
    present: contacts.length > 0,
    before: states.recorded?.seenAt ?? null,
    by: states.by,
    changed: !shown.every(isKnown),
  });
}

function noteOf(facts: Facts, isSettled: boolean): RecordedRow {
  const { states, rules, recorded, shown } = facts;
  const channels = { ...recorded?.channels };
  for (const channel of rules.channels) {
    const is = seenNow(facts, channel);
    if (is) channels[channel] = is;
  }
  const body: RecordedContact = {
    contacts: shown.length > 0 ? shown : (recorded?.contacts ?? []),
    defaults: recorded ? defaultsIn(shown, states, recorded) : [],
    channels,
  };
  const [row, twin] = states.desired;
  return {
    kind: 'contact',
    key: states.key,
    id: idOf(facts),
    ownership: ownershipOf(facts),
    body: canonicalJson(body),
    desired: isSettled && !twin && !row?.invalid ? row?.fingerprint : undefined,
    ...sightOf(states),
  };
}

/** The contact that is recorded, while it is there; another one only of somebody the CRM names. */
function idOf({ states, shown }: Facts): string | undefined {
  const before = shown.find((contact) => contact.id === states.recorded?.id);
  const isOther = states.recorded && hasLeft(states);
  return before?.id ?? (isOther ? undefined : shown[0]?.id);
}

/** Who was never named but as somebody who is gone is not ours; another contact is adopted anew. */
function ownershipOf(facts: Facts): RecordedRow['ownership'] {
  const before = facts.states.recorded;
  if (!before || before.ownership === 'noted') return hasLeft(facts.states) ? 'noted' : 'adopted';
  const id = idOf(facts);
  return id === undefined || id === before.id ? before.ownership : 'adopted';
}

function sightOf({ observed, sight, recorded, at }: States): Pick<RecordedRow, 'shown' | 'seenAt'> {
  if (observed.length === 0 && sight === 'assumed') {
    return { shown: recorded?.shown, seenAt: recorded?.seenAt ?? 0 };
  }
  return { shown: observed.length === 1 ? observed[0]?.fingerprint : undefined, seenAt: at };
}
