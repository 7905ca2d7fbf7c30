/**
 * What to do about one person: every channel through the truth table, and what is known afterwards.
 */
import type { Change } from '../../model/change.ts';
import { canonicalJson, type RecordedRow } from '../../model/record.ts';
import type { Decision, States } from '../kind.ts';
import { hasLeft, isDue, mayDelete, oursOf, type AbsenceRules } from './absence.ts';
import { act, conflictProblem, remove } from './act.ts';
import { beyond, contradiction } from './conflict.ts';
import {
  decideChannel,
  isNewer,
  type ChannelStates,
  type ConsentPolicy,
  type Person,
  type Sight,
  type Verdict,
} from './decide.ts';
import { leftSince } from './left.ts';
import { hasMoved, isAwaited, isForbidden, isReplaced } from './moved.ts';
import { isChanged } from './observe.ts';
import {
  distrusted,
  guarded,
  memberships,
  outgrown,
  pastOf,
  recordedIn,
  type Channels,
} from './past.ts';
import { forbids, isErased, isOver, newsOfSight } from './remember.ts';
import { settles } from './settles.ts';
import { contactsOf, defaultsIn, fingerprintsOf, saidOf } from './shown.ts';
import { contradict, statedAt, strictest, strictestOf, type Wish } from './strictest.ts';
import {
  observedBody,
  recordedBody,
  type ObservedContact,
  type RecordedContact,
} from './record.ts';

export interface PersonRules extends Channels {
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
  // What an erasure that was cut short has done is nobody's will, and nothing more is kept of her.
  const isForgotten = isErased(states.entries);
  for (const channel of rules.channels) decideOne(decision, channel, facts);
  if (facts.person.deletable || facts.replaced) {
    const ours = oursOf(facts.shown, states.recorded);
    const leaving = { key: states.key, contacts: ours, isMoved: facts.replaced };
    remove(decision, { ...leaving, isKept: !isForgotten });
  }
  markEnrolments(decision, facts);
  const allowed = ({ op }: Change): boolean => states.certified || op === 'opt_out';
  const isDone = decision.changes.length + decision.problems.length === 0;
  const isSettled = states.certified && isDone && states.lost.size === 0;
  decision.changes = decision.changes.filter(allowed);
  const isKept = facts.recorded || (facts.person.present && facts.person.owned);
  if (isKept && !isForgotten) {
    decision.note = noteOf(facts, isSettled);
    decision.adopts = states.recorded === undefined && decision.note.ownership !== 'noted';
  }
  decision.news = newsOfSight(decision.note, facts.seen, states.entries);
  return decision;
}

/** What is known of one person, decoded. */
export interface Facts {
  states: States;
  rules: PersonRules;
  person: Person;
  /** Another contact stands for this one by now, which policy has deleted. */
  replaced: boolean;
  desired: Map<string, Wish>;
  recorded: RecordedContact | undefined;
  /** The same person under former addresses. */
  former: RecordedContact[];
  /** Her contacts on the platform, as they were read just now. */
  seen: ObservedContact[];
  /** The same, or as they were last when nothing was read. */
  shown: ObservedContact[];
  /** These, without what nobody ever said: an opt-out that the creation left by default. */
  contacts: ObservedContact[];
  /** What is recorded of her by what is seen now. */
  now: Pick<RecordedContact, 'channels' | 'outgrown'>;
}

export function factsOf(states: States, rules: PersonRules): Facts {
  const known = states.recorded && recordedBody.parse(JSON.parse(states.recorded.body));
  const seen = states.observed.map((row) => observedBody.parse(JSON.parse(row.body)));
  const recorded = known && states.restored ? distrusted(known, seen) : known;
  const shown = contactsOf(seen, states, recorded);
  const contacts = saidOf(shown, states, recorded);
  const desired = wishesOf(states, rules.channels);
  const named = [...desired.values()].some((wish) => wish !== 'gone');
  // To somebody who left nothing is done but what is ours.
  const ours = hasLeft(states) ? oursOf(contacts, states.recorded).length > 0 : recorded;
  const due = isDue(states, rules.absence);
  const deletes = mayDelete(states, rules.absence);
  const replaced = deletes && isReplaced(states, rules.channels);
  return {
    states,
    rules,
    replaced,
    recorded,
    seen,
    shown,
    contacts,
    former: states.former.map((past) => pastOf(past, states.restored, rules)),
    now: {
      channels: memberships(recorded, contacts, {
        channels: rules.channels.filter((channel) => !states.lost.has(channel)),
        replaces: rules.replaces,
        sight: sightOf(states, { recorded, shown }),
      }),
      outgrown: outgrown(recorded, contacts, rules.replaces),
    },
    desired,
    person: {
      present: contacts.length > 0,
      // Somebody on the platform whom the CRM names is adopted, and so ours from now on.
      owned: Boolean(ours) || (contacts.length > 0 && named),
      left: contacts.some((contact) => contact.left),
      due,
      deletable: deletes && due && !replaced && !isAwaited(states, rules.channels),
    },
  };
}

function decideOne(decision: Decision, channel: string, facts: Facts): void {
  const { states } = facts;
  const { verdict } = judge(facts, channel);
  act(decision, verdict, { key: states.key, channel, contacts: aboutOf(facts, verdict) });
  if (!contradict(states.desired, channel)) return;
  const fault = contradiction(states.desired.length, channel);
  decision.problems.push(conflictProblem(states.key, channel, fault));
}

/** Whom of her contacts the verdict is about: who is deleted for it is not opted out first. */
function aboutOf({ states, contacts }: Facts, { row, do: verdict }: Verdict): ObservedContact[] {
  const ours = oursOf(contacts, states.recorded);
  if (row === 3) return ours;
  const isRefused = states.parked.includes('');
  const isDeleted = row === beyond.movedAway && verdict === 'delete' && !isRefused;
  return isDeleted ? contacts.filter((contact) => !ours.includes(contact)) : contacts;
}

/** What the table is asked of one channel, and what comes of it. */
export function judge(facts: Facts, channel: string): { asked: ChannelStates; verdict: Verdict } {
  const { states, rules, person, desired, recorded, contacts } = facts;
  const asked = {
    desired: desired.get(channel) ?? null,
    recorded: recordedIn(recorded, contacts, channel),
    observed: strictestOf(contacts, channel),
    newer: newerWill(facts, channel) !== undefined,
  };
  const decided = decideChannel(asked, person, rules.policy);
  const verdict = states.lost.has(channel)
    ? withoutConclusion(decided)
    : remembered(guarded(decided, channel, { ...facts, replaces: rules.replaces }), channel, facts);
  return { asked, verdict: movedAway(verdict, channel, facts) ?? verdict };
}

/** What comes of it that the CRM has another address of hers by now, if anything does. */
function movedAway(
  { row, do: verdict }: Verdict,
  channel: string,
  { states, person, replaced }: Facts,
): Verdict | undefined {
  const isOpen = verdict === 'nothing' || (replaced && row === 3);
  if (!isOpen || !person.owned || !hasMoved(states, channel)) return undefined;
  const isDeleted = replaced && !isForbidden(states.successors, channel);
  return { row: beyond.movedAway, do: isDeleted ? 'delete' : 'opt_out' };
}

/** Of a channel that is lost as a whole only what the CRM forbids is done. */
function withoutConclusion(verdict: Verdict): Verdict {
  const isBold = verdict.do === 'create' || verdict.do === 'opt_in' || verdict.do === 'conflict';
  return isBold ? { ...verdict, do: 'nothing' } : verdict;
}

/** Whom the ledger names is not brought in; what it has of a replaced channel counts, too. */
function remembered(verdict: Verdict, channel: string, facts: Facts): Verdict {
  const { states, rules, seen, now } = facts;
  const standing = states.entries.filter((entry) => !isOver(entry, seen));
  const replaced = now.outgrown.includes(channel) ? undefined : rules.replaces.get(channel);
  const asked = [
    { op: verdict.do, part: channel, newer: newerWill(facts, channel) },
    ...(replaced === undefined ? [] : [{ op: verdict.do, part: replaced, newer: undefined }]),
  ];
  const rows = asked.map((one) => forbids(standing, one, rules.policy));
  const row = rows.find((found) => found !== undefined);
  return row === undefined ? verdict : { row, do: 'conflict' };
}

/** When what the CRM states was stated, if that is newer than the opt-out can be, and counts. */
function newerWill(facts: Facts, channel: string): number | undefined {
  const { states, rules, now } = facts;
  if (rules.policy.resubscribe === 'never') return undefined;
  const at = statedAt(states.desired, channel);
  return at !== null && isNewer(at, now.channels[channel], states.by) ? at : undefined;
}

/** A reading without a certificate proves nobody gone: whom it does not name it says nothing of. */
function wishesOf({ desired, certified }: States, channels: readonly string[]): Map<string, Wish> {
  const silent = desired.length === 0 && !certified;
  return silent ? new Map<string, Wish>() : strictest(desired, channels);
}

/**
 * A creation may bring channels along that nobody asked for; it says whether that would matter. And
 * whoever is brought in is looked at under former addresses, where nothing was listed just now; and
 * as they were, where an opt-out is outweighed.
 */
function markEnrolments(decision: Decision, facts: Facts): void {
  const { states, desired, recorded, shown } = facts;
  const isForbidden = [...desired.values()].includes('opt_out');
  const former = states.former
    .filter(({ row }) => row.id !== undefined)
    .map(({ row, seen: rows }) => ({ key: row.key, shown: fingerprintsOf(row, rows) }));
  const isAll = settles(states, decision) || undefined;
  const mark = (change: Change): Change => {
    if (change.op !== 'create' && change.op !== 'opt_in') return change;
    const isOut = recorded?.channels[change.part]?.made !== undefined;
    const changed = isOut ? shown[0]?.changed : undefined;
    const newer = newerWill(facts, change.part);
    return {
      ...change,
      body: canonicalJson({ changed, forbids: isForbidden, former, newer, settles: isAll }),
    };
  };
  decision.changes = decision.changes.map(mark);
}

function sightOf(states: States, { recorded, shown }: Pick<Facts, 'recorded' | 'shown'>): Sight {
  return {
    present: shown.length > 0,
    before: states.recorded?.seenAt ?? null,
    by: states.by,
    changed: isChanged(recorded?.contacts ?? [], shown),
  };
}

function noteOf(facts: Facts, isSettled: boolean): RecordedRow {
  const { states, recorded, shown, now } = facts;
  const body: RecordedContact = {
    channels: now.channels,
    contacts: shown.length > 0 ? shown : (recorded?.contacts ?? []),
    defaults: recorded ? defaultsIn(shown, states, recorded) : [],
    left: leftSince(states, recorded, shown),
    outgrown: now.outgrown,
  };
  const [row, twin] = states.desired;
  return {
    kind: 'contact',
    key: states.key,
    id: idOf(facts),
    ownership: ownershipOf(facts),
    body: canonicalJson(body),
    desired: isSettled && !twin && !row?.invalid ? row?.fingerprint : undefined,
    ...shownOf(facts),
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
  const { recorded: before, desired } = facts.states;
  const isNamed = desired.length > 0 && !hasLeft(facts.states);
  if (!before || before.ownership === 'noted') return isNamed ? 'adopted' : 'noted';
  return [undefined, before.id].includes(idOf(facts)) ? before.ownership : 'adopted';
}

/** Whom the CRM does not name is looked at again only where it is not known what hers showed. */
function shownOf(facts: Facts): Pick<RecordedRow, 'shown' | 'seenAt'> {
  const { observed, sight, recorded, desired, lost, at } = facts.states;
  if (lost.size > 0 && desired.length === 0) return { shown: undefined, seenAt: at };
  if (observed.length === 0 && sight === 'assumed') {
    return { shown: recorded?.shown, seenAt: recorded?.seenAt ?? 0 };
  }
  const isHers = idOf(facts) !== undefined && facts.shown.length === 1;
  return { shown: isHers ? observed[0]?.fingerprint : undefined, seenAt: at };
}
