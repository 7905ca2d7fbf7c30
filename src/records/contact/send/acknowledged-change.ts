/** Determines what is recorded for a contact after a change to it was acknowledged. */
import { canonicalJson, type RecordedRow } from '../../../domain/record.ts';
import type { Acknowledged } from '../../record-type.ts';
import { fingerprintOf } from '../observe/observed-contact.ts';
import { restoredFrom } from '../consent/own-opt-outs.ts';
import { isOurs, unsettled } from '../observe/channel-observation.ts';
import { showsOnly } from '../observe/converged-creation.ts';
import { decodeContact, type ContactChange } from '../observe/contact-rows.ts';
import {
  enrolment,
  type Bracket,
  type Membership,
  type ObservedContact,
  type RecordedContact,
} from '../observe/contact-state.ts';

const nothing: RecordedContact = { channels: {}, contacts: [], defaults: [], outgrown: [] };

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
  change: ContactChange,
  { observed, ...acked }: Acknowledged,
): RecordedRow | undefined {
  if (isEnd(change, before)) return afterDelete(before, change);
  const known = before ? decodeContact.recorded(before).value : nothing;
  const recorded = change.op === 'create' ? anew(known) : known;
  const ack = { ...acked, answered: observed && decodeContact.observed(observed).value };
  const id = ack.id ?? before?.id ?? '';
  const { contact, whole } = shownAfter(recorded, change, { ...ack, id });
  const others = recorded.contacts.filter((other) => other.id !== id);
  const isRenamed = isElsewhere(recorded, id, ack);
  const isTheirs = change.value.restores?.by === 'platform';
  const isOutByUs = change.op === 'opt_out' && !ack.found && !isTheirs;
  const outByUs = isOutByUs ? [change.part] : [];
  const { contacts, renamed } = contactsAfter(recorded, { contact, others, isRenamed, outByUs });
  const channels = channelsAfter(recorded, change, { ...ack, id, row: before });
  const body: RecordedContact = {
    allowed: recorded.allowed,
    channels,
    contacts,
    defaults: defaultsAfter(recorded, change, ack),
    early: known.early,
    hidden: hiddenAfter(recorded, { id, isRenamed, outByUs, is: channels[change.part] }),
    left: recorded.left,
    outgrown: recorded.outgrown,
    protected: recorded.protected,
    renamed,
  };
  return {
    kind: 'contact',
    key: change.key,
    // The same contact remains ours, even if another contact with the address was opted out last.
    id: before && change.op !== 'create' ? idAfter(before, id, isRenamed) : id,
    ownership: ownershipAfter(before, change, ack),
    body: canonicalJson(body),
    shown: whole && !isRenamed && others.length === 0 ? fingerprintOf(contact) : undefined,
    desired: before ? undefined : settledNow(change, ack),
    // A response to a request by id shows nothing about the contact, so the time of the last
    // reading is kept.
    seenAt: change.op === 'create' || observed ? ack.at : (before?.seenAt ?? 0),
  };
}

/** Returns whether a change leaves nothing of a contact to record. */
function isEnd({ op }: ContactChange, before: RecordedRow | undefined): boolean {
  return op === 'delete' || (op === 'opt_out' && !before);
}

/**
 * Returns the row after a delete. If `undo` has deleted a contact that we created, the opt-outs
 * remain, so that no run creates the contact again. They also remain if an opt-out of ours at an
 * old address bars the new one, because the do-not-contact list does not have those, and if another
 * contact of the address has one of ours, which would count as the person's without the row.
 */
function afterDelete(
  before: RecordedRow | undefined,
  { target, value }: ContactChange,
): RecordedRow | undefined {
  if (!before) return undefined;
  const recorded = decodeContact.recorded(before).value;
  const others = recorded.contacts.filter(({ id }) => id !== target);
  const stay = others.filter((contact) => isOutByUs(recorded, contact));
  if (!value.undone && !(value.moved && carries(recorded)) && stay.length === 0) return undefined;
  const hidden = stay.length > 0 ? recorded.hidden : undefined;
  const body = canonicalJson({ ...anew(recorded), contacts: stay, hidden });
  const gone = { id: undefined, shown: undefined, desired: undefined };
  return { ...before, ...gone, ownership: 'noted', body };
}

/** Returns whether we opted a contact out of a channel. */
function isOutByUs({ channels, hidden = {} }: RecordedContact, contact: ObservedContact): boolean {
  const outs = Object.entries(contact.channels).filter(([, is]) => is === 'opt_out');
  const isHidden = (channel: string) => hidden[contact.id]?.includes(channel) === true;
  return outs.some(([channel]) => isOurs(channels[channel]) || isHidden(channel));
}

/** Returns whether an opt-out of ours also applies to CRM records that now have another address. */
function carries({ channels }: RecordedContact): boolean {
  return Object.values(channels).some(
    (is) => isOurs(is) && ((is.bound ?? []).length > 0 || is.undone !== undefined),
  );
}

function isElsewhere({ renamed = [] }: RecordedContact, id: string, ack: Answer): boolean {
  return ack.renamed === true || renamed.some((one) => one.id === id);
}

/** The contact that a change was sent to, and the others of its address. */
interface Sent {
  contact: ObservedContact;
  others: ObservedContact[];
  isRenamed: boolean;
  /** The channel from which the change opted the contact out, if it did. */
  outByUs: string[];
}

type Member = Membership | undefined;

/**
 * Returns the contacts after the change. A renamed contact belongs to this address only while the
 * address has no other contact.
 */
function contactsAfter(
  { renamed = [] }: RecordedContact,
  { contact, others, isRenamed, outByUs }: Sent,
): Pick<RecordedContact, 'contacts' | 'renamed'> {
  if (!isRenamed) {
    return { contacts: [...others, contact], renamed: renamed.length > 0 ? renamed : undefined };
  }
  const contacts = others.length > 0 ? others : [contact];
  const before = renamed.find(({ id }) => id === contact.id)?.outByUs ?? [];
  const all = [...new Set([...before, ...outByUs])];
  const moved = all.length > 0 ? { ...contact, outByUs: all } : contact;
  return { contacts, renamed: [...renamed.filter(({ id }) => id !== contact.id), moved] };
}

/** Adds an opt-out of ours if the channel holds the opt-out of another contact of the address. */
function hiddenAfter(
  { hidden }: RecordedContact,
  { id, isRenamed, outByUs, is }: Pick<Sent, 'isRenamed' | 'outByUs'> & { id: string; is: Member },
): RecordedContact['hidden'] {
  if (isRenamed || isOurs(is) || outByUs.length === 0) return hidden;
  return { ...hidden, [id]: [...(hidden?.[id] ?? []), ...outByUs] };
}

/** Returns the id to record, or undefined if it is that of a renamed contact. */
function idAfter(before: RecordedRow, id: string, isRenamed: boolean): string | undefined {
  return isRenamed && before.id === id ? undefined : before.id;
}

/** An acknowledgement with the contact returned in the response. */
type Answer = Omit<Acknowledged, 'observed'> & { answered: ObservedContact | undefined };

/**
 * Returns the fingerprint to record as done if the response to a creation shows exactly what was
 * sent. Returns undefined if a new decision about the person has to be made.
 */
function settledNow(
  { part, value }: ContactChange,
  { answered, found, undone, late, wanted }: Answer,
): string | undefined {
  if (!answered || found || undone || late || !showsOnly(answered, part)) return undefined;
  return value.settles ? wanted : undefined;
}

function ownershipAfter(
  before: RecordedRow | undefined,
  { op }: ContactChange,
  { found }: Answer,
): RecordedRow['ownership'] {
  if (before && op !== 'create') return before.ownership;
  return found ? 'adopted' : 'created';
}

/** Returns what a creation keeps from the previous contact: its opt-outs. */
function anew({ channels, outgrown, renamed }: RecordedContact): RecordedContact {
  const outs = Object.entries(channels).filter(([, { is }]) => is === 'opt_out');
  return { ...nothing, channels: Object.fromEntries(outs), outgrown, renamed };
}

/**
 * Returns the channels after the change. If the change was sent under another address of the same
 * record, and this address now has another contact, the channels stay as they were.
 */
function channelsAfter(
  recorded: RecordedContact,
  change: ContactChange,
  ack: Answer & { id: string; row: RecordedRow | undefined },
): RecordedContact['channels'] {
  const { elsewhere, id, row } = ack;
  const ids = [row?.id ?? id, ...recorded.contacts.map((contact) => contact.id)];
  if (elsewhere && ids.some((other) => other !== id)) return recorded.channels;
  return { ...recorded.channels, [change.part]: membership(recorded, change, ack) };
}

/** Returns the state of the channel after the change. */
function membership(
  recorded: RecordedContact,
  change: ContactChange,
  ack: Answer & { row: RecordedRow | undefined },
): Membership {
  const { found, undone = false, doubtful, at, latest = at, row } = ack;
  const before = recorded.channels[change.part];
  const after = before?.is === 'opt_in' ? (row?.seenAt ?? null) : null;
  const doubt = doubtful ? ({ doubtful } as const) : {};
  const theirs = { by: 'platform', ...doubt, is: 'opt_out', made: { after, by: latest } } as const;
  if (undone) return again(before, theirs);
  const is = enrolment(change).subscription;
  if (is === 'opt_in') return { by: found ? 'platform' : 'us', is };
  if (before?.is === 'opt_out' && before.by === 'platform') return unsettled(before);
  if (found) return theirs;
  const { cause, stated, bound, restores, undone: memory } = change.value;
  const restored = restores && restoredFrom(restores, { bound, latest, undone: memory });
  if (restored) return restored;
  // An opt-out that the CRM stated keeps that cause, even if another contact is opted out for
  // another reason.
  if (isOurs(before) && before.cause === 'stated' && cause !== 'stated') return unsettled(before);
  return { acked: latest, bound, by: 'us', cause, is, stated, undone: memory };
}

/**
 * Returns an opt-out that existed before and may have been made again. If it was doubtful, it
 * remains so.
 */
function again(before: Membership | undefined, theirs: Membership & { made: Bracket }): Membership {
  if (before?.is !== 'opt_out' || before.by !== 'platform') return theirs;
  return { ...unsettled(before), made: { after: before.made?.after ?? null, by: theirs.made.by } };
}

/**
 * Returns the contact from the response, or else from the last reading, with the change applied.
 * `whole`: whether this is proven to be everything that the platform shows.
 */
function shownAfter(
  recorded: RecordedContact,
  change: ContactChange,
  { id, answered, undone }: Pick<Answer, 'answered' | 'undone'> & { id: string },
): { contact: ObservedContact; whole: boolean } {
  const { channel, subscription } = enrolment(change);
  const before = recorded.contacts.find((contact) => contact.id === id);
  if (answered && undone) return { contact: answered, whole: true };
  const contact = answered ?? before ?? { channels: {}, id, left: false };
  const whole = answered ? answered.channels[channel] === subscription : before !== undefined;
  return {
    contact: { ...contact, channels: { ...contact.channels, [channel]: subscription } },
    whole,
  };
}

/**
 * Returns the channels that show a default. An opt-out in another channel in the response to a
 * creation is a default; if it was read late, the person may have made it.
 */
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
