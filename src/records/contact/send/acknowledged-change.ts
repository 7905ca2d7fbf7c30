/** What is recorded of a person once a change of theirs is acknowledged. */
import { canonicalJson, type RecordedRow } from '../../../domain/record.ts';
import type { Acknowledged } from '../../record-type.ts';
import { fingerprintOf } from '../observe/observed-contact.ts';
import { isOurs } from '../consent/own-opt-outs.ts';
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
 * Only an acknowledged request makes an opt-out ours; one that the person made before, or that was
 * found there already (409), stays the platform's. A creation starts over: of a contact that
 * vanished only the opt-outs are remembered. After an acknowledged delete the person counts as
 * never owned. Who is opted out and is not recorded was erased: nothing is kept of her.
 */
export function acknowledge(
  before: RecordedRow | undefined,
  change: ContactChange,
  { observed, ...acked }: Acknowledged,
): RecordedRow | undefined {
  if (change.op === 'delete' || (change.op === 'opt_out' && !before)) return undefined;
  const known = before ? decodeContact.recorded(before).value : nothing;
  const recorded = change.op === 'create' ? anew(known) : known;
  const ack = { ...acked, answered: observed && decodeContact.observed(observed).value };
  const id = ack.id ?? before?.id ?? '';
  const { contact, whole } = shownAfter(recorded, change, { ...ack, id });
  const others = recorded.contacts.filter((other) => other.id !== id);
  const isRenamed = isElsewhere(recorded, id, ack);
  const isOutByUs = change.op === 'opt_out' && !ack.found;
  const outByUs = isOutByUs ? [change.part] : [];
  const { contacts, renamed } = contactsAfter(recorded, { contact, others, isRenamed, outByUs });
  const body: RecordedContact = {
    allowed: recorded.allowed,
    channels: channelsAfter(recorded, change, { ...ack, id, row: before }),
    contacts,
    defaults: defaultsAfter(recorded, change, ack),
    left: recorded.left,
    outgrown: recorded.outgrown,
    protected: recorded.protected,
    renamed,
  };
  return {
    kind: 'contact',
    key: change.key,
    // Of several contacts one is ours, whichever of them was opted out last.
    id: before && change.op !== 'create' ? idAfter(before, id, isRenamed) : id,
    ownership: ownershipAfter(before, change, ack),
    body: canonicalJson(body),
    shown: whole && !isRenamed && others.length === 0 ? fingerprintOf(contact) : undefined,
    desired: before ? undefined : settledNow(change, ack),
    // What an answer by id does not show was not seen: it is as old as it was.
    seenAt: change.op === 'create' || observed ? ack.at : (before?.seenAt ?? 0),
  };
}

function isElsewhere({ renamed = [] }: RecordedContact, id: string, ack: Answer): boolean {
  return ack.renamed === true || renamed.some((one) => one.id === id);
}

/** A contact that was renamed is none of this address, while there is another one. */
function contactsAfter(
  { renamed = [] }: RecordedContact,
  {
    contact,
    others,
    isRenamed,
    outByUs,
  }: {
    contact: ObservedContact;
    others: ObservedContact[];
    isRenamed: boolean;
    outByUs: string[];
  },
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

/** Under its former address a contact that was renamed is there no more. */
function idAfter(before: RecordedRow, id: string, isRenamed: boolean): string | undefined {
  return isRenamed && before.id === id ? undefined : before.id;
}

/** An acknowledgement, with the contact that its answer shows. */
type Answer = Omit<Acknowledged, 'observed'> & { answered: ObservedContact | undefined };

/** What is settled where the answer to a creation shows what was sent, and no more. */
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

function anew({ channels, outgrown, renamed }: RecordedContact): RecordedContact {
  const outs = Object.entries(channels).filter(([, { is }]) => is === 'opt_out');
  return { ...nothing, channels: Object.fromEntries(outs), outgrown, renamed };
}

/** Of an address that has another contact by now, nothing is known by what became of this one. */
function channelsAfter(
  recorded: RecordedContact,
  change: ContactChange,
  ack: Answer & { id: string; row: RecordedRow | undefined },
): RecordedContact['channels'] {
  const { elsewhere, id, row } = ack;
  if (elsewhere && ![undefined, id].includes(row?.id)) return recorded.channels;
  return { ...recorded.channels, [change.part]: membership(recorded, change, ack) };
}

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
  if (before?.is === 'opt_out' && before.by === 'platform') return before;
  if (found) return theirs;
  const { cause, stated, bound } = change.value;
  // What the CRM has stated stays stated, whatever another contact is opted out for.
  if (isOurs(before) && before.cause === 'stated' && cause !== 'stated') return before;
  return { acked: latest, bound, by: 'us', cause, is, stated };
}

/** The opt-out that stood before stands still, or was made again: it is as certain as it was. */
function again(before: Membership | undefined, theirs: Membership & { made: Bracket }): Membership {
  if (before?.is !== 'opt_out' || before.by !== 'platform') return theirs;
  return { ...before, made: { after: before.made?.after ?? null, by: theirs.made.by } };
}

/** The contact as the answer shows it, else as it was, with what was acknowledged just now. */
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
 * An opt-out in the creation's own answer, on another channel, is nobody's word: a default. Read
 * late it may be the person's.
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
