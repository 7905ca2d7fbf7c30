/** What to do about one person: every channel through the truth table, and what is known afterwards. */
import type { Change } from '../../model/change.ts';
import {
  canonicalJson,
  type DesiredRow,
  type Fault,
  type Key,
  type RecordedRow,
} from '../../model/record.ts';
import type { Subscription } from '../../platform/request.ts';
import type { Decision, States } from '../kind.ts';
import { decideChannel, seen, type ConsentPolicy, type Person, type Verdict } from './decide.ts';
import {
  desiredBody,
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
  const recorded = states.recorded && recordedBody.parse(JSON.parse(states.recorded.body));
  const contacts = contactsOf(states, recorded);
  const former = states.former.map((row) => recordedBody.parse(JSON.parse(row.body)));
  const pasts = { recorded, former };
  const desired = strictest(states.desired, rules.channels);
  const person: Person = {
    present: contacts.length > 0,
    owned: states.recorded !== undefined,
    left: contacts.some((contact) => contact.left),
    due: false,
  };
  const decision: Decision = {
    changes: [],
    note: undefined,
    adopts: false,
    forgets: [],
    problems: [],
  };
  for (const channel of rules.channels) {
    const known = {
      desired: desired.get(channel) ?? null,
      recorded: recorded?.channels[channel],
      observed: strictestOf(contacts, channel),
    };
    const verdict = guarded(decideChannel(known, person, rules.policy), channel, pasts);
    act(decision, verdict, { key: states.key, channel, contacts });
  }
  const dropped = states.certified
    ? []
    : decision.changes.filter((change) => change.op !== 'opt_out');
  decision.changes = decision.changes.filter((change) => !dropped.includes(change));
  const gone = [...desired.values()].every((wish) => wish === 'gone');
  if (states.recorded || (person.present && !gone)) {
    const settled =
      decision.changes.length + decision.problems.length + dropped.length === 0 && states.certified;
    decision.note = noteOf(states, { recorded, contacts, settled, channels: rules.channels });
    decision.adopts = states.recorded === undefined;
  }
  return decision;
}

/** The person's contacts as they are seen, or as they were when nothing was read. */
function contactsOf(states: States, recorded: RecordedContact | undefined): ObservedContact[] {
  if (states.observed.length > 0 || states.sight === 'listed') {
    return states.observed.map((row) => observedBody.parse(JSON.parse(row.body)));
  }
  return recorded && states.recorded?.id !== undefined ? [recorded.observed] : [];
}

type Wish = Subscription | 'gone' | null;

/**
 * The strictest of several CRM records of one address, per channel: any opt-out wins, also one that
 * a deleted or an invalid record states; an invalid twin allows no opt-in. The person is gone only
 * when every record is.
 */
function strictest(rows: readonly DesiredRow[], channels: readonly string[]): Map<string, Wish> {
  const records = rows.map((row) => ({ row, body: desiredBody.parse(JSON.parse(row.body)) }));
  const living = records.filter(({ row, body }) => row.invalid || !body.gone);
  const broken = rows.some((row) => row.invalid);
  const wishOf = (channel: string): Wish => {
    if (records.some(({ body }) => body.channels[channel] === 'opt_out')) return 'opt_out';
    if (living.length === 0) return 'gone';
    const wanted = living.some(({ body }) => body.channels[channel] === 'opt_in');
    return wanted && !broken ? 'opt_in' : null;
  };
  return new Map(channels.map((channel) => [channel, wishOf(channel)]));
}

/** Several contacts of one address: an opt-out on any of them is the person's. */
function strictestOf(contacts: ObservedContact[], channel: string): Subscription | undefined {
  const shown = contacts.map((contact) => contact.channels[channel]);
  if (shown.includes('opt_in'))
    return shown.every((is) => is === 'opt_in') ? 'opt_in' : mixed(shown);
  return shown.find((is) => is !== undefined);
}

/** Some are in, some are not: nobody is opted in on such ground, and an opt-out still has work to do. */
function mixed(shown: (Subscription | undefined)[]): Subscription {
  return shown.includes('opt_out') ? 'opt_out' : 'opt_in';
}

interface Pasts {
  recorded: RecordedContact | undefined;
  /** The same person under former addresses. */
  former: RecordedContact[];
}

/**
 * A person who left before vanishing is not made anew, whatever the policy on missing people says;
 * and who left under a former address stays out under the new one.
 */
function guarded(verdict: Verdict, channel: string, { recorded, former }: Pasts): Verdict {
  const leftThis = (past: RecordedContact): boolean => {
    const membership = past.channels[channel];
    return past.observed.left || (membership?.is === 'opt_out' && membership.by === 'platform');
  };
  const vanished = verdict.do === 'create' && recorded && leftThis(recorded);
  const brings = verdict.do === 'create' || verdict.do === 'opt_in';
  if (brings && former.some(leftThis)) return { row: formerAddress, do: 'conflict' };
  return vanished ? { row: verdict.row, do: 'conflict' } : verdict;
}

/** Beyond the rows of the table: the opt-out stands under a former address of the same CRM record. */
const formerAddress = 19;

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
    decision.problems.push({ kind: 'contact', key, class: 'conflict', part: channel, ...fault });
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

function noteOf(
  states: States,
  known: {
    recorded: RecordedContact | undefined;
    contacts: ObservedContact[];
    settled: boolean;
    channels: readonly string[];
  },
): RecordedRow | undefined {
  const { recorded, contacts } = known;
  const first = contacts[0];
  const observed = first ?? recorded?.observed;
  if (!observed) return undefined;
  const read = states.observed.length > 0 || states.sight === 'listed';
  const channels = { ...recorded?.channels };
  for (const channel of known.channels) {
    const shown = strictestOf(contacts, channel);
    const is = seen(recorded?.channels[channel], shown, first !== undefined);
    if (is) channels[channel] = is;
  }
  const body: RecordedContact = { observed, channels };
  const only = states.desired.length === 1 ? states.desired[0] : undefined;
  return {
    kind: 'contact',
    key: states.key,
    id: first?.id,
    ownership: states.recorded?.ownership ?? 'adopted',
    body: canonicalJson(body),
    shown: read
      ? states.observed.length === 1
        ? states.observed[0]?.fingerprint
        : undefined
      : states.recorded?.shown,
    desired: known.settled && !only?.invalid ? only?.fingerprint : undefined,
    seenAt: read ? states.at : (states.recorded?.seenAt ?? 0),
  };
}

function severalContacts(count: number, channel: string): Fault {
  return {
    reason: `${channel}: ${count} contacts on the platform share this address, so nobody is opted in`,
    fix: 'delete all but one of them on the platform',
  };
}

/** Why a row of the table is a conflict, in words, and what a person can do about it. */
function conflictOf(row: number, channel: string): Fault {
  const asTheyWish = 'record the opt-out in the CRM; only the person can come back';
  switch (row) {
    case 9:
      return {
        reason: `${channel}: unsubscribed from all mail, blocked or suppressed on the platform`,
        fix: asTheyWish,
      };
    case 11:
      return {
        reason: `${channel}: the contact vanished on the platform`,
        fix: 'remove the person from the CRM, or set policy.missing to recreate if they should come back',
      };
    case formerAddress:
      return {
        reason: `${channel}: the person left under a former address`,
        fix: asTheyWish,
      };
    case 14:
    case 18:
      return {
        reason: `${channel}: the subscription was taken away on the platform`,
        fix: asTheyWish,
      };
    default:
      return {
        reason: `${channel}: the person left this channel on the platform`,
        fix: asTheyWish,
      };
  }
}
