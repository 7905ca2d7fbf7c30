/** Checks immediately before a change is sent whether the plan's assumptions still hold. */
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
 * Returns the outcome of a change that must not be sent, or undefined if it may be sent. Throws the
 * errors of the requests.
 *
 * A creation needs proof that the contact does not exist, an opt_in needs a recent reading, and a
 * delete needs a reading immediately before it. An opt-out needs none, because it can do no harm,
 * unless it is
 * for an old address and the contact may now have the new one.
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
  // Read before the request, because the plan does not take into account what is recorded during
  // it.
  const recorded = known.recorded && decodeContact.recorded(known.recorded);
  const target = change.target ?? recorded?.id;
  if (target === undefined) return undefined;
  const now = await retrieve(access, { ...change, target }, known.signal);
  const same = now?.fingerprint === shownBefore(change, recorded);
  if (now && same && isUnchanged(now, change) && !isElsewhere(now, change)) {
    const rows = known.partial ? await search(access, change.key, known.signal) : [now];
    if (rows.length !== 1) return stale(rows, 'several contacts of this address');
    return lookBack(access, change, known);
  }
  return anew(access, change, { why: 'changed since it was last seen', signal: known.signal });
}

/** Returns the last observed fingerprint. Each of several contacts with one address has its own. */
function shownBefore(
  { op, target, value }: ContactChange,
  recorded: RecordedContactRow | undefined,
): string | undefined {
  if (op !== 'delete' || !recorded) return recorded?.shown;
  if (value.shown !== undefined) return value.shown;
  const before = recorded.value.contacts.find(({ id }) => id === target);
  return before && fingerprintOf(before);
}

/**
 * Returns whether the contact is unchanged since an opt-in was found to be newer than its opt-out.
 * Any change may be a later opt-out.
 */
function isUnchanged(now: ObservedContactRow, { value }: ContactChange): boolean {
  return value.changed === undefined || now.value.changed === value.changed;
}

/**
 * Returns whether `undo` must not delete the contact, because it is in a channel that the
 * configuration does not name, or unsubscribed from one.
 */
function isElsewhere({ value: shown }: ObservedContactRow, { op, value }: ContactChange): boolean {
  return op === 'delete' && value.undone !== undefined && shown.others === true;
}

/**
 * Returns `stale` if a contact under a former address has changed since it was last observed: a
 * person who unsubscribed there is not opted in under the new address. It searches for the address,
 * because the address may belong to another contact by now.
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
