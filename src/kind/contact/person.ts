/** What to do about one person: every channel through the truth table, and what is known afterwards. */
import type { Change } from '../../model/change.ts';
import type { Problem } from '../../model/problem.ts';
import { canonicalJson, type Fault, type Key, type RecordedRow } from '../../model/record.ts';
import type { Decision, States } from '../kind.ts';
import { conflictOf, contradiction, formerAddress, severalContacts } from './conflict.ts';
import { decideChannel, seen, type ConsentPolicy, type Person, type Verdict } from './decide.ts';
import { contradict, strictest, strictestOf, type Wish } from './strictest.ts';
import {
  observedBody,
  recordedBody,
  type ObservedContact,
  type RecordedContact,
} from './record.ts';

export interface PersonRules {
  /** Configured channels, in the order of the configuration. */
  channels: readonly string[];
  policy: ConsentPolicy;
}

/** Phases of a person's changes: opt-outs first, deletes last. */
export const phase = { optOut: 0, optIn: 1, delete: 2 } as const;

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
  const allowed = ({ op }: Change): boolean => states.certified || op === 'opt_out';
  const isSettled = states.certified && decision.changes.length + decision.problems.length === 0;
  decision.changes = decision.changes.filter(allowed);
  const gone = [...facts.desired.values()].every((wish) => wish === 'gone');
  if (states.recorded || (facts.person.present && !gone)) {
    decision.note = noteOf(facts, isSettled);
    decision.adopts = states.recorded === undefined;
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
  contacts: ObservedContact[];
}

function factsOf(states: States, rules: PersonRules): Facts {
  const recorded = states.recorded && recordedBody.parse(JSON.parse(states.recorded.body));
  const contacts = contactsOf(states, recorded);
  return {
    states,
    rules,
    recorded,
    contacts,
    former: states.former.map((row) => recordedBody.parse(JSON.parse(row.body))),
    desired: strictest(states.desired, rules.channels),
    person: {
      present: contacts.length > 0,
      owned: recorded !== undefined,
      left: contacts.some((contact) => contact.left),
      due: false,
    },
  };
}

function decideOne(decision: Decision, channel: string, facts: Facts): void {
  const { states, rules, person, desired, recorded, contacts } = facts;
  const known = {
    desired: desired.get(channel) ?? null,
    recorded: recorded?.channels[channel],
    observed: strictestOf(contacts, channel),
  };
  const verdict = guarded(decideChannel(known, person, rules.policy), channel, facts);
  act(decision, verdict, { key: states.key, channel, contacts });
  if (!contradict(states.desired, channel)) return;
  const fault = contradiction(states.desired.length, channel);
  decision.problems.push(conflictProblem(states.key, channel, fault));
}

/** The person's contacts as they are seen, or as they were when nothing was read. */
function contactsOf(states: States, recorded: RecordedContact | undefined): ObservedContact[] {
  if (states.observed.length > 0 || states.sight === 'listed') {
    return states.observed.map((row) => observedBody.parse(JSON.parse(row.body)));
  }
  return recorded && states.recorded?.id !== undefined ? [recorded.observed] : [];
}

/**
 * A person who left before vanishing is not made anew, whatever the policy on missing people says;
 * and who left under a former address stays out under the new one.
 */
function guarded(verdict: Verdict, channel: string, { recorded, former }: Facts): Verdict {
  const leftThis = (past: RecordedContact): boolean => {
    const membership = past.channels[channel];
    return past.observed.left || (membership?.is === 'opt_out' && membership.by === 'platform');
  };
  const vanished = verdict.do === 'create' && recorded && leftThis(recorded);
  const brings = verdict.do === 'create' || verdict.do === 'opt_in';
  if (brings && former.some(leftThis)) return { row: formerAddress, do: 'conflict' };
  return vanished ? { row: verdict.row, do: 'conflict' } : verdict;
}

function conflictProblem(key: Key, part: string, fault: Fault): Problem {
  return { kind: 'contact', key, class: 'conflict', part, ...fault };
}

function act(
  decision: Decision,
  verdict: Verdict,
  { key, channel, contacts }: { key: Key; channel: string; contacts: ObservedContact[] },
): void {
  const change = (op: Change['op'], at: number, target?: string): Change => {
    const subscription = op === 'opt_out' ? 'opt_out' : 'opt_in';
    const body = canonicalJson({ channel, subscription });
    return { kind: 'contact', key, op, part: channel, target, body, phase: at };
  };
  const conflict = (fault: Fault): void => {
    decision.problems.push(conflictProblem(key, channel, fault));
  };
  const several = contacts.length > 1;
  if (verdict.do === 'conflict') conflict(conflictOf(verdict.row, channel));
  else if (verdict.do === 'opt_in' && several) conflict(severalContacts(contacts.length, channel));
  else if (verdict.do === 'opt_in') {
    decision.changes.push(change('opt_in', phase.optIn, contacts[0]?.id));
  } else if (verdict.do === 'create') {
    const first = !decision.changes.some(({ op }) => op === 'create');
    decision.changes.push(change(first ? 'create' : 'opt_in', phase.optIn));
  }
  if (verdict.row === 6 || verdict.row === 7 || verdict.do === 'opt_out') {
    const subscribed = contacts.filter((contact) => contact.channels[channel] === 'opt_in');
    decision.changes.push(...subscribed.map(({ id }) => change('opt_out', phase.optOut, id)));
  }
  if (verdict.do === 'delete' && !decision.changes.some(({ op }) => op === 'delete')) {
    decision.changes.push(
      ...contacts.map(({ id }) => ({ ...change('delete', phase.delete, id), part: '' })),
    );
  }
}

function noteOf(facts: Facts, isSettled: boolean): RecordedRow | undefined {
  const { states, rules, recorded, contacts } = facts;
  const first = contacts[0];
  const observed = first ?? recorded?.observed;
  if (!observed) return undefined;
  const read = states.observed.length > 0 || states.sight === 'listed';
  const channels = { ...recorded?.channels };
  for (const channel of rules.channels) {
    const shown = strictestOf(contacts, channel);
    const is = seen(recorded?.channels[channel], shown, first !== undefined);
    if (is) channels[channel] = is;
  }
  const body: RecordedContact = { observed, channels };
  const [row, twin] = states.desired;
  const [listed, double] = states.observed;
  return {
    kind: 'contact',
    key: states.key,
    id: first?.id,
    ownership: states.recorded?.ownership ?? 'adopted',
    body: canonicalJson(body),
    shown: read ? (double ? undefined : listed?.fingerprint) : states.recorded?.shown,
    desired: isSettled && !twin && !row?.invalid ? row?.fingerprint : undefined,
    seenAt: read ? states.at : (states.recorded?.seenAt ?? 0),
  };
}
