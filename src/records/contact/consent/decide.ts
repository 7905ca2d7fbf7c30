/** Decides what happens to one person: each channel first by the rules, then by the gates. */
import { type Change, type ChangeReason, guardOf, type Op } from '../../../domain/change.ts';
import type { RecordProblem } from '../../../domain/record-problem.ts';
import { type Entry, type Settlement, settlement } from '../../../domain/do-not-contact.ts';
import { canonicalJson, type Key, type RecordedRow } from '../../../domain/record.ts';
import { isUnmanagedCause, optsOutUnmanaged } from '../../../domain/unmanaged-people.ts';
import type { Decision, Stop } from '../../decision.ts';
import { notOursOf, oursOf, isFlagged, hasLeft, movedRows } from './absent-people.ts';
import { conflictOf, contradiction, renamedThere } from './conflicts.ts';
import { isErased, newsOfSight } from './do-not-contact-entries.ts';
import { channelFacts, factsOf, verdictIn, isProtectedByRecord } from './facts.ts';
import type { PersonFacts, PersonRules } from './person-facts.ts';
import { type AskedGate, newerWill, passGates } from './gates.ts';
import {
  overriddenBy,
  statingOut,
  withdrawsStated,
  isOperators,
  laterWill,
} from './own-opt-outs.ts';
import { replacedBy } from './past-consent.ts';
import { isDoubtful, leftSince } from './platform-opt-outs.ts';
import { elsewhereOf, renamedTargets, hiddenOptOuts } from './renamed-contact.ts';
import { decideChannel, ruleFor, rules as table, type Verdict } from './rules.ts';
import {
  type ContactStates,
  decodeContact,
  phase,
  emptyRecord,
  type EnrolmentBody,
  type Membership,
  type ObservedContact,
  type RecordedContactRow,
  type RecordedContact,
} from '../observe/contact-state.ts';
import { fingerprintsOf, fingerprintOf, isOurs, defaultsIn } from '../observe/observed-contact.ts';
import { contradict, statedAt, strictestOf, earlyTimes } from '../observe/consent-time.ts';
import type { Complaint } from '../../../domain/problem-causes.ts';

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
  if (facts.isProtected && facts.mayDelete) stops.push('protect');
  const stoppedBy = [...new Set(stops.filter((stop) => stop !== undefined))];
  decision.stoppedBy = stoppedBy;
  if (facts.renamed.length > 0 && [...facts.desired.values()].includes('opt_out')) {
    decision.problems.push(conflictProblem(states.key, '', renamedThere));
  }
  // After an interrupted erasure, nothing more is recorded for the person.
  const isForgotten = isErased(states.entries);
  // It follows whatever the CRM states for single channels, because opt-outs are sent first.
  if (facts.status.deletable || facts.replaced) {
    const says = isFlagged(facts.states) ? 'deleted' : 'gone';
    const rule = facts.status.deletable ? 'gone-deletable' : 'address-replaced';
    const reason = { rule, says, before: 'present' };
    // Where a contact names only the channels that it is in, one that is in others is theirs, too.
    const isShared = ({ others }: ObservedContact) => others && states.facts.namesAll === false;
    for (const contact of oursOf(facts.shown, states.recorded)) {
      if (isShared(contact)) continue;
      const shown = isForgotten ? fingerprintOf(contact) : undefined;
      const about = { channel: '', isMoved: facts.replaced, target: contact.id, shown, reason };
      decision.changes.push(changeOf(states.key, 'delete', about));
    }
  }
  markEnrolments(decision, facts);
  const isDone = decision.changes.length + decision.problems.length === 0;
  const isKnown = states.certified && !states.unchosen && states.lost.size === 0;
  const isSettled = isKnown && isDone && stoppedBy.length === 0;
  // An opt-out of ours is recorded, also if the contact is not ours.
  const isOptedOut = decision.changes.some(({ op }) => op === 'opt_out');
  const isTheirs = facts.status.present && facts.status.owned;
  const isNoted = facts.recorded !== undefined || isTheirs || hasEarly(states);
  if ((isNoted || isOptedOut) && !isForgotten) {
    decision.note = noteOf(facts, isSettled);
    const { ownership: before = 'noted' } = states.recorded ?? {};
    decision.adopts = before === 'noted' && decision.note.ownership !== 'noted';
  }
  const note = decision.note && decodeContact.recorded(decision.note);
  const isNamed = note !== undefined && states.desired.length > 0;
  const elsewhere = isNamed ? elsewhereOf(facts.renamed, facts.recorded, states.latest) : undefined;
  decision.news = newsOfSight(note, facts.seen, states.entries, elsewhere);
  if (states.unchosen && isIrrelevant(facts, decision)) decision.note = undefined;
  return decision;
}

/** Adds the changes and problems of a channel. Returns the setting that prevented one, if any. */
function planChannel(decision: Decision, channel: string, facts: PersonFacts): Stop | undefined {
  const { states } = facts;
  const { verdict, stop } = verdictIn(facts, channel);
  const conflict = (fault: Complaint): void => {
    // Nothing recorded leads from the address of an unmanaged person to the CRM.
    const crmId = isUnmanagedCause(fault.cause) ? states.desired[0]?.id : undefined;
    const urgent = fault.cause === 'renamed-claimed' && { urgent: true as const };
    decision.problems.push({ ...conflictProblem(states.key, channel, fault), crmId, ...urgent });
  };
  if (verdict.action === 'conflict') {
    const subject = {
      channel,
      isDoubtful: isDoubtful(facts.now.channels[channel], channel, states.facts),
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
  const isFirst = !decision.changes.some(({ op }) => op === 'create');
  decision.changes.push(...changesIn(channel, facts, verdict, isFirst));
  if (contradict(states.desired, channel) && !facts.operatorOut(channel)) {
    conflict(contradiction(states.desired.length, channel));
  }
  return stop;
}

/** Returns the changes in one channel. `isFirst`: no other channel is created yet. */
function changesIn(
  channel: string,
  facts: PersonFacts,
  verdict: Verdict,
  isFirst: boolean,
): Change[] {
  const { states, desired } = facts;
  const { action, by, cause } = verdict;
  const says = desired.get(channel) ?? undefined;
  const at = statedAt(states.desired, channel) ?? undefined;
  const plan = (op: Op, contact?: ObservedContact, why?: Why): Change => {
    const before = contact?.channels[channel] ?? 'none';
    const reason = { rule: by, says, statedAt: at, before };
    const about = { channel, isMoved: cause === 'address', target: contact?.id, why, reason };
    return changeOf(states.key, op, about);
  };
  if (action === 'opt_in') return [plan('opt_in', facts.contacts[0])];
  if (action === 'create') return [plan(isFirst ? 'create' : 'opt_in')];
  // A conflict with a renamed contact opts the other contacts out. So does a delete first, because
  // it may await approval or be refused.
  if (by !== 'renamed-claimed' && action !== 'opt_out' && action !== 'delete') return [];
  let why: Why = { cause: 'address' };
  if (cause === 'absence') why = { cause: isFlagged(states) ? 'flag' : 'absence' };
  if (cause === 'stated') {
    const moved = by === 'stated-for-new-address' ? movedRows(states) : [];
    const { stated, bound } = statingOut([...states.desired, ...moved], channel);
    why = { cause, stated, bound };
  }
  return contactsOf(facts, verdict, channel)
    .filter((contact) => contact.channels[channel] === 'opt_in')
    .map((contact) => plan('opt_out', contact, why));
}

/** The cause of an opt-out, the CRM records that state it, and all CRM records of the address. */
type Why = Pick<EnrolmentBody, 'cause' | 'stated' | 'bound' | 'restores' | 'undone'>;

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
 * Returns a change. `shown`: for a delete, what the contact showed if nothing is recorded of it.
 */
export function changeOf(
  key: Key,
  op: Op,
  about: {
    channel: string;
    isMoved: boolean;
    target?: string | undefined;
    reason: ChangeReason;
    why?: Why | undefined;
    shown?: string | undefined;
  },
): Change {
  const { channel: part, isMoved, target, why, shown, reason } = about;
  // Opt-outs that the CRM states have their own guard.
  const guard = guardOf({ kind: 'contact', op }, why?.cause === 'stated');
  const body = canonicalJson({ ...why, shown, moved: isMoved || undefined });
  const enrolment = op === 'opt_out' ? phase.optOut : phase.optIn;
  const order = op === 'delete' ? phase.delete : enrolment;
  return { kind: 'contact', key, op, part, target, body, phase: order, guard, why: reason };
}

function conflictProblem(key: Key, part: string, fault: Complaint): RecordProblem {
  return { kind: 'contact', key, class: 'conflict', part, ...fault };
}

/**
 * Completes the changes that create or opt in a contact. `forbids`: the creation may bring channels
 * with it, and the CRM wants an opt-out from one. `former`: contacts under former addresses, which
 * are read again before sending. `changed`: the contact when its opt-out, `overrides`, was
 * overridden. `withdraws`: the CRM had stated an opt-out that the change withdraws. `before` tells
 * when the contact changed last, so that a recovery can tell whether anything has happened since.
 */
function markEnrolments(decision: Decision, facts: PersonFacts): void {
  const { states, desired, recorded, shown } = facts;
  const forbids = [...desired.values()].includes('opt_out');
  const former = states.former
    .filter(({ row }) => row.id !== undefined)
    .map(({ row, seen: rows }) => ({ key: row.key, shown: fingerprintsOf(row, rows) }));
  const isAll = settles(states, decision) || undefined;
  const spellings = states.desired.map(({ value }) => value.spelling);
  const mark = (change: Change): Change => {
    if (change.op !== 'create' && change.op !== 'opt_in') return change;
    const is = recorded?.channels[change.part];
    const isOut = is?.made !== undefined || is?.settled !== undefined;
    const changed = isOut ? shown[0]?.changed : undefined;
    const newer = newerWill(facts, change.part);
    const parts = [change.part, replacedBy(change.part, facts.rules, facts.now.outgrown)];
    const isAbout = (entry: Entry) => isOperators(entry) && parts.includes(entry.part);
    const since = states.entries.some(isAbout) ? laterWill(states, change.part) : undefined;
    const past = facts.former.map(({ channels }) => channels[change.part]);
    const now = facts.now.channels[change.part];
    const withdraws = withdrawsStated(change.part, now, past, states) || undefined;
    const overrides = overriddenBy(states.desired, now, past);
    // The CRM's spelling of the address is not needed if a record has the key itself.
    const isSpelt = change.target === undefined && !spellings.includes(undefined);
    const spelling = isSpelt ? spellings[0] : undefined;
    const body = { changed, forbids, former, newer, overrides, settles: isAll, since, withdraws };
    const seen = shown.find(({ id }) => id === change.target)?.changed;
    const before = seen === undefined ? undefined : JSON.stringify(seen);
    return { ...change, body: canonicalJson({ ...body, spelling }), before };
  };
  decision.changes = decision.changes.map(mark);
}

/**
 * Returns whether a creation is the only change, and nothing else is known about the person: then
 * nothing is left to decide if the response shows just that (`settledNow` in acknowledged-change).
 */
export function settles(
  states: ContactStates,
  { changes: [change, ...others], problems }: { changes: Change[]; problems: RecordProblem[] },
): boolean {
  const { desired, entries, former, parked, certified, restored, lost } = states;
  const [row, twin] = desired;
  const isAlone = change?.op === 'create' && others.length + problems.length === 0;
  const isNew = entries.length + former.length + parked.length === 0;
  const isSure = certified && !restored && lost.size === 0;
  const isPlain = row !== undefined && !row.invalid && !twin;
  return isAlone && isNew && isSure && isPlain;
}

/**
 * Returns whether nothing need be recorded about a person that a limited run leaves alone. Our own
 * opt-outs are recorded, and who was subscribed: it proves a later opt-out to be the person's.
 */
function isIrrelevant(facts: PersonFacts, { changes }: Decision): boolean {
  const { contacts, states, rules } = facts;
  const isIn = (channel: string) => contacts.some(({ channels }) => channels[channel] === 'opt_in');
  const wasSeenIn = states.desired.length > 0 && rules.channels.some(isIn);
  const isNew = states.recorded === undefined && changes.length === 0;
  return isNew && !wasSeenIn && !hasEarly(states);
}

function hasEarly({ desired }: ContactStates): boolean {
  return desired.some(({ value }) => value.early === true);
}

/** Returns the row to record. `isSettled`: no new decision until something changes. */
function noteOf(facts: PersonFacts, isSettled: boolean): RecordedRow {
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
  // Another contact takes the place of the recorded one only if the CRM contains the person.
  const same = shown.find((contact) => contact.id === before?.id);
  const id = same?.id ?? (before && isGone ? undefined : shown[0]?.id);
  // The next run makes a new decision about the person if no fingerprint is recorded.
  const isLost = states.lost.size > 0 && states.desired.length === 0;
  const isAlone = !isLost && id !== undefined && shown.length === 1;
  const sight =
    isUnseen && !isLost
      ? { shown: before?.shown, seenAt: before?.seenAt ?? 0 }
      : { shown: isAlone ? states.observed[0]?.fingerprint : undefined, seenAt: states.at };
  // Until an operator's opt-out of a person who is gone is done, each full comparison decides
  // again.
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
 * person: a line of a broken file may only look like a record. With another id, it is adopted.
 */
function ownershipOf(facts: PersonFacts, id: string | undefined): RecordedRow['ownership'] {
  const { recorded: before, desired, unchosen, certified } = facts.states;
  const isNamed = certified && desired.length > 0 && !hasLeft(facts.states) && !unchosen;
  // After a revoked erasure, or with only a time of consent, there may never have been a contact.
  const isKnown = facts.shown.length > 0 || (before?.value.contacts ?? []).length > 0;
  if (!before || before.ownership === 'noted') return isNamed && isKnown ? 'adopted' : 'noted';
  return [undefined, before.id].includes(id) ? before.ownership : 'adopted';
}

/**
 * Lets any record withdraw the opt-outs that the CRM stated and we made, as `allow` does. Returns
 * the row and the released channels; undefined if there are none. The person's own remain.
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
 * Returns what stays recorded of a person whose contact vanished: the contacts with another address
 * now, because nothing else tells our opt-outs of them from the person's own. Undefined: none.
 */
export function withoutVanished({
  value: { renamed },
  ...row
}: RecordedContactRow): RecordedRow | undefined {
  if (!renamed) return undefined;
  const body = canonicalJson({ ...emptyRecord, renamed });
  return { ...row, ownership: 'noted', body, desired: undefined };
}

/** Returns the row of a person whose erasure was revoked; `row` is the recorded one, if any. */
export function unerased(key: Key, row: RecordedContactRow | undefined): RecordedRow {
  const body = canonicalJson({ ...(row?.value ?? emptyRecord), allowed: true });
  const { kind = 'contact', id, ownership = 'noted', shown, seenAt = 0 } = row ?? {};
  return { kind, key, id, ownership, body, shown, desired: undefined, seenAt };
}

/** Explains a decision by applying the same rules and gates to the same facts as `decidePerson`. */
export function explainPerson(states: ContactStates, rules: PersonRules) {
  const facts = factsOf(states, rules);
  return {
    status: facts.status,
    channels: rules.channels.map((channel) => {
      const asked = channelFacts(facts, channel);
      const matching = ruleFor(asked);
      const last = matching ? table.findIndex(({ id }) => id === matching.id) : table.length;
      const tried = table.slice(0, last + 1).map((rule, at) => ({ rule, matches: at === last }));
      const tested: AskedGate[] = [];
      const decided = decideChannel(asked);
      const passed = passGates({ person: facts, channel, asked }, decided, (one) =>
        tested.push(one),
      );
      // While it holds; null if nobody settled the channel.
      const settlement = settlementOf(facts.now.channels[channel], facts.operatorOut(channel));
      // Whosever contact it is; of a gone person, `asked` has only ours.
      const shows = strictestOf(facts.contacts, channel);
      return { channel, asked, shows, tried, gates: tested, settlement, ...passed };
    }),
  };
}

/** Returns how an operator settled a channel, or null; of an unreadable note, only the time. */
function settlementOf(
  membership: Membership | undefined,
  entry: Entry | undefined,
): (Settlement & { as: 'in' | 'out' }) | null {
  if (entry) {
    const none = { at: entry.by, by: '', reason: '', evidence: '' };
    const found = settlement.safeParse(JSON.parse(entry.note ?? 'null'));
    return { as: 'out', ...(found.success ? found.data : none) };
  }
  const settled = membership?.is === 'opt_out' ? membership.settled : undefined;
  return settled ? { as: 'in', ...settlement.parse(settled) } : null;
}
