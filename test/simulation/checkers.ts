/**
 * What must hold, whatever happens. The checkers know the specification of the platform and the
 * rules of the README, not the engine: they see what reached the platform, what was there before,
 * and what the CRM said.
 *
 * A run may act on what it was shown when it began, or a quarter of an hour before the request
 * left; what happened before that it had to know.
 */
import type { LoggedRequest } from '../../src/emulator/world.ts';
import { channels } from '../sync/mirror.ts';
import type { VirtualClock } from '../clock.ts';
import { forbids, keyIn, textOf, wishesIn, wishFor, type CrmRecord, type Reading } from './crm.ts';
import type { Traces } from './files.ts';
import type { Memories } from './memory.ts';
import { leftBehind, mayBeOptedOut } from './moved.ts';
import type { RunStep, Story } from './story.ts';
import type { Absences } from './absence.ts';
import type { Asked } from './asked.ts';
import type { Person, Since, Witness } from './witness.ts';

/** A rule was broken: the simulation has found something. */
export class Wrong extends Error {
  override readonly name = 'Wrong';
}

function wrong(what: string): never {
  throw new Wrong(what);
}

/** One run of one process, as seen from outside. */
export interface Outing {
  /** By the clock that never jumps. */
  startedAt: number;
  /** By the clock of the mirror. */
  ourStart: number;
  /** Whom this run has deleted or opted out since they left the CRM. */
  left: Set<string>;
  mode: 'full' | 'fast';
  people: Reading;
  templates: Reading;
  /** Enrolments that were acknowledged: address, channel, subscription. */
  heard: string[];
  /** The platform has refused its key. */
  refused: boolean;
}

/** A request that has reached the platform. */
export interface Arrival {
  outing: Outing;
  entry: LoggedRequest;
  /** What its body names. */
  asks: Asked;
  /** When it left, by the clock that never jumps. */
  sentAt: number;
}

/** What is known from outside of all that has happened. */
export interface Known {
  /** Enrolments that left and had no usable answer: address, channel, subscription. */
  unheard: ReadonlySet<string>;
  story: Story;
  clock: Pick<VirtualClock, 'now' | 'monotonic'>;
  witness: Witness;
  memories: Memories;
  absences: Absences;
}

const quarter = 15 * 60_000;
/** All that a fresh look, a slow answer and the next step may take. */
const travel = 30_000;

export function checkArrival(arrival: Arrival, known: Known): void {
  const { route } = arrival.entry;
  if (route === 'contacts.enrol') checkEnrolment(arrival, known);
  else if (route === 'contacts.delete') checkDelete(arrival, known);
  else if (route === 'templates.create') checkCreation(arrival, known);
  else if (route === 'templates.update') checkUpdate(arrival, known);
  else wrong(`${route} was asked for, and nothing allows that`);
}

function horizon({ outing, sentAt }: Arrival): number {
  return Math.max(outing.startedAt, sentAt - quarter - travel);
}

function checkEnrolment(arrival: Arrival, known: Known): void {
  const { entry, outing, asks } = arrival;
  const since = horizon(arrival);
  const person = known.witness.people().find(({ id }) => id === entry.contactId && !entry.created);
  const key = (person && keyThen(person, since)) ?? entry.email ?? '';
  const channel = entry.channelId ?? '';
  const about = { key, channel, since };
  const there = known.witness.present(key).filter(({ made }) => made.at < since);
  if (entry.subscription === 'opt_out') return checkOptOut(about, person, { outing, known });
  const what = `${key} was opted in to ${channel}`;
  const wish = wishFor(outing.people, key, channel);
  if (wish !== 'opt_in') wrong(`${what}, and the CRM wants ${wish ?? 'nothing of the kind'}`);
  if (!outing.people.certified) wrong(`${what} on an uncertified reading`);
  if (asks.email !== undefined && there.length > 0)
    wrong(`${what} by email, and was on the platform`);
  const listed = there.filter(({ made }) => made.at < outing.startedAt).length;
  if (listed > 1 && outing.mode === 'full')
    wrong(`${what}, and ${listed} contacts share the address`);
  const newer = newerThan(arrival, known);
  for (const one of there) {
    // By id a fast run sees one contact, and not that another has its address by now.
    const isSeen = outing.mode === 'full' || asks.email !== undefined || one === person;
    if (isSeen) checkStanding(one, what, { ...about, newer });
  }
  if (there.length === 0) checkAbsent(what, about, known);
  else checkTaken(person, what, { about, known });
  for (const former of known.memories.former(key, outing.people)) {
    checkFormer(what, { ...about, key: former }, known);
  }
}

/** One address, one channel, and since when its state had to be known. */
interface About {
  key: string;
  channel: string;
  since: number;
}

/** Row 17: whether the CRM's records of the address state a will that is newer than an opt-out. */
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

/** The address that the contact had then. */
function keyThen({ key, former }: Person, since: number): string {
  return former && former.until >= since ? former.key : key;
}

function checkStanding(
  person: Person,
  what: string,
  { channel, since, newer }: About & { newer(key: string, at: number): boolean },
): void {
  if (person.left && person.left.at < since) wrong(`${what}, and had left all mail`);
  const state = person.channels.get(channel);
  if (!state || state.at >= since) return;
  if (state.is === 'opt_in') wrong(`${what} a second time`);
  const left = state.is === 'opt_out' && state.by === 'others';
  if (left && !newer(person.key, state.at)) wrong(`${what}, and had left it`);
}

/** Rows 11 and 12: nobody who was ours and vanished comes back without leave. */
function checkAbsent(what: string, { key, channel, since }: About, known: Known): void {
  const memory = known.memories.of(key);
  const all = known.witness.people().filter((person) => person.key === key);
  const vanished = all.filter(({ gone }) => gone && gone.at < since);
  if (!memory || vanished.length === 0) return;
  // Whom we have deleted ourselves is nobody we know.
  const byOthers = vanished.some(({ gone }) => gone?.by === 'others');
  if (known.story.missing === 'respect' && byOthers) wrong(`${what}, and had vanished`);
  if (memory.all || memory.outs.has(channel)) wrong(`${what}, had left it and then vanished`);
}

/** Rows 14 and 18: a membership that was taken away is not given again. */
function checkTaken(
  person: Person | undefined,
  what: string,
  { about: { key, channel, since }, known }: { about: About; known: Known },
): void {
  const state = person?.channels.get(channel);
  const memory = known.memories.of(key);
  if (!state || state.is !== undefined || state.at >= since || !memory) return;
  if (memory.outs.has(channel)) wrong(`${what}, had left it and was then taken out`);
  if (memory.ins.has(channel)) wrong(`${what}, and had been taken out`);
}

function checkFormer(what: string, { key, channel, since }: About, known: Known): void {
  const memory = known.memories.of(key);
  if (!memory) return;
  const left = known.witness.present(key).some((person) => {
    if (person.made.at >= since) return false;
    const state = person.channels.get(channel);
    const out = state?.is === 'opt_out' && state.by === 'others' && state.at < since;
    return out || (person.left !== undefined && !person.bounced && person.left.at < since);
  });
  if (left || memory.away || memory.outs.has(channel)) wrong(`${what}, and had left it as ${key}`);
}

function checkOptOut(
  { key, channel, since }: About,
  person: Person | undefined,
  { outing, known }: { outing: Outing; known: Known },
): void {
  // By id, an opt-out reaches whoever has been renamed since.
  const keys = [key, person?.former?.key ?? key];
  const isTheirs = (record: CrmRecord) =>
    keys.some(
      (one) => keyIn(record) === one || known.memories.everOf(String(record['id'])).has(one),
    );
  const wanted = outing.people.records.some(
    (record) => forbids(record, channel) && isTheirs(record),
  );
  const moved = outing.mode === 'full' && mayBeOptedOut(outing.people, { key, channel }, known);
  const what = `${key} was opted out of ${channel}, and the CRM does not want that`;
  if (!wanted && !moved && known.story.absent === 'keep') wrong(what);
  if (!wanted && !moved) checkAbsence(what, keys, { outing, known });
  const state = person?.channels.get(channel);
  const done = state?.is === 'opt_out' && state.by === 'us' && state.at < since;
  const heard = !known.unheard.has(`${key} ${channel} opt_out`);
  if (done && heard) wrong(`${key} was opted out of ${channel} a second time`);
}

/** Rows 2 and 3: who left the CRM for long enough, and no more of them than a guard lets pass. */
function checkAbsence(
  what: string,
  keys: readonly string[],
  { outing, known: { absences, story } }: { outing: Outing; known: Known },
): void {
  if (!keys.some((key) => absences.isDue(key, outing))) wrong(`${what}, nor did they leave it`);
  if (!keys.some(absences.wasNamed)) wrong(`${what}, and never named them`);
  outing.left.add(keys[0] ?? '');
  if (outing.left.size > story.floor) wrong(`${what}: more than a guard lets pass`);
}

function checkDelete(arrival: Arrival, known: Known): void {
  const { entry, outing } = arrival;
  const since = horizon(arrival);
  const id = entry.path.split('/').at(-1);
  const person = known.witness.people().find((one) => one.id === id);
  if (!person) return;
  const { made, left, channels: all } = person;
  const what = `${person.key} was deleted`;
  if (known.story.deletes === 'off') wrong(what);
  if (outing.mode !== 'full') wrong(`${what} in a fast run`);
  checkAbsence(what, [keyThen(person, since)], { outing, known });
  if (known.story.deletes === 'created' && made.by !== 'us') wrong(`${what}, and not made by us`);
  const outs = [...all.values()].filter((state) => state.is === 'opt_out');
  const theirs = [left, ...outs].some((state) => state?.by === 'others' && state.at < since);
  if (theirs) wrong(`${what}, and with them the memory that they left`);
}

function checkCreation(arrival: Arrival, { witness, story, memories }: Known): void {
  const { outing, asks } = arrival;
  const since = horizon(arrival);
  const there = witness
    .letters()
    .filter(({ name, made, gone }) => name === asks.name && made.at < since && !gone);
  if (there.length > 0) wrong(`the template "${asks.name}" was made, and was there`);
  const named = outing.templates.records.some((record) => record['name'] === asks.name);
  if (!named) wrong(`the template "${asks.name}" was made, and nobody wants it`);
  const vanished = witness
    .letters()
    .some(
      ({ name, made, gone }) => name === asks.name && made.by === 'us' && isBefore(gone, since),
    );
  // One that was gone from both sides at once is forgotten.
  if (vanished && story.templates === 'keep' && !memories.missed(asks.name ?? ''))
    wrong(`the template "${asks.name}" was made again, and had vanished`);
}

function isBefore(since: Since | undefined, at: number): boolean {
  return since !== undefined && since.by === 'others' && since.at < at;
}

function checkUpdate(arrival: Arrival, { witness, story }: Known): void {
  const { entry, outing, asks } = arrival;
  const since = horizon(arrival);
  const letter = witness.letters().find(({ id }) => entry.path.endsWith(`/${id}`));
  if (!letter) return;
  const { name, made, edited } = letter;
  const what = `the template "${name}" was changed`;
  const records = outing.templates.records.map((record) => record['name']);
  const named = [name, letter.former, asks.name].some((one) => records.includes(one));
  const archives = asks.status === 'archived' && story.absentTemplates === 'archive';
  if (!named && !archives) wrong(`${what}, and nobody wants it`);
  const byHand = made.by === 'us' && isBefore(edited, since);
  if (byHand && !archives && story.templates === 'keep')
    wrong(`${what}, and had been edited by hand`);
  // Doubled from the beginning: neither was ever adopted.
  const twins = witness
    .letters()
    .filter((one) => one.name === name && one.made.at === Number.NEGATIVE_INFINITY && !one.gone);
  if (made.at === Number.NEGATIVE_INFINITY && twins.length > 1)
    wrong(`${what}, and ${twins.length} have that name`);
}

/**
 * Recorded = acknowledged: what the files say was once so on the platform, and done by whom. What
 * left and was not answered (`unheard`) may count as done.
 */
export function checkFiles(
  files: Traces,
  { story, witness, unheard }: Known,
  ended: boolean,
): void {
  const fallback = fallbackOf(story);
  for (const { key, channel, is, by } of files.recorded) {
    const what = `${key} is recorded as ${is} of ${channel} by ${by}`;
    const made = witness.wasMadeByUs(key, channel, is);
    const perhaps = unheard.has(`${key} ${channel} ${is}`);
    if (by === 'us' && !made && !perhaps) wrong(`${what}, and we never made that so`);
    const taken = is === 'opt_out' && witness.wasEver(key, channel, 'opt_in');
    const seen = witness.wasEver(key, channel, is) || taken || fallback === is;
    if (by === 'platform' && !seen) wrong(`${what}, and was never seen so`);
  }
  for (const { key, part, op } of files.acked) {
    const is = op === 'opt_out' ? 'opt_out' : 'opt_in';
    if (part === '' || unheard.has(`${key} ${part} ${is}`)) continue;
    if (!witness.wasEver(key, part, is) && fallback !== is)
      wrong(`${op} of ${key} in ${part} is acknowledged, and was never so`);
  }
  if (ended && files.sent > 0) wrong(`${files.sent} changes are still marked as sent`);
}

interface Spent {
  left: number;
  disturbed: number;
  files: Traces;
  /** Changes whose outcome was open when the run began. */
  opened: number;
  step: RunStep;
}

/**
 * A run asks for the pages of two passes, and for a change at most a look, its sending and what
 * reads it back; a disturbance costs what is sent again and looked at again.
 */
export function checkRequests(spent: Spent, { witness }: Known): void {
  const { left, disturbed, files, opened, step } = spent;
  const people = witness.people().length;
  const pages = 2 * people + witness.letters().length + 8;
  const odd = disturbed + step.meanwhile.length + (step.eaten === undefined ? 0 : 10);
  const most = pages + 6 * files.newest + 8 * odd + 6 * opened;
  if (left > most) wrong(`${left} requests left in one run, and ${most} are enough`);
}

/** What the platform shows of a channel where somebody has no subscription. */
export function fallbackOf({ quirks }: Story): string | undefined {
  return quirks.find((quirk) => quirk.startsWith('all-channels='))?.split('=')[1];
}

/** In the end everything is as the CRM wants it, or a person's own act explains why not. */
export function checkEnd(reading: Reading, known: Known, told: ReadonlySet<string>): void {
  const { story, witness } = known;
  const refuses = (name: string) => story.quirks.some((quirk) => quirk.startsWith(name));
  for (const { key, channel, wish } of wishesIn(reading)) {
    const there = witness.present(key);
    const states = there.map((one) => one.channels.get(channel)?.is ?? fallbackOf(story));
    const what = `in the end ${key} is ${states.join(' and ') || 'nowhere'} in ${channel}`;
    // Who could not be made is named once, not for each channel; so is an unusable record.
    const parts = there.length === 0 ? channels : [channel];
    const isTold = ['', ...parts].some((part) => told.has(`contact ${key} ${part}`));
    if (wish === 'opt_out' && states.includes('opt_in')) {
      if (!refuses('no-flip')) wrong(`${what}, and the CRM forbids it`);
      if (!isTold) wrong(`${what}, the CRM forbids it, and nobody was told`);
    }
    if (wish === 'opt_in' && states.includes('opt_in') && !refuses('no-flip')) {
      for (const former of leftBehind(reading, key, known)) checkLeftBehind(former, channel, known);
    }
    if (wish !== 'opt_in' || states.includes('opt_in')) continue;
    if (!isTold) wrong(`${what}, the CRM wants it, and nobody was told why not`);
    const refused =
      (refuses('no-flip') && states.includes('opt_out')) ||
      (refuses('unknown-email') && there.length === 0);
    if (!refused && !isExcused(reading, known, { key, channel }))
      wrong(`${what}, the CRM wants it, and nothing speaks against it`);
  }
}

function checkLeftBehind(key: string, channel: string, { witness, story }: Known): void {
  const states = witness.present(key).map((one) => one.channels.get(channel)?.is);
  if (states.some((is) => (is ?? fallbackOf(story)) === 'opt_in'))
    wrong(`in the end ${key} is in ${channel}, and the CRM has another address of hers`);
}

/** Whether anything that happened speaks against opting this address in. */
function isExcused(
  reading: Reading,
  { story, witness, memories, unheard }: Known,
  { key, channel }: Pick<About, 'key' | 'channel'>,
): boolean {
  const there = witness.present(key);
  const records = reading.records.filter((record) => keyIn(record) === key);
  const keys = records.flatMap(({ id }) => [...memories.everOf(String(id))]);
  if (there.length > 1 || keys.some((one) => witness.wasTouched(one, channel))) return true;
  // Nobody can tell the platform's own default from what a person said elsewhere.
  const isDefault = fallbackOf(story) === 'opt_out';
  const everywhere = [...there, ...keys.flatMap((one) => witness.present(one))];
  if (isDefault && everywhere.some(({ made }) => made.by === 'others')) return true;
  // What had no answer may have been done, and taken back by the person.
  const isOut = there.some(
    (one) => (one.channels.get(channel)?.is ?? fallbackOf(story)) === 'opt_out',
  );
  const ways = ['opt_in', 'opt_out'];
  return isOut && ways.some((way) => unheard.has(`${key} ${channel} ${way}`));
}

/** In the end what is recorded of a contact is what the platform shows of it. */
export function checkRecorded({ recorded }: Traces, { story, witness }: Known): void {
  for (const { key, channel, is } of recorded) {
    const there = witness.present(key);
    const [only] = there;
    if (!only || there.length > 1) continue;
    const shown = only.channels.get(channel)?.is ?? fallbackOf(story);
    const what = `in the end ${key} is ${shown ?? 'nowhere'} in ${channel}`;
    if ((shown === 'opt_in') !== (is === 'opt_in')) wrong(`${what}, and recorded as ${is}`);
  }
}
