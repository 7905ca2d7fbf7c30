/**
 * Decides whether an operator may settle a conflict (`resolve`), and what to record if so. All
 * functions are pure.
 *
 *   --in, the CRM says in, and                                              is
 *   not in conflict                                                         refused
 *   not in conflict but for an operator's opt-out                           accepted: that ends
 *   our own opt-out stands                                                  accepted
 *   opted out (`left-or-unknown`), never observed in, and the platform is   accepted
 *     known to show defaults, of which this may be one
 *   opted out, observed in before, or not known to be a possible default    refused
 *   unsubscribed, blocked, suppressed, complaint, bounce, erasure,          refused
 *   removed, vanished, or any other conflict
 *   accepted by the above, but another opt-out forbids it                   refused
 *   the platform shows something else than what is recorded                 refused: run first
 *
 *   --out                                                                   is
 *   a conflict, except of an erasure                                        accepted
 *   CRM records of the address contradict each other                        accepted
 *   anything else                                                           refused
 */
import type { Entry } from '../../domain/do-not-contact.ts';
import { canonicalJson, type RecordedRow } from '../../domain/record.ts';
import { mayBeDefault, type PlatformFacts } from '../platform-facts.ts';
import type { Settled, SettlementAsked } from './contacts.ts';
import { conflictOf } from './consent/conflicts.ts';
import { factsOf, verdictIn } from './consent/facts.ts';
import type { PersonFacts, PersonRules } from './consent/person-facts.ts';
import { isOurs } from './observe/observed-contact.ts';
import { isDoubtful, optOutOf } from './consent/platform-opt-outs.ts';
import type { Verdict } from './consent/rules.ts';
import type { ContactStates, Membership, ObservedContact } from './observe/contact-state.ts';
import { contradict, statingIn } from './observe/consent-time.ts';

/** Returns what to record, or why the conflict cannot be settled this way. */
export function settle(states: ContactStates, rules: PersonRules, asked: SettlementAsked): Settled {
  const { channel } = asked;
  if (!rules.channels.includes(channel)) {
    const fix = `the mirror has the channels ${rules.channels.join(', ')}`;
    return refused(`there is no channel "${channel}"`, fix);
  }
  return asked.as === 'in' ? settleIn(states, rules, asked) : settleOut(states, rules, asked);
}

function judge(states: ContactStates, rules: PersonRules, channel: string) {
  const facts = factsOf(states, rules);
  const { verdict } = verdictIn(facts, channel);
  return { facts, verdict, wanted: facts.desired.get(channel) ?? null };
}

const look = '`crm-mirror explain` tells what decides';

function settleIn(states: ContactStates, rules: PersonRules, asked: SettlementAsked): Settled {
  const { channel, settlement } = asked;
  const isOver = ({ part, cause }: Entry) => cause === 'operator' && part === channel;
  const operators = states.entries.filter(isOver);
  const rest = { ...states, entries: states.entries.filter((entry) => !isOver(entry)) };
  const { facts, verdict, wanted } = judge(rest, rules, channel);
  if (wanted !== 'opt_in') {
    return refused(`${channel}: the CRM states no opt-in`, 'record the opt-in in the CRM first');
  }
  const whose = Map.groupBy(operators, ({ through }) => through);
  const { by, reason, evidence } = settlement;
  const why = `resolve --in by ${by}: ${reason} (evidence: ${evidence})`;
  const over = ({ seq }: Entry) => ({ seq, why });
  const ended = (whose.get('address') ?? []).map(over);
  // An entry of another address that shares a CRM id stays with that address.
  const frees = (whose.get('id') ?? []).map(({ seq }) => seq);
  if (verdict.action !== 'conflict') {
    if (operators.length > 0) return { adds: [], ends: ended, frees, row: undecided(states) };
    return refused(`${channel}: there is no conflict to resolve`, look);
  }
  const is = facts.now.channels[channel];
  if (!is || !isEligible(verdict, is, channel, states.facts)) {
    return refusal(verdict, facts, channel);
  }
  const row = states.recorded;
  if (!row || !isAsRecorded(row.value.contacts, facts.shown)) {
    return refused(
      `${channel}: the platform shows something else than what is recorded`,
      'run `crm-mirror sync --person PERSON`, and look again',
    );
  }
  const doubtful = rest.entries.filter((entry) => {
    const isHere = entry.part === channel && entry.through === 'address' && entry.after === null;
    return isHere && optOutOf(entry, states.facts)?.cause === 'doubtful';
  });
  const settled = { ...settlement, stating: statingIn(states.desired, channel) };
  const channels = { ...row.value.channels, [channel]: { ...is, settled } };
  const value = { ...row.value, channels };
  const entries = rest.entries.filter((entry) => !doubtful.includes(entry));
  const then = judge({ ...rest, entries, recorded: { ...row, value } }, rules, channel);
  if (then.verdict.action === 'conflict') return refusal(then.verdict, then.facts, channel);
  const { value: _, ...plain } = row;
  return {
    adds: [],
    ends: [...ended, ...doubtful.map(over)],
    frees,
    row: { ...plain, body: canonicalJson(value), desired: undefined },
  };
}

const ownOptOut: readonly string[] = ['our-opt-out-stands', 'our-opt-out-recorded', 'undone'];

/** Returns whether nobody is known to have made the opt-out but the mirror, or the platform. */
function isEligible({ by }: Verdict, is: Membership, channel: string, facts: PlatformFacts) {
  if (ownOptOut.includes(by)) return isOurs(is);
  if (by !== 'left-or-unknown' || is.is !== 'opt_out' || is.by !== 'platform') return false;
  const wasIn = is.made === undefined || is.made.after !== null;
  return !wasIn && facts.namesAll === true && mayBeDefault(facts, channel);
}

/** Returns whether the contacts are exactly those of the last run, so that nothing has changed. */
function isAsRecorded(recorded: readonly ObservedContact[], shown: readonly ObservedContact[]) {
  // Whether there are other channels is no part of the fingerprint, so a row may not know it.
  const plain = ({ others: _, ...contact }: ObservedContact) => contact;
  const sorted = (contacts: readonly ObservedContact[]) =>
    canonicalJson(contacts.map(plain).toSorted((a, b) => (a.id < b.id ? -1 : 1)));
  return shown.length === 0 || sorted(recorded) === sorted(shown);
}

function refusal(
  { by }: Verdict,
  { now, states, contacts, renamed }: PersonFacts,
  channel: string,
): Settled {
  const isUnsure = isDoubtful(now.channels[channel], channel, states.facts);
  if (isUnsure && by === 'left-or-unknown') {
    return refused(
      `${channel}: the opt-out may be the person's: the person was subscribed before, or the ` +
        'platform is not known to show opt-outs that nobody made',
      'resolve it with --out, or have the person opt in on the platform',
    );
  }
  const isRenamed = renamed.length > 0;
  const subject = { channel, isDoubtful: false, contacts: contacts.length, isRenamed };
  const { reason, fix } = conflictOf(by, subject);
  return refused(`${reason}, so it cannot be resolved as an opt-in`, fix);
}

function settleOut(states: ContactStates, rules: PersonRules, asked: SettlementAsked): Settled {
  const { channel, settlement } = asked;
  const { facts, verdict, wanted } = judge(states, rules, channel);
  if (facts.operatorOut(channel)) return refused(`${channel}: it is resolved as an opt-out`, look);
  const isContradictory = contradict(states.desired, channel);
  if (verdict.by === 'erased') {
    return refused(`${channel}: the person was erased`, 'remove the person from the CRM');
  }
  if (wanted === 'opt_out' && !isContradictory) {
    return refused(`${channel}: the CRM states an opt-out`, 'the next run sends it');
  }
  if (verdict.action !== 'conflict' && !isContradictory) {
    const fix = 'record the opt-out in the CRM, and run `crm-mirror sync --person PERSON`';
    return refused(`${channel}: there is no conflict to resolve`, fix);
  }
  // Whatever the CRM states by now is not later, even if its time is in the future.
  const times = states.desired.map(({ value }) => value.consentAt ?? 0);
  const by = Math.max(settlement.at, ...times);
  // A person who is missing from the CRM by then is decided about only if the platform differs.
  const row = undecided(states);
  const note = JSON.stringify(settlement);
  const about = { part: channel, cause: 'operator', contact: null, after: null } as const;
  return { adds: [{ ...about, by, note }], ends: [], row: row && { ...row, shown: undefined } };
}

/** Returns the recorded row, so that the next run makes a new decision. */
function undecided({ recorded }: ContactStates): RecordedRow | undefined {
  if (!recorded) return undefined;
  const { value: _, ...row } = recorded;
  return { ...row, desired: undefined };
}

const refused = (reason: string, fix: string): Settled => ({ refused: { reason, fix } });
