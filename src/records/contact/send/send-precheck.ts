/** Whether what a change was planned on still holds, asked right before it is sent. */
import type { Change } from '../../../domain/change.ts';
import { canonicalJson, type ObservedRow, type RecordedRow } from '../../../domain/record.ts';
import type { KnownRecord, SendOutcome } from '../../record-type.ts';
import { stale } from '../../send-outcome.ts';
import { fingerprintOf } from '../observe/observed-contact.ts';
import { anew, retrieve, search, type ReadAccess } from '../observe/contact-read.ts';
import { enrolmentBody, observedBody, recordedBody } from '../observe/contact-state.ts';

/**
 * A person is created only on proof of absence, an existing one is opted in only on fresh knowledge
 * and deleted only right after a look. An opt-out needs none: it can do no harm, unless it is meant
 * for an old address, and the contact has the new one by now.
 */
export async function precheck(
  access: ReadAccess,
  change: Change,
  known: KnownRecord,
): Promise<SendOutcome | undefined> {
  const isPlain = change.op === 'opt_out' && !enrolmentBody.parse(JSON.parse(change.body)).moved;
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
  const { recorded } = known;
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
  { op, target, body }: Change,
  recorded: RecordedRow | undefined,
): string | undefined {
  if (op !== 'delete' || !recorded) return recorded?.shown;
  const { shown } = enrolmentBody.parse(JSON.parse(body));
  if (shown !== undefined) return shown;
  const { contacts } = recordedBody.parse(JSON.parse(recorded.body));
  const before = contacts.find(({ id }) => id === target);
  return before && fingerprintOf(before);
}

/** What outweighs an opt-out was decided by when that can have been made: nothing may move. */
function isUnchanged(now: ObservedRow, { body }: Change): boolean {
  const { changed } = enrolmentBody.parse(JSON.parse(body));
  return changed === undefined || observedBody.parse(JSON.parse(now.body)).changed === changed;
}

/**
 * Who left under a former address after it was last seen is not opted in under the new one. The
 * address is searched for: it may have another contact by now.
 */
async function lookBack(
  access: ReadAccess,
  change: Change,
  known: KnownRecord,
): Promise<SendOutcome | undefined> {
  const { former } = enrolmentBody.parse(JSON.parse(change.body));
  for (const { key, shown } of former) {
    const rows = await search(access, key, known.signal);
    const found = rows.map((row) => row.fingerprint).toSorted();
    if (canonicalJson(found) === canonicalJson(shown)) continue;
    return { is: 'stale', about: key, observed: rows, why: 'a former contact changed' };
  }
  return undefined;
}
