/**
 * What the ledger learns of people, and what it forbids (README, ledger). Pure.
 *
 *   entry                         is made of                      forbids          ends when
 *   opt_out of a channel,         recorded: out, by platform      create, opt_in   the same contact
 *   doubtful                                                      there            is seen in there
 *   unsubscribed, blocked,        recorded: the contact shows it  create, opt_in   the same contact
 *   bounce, complaint,                                                             is seen, and out
 *   suppressed: all channels                                                       of none of it
 *   vanished: all channels        recorded: ours, and not there   create, under    somebody of the
 *                                                                 missing: respect address is there
 *   erasure: all channels         `forget`                        create, opt_in   `allow`
 *
 * An opt-out that we made on the CRM's word ends when the CRM wants the person in: it would never
 * forbid anything, so it has no entry. An acknowledged opt_in ends what stood in its way, which is
 * but an opt-out that a newer will outweighs.
 */
import type { Change } from '../../../domain/change.ts';
import {
  all,
  type Entry,
  type RememberedOptOut,
  type ListChanges,
} from '../../../domain/do-not-contact.ts';
import type { ConsentPolicy } from './rules.ts';
import type { RecordedContactRow } from '../observe/contact-rows.ts';
import type { ObservedContact, RecordedContact } from '../observe/contact-state.ts';

/** What must be remembered of somebody, by what is recorded. */
export function memoriesOf(row: RecordedContactRow): RememberedOptOut[] {
  const recorded = row.value;
  const by = row.seenAt;
  const outs = Object.entries(recorded.channels).flatMap(([part, membership]) => {
    const { is, by: author, made, doubtful } = membership;
    if (is !== 'opt_out' || author !== 'platform') return [];
    const contact = contactOf(recorded, part, row.id);
    const cause = doubtful ? ('doubtful' as const) : ('opt_out' as const);
    return [{ part, cause, contact, after: made?.after ?? null, by: made?.by ?? by }];
  });
  const left = recorded.contacts.flatMap((contact) =>
    causesOf(contact).map((cause) => ({ part: all, cause, contact: contact.id, after: null, by })),
  );
  if (row.id !== undefined || row.ownership === 'noted') return [...outs, ...left];
  const contact = recorded.contacts[0]?.id ?? null;
  return [...outs, ...left, { part: all, cause: 'vanished', contact, after: null, by }];
}

function causesOf({ left, causes }: ObservedContact) {
  if (!left) return [];
  return causes ?? (['suppressed'] as const);
}

/** Of several contacts the one that shows the opt-out; of none, the one it was taken from. */
function contactOf(
  { contacts }: RecordedContact,
  channel: string,
  id: string | undefined,
): string | null {
  const shows = contacts.find(({ channels }) => channels[channel] === 'opt_out');
  const ours = contacts.find((contact) => contact.id === id);
  return (shows ?? ours ?? contacts[0])?.id ?? null;
}

/** What a look at the platform changes in the ledger: `shown` was read just now. */
export function newsOfSight(
  row: RecordedContactRow | undefined,
  shown: readonly ObservedContact[],
  entries: readonly Entry[],
): ListChanges {
  const over = entries.filter((entry) => isOver(entry, shown));
  const ends = over.map(({ seq }) => ({ seq, why: 'taken back on the platform' }));
  const standing = entries.filter((entry) => !over.includes(entry));
  return { adds: newTo(standing, row ? memoriesOf(row) : []), ends };
}

/** Whether the address was forgotten on demand: what stands of it is only left to be deleted. */
export function isErased(entries: readonly Entry[]): boolean {
  return entries.some(({ cause, through }) => cause === 'erasure' && through === 'address');
}

/** Whether what was seen of the person takes the entry back. */
export function isOver(entry: Entry, shown: readonly ObservedContact[]): boolean {
  const same = shown.find(({ id }) => id === entry.contact);
  switch (entry.cause) {
    case 'erasure':
      return false;
    case 'vanished':
      return same !== undefined || (entry.through === 'address' && shown.length > 0);
    case 'opt_out':
    case 'doubtful':
      return same !== undefined && !same.left && same.channels[entry.part] === 'opt_in';
    default:
      return same !== undefined && !same.left;
  }
}

/** What an acknowledged change, and the row that follows from it, change in the ledger. */
export function newsOfChange(
  change: Change,
  after: RecordedContactRow | undefined,
  entries: readonly Entry[],
): ListChanges {
  const memories = after ? memoriesOf(after) : [];
  const brings = change.op === 'create' || change.op === 'opt_in';
  const isOut = memories.some(({ part }) => part === change.part);
  const over = entries.filter(({ through, cause, part }) => {
    if (through === 'id') return false;
    // Who was deleted by us, or came back, has not vanished.
    if (cause === 'vanished') return change.op === 'delete' || change.op === 'create';
    return brings && !isOut && isOfChannel(cause) && part === change.part;
  });
  const ends = over.map(({ seq }) => ({ seq, why: `${change.op} acknowledged` }));
  return {
    adds: newTo(
      entries.filter((entry) => !over.includes(entry)),
      memories,
    ),
    ends,
  };
}

/** What the entries do not say yet; and those again that some id of the person is missing from. */
function newTo(
  entries: readonly Entry[],
  memories: readonly RememberedOptOut[],
): RememberedOptOut[] {
  const known = entries.filter(({ through }) => through === 'address');
  const isNew = (memory: RememberedOptOut): boolean =>
    !known.some((entry) => isSame(entry, memory) && (entry.part === all || entry.by >= memory.by));
  const bare = known.filter(({ bears }) => !bears);
  return [...memories.filter(isNew), ...bare];
}

function isSame(entry: Entry, { part, cause, contact }: RememberedOptOut): boolean {
  return entry.part === part && entry.cause === cause && entry.contact === contact;
}

/** Whether it says that the person is out of one channel, whoever made that so. */
function isOfChannel(cause: Entry['cause']): boolean {
  return cause === 'opt_out' || cause === 'doubtful';
}

/** What would bring somebody in. */
export interface Asked {
  op: string;
  part: string;
  /** When the will was stated that outweighs an opt-out; undefined: none does. */
  newer: number | undefined;
}

/** Why the do-not-contact list forbids something; the first one that applies counts. */
export type Listed = 'erased' | 'left-before' | 'vanished-before';

/** Returns why the do-not-contact list forbids it; undefined: it does not. */
export function listed(
  entries: readonly Entry[],
  { op, part, newer = Number.NEGATIVE_INFINITY }: Asked,
  { missing }: Pick<ConsentPolicy, 'missing'>,
): Listed | undefined {
  if (op !== 'create' && op !== 'opt_in') return undefined;
  const against = entries.filter((entry) => {
    if (entry.part !== all && entry.part !== part) return false;
    if (entry.cause === 'vanished') return op === 'create' && missing === 'respect';
    return !isOfChannel(entry.cause) || entry.through === 'id' || entry.by >= newer;
  });
  const causes = new Set(against.map(({ cause }) => cause));
  if (causes.delete('erasure')) return 'erased';
  const hasVanished = causes.delete('vanished');
  if (causes.size > 0) return 'left-before';
  return hasVanished ? 'vanished-before' : undefined;
}
