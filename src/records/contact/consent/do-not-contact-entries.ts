/**
 * Decides what the do-not-contact list remembers, what it forbids, and when an entry ends. All
 * functions are pure.
 *
 *   entry                        is created for                  forbids         ends when
 *   opt_out of a channel,        recorded: out, by the person    create, opt_in  the same contact
 *   doubtful                       or shown by a contact of      in the channel  is subscribed
 *                                  ours with another address
 *   unsubscribed, blocked,       recorded: the contact shows it  create, opt_in  the same contact
 *   bounce, complaint,                                                           is there, and gets
 *   suppressed: all channels                                                     mail again
 *   vanished: all channels       recorded: ours, and not there   create, under   a contact with the
 *                                                                missing:        address is there
 *                                                                respect
 *   erasure: all channels        `forget`                        create, opt_in  `allow`
 *   operator: a channel          `resolve --out`                 create, opt_in  `allow`, `resolve`
 *
 * An opt-out that we made because the CRM stated it has no entry: it ends when the CRM wants the
 * person in. An acknowledged opt_in ends the entry that it overrides.
 */
import {
  all,
  type Entry,
  type RememberedOptOut,
  type ListChanges,
} from '../../../domain/do-not-contact.ts';
import type { ConsentPolicy } from './rules.ts';
import type {
  ContactChange,
  RecordedContactRow,
  ObservedContact,
} from '../observe/contact-state.ts';
import type { Elsewhere } from './renamed-contact.ts';

/** Returns what the list must remember about a recorded person. */
export function memoriesOf(row: RecordedContactRow): RememberedOptOut[] {
  const { channels, contacts } = row.value;
  const by = row.seenAt;
  const undated = { part: all, after: null, by };
  const ours = contacts.find(({ id }) => id === row.id) ?? contacts[0];
  const outs = Object.entries(channels).flatMap(([part, membership]) => {
    const { is, by: author, made, doubtful, settled } = membership;
    if (is !== 'opt_out' || author !== 'platform' || settled) return [];
    const shows = contacts.find((contact) => contact.channels[part] === 'opt_out') ?? ours;
    const cause = doubtful ? ('doubtful' as const) : ('opt_out' as const);
    const { after, by: latest } = made ?? undated;
    return [{ part, cause, contact: shows?.id ?? null, after, by: latest }];
  });
  const left = contacts.flatMap(({ id, left, causes = ['suppressed'] }) =>
    left ? causes.map((cause) => ({ ...undated, cause, contact: id })) : [],
  );
  if (row.id !== undefined || row.ownership === 'noted') return [...outs, ...left];
  return [...outs, ...left, { ...undated, cause: 'vanished', contact: contacts[0]?.id ?? null }];
}

/** Returns the changes after a reading of the address; `elsewhere`: of renamed contacts. */
export function newsOfSight(
  row: RecordedContactRow | undefined,
  shown: readonly ObservedContact[],
  entries: readonly Entry[],
  elsewhere?: Elsewhere,
): ListChanges {
  const { adds, subscribed } = elsewhere ?? { adds: [], subscribed: [] };
  const isBack = (entry: Entry) => isOfChannel(entry.cause) && isOver(entry, subscribed);
  const over = entries.filter((entry) => isOver(entry, shown) || isBack(entry));
  const ends = over.map(({ seq }) => ({ seq, why: 'taken back on the platform' }));
  const standing = entries.filter((entry) => !over.includes(entry));
  const isKnown = (memory: RememberedOptOut) =>
    standing.some(
      (entry) =>
        entry.through === 'address' &&
        (isSame(entry, memory) || (isOfChannel(entry.cause) && isAlike(entry, memory))),
    );
  const news = adds.filter((memory) => !isKnown(memory));
  return { adds: newTo(standing, [...(row ? memoriesOf(row) : []), ...news]), ends };
}

export function isErased(entries: readonly Entry[]): boolean {
  return entries.some(({ cause, through }) => cause === 'erasure' && through === 'address');
}

/** Returns whether the entry ends because of what the platform shows. */
export function isOver(entry: Entry, shown: readonly ObservedContact[]): boolean {
  const same = shown.find(({ id }) => id === entry.contact);
  switch (entry.cause) {
    case 'erasure':
    case 'operator':
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

/** Returns the changes to the list after an acknowledged change and its recorded row. */
export function newsOfChange(
  change: ContactChange,
  after: RecordedContactRow | undefined,
  entries: readonly Entry[],
): ListChanges {
  const memories = after ? memoriesOf(after) : [];
  const brings = change.op === 'create' || change.op === 'opt_in';
  const isOut = memories.some(({ part }) => part === change.part);
  const over = entries.filter(({ through, cause, part, by }) => {
    if (through === 'id') return false;
    // A contact that we deleted or created again has not vanished.
    if (cause === 'vanished') return change.op === 'delete' || change.op === 'create';
    if (!brings || isOut || part !== change.part) return false;
    // A request that was sent before an operator decided does not end what was decided.
    const { since } = change.value;
    return cause === 'operator' ? since !== undefined && by < since : isOfChannel(cause);
  });
  const ends = over.map(({ seq }) => ({ seq, why: `${change.op} acknowledged` }));
  const standing = entries.filter((entry) => !over.includes(entry));
  return { adds: newTo(standing, memories), ends };
}

/** Returns what the list lacks, and its entries that lack one of the person's CRM ids. */
function newTo(entries: readonly Entry[], memories: readonly RememberedOptOut[]) {
  const known = entries.filter(({ through }) => through === 'address');
  const isNew = (memory: RememberedOptOut): boolean =>
    !known.some((entry) => isSame(entry, memory) && (entry.part === all || entry.by >= memory.by));
  const bare = known.filter(({ bears }) => !bears);
  return [...memories.filter(isNew), ...bare];
}

function isSame(entry: Entry, memory: RememberedOptOut): boolean {
  return entry.cause === memory.cause && isAlike(entry, memory);
}

function isAlike(entry: Entry, { part, contact }: RememberedOptOut): boolean {
  return entry.part === part && entry.contact === contact;
}

const isOfChannel = (cause: Entry['cause']): boolean => cause === 'opt_out' || cause === 'doubtful';

interface Asked {
  op: string;
  part: string;
  /** When the CRM stated the consent that overrides an opt-out; undefined if there is none. */
  newer?: number | undefined;
  /** When the CRM stated its opt-in, as far as it withdraws an operator's opt-out. */
  since?: number | undefined;
}

/** Returns the first reason for which the do-not-contact list forbids the operation, if any. */
export function listed(
  entries: readonly Entry[],
  { op, part, newer = Number.NEGATIVE_INFINITY, since = Number.NEGATIVE_INFINITY }: Asked,
  { missing }: ConsentPolicy,
): 'erased' | 'left-before' | 'vanished-before' | undefined {
  if (op !== 'create' && op !== 'opt_in') return undefined;
  const against = entries.filter((entry) => {
    if (entry.part !== all && entry.part !== part) return false;
    if (entry.cause === 'operator') return entry.by >= since;
    if (entry.cause === 'vanished') return op === 'create' && missing === 'respect';
    return !isOfChannel(entry.cause) || entry.through === 'id' || entry.by >= newer;
  });
  const causes = new Set(against.map(({ cause }) => cause));
  if (causes.delete('erasure')) return 'erased';
  const hasVanished = causes.delete('vanished');
  if (causes.size > 0) return 'left-before';
  return hasVanished ? 'vanished-before' : undefined;
}
