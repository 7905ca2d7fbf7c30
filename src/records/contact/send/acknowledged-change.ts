/**
 * Determines what the answer to a creation means, and what is recorded for a contact after a change
 * to it was acknowledged.
 */
import type { Change } from '../../../domain/change.ts';
import { canonicalJson, type RecordedRow } from '../../../domain/record.ts';
import { type Acknowledged, acked, type SendOutcome } from '../../change-outcome.ts';
import { fingerprintOf, isOurs, unsettled, observe, timeOf } from '../observe/observed-contact.ts';
import { restoredFrom } from '../consent/own-opt-outs.ts';
import {
  decodeContact,
  type ContactChange,
  emptyRecord,
  enrolment,
  type Membership,
  type ObservedContact,
  type RecordedContact,
  type ObservedContactRow,
} from '../observe/contact-state.ts';
import { isExpected } from '../../../domain/errors.ts';
import type { Enrolled } from '../../../platform/api-client.ts';
import { mayBeDefault, type Evidence, type PlatformFacts } from '../../platform-facts.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import { search, type ReadAccess } from '../observe/contact-read.ts';

/**
 * Returns the row to record after an acknowledged change, or undefined if there is none.
 *
 * Only an acknowledged request makes an opt-out ours. An opt-out that the person made before, or
 * that was already there (409), remains the platform's. A creation starts over and keeps only the
 * opt-outs of a contact that vanished. An opt-out by `undo` that restores a person's own becomes
 * the person's again, made by now at the latest. After a delete the contact counts as never owned.
 * A person without a row who is opted out was erased, and gets no row. After a delete by `undo`,
 * the opt-outs remain recorded.
 */
export function acknowledge(
  before: RecordedRow | undefined,
  sent: Change,
  { observed, ...acked }: Acknowledged,
): RecordedRow | undefined {
  const change = decodeContact.change(sent);
  const { op, part, key, value } = change;
  if (op === 'delete' || (op === 'opt_out' && !before)) return afterDelete(before, change);
  const known = before ? decodeContact.recorded(before).value : emptyRecord;
  const recorded = op === 'create' ? anew(known) : known;
  const ack = { ...acked, answered: observed && decodeContact.observed(observed).value };
  const { found, at } = ack;
  const id = ack.id ?? before?.id ?? '';
  const { contact, whole } = shownAfter(recorded, change, id, ack);
  const others = recorded.contacts.filter((other) => other.id !== id);
  const isRenamed = ack.renamed === true || (recorded.renamed ?? []).some((one) => one.id === id);
  const isTheirs = value.restores?.by === 'platform';
  const isOutByUs = op === 'opt_out' && !found && !isTheirs;
  const outByUs = isOutByUs ? [part] : [];
  // If the change was sent under another address of the same record, and this address now has
  // another contact, the channels stay as they were.
  const ids = [before?.id ?? id, ...others.map((other) => other.id)];
  const channels =
    ack.elsewhere && ids.some((other) => other !== id)
      ? recorded.channels
      : { ...recorded.channels, [part]: membership(recorded, change, ack, before) };
  // An opt-out of ours is hidden if the channel holds that of another contact of the address.
  const isHidden = !isRenamed && !isOurs(channels[part]) && isOutByUs;
  const { hidden } = recorded;
  const body: RecordedContact = {
    ...contactsAfter(recorded, contact, others, isRenamed ? outByUs : undefined),
    allowed: recorded.allowed,
    channels,
    defaults: defaultsAfter(recorded, change, ack),
    early: known.early,
    hidden: isHidden ? { ...hidden, [id]: [...(hidden?.[id] ?? []), ...outByUs] } : hidden,
    left: recorded.left,
    outgrown: recorded.outgrown,
    protected: recorded.protected,
  };
  // The same contact remains ours, even if another contact with the address was opted out last, but
  // not a renamed one.
  const same = before && op !== 'create' ? before : undefined;
  const sameId = isRenamed && same?.id === id ? undefined : same?.id;
  // Nothing is left to decide if the response shows just what was sent: the contact is subscribed
  // to this channel and shows no other.
  const { answered } = ack;
  const isPrompt = !found && !ack.undone && !ack.late && value.settles === true;
  const isIn = answered?.left === false && answered.channels[part] === 'opt_in';
  const showsOnlyThat = isPrompt && isIn && Object.keys(answered.channels).length === 1;
  return {
    kind: 'contact',
    key,
    id: same ? sameId : id,
    ownership: same?.ownership ?? (found ? 'adopted' : 'created'),
    body: canonicalJson(body),
    shown: whole && !isRenamed && others.length === 0 ? fingerprintOf(contact) : undefined,
    desired: before || !showsOnlyThat ? undefined : ack.wanted,
    // A response to a request by id shows nothing about the contact, so the time of the last
    // reading is kept.
    seenAt: op === 'create' || observed ? at : (before?.seenAt ?? 0),
  };
}

/**
 * Returns the row after a delete. If `undo` has deleted a contact that we created, the opt-outs
 * remain, so that no run creates the contact again. They also remain if an opt-out of ours at an
 * old address also applies to CRM records that now have another one, because the do-not-contact
 * list does not have those, and if another contact of the address has one of ours, which would
 * count as the person's without the row.
 */
function afterDelete(
  before: RecordedRow | undefined,
  { target, value }: ContactChange,
): RecordedRow | undefined {
  if (!before) return undefined;
  const recorded = decodeContact.recorded(before).value;
  const others = recorded.contacts.filter(({ id }) => id !== target);
  const stay = others.filter((contact) => isOutByUs(recorded, contact));
  const carries = Object.values(recorded.channels).some(
    (is) => isOurs(is) && ((is.bound ?? []).length > 0 || is.undone !== undefined),
  );
  if (!value.undone && !(value.moved && carries) && stay.length === 0) return undefined;
  const hidden = stay.length > 0 ? recorded.hidden : undefined;
  const body = canonicalJson({ ...anew(recorded), contacts: stay, hidden });
  const gone = { id: undefined, shown: undefined, desired: undefined };
  return { ...before, ...gone, ownership: 'noted', body };
}

function isOutByUs({ channels, hidden = {} }: RecordedContact, contact: ObservedContact): boolean {
  const outs = Object.entries(contact.channels).filter(([, is]) => is === 'opt_out');
  const isHidden = (channel: string) => hidden[contact.id]?.includes(channel) === true;
  return outs.some(([channel]) => isOurs(channels[channel]) || isHidden(channel));
}

/**
 * Returns the contacts after the change. A renamed contact belongs to this address only while the
 * address has no other contact. `outByUs`: the channels from which the change opted a renamed
 * contact out; undefined if the contact has this address.
 */
function contactsAfter(
  { renamed = [] }: RecordedContact,
  contact: ObservedContact,
  others: ObservedContact[],
  outByUs: string[] | undefined,
) {
  if (outByUs === undefined) {
    return { contacts: [...others, contact], renamed: renamed.length > 0 ? renamed : undefined };
  }
  const contacts = others.length > 0 ? others : [contact];
  const before = renamed.find(({ id }) => id === contact.id)?.outByUs ?? [];
  const all = [...new Set([...before, ...outByUs])];
  const moved = all.length > 0 ? { ...contact, outByUs: all } : contact;
  return { contacts, renamed: [...renamed.filter(({ id }) => id !== contact.id), moved] };
}

type Answer = Omit<Acknowledged, 'observed'> & { answered: ObservedContact | undefined };

/** Returns what a creation keeps from the previous contact: its opt-outs. */
function anew({ channels, outgrown, renamed }: RecordedContact): RecordedContact {
  const outs = Object.entries(channels).filter(([, { is }]) => is === 'opt_out');
  return { ...emptyRecord, channels: Object.fromEntries(outs), outgrown, renamed };
}

function membership(
  recorded: RecordedContact,
  change: ContactChange,
  { found, undone = false, doubtful, at, latest = at }: Answer,
  row: RecordedRow | undefined,
): Membership {
  const before = recorded.channels[change.part];
  const wasTheirs = before?.is === 'opt_out' && before.by === 'platform';
  const after = before?.is === 'opt_in' ? (row?.seenAt ?? null) : null;
  const doubt = doubtful ? ({ doubtful } as const) : {};
  const theirs = { by: 'platform', ...doubt, is: 'opt_out', made: { after, by: latest } } as const;
  if (undone) {
    // An opt-out that existed before may have been made again. If it was doubtful, it remains so.
    const made = { after: before?.made?.after ?? null, by: latest };
    return wasTheirs ? { ...unsettled(before), made } : theirs;
  }
  const is = enrolment(change).subscription;
  if (is === 'opt_in') return { by: found ? 'platform' : 'us', is };
  if (wasTheirs) return unsettled(before);
  if (found) return theirs;
  const { cause, stated, bound, restores, undone: memory } = change.value;
  const restored = restores && restoredFrom(restores, latest, { bound, undone: memory });
  if (restored) return restored;
  // An opt-out that the CRM stated keeps that cause, even if another contact is opted out for
  // another reason.
  if (isOurs(before) && before.cause === 'stated' && cause !== 'stated') return unsettled(before);
  return { acked: latest, bound, by: 'us', cause, is, stated, undone: memory };
}

/**
 * Returns the contact from the response, or else from the last reading, with the change applied.
 * `whole`: whether this is proven to be everything that the platform shows.
 */
function shownAfter(
  recorded: RecordedContact,
  change: ContactChange,
  id: string,
  { answered, undone }: Answer,
): { contact: ObservedContact; whole: boolean } {
  const { channel, subscription } = enrolment(change);
  const known = [...recorded.contacts, ...(recorded.renamed ?? [])];
  const before = known.find((contact) => contact.id === id);
  if (answered && undone) return { contact: answered, whole: true };
  const contact = answered ?? before ?? { channels: {}, id, left: false };
  const whole = answered ? answered.channels[channel] === subscription : before !== undefined;
  const channels = { ...contact.channels, [channel]: subscription };
  return { contact: { ...contact, channels }, whole };
}

/** Returns the channels with a default: opt-outs in others in a creation's prompt response. */
function defaultsAfter(
  recorded: RecordedContact,
  change: ContactChange,
  { answered, late }: Answer,
): string[] {
  const others = recorded.defaults.filter((channel) => channel !== change.part);
  if (change.op !== 'create' || !answered || late) return others;
  const outs = Object.entries(answered.channels).filter(([, is]) => is === 'opt_out');
  return outs.map(([channel]) => channel).filter((channel) => channel !== change.part);
}

/*
 * Interprets the response to a creation: who made the contact, which channels came with it, and
 * therefore what the platform shows for channels in which the contact was never enrolled.
 *
 *   the response          known about the platform      result
 *   lists channels        anything                      its opt-outs in other channels are defaults
 *   lists none            it shows no defaults, or      no further request, unless the CRM forbids
 *                         opt_in on all the others      a channel, or others made the contact
 *   lists none            anything else                 it is read back immediately: its opt-outs
 *                                                       are defaults, if the contact is new and the
 *                                                       first request was answered quickly
 */

interface Made {
  change: ContactChange;
  answer: Enrolled;
  facts: PlatformFacts;
}

/** The age to which a contact counts as ours: a request's duration, and the clocks' difference. */
const madeWithinMs = 60_000;
/** How long nobody is assumed to have noticed and changed a new contact, in milliseconds. */
const atOnceMs = 10_000;

/** Returns the outcome of a creation based on its response. Throws the errors of the requests. */
export async function made(
  access: ReadAccess,
  of: Made,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { change, answer } = of;
  const { contact, date } = answer;
  if (!contact) {
    const [found] = await search(access, change.key, signal);
    // The search may have happened much later than the creation.
    const late = { late: true, ...whose(found?.createdAt, date) };
    if (found) return acked({ id: found.id, observed: found, ...late });
    return { is: 'unknown', why: 'the answer names no contact' };
  }
  const { id, status, channels } = contact;
  const theirs = whose(timeOf(contact.createdAt), date);
  if (status && channels) {
    const whole = { ...contact, email: change.key, status, channels };
    const observed = observe(whole, access.channels);
    const evidence = theirs.found ? undefined : evidenceOf(access, change, observed);
    return acked({ id, observed, evidence, ...theirs });
  }
  return acked({ id, ...theirs, ...(await readBack(access, { ...of, id }, signal)) });
}

/**
 * Returns `found` and `late` if the contact is older than our creation by the platform's clocks: in
 * that case others made it, none of its subscriptions is a default, and it is not deleted as one
 * that we made. Times are in milliseconds since the epoch; if one is unknown, the contact counts as
 * ours.
 */
function whose(createdAt: number | undefined, date: number | undefined) {
  const age = createdAt === undefined || date === undefined ? 0 : date - createdAt;
  return age > madeWithinMs ? { found: true, late: true } : {};
}

/** Reads the contact if its channels are needed and not in the response. Returns what it adds. */
async function readBack(
  access: ReadAccess,
  { change, answer, facts, id }: Made & { id: string },
  signal: AbortSignal,
): Promise<Partial<Parameters<typeof acked>[0]>> {
  const { contact, date } = answer;
  const isOthers = whose(timeOf(contact?.createdAt), date).found === true;
  const isNeeded = change.value.forbids || isOthers;
  const others = [...access.channels].filter((channel) => channel !== change.part);
  if (!isNeeded && !others.some((channel) => mayBeDefault(facts, channel))) return {};
  // After a later attempt than the first, the contact may show what the person did.
  let attempts = 0;
  const leaves = async (): Promise<void> => void (attempts += 1);
  const how = { signal, leaves, person: change.key };
  const back = await access.platform.retrieve(id, how).catch((error: unknown) => {
    // The creation was acknowledged even if this read fails.
    if (!isNeeded && isExpected(error)) return undefined;
    throw error;
  });
  if (!back || contactKey(back.email) !== change.key) return {};
  const observed = observe(back, access.channels);
  const theirs = whose(observed.createdAt, date);
  const apart = back.date === undefined || date === undefined ? 0 : Math.abs(back.date - date);
  const before = contact?.updatedAt;
  const isUnmoved = !before || !back.updatedAt || before === back.updatedAt;
  const isAtOnce = attempts === 1 && apart <= atOnceMs && isUnmoved;
  // An opt-out in a channel that is known to have another default, or none, is no default.
  const contradicts = Object.entries(othersIn(observed, change)).some(
    ([channel, is]) => is === 'opt_out' && !mayBeDefault(facts, channel),
  );
  if (!isAtOnce || isOthers || theirs.found || contradicts) {
    return { observed, late: true, ...theirs };
  }
  return { observed, evidence: evidenceOf(access, change, observed) };
}

/** Returns evidence about defaults; undefined if there is no other channel to show any. */
function evidenceOf(
  access: ReadAccess,
  change: ContactChange,
  row: ObservedContactRow,
): Evidence | undefined {
  if (access.channels.size < 2) return undefined;
  return { of: 'creation', others: othersIn(row, change) };
}

function othersIn({ value }: ObservedContactRow, { part }: ContactChange) {
  return Object.fromEntries(Object.entries(value.channels).filter(([channel]) => channel !== part));
}
