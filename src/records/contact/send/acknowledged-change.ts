/** Determines what is recorded for a contact after a change to it was acknowledged. */
import type { Change } from '../../../domain/change.ts';
import { canonicalJson, type RecordedRow } from '../../../domain/record.ts';
import type { Acknowledged } from '../../change-outcome.ts';
import { fingerprintOf, isOurs, unsettled } from '../observe/observed-contact.ts';
import { restoredFrom } from '../consent/own-opt-outs.ts';
import {
  decodeContact,
  type ContactChange,
  emptyRecord,
  enrolment,
  type Membership,
  type ObservedContact,
  type RecordedContact,
} from '../observe/contact-state.ts';

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
  // Sent under another address of the record: another contact of this one keeps its channels.
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
  // The same contact remains ours, even if another one was opted out last, but not a renamed one.
  const same = before && op !== 'create' ? before : undefined;
  const sameId = isRenamed && same?.id === id ? undefined : same?.id;
  // Nothing is left to decide if the contact is subscribed to this channel and shows no other.
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
    // A response by id shows nothing about the contact, so the time of the last reading is kept.
    seenAt: op === 'create' || observed ? at : (before?.seenAt ?? 0),
  };
}

/**
 * Returns the row after a delete. The opt-outs remain if `undo` has deleted a contact that we
 * created, so that no run creates it again; if one of ours at an old address also applies to CRM
 * records with a new one, which the do-not-contact list does not have; and if another contact of
 * the address has one of ours, which would count as the person's without the row.
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
 * Returns the contacts after the change. A renamed one counts here only while the address has no
 * other. `outByUs`: its channels that the change opted out; undefined if it is not renamed.
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
  // An opt-out that the CRM stated keeps that cause, even if there is another reason, too.
  if (isOurs(before) && before.cause === 'stated' && cause !== 'stated') return unsettled(before);
  return { acked: latest, bound, by: 'us', cause, is, stated, undone: memory };
}

/** Returns the contact with the change applied. `whole`: it is proven to be all that is shown. */
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
