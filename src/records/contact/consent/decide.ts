/** Decides what happens to one person: each channel first by the rules, then by the gates. */
import { type Change, type ChangeReason, guardOf, type Op } from '../../../domain/change.ts';
import type { RecordProblem } from '../../../domain/record-problem.ts';
import { canonicalJson, type Key } from '../../../domain/record.ts';
import { isUnmanagedCause, optsOutUnmanaged } from '../../../domain/unmanaged-people.ts';
import { decodedStates } from '../../decoded-rows.ts';
import type { Decision, States, Stop } from '../../record-type.ts';
import { notOursOf, oursOf } from './our-contacts.ts';
import { isFlagged } from './absence.ts';
import { movedRows } from './changed-address.ts';
import { type Conflict, conflictOf, contradiction, renamedThere } from './conflicts.ts';
import { isErased, newsOfSight } from './do-not-contact-entries.ts';
import { channelFacts, factsOf, verdictIn } from './facts.ts';
import type { PersonFacts, PersonRules } from './person-facts.ts';
import { gates, newerWill } from './gates.ts';
import { overriddenBy, statingOut, withdrawsStated } from './own-opt-outs.ts';
import { isDoubtful } from './platform-opt-outs.ts';
import { isIrrelevant, isToRecord, noteOf } from './recorded-note.ts';
import { elsewhereOf, renamedTargets } from './renamed-contact.ts';
import { isOperators, laterWill } from './settlements.ts';
import { decideChannel, rules as table, type Verdict } from './rules.ts';
import {
  type ContactStates,
  decodeContact,
  type DesiredContactRow,
} from '../observe/contact-rows.ts';
import type { EnrolmentBody, ObservedContact } from '../observe/contact-state.ts';
import { settles } from '../observe/converged-creation.ts';
import { fingerprintsOf } from '../observe/last-observed.ts';
import { fingerprintOf } from '../observe/observed-contact.ts';
import { contradict } from '../observe/strictest-consent.ts';
import { statedAt } from '../observe/consent-statement.ts';

/** The order in which a person's changes are sent: opt-outs first, deletes last. */
export const phase = { optOut: 0, optIn: 1, delete: 2 } as const;

/** Decides about one person from what is known about them. The function is pure. */
export function decidePerson(states: ContactStates, rules: PersonRules): Decision {
  const facts = factsOf(states, rules);
  const decision: Decision = {
    changes: [],
    note: undefined,
    adopts: false,
    forgets: [],
    problems: [],
  };
  const stops = rules.channels.map((channel) => planChannel(decision, channel, facts));
  decision.stoppedBy = stopsOf(facts, stops);
  if (facts.renamed.length > 0 && [...facts.desired.values()].includes('opt_out')) {
    decision.problems.push(conflictProblem(states.key, '', renamedThere));
  }
  // After an interrupted erasure, nothing more is recorded for the person.
  const isForgotten = isErased(states.entries);
  if (facts.status.deletable || facts.replaced) planDeletes(decision, facts, isForgotten);
  markEnrolments(decision, facts);
  const isDone = decision.changes.length + decision.problems.length === 0;
  const isAllowed = decision.stoppedBy.length === 0;
  const isKnown = states.certified && !states.unchosen && states.lost.size === 0;
  const isSettled = isKnown && isDone && isAllowed;
  // An opt-out of ours is recorded, also if the contact is not ours.
  const isOptedOut = decision.changes.some(({ op }) => op === 'opt_out');
  if ((isToRecord(facts) || isOptedOut) && !isForgotten) {
    decision.note = noteOf(facts, isSettled);
    const { ownership: before = 'noted' } = states.recorded ?? {};
    decision.adopts = before === 'noted' && decision.note.ownership !== 'noted';
  }
  const note = decision.note && decodeContact.recorded(decision.note);
  const isNamed = note !== undefined && states.desired.length > 0;
  const elsewhere = isNamed ? elsewhereOf(facts.renamed, facts.recorded, states.latest) : undefined;
  decision.news = newsOfSight(note, facts.seen, { entries: states.entries, elsewhere });
  if (states.unchosen && isIrrelevant(facts, decision)) decision.note = undefined;
  return decision;
}

/** Returns the settings that prevent a change for the person, each once. */
function stopsOf({ isProtected, mayDelete }: PersonFacts, stops: (Stop | undefined)[]): Stop[] {
  const found = stops.filter((stop) => stop !== undefined);
  return [...new Set(isProtected && mayDelete ? [...found, 'protect' as const] : found)];
}

/**
 * Adds the changes and problems of one channel. Returns the setting that prevented a change, if
 * any.
 */
function planChannel(decision: Decision, channel: string, facts: PersonFacts): Stop | undefined {
  const { states } = facts;
  const { verdict, stop } = verdictIn(facts, channel);
  const conflict = (fault: Conflict): void => {
    // Nothing recorded leads from the address of an unmanaged person to the CRM.
    const crmId = isUnmanagedCause(fault.cause) ? states.desired[0]?.id : undefined;
    const urgent = fault.cause === 'renamed-claimed' && { urgent: true as const };
    decision.problems.push({ ...conflictProblem(states.key, channel, fault), crmId, ...urgent });
  };
  if (verdict.action === 'conflict') {
    const isUnsure = isDoubtful(facts.now.channels[channel], channel, states.facts);
    const subject = {
      channel,
      isDoubtful: isUnsure,
      contacts: facts.contacts.length,
      isRenamed: facts.renamed.length > 0,
      isProtected: facts.isProtected,
    };
    conflict(conflictOf(verdict.by, subject));
  }
  // Until the opt-out is acknowledged, the decision stays with the problem.
  if (verdict.by === 'unmanaged-out') {
    const { by } = decideChannel(channelFacts(facts, channel));
    const subject = { channel, isDoubtful: false, contacts: 1, isRenamed: false };
    conflict({ ...conflictOf(by, subject), fix: optsOutUnmanaged });
  }
  decision.changes.push(...changesOf(decision, { facts, channel, verdict }));
  if (contradict(states.desired, channel) && !facts.operatorOut(channel)) {
    conflict(contradiction(states.desired.length, channel));
  }
  return stop;
}

interface Decided {
  facts: PersonFacts;
  channel: string;
  verdict: Verdict;
}

/**
 * Returns the changes in one channel that implement the verdict. A delete concerns the whole person
 * and is planned elsewhere.
 */
function changesOf(decision: Decision, { facts, channel, verdict }: Decided): Change[] {
  const { key } = facts.states;
  const isMoved = verdict.cause === 'address';
  const about = { channel, isMoved };
  const reason = reasonIn(facts, verdict, channel);
  if (verdict.action === 'opt_in') {
    const [contact] = facts.contacts;
    return [changeOf(key, 'opt_in', { ...about, target: contact?.id, reason: reason(contact) })];
  }
  if (verdict.action === 'create') {
    const isFirst = !decision.changes.some(({ op }) => op === 'create');
    return [changeOf(key, isFirst ? 'create' : 'opt_in', { ...about, reason: reason() })];
  }
  // Even if a renamed contact causes a conflict, the person's other contacts are opted out.
  const optsOut = verdict.by === 'renamed-claimed' || isOut(verdict);
  if (!optsOut) return [];
  // A delete opts out first, because it may await approval or be refused.
  const why = whyOf(facts, verdict, channel);
  return contactsOf(facts, verdict, channel)
    .filter((contact) => contact.channels[channel] === 'opt_in')
    .map((contact) => {
      const of = { ...about, target: contact.id, why, reason: reason(contact) };
      return changeOf(key, 'opt_out', of);
    });
}

function isOut({ action }: Verdict): boolean {
  return action === 'opt_out' || action === 'delete';
}

/** The cause of an opt-out, the CRM records that state it, and all CRM records of the address. */
type Why = Pick<EnrolmentBody, 'cause' | 'stated' | 'bound' | 'restores' | 'undone'>;

function whyOf({ states }: PersonFacts, { cause, by }: Verdict, channel: string): Why {
  if (cause === 'address') return { cause: 'address' };
  if (cause === 'absence') return { cause: isFlagged(states) ? 'flag' : 'absence' };
  const moved = by === 'stated-for-new-address' ? movedRows(states) : [];
  const { stated, bound } = statingOut([...states.desired, ...moved], channel);
  return { cause: 'stated', stated, bound };
}

/** Returns the contacts to which an opt-out applies if they are subscribed. */
function contactsOf(facts: PersonFacts, verdict: Verdict, channel: string): ObservedContact[] {
  const { states, contacts } = facts;
  if (verdict.by === 'unmanaged-out') return notOursOf(contacts, states.recorded);
  const ours = oursOf(contacts, states.recorded);
  if (verdict.cause === 'absence') return ours;
  const isDeleted = verdict.by === 'address-replaced' && !states.parked.includes('');
  if (isDeleted) return contacts.filter((contact) => !ours.includes(contact));
  const isOwnWord = verdict.cause === 'stated' && verdict.by !== 'stated-for-new-address';
  return isOwnWord ? [...contacts, ...renamedTargets(facts.renamed, channel).contacts] : contacts;
}

/**
 * Adds the deletion of our contact. It follows from `gone-deletable` or `address-replaced`,
 * regardless of what the CRM states for single channels, because the opt-outs are sent first.
 */
function planDeletes(decision: Decision, facts: PersonFacts, isForgotten: boolean): void {
  const { states, shown, replaced: isMoved } = facts;
  const says = isFlagged(states) ? 'deleted' : 'gone';
  const reason = { rule: deletingRule(facts), says, before: 'present' };
  for (const contact of oursOf(shown, states.recorded)) {
    const seen = isForgotten ? fingerprintOf(contact) : undefined;
    const about = {
      channel: '',
      isMoved,
      target: contact.id,
      shown: seen,
      reason,
    };
    decision.changes.push(changeOf(states.key, 'delete', about));
  }
}

interface About {
  channel: string;
  isMoved: boolean;
  target?: string | undefined;
  reason: ChangeReason;
  why?: Why;
  /** For a delete: the contact's observed fingerprint, if nothing about the contact is recorded. */
  shown?: string | undefined;
}

/** Returns a change in the form in which plans and the journal hold it. */
export function changeOf(key: Key, op: Op, about: About): Change {
  const { channel: part, isMoved, target, why, shown, reason } = about;
  // Opt-outs that the CRM states have their own guard.
  const guard = guardOf({ kind: 'contact', op }, why?.cause === 'stated');
  const body = canonicalJson({ ...why, shown, moved: isMoved || undefined });
  return { kind: 'contact', key, op, part, target, body, phase: phaseOf(op), guard, why: reason };
}

function phaseOf(op: Op): number {
  if (op === 'opt_out') return phase.optOut;
  return op === 'delete' ? phase.delete : phase.optIn;
}

function conflictProblem(key: Key, part: string, fault: Conflict): RecordProblem {
  return { kind: 'contact', key, class: 'conflict', part, ...fault };
}

/**
 * Completes the changes that create or opt in a contact. `forbids`: the creation may bring channels
 * with it, and the CRM wants an opt-out from one. `former`: the contacts under former addresses,
 * which are read again before sending. `changed`: the contact as it was when its opt-out was
 * overridden. `overrides`: that opt-out. `withdraws`: the CRM had stated an opt-out that the change
 * withdraws.
 */
function markEnrolments(decision: Decision, facts: PersonFacts): void {
  const { states, desired, recorded, shown } = facts;
  const forbids = [...desired.values()].includes('opt_out');
  const former = states.former
    .filter(({ row }) => row.id !== undefined)
    .map(({ row, seen: rows }) => ({ key: row.key, shown: fingerprintsOf(row, rows) }));
  const isAll = settles(states, decision) || undefined;
  const mark = (change: Change): Change => {
    if (change.op !== 'create' && change.op !== 'opt_in') return change;
    const is = recorded?.channels[change.part];
    const isOut = is?.made !== undefined || is?.settled !== undefined;
    const changed = isOut ? shown[0]?.changed : undefined;
    const newer = newerWill(facts, change.part);
    const since = states.entries.some(isOperators) ? laterWill(states, change.part) : undefined;
    const past = facts.former.map(({ channels }) => channels[change.part]);
    const now = facts.now.channels[change.part];
    const withdraws = withdrawsStated(change.part, now, past, states) || undefined;
    const overrides = overriddenBy(states.desired, now, past);
    const spelling = change.target === undefined ? spellingIn(states.desired) : undefined;
    const body = { changed, forbids, former, newer, overrides, settles: isAll, since, withdraws };
    return { ...change, body: canonicalJson({ ...body, spelling }) };
  };
  decision.changes = decision.changes.map(mark);
}

/** Returns the CRM's spelling of the address; undefined if a record has the key itself. */
function spellingIn(rows: readonly DesiredContactRow[]): string | undefined {
  const spellings = rows.map(({ value }) => value.spelling);
  return spellings.includes(undefined) ? undefined : spellings[0];
}

/** Returns the words of the rule or gate that calls for a change. */
export function reasonFor({ op, part }: Change, states: States, rules: PersonRules): string {
  const facts = factsOf(decodedStates(states, decodeContact), rules);
  const by = op === 'delete' ? deletingRule(facts) : verdictIn(facts, part).verdict.by;
  return [...table, ...gates].find(({ id }) => id === by)?.asks ?? '';
}

/** Returns a function that says, for one contact, why a change in a channel is planned. */
function reasonIn({ states, desired }: PersonFacts, { by }: Verdict, channel: string) {
  const says = desired.get(channel) ?? undefined;
  const at = statedAt(states.desired, channel) ?? undefined;
  return (contact?: ObservedContact): ChangeReason => ({
    rule: by,
    says,
    statedAt: at,
    before: contact?.channels[channel] ?? 'none',
  });
}

/** Returns the rule that calls for a deletion. */
function deletingRule({ status }: PersonFacts): string {
  return status.deletable ? 'gone-deletable' : 'address-replaced';
}
