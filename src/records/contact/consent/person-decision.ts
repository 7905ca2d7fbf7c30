/**
 * What to do about one person: every channel through the truth table, and what is known afterwards.
 */
import type { Change } from '../../../domain/change.ts';
import { canonicalJson } from '../../../domain/record.ts';
import type { Decision, Stop } from '../../record-type.ts';
import { oursOf } from './crm-absence.ts';
import { planChanges, conflictProblem, remove, type Why } from './planned-changes.ts';
import { beyond, contradiction, renamedThere } from './consent-conflicts.ts';
import { decideChannel, type ChannelStates, type Verdict } from './consent-rules.ts';
import { isFlagged } from './absence-due.ts';
import { factsOf, newerWill, type Facts, type PersonRules } from './person-facts.ts';
import { hasMoved, isForbidden, movedRows } from './changed-address.ts';
import { noteOf } from './recorded-note.ts';
import { isTakenBack, statingOut } from './own-opt-outs.ts';
import { isDoubtful } from './platform-opt-outs.ts';
import { guarded, recordedIn } from './past-consent.ts';
import { stopOf, stopped } from './protection.ts';
import { decodeContact, type ContactStates } from '../observe/contact-rows.ts';
import type { ObservedContact } from '../observe/contact-state.ts';
import { forbids, isErased, isOver, newsOfSight } from './do-not-contact-entries.ts';
import { renamedTargets } from './renamed-contact.ts';
import { settles } from '../observe/converged-creation.ts';
import { fingerprintsOf } from '../observe/last-observed.ts';
import { contradict, strictestOf } from '../observe/strictest-consent.ts';

export function decidePerson(states: ContactStates, rules: PersonRules): Decision {
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
  const stops = rules.channels.map((channel) => decideOne(decision, channel, facts));
  decision.stoppedBy = stopsOf(facts, stops);
  if (facts.renamed.length > 0 && [...facts.desired.values()].includes('opt_out')) {
    decision.problems.push(conflictProblem(states.key, '', renamedThere));
  }
  if (facts.person.deletable || facts.replaced) {
    const ours = oursOf(facts.shown, states.recorded);
    const leaving = { key: states.key, contacts: ours, isMoved: facts.replaced };
    remove(decision, { ...leaving, isKept: !isForgotten });
  }
  markEnrolments(decision, facts);
  const allowed = ({ op }: Change): boolean => states.certified || op === 'opt_out';
  const isDone = decision.changes.length + decision.problems.length === 0;
  const isAllowed = decision.stoppedBy.length === 0;
  const isSettled = states.certified && isDone && isAllowed && states.lost.size === 0;
  decision.changes = decision.changes.filter(allowed);
  const isKept = facts.recorded || (facts.person.present && facts.person.owned);
  if (isKept && !isForgotten) {
    decision.note = noteOf(facts, isSettled);
    decision.adopts = states.recorded === undefined && decision.note.ownership !== 'noted';
  }
  const note = decision.note && decodeContact.recorded(decision.note);
  decision.news = newsOfSight(note, facts.seen, states.entries);
  return decision;
}

/** The settings that keep the person from a change, each once. */
function stopsOf({ isProtected, mayDelete }: Facts, stops: (Stop | undefined)[]): Stop[] {
  const found = stops.filter((stop) => stop !== undefined);
  return [...new Set(isProtected && mayDelete ? [...found, 'protect' as const] : found)];
}

/** Answers which setting stopped it. */
function decideOne(decision: Decision, channel: string, facts: Facts): Stop | undefined {
  const { states } = facts;
  const { verdict, stop } = judge(facts, channel);
  const why = whyOf(facts, verdict, channel);
  const contacts = aboutOf(facts, verdict, channel);
  const isUnsure = isDoubtful(facts.now.channels[channel], channel, states.facts);
  planChanges(decision, verdict, { key: states.key, channel, contacts, why, isDoubtful: isUnsure });
  if (contradict(states.desired, channel)) {
    const fault = contradiction(states.desired.length, channel);
    decision.problems.push(conflictProblem(states.key, channel, fault));
  }
  return stop;
}

/** What an opt-out is for, if it comes to one. */
function whyOf({ states }: Facts, { row }: Verdict, channel: string): Why {
  if (row === beyond.movedAway) return { cause: 'address' };
  if (row === 2 || row === 3) return { cause: isFlagged(states) ? 'flag' : 'absence' };
  const moved = row === beyond.stated ? movedRows(states) : [];
  const { stated, bound } = statingOut([...states.desired, ...moved], channel);
  return { cause: 'stated', stated, bound };
}

/** Whom of her contacts the verdict is about: of somebody who left the CRM ours alone. */
function aboutOf(facts: Facts, verdict: Verdict, channel: string): ObservedContact[] {
  const isStated = verdict.row === 6 || verdict.row === 7 || verdict.row === beyond.renamed;
  const told = isStated ? renamedTargets(facts.renamed, channel).contacts : [];
  return [...aboutHere(facts, verdict), ...told];
}

function aboutHere({ states, contacts }: Facts, { row, do: verdict }: Verdict): ObservedContact[] {
  const ours = oursOf(contacts, states.recorded);
  if (row === 2 || row === 3) return ours;
  const isRefused = states.parked.includes('');
  const isDeleted = row === beyond.movedAway && verdict === 'delete' && !isRefused;
  return isDeleted ? contacts.filter((contact) => !ours.includes(contact)) : contacts;
}

interface Judgement {
  asked: ChannelStates;
  /** The setting that keeps the channel from being changed; undefined: none does. */
  stop: Stop | undefined;
  verdict: Verdict;
}

/** What the table is asked of one channel, and what comes of it. */
export function judge(facts: Facts, channel: string): Judgement {
  const { states, rules, person, desired, recorded, contacts } = facts;
  const wish = desired.get(channel) ?? null;
  const about = wish === 'gone' ? oursOf(contacts, states.recorded) : contacts;
  const asked = {
    desired: wish,
    recorded: recordedIn(recorded, contacts, channel),
    observed: strictestOf(about, channel),
    newer: newerWill(facts, channel) !== undefined,
    takenBack: isTakenBack(facts.now.channels[channel], channel, states),
  };
  const decided = decideChannel(asked, person, rules.policy);
  const careful = states.lost.has(channel) ? withoutConclusion(decided) : decided;
  const stop = stopOf(careful, { isProtected: facts.isProtected, optIns: rules.policy.optIns });
  const allowed = stop ? stopped(stop) : careful;
  const past = guarded(allowed, channel, { ...facts, replaces: rules.replaces });
  const verdict = remembered(past, channel, facts);
  const sibling = movedAway(verdict, channel, facts) ?? renamedAway(verdict, channel, facts);
  return { asked, stop, verdict: sibling ?? verdict };
}

/** What comes of it that a contact to be opted out has another address on the platform by now. */
function renamedAway(
  verdict: Verdict,
  channel: string,
  { desired, renamed }: Facts,
): Verdict | undefined {
  if (desired.get(channel) !== 'opt_out' || verdict.do !== 'nothing') return undefined;
  const { contacts, isClaimed } = renamedTargets(renamed, channel);
  if (isClaimed) return { row: beyond.renamed, do: 'conflict' };
  return contacts.length > 0 ? { row: beyond.renamed, do: 'opt_out' } : undefined;
}

/** What comes of it that the CRM has another address of hers by now, if anything does. */
function movedAway(
  { row, do: verdict }: Verdict,
  channel: string,
  { states, person, replaced, isProtected }: Facts,
): Verdict | undefined {
  if (isForbidden(states, channel)) return { row: beyond.stated, do: 'opt_out' };
  const isOpen = verdict === 'nothing' || (replaced && row === 3);
  if (!isOpen || !person.owned || isProtected) return undefined;
  if (!hasMoved(states, channel, person.due)) return undefined;
  return { row: beyond.movedAway, do: replaced ? 'delete' : 'opt_out' };
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
