/**
 * Decides how the changes of an earlier run to one person are undone. The function is pure. For an
 * acknowledged change in one channel, the first matching line applies:
 *
 *   journaled       now                                                   →
 *   any             a later run changed the same, or has undone it        no: changed-later,
 *                                                                         already-undone
 *   any             the configuration no longer has the channel           no: channel-unknown
 *   delete          any                                                   no: deleted
 *   create, opt_in  it was so before it was sent                          no: found
 *   create, opt_in  the contact that was opted in is gone or renamed      no: contact-gone
 *   create, opt_in  it is not subscribed any more                         no: not-subscribed
 *   create, opt_in  contacts.protect covers the person                    no: protected
 *   create, opt_in  subscribed                                            opt_out, cause undone
 *   … that overrode an opt-out                                            opt_out that restores it
 *   opt_out         the opt-out is not ours any more: the person made it  no: the rule's id
 *   opt_out         the contact was changed on the platform after our     no: changed-since
 *                   last change to it, which may be an opt-out
 *   opt_out         a run would opt the person out of another channel     no: opt-out-held
 *   opt_out         a run would opt the person in now, by rule and gates  opt_in
 *   opt_out         anything else: the CRM states an opt-out, nothing or  no: the id of the rule or
 *                   no such person; unsubscribed, blocked, complaint;     gate that decides
 *                   the do-not-contact list; not read completely …
 *   create          beside the opt_outs: we created the contact, it is    delete
 *                   in no other channel, nobody opted out, and
 *                   policy.deletes is not off
 *
 * An opt-out by `undo` remembers what the CRM states. Until the CRM states something else, rule
 * `undone` (33) keeps a run from opting the person in again. Undoing an undo ignores that memory:
 * an opt-in follows in the same run if the rules allow it. An opt-in that overrode a person's own
 * opt-out leaves that opt-out behind, made by now at the latest, so that only a statement later
 * than the undo overrides it again. If one of ours that the CRM had stated was overridden, only
 * what withdraws such an opt-out ends it. Both also count again if the contact is gone. If
 * the contact that we opted out is gone, the memory is dropped, and the next run creates the person
 * where the rules allow.
 */
import type { Change, DoneChange } from '../../domain/change.ts';
import { canonicalJson } from '../../domain/record.ts';
import { type Undone, changedLater, type NotUndone, type Undoing } from '../decision.ts';
import { changeOf, decidePerson } from './consent/decide.ts';
import { factsOf, verdictIn } from './consent/facts.ts';
import type { PersonFacts, PersonRules } from './consent/person-facts.ts';
import { ruleNamed } from './consent/gates.ts';
import { isChanged, timeOf, isOurs, isTheirs } from './observe/observed-contact.ts';
import { restoredFrom, statingOut } from './consent/own-opt-outs.ts';
import {
  type ContactStates,
  type Membership,
  type ObservedContact,
  type OverriddenOptOut,
  type RecordedContact,
  decodeContact,
} from './observe/contact-state.ts';
import { statedAt, statementIn } from './observe/consent-time.ts';
import { newsOfSight } from './consent/do-not-contact-entries.ts';

interface Facts {
  run: string;
  doneAt: Undoing['doneAt'];
  /** The opt-outs that the opt-ins of the run overrode, by channel. */
  overridden: ReadonlyMap<string, OverriddenOptOut>;
  facts: PersonFacts;
  /** As a run would see the person if nothing had been undone in these channels. */
  free: PersonFacts;
  /** The changes that a run would make then. */
  wanted: readonly Change[];
}

/** Returns the inverse of what a run did to a person, and what of it cannot be undone. */
export function undoPerson(
  states: ContactStates,
  rules: PersonRules,
  { run, changes, doneAt }: Undoing,
): Undone {
  // Of several changes in one channel, the last one shows what the run left behind.
  const last = new Map(changes.map((done) => [done.part, done]));
  const outs = [...last.values()].filter(({ op }) => op === 'opt_out').map(({ part }) => part);
  const freed = withoutMemory(states, outs);
  const free = factsOf(freed, rules);
  const overridden = overriddenIn(changes, states);
  const wanted = outs.length > 0 ? decidePerson(freed, rules).changes : [];
  const all: Facts = { run, doneAt, overridden, facts: factsOf(states, rules), free, wanted };
  const cannot: NotUndone[] = [];
  const inverse: Change[] = [];
  for (const done of last.values()) {
    const found = inverseOf(done, all);
    if ('reason' in found) cannot.push(found);
    else inverse.push(found);
  }
  const isOurs = ({ later, isUndone }: DoneChange) => later === undefined || isUndone;
  if (changes.some((done) => done.op === 'create' && isOurs(done))) {
    inverse.push(...deletionAfter(inverse, all));
  }
  const gone = outs.filter((part) => verdictIn(free, part).verdict.action === 'create');
  const ordinary = decidePerson(withoutMemory(states, gone), rules);
  const { adopts, news } = ordinary;
  // The next run makes its own decision about the person.
  const note = ordinary.note && { ...ordinary.note, desired: undefined };
  const rest = { adopts, forgets: [], problems: [], changes: inverse };
  const restored = unreached(last, all);
  if (!note || restored.length === 0) {
    return { decision: { ...rest, note, ...(news && { news }) }, cannot };
  }
  const { value } = decodeContact.recorded(note);
  const channels = { ...value.channels, ...Object.fromEntries(restored) };
  const body = canonicalJson({ ...value, channels } satisfies RecordedContact);
  const row = { ...note, body };
  const entries = newsOfSight(decodeContact.recorded(row), all.facts.seen, states.entries);
  return { decision: { ...rest, note: row, news: entries }, cannot };
}

function withoutMemory(states: ContactStates, parts: readonly string[]): ContactStates {
  const { recorded } = states;
  if (!recorded || parts.length === 0) return states;
  const entries = Object.entries(recorded.value.channels).map(([channel, is]) => {
    const { undone: _, ...rest } = is;
    return [channel, parts.includes(channel) ? rest : is] as const;
  });
  const value: RecordedContact = { ...recorded.value, channels: Object.fromEntries(entries) };
  return { ...states, recorded: { ...recorded, value, body: canonicalJson(value) } };
}

/** Returns the change that takes back another one, or why there is none, by the table above. */
function inverseOf(done: DoneChange, all: Facts): Change | NotUndone {
  const { op, part, later } = done;
  const { run, doneAt, overridden, facts, free, wanted } = all;
  const { states, rules } = facts;
  if (later !== undefined) return changedLater(done);
  if (op === 'delete') return refused(done, 'deleted', 'a deleted contact cannot be brought back');
  if (!rules.channels.includes(part)) {
    return refused(done, 'channel-unknown', 'the configuration no longer has this channel');
  }
  if (op === 'opt_out') {
    const change = wanted.find((one) => one.op === 'opt_in' && one.part === part);
    if (!change || !isOurs(free.now.channels[part])) {
      const { by } = verdictIn(free, part).verdict;
      return refused(done, by, ruleNamed(by)?.asks ?? by);
    }
    // After our last change: no other trace of an opt-out.
    const isChangedAfter = ({ changed }: ObservedContact): boolean =>
      changed !== undefined && (timeOf(changed) ?? Infinity) > (doneAt ?? -Infinity);
    if (free.shown.some(isChangedAfter)) {
      return refused(done, 'changed-since', changedSince);
    }
    // A guard may hold it, and a person with a held opt-out is never opted in.
    return wanted.some((one) => one.op === 'opt_out')
      ? refused(done, 'opt-out-held', optOutHeld)
      : change;
  }
  if (done.wasThere) {
    return refused(done, 'found', 'the person was subscribed already, not by this run');
  }
  const contact = contactOf(done, facts);
  if (!contact) return refused(done, 'contact-gone', 'the contact is gone, or has another address');
  if (contact.channels[part] !== 'opt_in') {
    return refused(done, 'not-subscribed', 'the person is not subscribed any more');
  }
  if (facts.isProtected) return refused(done, 'protected', 'contacts.protect covers the person');
  const says = facts.desired.get(part) ?? undefined;
  const at = statedAt(states.desired, part) ?? undefined;
  const memory = memoryOf(part, run, states, overridden);
  return changeOf(states.key, 'opt_out', {
    channel: part,
    isMoved: false,
    target: contact.id,
    why: { cause: 'undone', restores: overridden.get(part), ...memory },
    reason: { rule: 'undo', says, statedAt: at, before: contact.channels[part] },
  });
}

function refused({ op, part }: DoneChange, rule: string, reason: string): NotUndone {
  return { op, part, rule, reason };
}

const optOutHeld =
  'an opt-out of the same person is not made yet: run `crm-mirror sync`, or approve it';
const changedSince =
  'the contact was changed on the platform since, which may be an opt-out: opt the person in with `crm-mirror resolve --in`';

function contactOf({ target }: DoneChange, { shown, states }: PersonFacts) {
  const of = target ?? states.recorded?.id;
  return shown.find(({ id }) => id === of);
}

function memoryOf(
  part: string,
  run: string,
  states: ContactStates,
  overridden: Facts['overridden'],
) {
  const { bound } = statingOut(states.desired, part);
  const all = [...bound, ...states.origins, ...(overridden.get(part)?.bound ?? [])];
  const said = states.certified ? statementIn(states.desired, part) : undefined;
  return { bound: [...new Set(all)].toSorted(), undone: { run, said } };
}

/** Returns the opt-outs that count again although no request can restore them, by channel. */
function unreached(
  changes: ReadonlyMap<string, DoneChange>,
  { run, facts, overridden }: Facts,
): [string, Membership][] {
  const { shown, now, states } = facts;
  return [...overridden].flatMap(([part, restores]): [string, Membership][] => {
    const done = changes.get(part);
    const isLater = !done || done.later !== undefined || done.op === 'opt_out';
    const isBack = shown.some(({ channels }) => channels[part] === 'opt_in');
    if (isLater || contactOf(done, facts) || isBack || isTheirs(now.channels[part])) return [];
    const memory = memoryOf(part, run, states, overridden);
    // Only a request makes an opt-out ours, and there was none, and is none now.
    const isNobodys = restores.doubtful === true;
    const one = isNobodys ? ({ ...restores, by: 'platform' } as const) : restores;
    const restored = restoredFrom(one, states.latest, memory);
    return restored ? [[part, restored]] : [];
  });
}

/** Returns the deletion of a contact that the run created, if the policy allows it. */
function deletionAfter(inverse: readonly Change[], { run, facts, overridden }: Facts): Change[] {
  const { states, rules, shown } = facts;
  const { channels } = facts.now;
  const [contact, other] = shown;
  // The platform would forget the opt-out with the contact.
  if ([...overridden.values()].some(({ by }) => by === 'platform')) return [];
  const isOurs = states.recorded?.ownership === 'created' && contact?.id === states.recorded.id;
  if (rules.absence.deletes === 'off' || !contact || other || !isOurs || contact.left) return [];
  // A record with a new address decides itself when the old contact is deleted.
  if (states.successors.length > 0 || facts.isProtected) return [];
  // The channels that an earlier part of the undo has opted the contact out of, if it has not
  // changed since: the rest waited for a window, or the CRM was read again in between.
  const isAsRead = !isChanged(facts.recorded?.contacts ?? [], shown);
  const before = rules.channels.filter((id) => isAsRead && channels[id]?.undone?.run === run);
  if ((states.sight !== 'listed' && before.length === 0) || states.restored) return [];
  if (contact.others || Object.keys(contact.channels).some((id) => !rules.channels.includes(id)))
    return [];
  const now = inverse.filter(({ op }) => op === 'opt_out').map(({ part }) => part);
  const parts = [...now, ...before];
  const isOver = rules.channels.every((channel) => {
    const isOut = contact.channels[channel] !== 'opt_in' && !isTheirs(channels[channel]);
    return parts.includes(channel) || isOut;
  });
  if (!isOver || parts.length === 0) return [];
  const about = { channel: '', isMoved: false, target: contact.id };
  const why = { cause: 'undone', undone: { run } } as const;
  const reason = { rule: 'undo', before: 'present' };
  return [changeOf(states.key, 'delete', { ...about, why, reason })];
}

/**
 * Returns the opt-outs that the opt-ins of a run overrode, by channel; of several, the person's
 * own. A change that withdraws an opt-out of which it keeps nothing withdraws one that the CRM had
 * stated and nobody had sent: it is restored as stated by the records of the address. One that an
 * operator had stated ends only by a later statement. `newer` alone overrode the person's own.
 */
function overriddenIn(changes: readonly DoneChange[], { desired, origins }: ContactStates) {
  const found = new Map<string, OverriddenOptOut>();
  for (const done of changes) {
    if (done.op !== 'create' && done.op !== 'opt_in') continue;
    const { overrides, newer, withdraws, changed, since } = decodeContact.change(done).value;
    const isOperators = changed !== undefined || since !== undefined;
    const ids = [...new Set([...statingOut(desired, done.part).bound, ...origins])].toSorted();
    const stated = isOperators ? [] : ids;
    const notSent = { after: null, by: 'us', cause: 'stated', doubtful: true, stated } as const;
    const theirs = { after: null, by: 'platform', doubtful: true } as const;
    const kept = isOperators || withdraws ? notSent : undefined;
    const one = overrides ?? (newer === undefined ? kept : theirs);
    if (one && found.get(done.part)?.by !== 'platform') found.set(done.part, one);
  }
  return found;
}
