/**
 * What must hold, whatever happens. The checkers know the specification of the platform and the
 * rules of the docs, not the engine: they see what reached the platform, what was there before,
 * and what the CRM said.
 *
 * A run may act on what it was shown when it began, or a quarter of an hour before the request
 * left; what happened before that it had to know.
 */
import { forbids, keyIn, textOf, wishFor, type CrmRecord, type Reading } from '../world/crm.ts';
import { checkResolvedOut } from './settlements.ts';
import {
  checkChosen,
  checkGuard,
  checkHeldOut,
  checkLimited,
  checkStatedOptOut,
  checkWithdrawn,
} from './guard-checks.ts';
import { type About, horizon, type Arrival, type Known, type Outing } from './checker-state.ts';
import type { Former } from './expected-memory.ts';
import { newAddresses, isReplaced, mayBeOptedOut } from './changed-address.ts';
import { fallbackOf } from '../story/story.ts';
import { checkTakenBack, checkUndone } from './undone-checks.ts';
import { checkCreation, checkUpdate } from './template-checks.ts';
import type { Person } from '../world/platform-history.ts';
import { keyOf } from '../../support/engine/sample-people.ts';

export function checkArrival(arrival: Arrival, known: Known): void {
  const { route } = arrival.entry;
  if (arrival.outing.forgets !== undefined) checkForgetting(arrival, known);
  else if (route === 'contacts.enrol') checkEnrolment(arrival, known);
  else if (route === 'contacts.delete') checkDelete(arrival, known);
  else if (route === 'templates.create') checkCreation(arrival, known);
  else if (route === 'templates.update') checkUpdate(arrival, known);
  const allowed = answerable.has(route ?? '');
  const wrong = !allowed && `${route} was asked for, and nothing allows that`;
  known.judge('only known requests are sent', wrong);
}

/** What is judged, and may be asked for at all. */
const answerable = new Set([
  'contacts.enrol',
  'contacts.delete',
  'templates.create',
  'templates.update',
]);

/** Forgetting needs neither the CRM's wish nor a policy. */
function checkForgetting({ entry, outing }: Arrival, { witness, judge }: Known): void {
  const { contactId, created, subscription, path, route } = entry;
  const id = route === 'contacts.delete' ? path.split('/').at(-1) : contactId;
  const person = witness.people().find((one) => one.id === id);
  const isTheirs = person?.key === outing.forgets;
  const isHarmless = !created && (route === 'contacts.delete' || subscription === 'opt_out');
  const wrong =
    (!isTheirs || !isHarmless) &&
    `${route} of ${person?.key}, where ${outing.forgets} is forgotten`;
  judge('forgetting a person touches nobody else', wrong);
}

function checkEnrolment(arrival: Arrival, known: Known): void {
  const { entry, asks, outing } = arrival;
  const since = horizon(arrival);
  const person = known.witness.people().find(({ id }) => id === entry.contactId && !entry.created);
  const named = person && asks.email === undefined ? keyThen(person, arrival) : entry.email;
  const key = keyOf(named ?? '');
  const channel = entry.channelId ?? '';
  const about = { key, channel, since };
  const isOut = entry.subscription === 'opt_out';
  const what = `${key} was opted ${isOut ? 'out of' : 'in to'} ${channel}`;
  if (!outing.people.certified) {
    const wrong = !isOut && `${what} on an uncertified reading`;
    known.judge('after an uncertified reading only opt-outs are sent', wrong);
  }
  if (isOut) checkOptOut(what, { about, person }, { arrival, known });
  else checkOptIn(what, { about, person }, { arrival, known });
}

function checkOptIn(
  what: string,
  { about, person }: { about: About; person: Person | undefined },
  { arrival, known }: { arrival: Arrival; known: Known },
): void {
  const { outing, asks } = arrival;
  const { judge, memories } = known;
  const { key, channel, since } = about;
  const there = thereAt(since, key, { arrival, known });
  const wish = wishFor(outing.people, key, channel);
  const unwanted = `${what}, and the CRM wants ${wish ?? 'nothing of the kind'}`;
  judge('people are opted in only as the CRM wants', wish !== 'opt_in' && unwanted);
  if (asks.email !== undefined) {
    const wrong = there.length > 0 && `${what} by email, and was on the platform`;
    judge('people on the platform are not opted in by email', wrong);
  }
  const listed = thereAt(outing.startedAt, key, { arrival, known }).length;
  if (outing.mode === 'full' && listed > 0) {
    const wrong = listed > 1 && `${what}, and ${listed} contacts share the address`;
    judge('contacts that share an address are not opted in', wrong);
  }
  checkErasures(what, key, { arrival, known });
  checkUndone(what, { about, there }, { arrival, known });
  checkHeldOut(what, about, { arrival, known });
  checkWithdrawn(what, about, { outing, known });
  checkResolvedOut(what, about, { arrival, known });
  checkChosen(what, key, { outing, known });
  const keys = [key, ...keysOf(person)];
  const change = { guard: 'opt_in', op: 'opt_in', keys, part: channel, target: asks.id } as const;
  checkGuard(what, change, { arrival, known });
  const newer = newerThan(arrival, known);
  for (const one of there) {
    // By id a fast run sees one contact, and not that another has its address by now.
    const isSeen = outing.mode === 'full' || asks.email !== undefined || one === person;
    if (!isSeen) continue;
    checkStanding(one, what, { ...about, newer, known });
    checkStated(one, what, { about, reading: outing.people, known });
  }
  if (there.length === 0) checkAbsent(what, about, known);
  else checkTaken(person, what, { ...about, newer, known });
  for (const former of memories.former(key, outing.people)) {
    checkFormer(what, former, { about, known });
  }
}

/** Lists the contacts that had the address by then, or that the run was shown there. */
function thereAt(
  at: number,
  key: string,
  { arrival: { outing }, known }: { arrival: Arrival; known: Known },
): Person[] {
  return known.witness.present(key).filter(({ id, made, former }) => {
    const isKnown = !former || former.until < at || outing.shown.get(id) === key;
    return made.at < at && isKnown;
  });
}

/** What was under way before may still arrive, unless it is certain that all is done. */
function checkErasures(
  what: string,
  key: string,
  { arrival: { outing, sentAt }, known }: { arrival: Arrival; known: Known },
): void {
  const against = known.erasures.against(key, outing.people);
  const standing = against.filter(({ at, certified }) => certified || at < sentAt);
  const own = standing.some((one) => one.key === key) && `${what}, and was forgotten`;
  const shared = standing.map((one) => one.key).join(' and ');
  const other = standing.length > 0 && `${what}, and was forgotten as ${shared}`;
  known.judge('forgotten people are not opted in', own);
  known.judge('forgotten people are not opted in under another address', other);
}

/** By id, a change also reaches a contact that was renamed since. */
function keysOf(person: Person | undefined): string[] {
  return [person?.key, person?.former?.key].filter((key) => key !== undefined);
}

/** And whether the CRM states a will for it that is newer than what happened then. */
interface Outweighed extends About {
  newer(key: string, at: number): boolean;
  known: Known;
}

/** Whether the CRM's records of the address state a will that is newer than an opt-out. */
function newerThan({ outing, entry }: Arrival, { story, clock }: Known) {
  return (key: string, at: number): boolean => {
    const channel = entry.channelId ?? '';
    const records = outing.people.records.filter((record) => keyIn(record) === key);
    const stated = records
      .filter((record) => textOf(record, channel) !== '')
      .map((record) => Date.parse(textOf(record, 'consent_at')));
    const madeAt = clock.now() - clock.monotonic() + at;
    return story.resubscribe === 'newer' && stated.every((time) => time > madeAt);
  };
}

/** The address that the contact had; if it has changed since, the one that the run was shown. */
function keyThen({ id, key, former }: Person, arrival: Arrival): string {
  if (!former || former.until < horizon(arrival)) return key;
  return arrival.outing.shown.get(id) ?? former.key;
}

function checkStanding(person: Person, what: string, about: Outweighed): void {
  const { key, left, channels } = person;
  const { channel, since, newer, known } = about;
  const { judge, memories } = known;
  const gone = left && left.at < since;
  judge(
    'people who unsubscribed from all mail are not opted in',
    Boolean(gone) && `${what}, and had left all mail`,
  );
  const state = channels.get(channel);
  if (!state || state.at >= since) return;
  judge(
    'subscribed people are not opted in again',
    state.is === 'opt_in' && `${what} a second time`,
  );
  if (state.is !== 'opt_out') return;
  const isSettled = known.settlements.isSettled(person, channel, state);
  const isHers = memories.isTheirs(person, channel) && !newer(key, state.at) && !isSettled;
  judge(
    'people who unsubscribed from a channel are not opted in to it',
    isHers && `${what}, and had left it`,
  );
}

/** What we opted out on the word of a record, only such a record takes back. */
function checkStated(
  { channels }: Person,
  what: string,
  { about, reading, known }: { about: About; reading: Reading; known: Known },
): void {
  const { memories, statements, judge } = known;
  const { key, channel, since } = about;
  const state = channels.get(channel);
  if (state?.is !== 'opt_out' || state.by !== 'us' || state.at >= since) return;
  if (state.at <= memories.lostAt() || !statements.has(key, channel)) return;
  const wrong =
    statements.stands(key, channel, reading) && `${what}, and none of its records had a say`;
  judge('an opt-out that one record stated is not taken back by another', wrong);
}

/** Rows 11 and 12: nobody who was ours and vanished, or left and was deleted, comes back. */
function checkAbsent(what: string, { key, channel, since }: About, known: Known): void {
  const { memories, witness, story, judge } = known;
  const memory = memories.of(key);
  const all = witness.people().filter((person) => person.key === key);
  // Who went a moment ago was still there in what the run had been shown.
  if (all.some(({ made, gone }) => made.at < since && gone && gone.at >= since)) return;
  const ends = all.flatMap(({ gone }) => (gone && gone.at < since ? [gone] : []));
  const last = ends.toSorted((one, other) => one.at - other.at).at(-1);
  if (!memory || !last) return;
  const left = memory.all || memory.outs.has(channel);
  if (last.by === 'us') {
    const wrong = left && `${what}, had left it and was then deleted`;
    judge('unsubscribed contacts that were deleted are not created again', wrong);
    return;
  }
  // A contact that we deleted before, or of a lost snapshot, is unknown.
  const respects = story.missing === 'respect' && `${what}, and had vanished`;
  if (memory.owned || memory.vanished)
    judge('vanished contacts are not created again unless policy says so', respects);
  const wrong = left && `${what}, had left it and then vanished`;
  judge('unsubscribed contacts that vanished are not created again', wrong);
}

/** Rows 14 and 18: a membership that was taken away is not given again. */
function checkTaken(
  person: Person | undefined,
  what: string,
  { key, channel, since, newer, known }: Outweighed,
): void {
  const { memories, story, judge } = known;
  const state = person?.channels.get(channel);
  const memory = memories.of(key);
  if (!person || !state || state.is !== undefined || state.at >= since || !memory) return;
  // Where that is shown as an opt-out, a newer will outweighs it as it does one.
  if (fallbackOf(story) === 'opt_out' && newer(key, state.at)) return;
  const left = memory.outs.has(channel) && `${what}, had left it and was then taken out`;
  judge('unsubscribed people removed from a channel are not put back', left);
  // After our own opt-out before that, or what counts as one, the person was not in.
  const wasIn = state.before?.is !== 'opt_out' || memories.isTheirs(person, channel, state.before);
  const taken = wasIn && memory.ins.has(channel) && `${what}, and had been taken out`;
  judge('people removed from a channel are not put back', taken);
}

function checkFormer(
  what: string,
  { key, away, outs, isMet }: Former,
  { about: { channel, since }, known }: { about: About; known: Known },
): void {
  const isOut = known.witness.present(key).some((person) => {
    if (person.made.at >= since) return false;
    const state = person.channels.get(channel);
    const out = known.memories.isTheirs(person, channel) && state !== undefined && state.at < since;
    return out || (person.away !== undefined && person.away.at < since);
  });
  const left = (isMet && isOut) || away || outs.has(channel);
  const wrong = left && `${what}, and had left it as ${key}`;
  known.judge('people unsubscribed under a former address are not opted in', wrong);
}

function checkOptOut(
  what: string,
  { about, person }: { about: About; person: Person | undefined },
  { arrival, known }: { arrival: Arrival; known: Known },
): void {
  const { key, channel, since } = about;
  const { statements, settlements, memories, judge } = known;
  const { outing } = arrival;
  const addresses = newAddresses(outing.people, key, memories);
  statements.optedOut(key, channel, { reading: outing.people, moved: addresses });
  const keys = [key, ...keysOf(person)];
  if (outing.undoes) return checkTakenBack(what, { about, keys, person }, { arrival, known });
  const isResolved = keys.some((one) => settlements.mayBeOut(one, channel, outing.people));
  const wanted = isResolved || isForbidden(outing.people, { keys, channel }, memories);
  const moved = mayBeOptedOut(outing.people, { key, channel, since }, known);
  const { absent: policy, deletes } = known.story;
  const counts = policy === 'opt_out' || deletes !== 'off';
  const absent = !wanted && !moved && counts;
  const unwanted = !wanted && !moved && !absent && `${what}, and the CRM does not want that`;
  judge('people are opted out only as the CRM wants', unwanted);
  // Who is flagged as deleted is opted out by the word of the CRM, not for absence.
  const isFlagged = keys.some((one) => known.absences.isFlagged(one, outing));
  checkLimited(what, absent && !isFlagged, { outing, known });
  if (absent) {
    checkAbsence(what, keys, { outing, known });
    known.unmanaged.leftAlone(what, { key, channel }, known.judge);
  }
  // Who is not opted out for absence is opted out before the delete alone.
  if (absent && policy === 'keep') checkWait(what, person, { keys, outing, known });
  const change = { op: 'opt_out', keys, part: channel, target: person?.id } as const;
  if (!wanted) checkGuard(what, { ...change, guard: 'delete' }, { arrival, known });
  // What a creation of this run has brought along is taken back at once; and the platform does not
  // tell a creation from an enrolment of somebody who signed up meanwhile.
  const isNew = person !== undefined && person.made.at >= outing.startedAt;
  // A record that moved away leaves its address, whatever the CRM states of another record.
  const stated = moved ? [key] : keys;
  const isStated =
    isResolved || stated.some((one) => wishFor(outing.people, one, channel) === 'opt_out');
  // Who is gone for long enough is opted out for that, whoever said no before.
  const isDue = counts && keys.some((one) => known.absences.isLong(one, outing));
  if (isStated && !isNew && !isDue) checkStatedOptOut(what, change, { arrival, known });
  checkTwice(what, { key, channel, since }, { person, known });
}

function checkTwice(
  what: string,
  { key, channel, since }: About,
  { person, known: { unanswered, judge } }: { person: Person | undefined; known: Known },
): void {
  const state = person?.channels.get(channel);
  const done = state?.is === 'opt_out' && state.by === 'us' && state.at < since;
  const again = done && !unanswered.has(`${key} ${channel} opt_out`);
  judge('nobody is opted out twice', again && `${what} a second time`);
}

/** A record of one of the addresses, or that ever had one of them, states the opt-out. */
function isForbidden(
  { records }: Reading,
  { keys, channel }: { keys: readonly string[]; channel: string },
  memories: Known['memories'],
): boolean {
  const isTheirs = (record: CrmRecord) =>
    keys.some((one) => keyIn(record) === one || memories.everOf(String(record['id'])).has(one));
  return records.some((record) => forbids(record, channel) && isTheirs(record));
}

/** Rows 2 and 3: who left the CRM for long enough. */
function checkAbsence(
  what: string,
  keys: readonly string[],
  { outing, known }: { outing: Outing; known: Known },
): void {
  const { absences, judge } = known;
  const isDue = keys.some((key) => absences.isFlagged(key, outing) || absences.isLong(key, outing));
  const early = !isDue && `${what}, and is in the CRM, or was there not long ago`;
  judge('people opted out for absence were missing for long enough', early);
  const wasNamed = keys.some(absences.wasNamed);
  const foreign = !wasNamed && `${what}, and the CRM never named them`;
  judge('people opted out for absence were in the CRM once', foreign);
}

/** Who is not flagged waits, from when they were due, or opted out by us. */
function checkWait(
  what: string,
  person: Person | undefined,
  { keys, outing, known }: { keys: readonly string[]; outing: Outing; known: Known },
): void {
  const { absences, story, judge } = known;
  if (!person || story.deleteAfter === 0) return;
  if (keys.some((key) => absences.isFlagged(key, outing))) return;
  const wait = { ms: story.deleteAfter * 3_600_000, optsOut: story.absent === 'opt_out' };
  const isOver = keys.some((key) => absences.hasWaited(person, outing, { key, ...wait }));
  const early = !isOver && `${what}, and has not waited for that`;
  judge('missing people are deleted only after the configured time', early);
}

function getsMail({ left, channels }: Person): boolean {
  return left === undefined && [...channels.values()].some(({ is }) => is === 'opt_in');
}

function checkDelete(arrival: Arrival, known: Known): void {
  const { entry, outing } = arrival;
  const { witness, story, memories, judge } = known;
  const person = witness.people().find(({ id }) => id === entry.path.split('/').at(-1));
  if (!person) return;
  const what = `${person.key} was deleted`;
  judge('people are deleted only as policy says', story.deletes === 'off' && what);
  const key = keyThen(person, arrival);
  const isFlagged = known.absences.isFlagged(key, outing);
  const replaced = isReplaced(outing.people, { key, since: horizon(arrival) }, known);
  const isMoved = newAddresses(outing.people, key, memories).length > 0;
  const isBarred = !replaced && isMoved && !getsMail(person);
  const isStill = !isFlagged && !replaced && !isBarred && outing.mode !== 'full';
  const fast = isStill && `${what} in a fast run, and neither flagged nor replaced`;
  judge('a fast run deletes only flagged or replaced contacts', fast);
  checkLimited(what, !outing.undoes, { outing, known });
  // Who left under the old address is not created under the new one.
  const isEarly = replaced === false && !isBarred;
  const early = isEarly && `${what}, and the new address is not on the platform`;
  judge('an old address is not deleted before the new one exists', early);
  if (!replaced && !isBarred && !outing.undoes) {
    checkAbsence(what, [key], { outing, known });
    checkWait(what, person, { keys: [key], outing, known });
  }
  const keys = [key, ...keysOf(person)];
  const change = { guard: 'delete', op: 'delete', keys, part: '', target: person.id } as const;
  checkGuard(what, change, { arrival, known });
  const isAdopted = story.deletes === 'created' && !memories.isOfOurs(person);
  const wrong = isAdopted && `${what}, and not made by us`;
  judge('adopted contacts are deleted only where policy says so', wrong);
}
