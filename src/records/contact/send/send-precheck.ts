/** Whether what a change was planned on still holds, asked right before it is sent. */
import { canonicalJson } from '../../../domain/record.ts';
import type { KnownRecord, SendOutcome } from '../../record-type.ts';
import { stale } from '../../send-outcome.ts';
import { fingerprintOf } from '../observe/observed-contact.ts';
import { anew, retrieve, search, type ReadAccess } from '../observe/contact-read.ts';
import {
  decodeContact,
  type ContactChange,
  type ObservedContactRow,
  type RecordedContactRow,
} from '../observe/contact-rows.ts';

/**
 * A person is created only on proof of absence, an existing one is opted in only on fresh knowledge
 * and deleted only right after a look. An opt-out needs none: it can do no harm, unless it is meant
 * for an old address, and the contact has the new one by now.
 */
export async function precheck(
  access: ReadAccess,
  change: ContactChange,
  known: KnownRecord,
): Promise<SendOutcome | undefined> {
  const isPlain = change.op === 'opt_out' && !change.value.moved;
  if (isPlain) return undefined;
  if (known.fresh && change.op !== 'delete') {
    return known.listed ? undefined : lookBack(access, change, known);
  }
  if (change.op === 'create') {
    const found = await search(access, change.key, known.signal);
    if (found.length > 0) return stale(found, 'found on the platform');
    return lookBack(access, change, known);
  }
  // As it is before the platform is asked: what is recorded meanwhile was not planned on.
  const recorded = known.recorded && decodeContact.recorded(known.recorded);
  const target = change.target ?? recorded?.id;
  if (target === undefined) return undefined;
  const now = await retrieve(access, { ...change, target }, known.signal);
  const same = now?.fingerprint === shownBefore(change, recorded);
  if (now && same && isUnchanged(now, change)) {
    const rows = known.partial ? await search(access, change.key, known.signal) : [now];
    if (rows.length !== 1) return stale(rows, 'several contacts of this address');
    return lookBack(access, change, known);
  }
  return anew(access, change, { why: 'changed since it was last seen', signal: known.signal });
}

/** What was seen last; of several contacts of one address each has been seen for itself. */
function shownBefore(
  { op, target, value }: ContactChange,
  recorded: RecordedContactRow | undefined,
): string | undefined {
  if (op !== 'delete' || !recorded) return recorded?.shown;
  if (value.shown !== undefined) return value.shown;
  const before = recorded.value.contacts.find(({ id }) => id === target);
  return before && fingerprintOf(before);
}

/** What outweighs an opt-out was decided by when that can have been made: nothing may move. */
function isUnchanged(now: ObservedContactRow, { value }: ContactChange): boolean {
  return value.changed === undefined || now.value.changed === value.changed;
}

/**
 * Who left under a former address after it was last seen is not opted in under the new one. The
 * address is searched for: it may have another contact by now.
 */
async function lookBack(
  access: ReadAccess,
  change: ContactChange,
  known: KnownRecord,
): Promise<SendOutcome | undefined> {
  for (const { key, shown } of change.value.former) {
    const rows = await search(access, key, known.signal);
    const found = rows.map((row) => row.fingerprint).toSorted();
    if (canonicalJson(found) === canonicalJson(shown)) continue;
    return { is: 'stale', about: key, observed: rows, why: 'a former contact changed' };
  }
  return undefined;
}
