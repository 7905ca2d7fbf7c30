/** Takes back what the ledger holds against one person, and releases opt-outs of ours. */
import type { Deadlines } from '../records/erasure-request.ts';
import type { RecordType } from '../records/record-type.ts';
import type { Entry } from '../domain/do-not-contact.ts';
import type { Key } from '../domain/record.ts';
import { invalidateCursor } from '../engine/finish/source-cursor.ts';
import { bindDoNotContactList } from '../engine/context/do-not-contact-binding.ts';
import type { Mirror, MirrorPart } from '../engine/context/mirror-context.ts';
import { readNames, type Reading } from './source-identities.ts';
import { identityOf } from '../engine/context/do-not-contact-identity.ts';
import { end } from './pending/unfinished-erasures.ts';

export interface Allowed {
  /** Milliseconds since the epoch. */
  at: number;
  taken: readonly Entry[];
  /** Of other addresses, by an id of the CRM: there they stand, and bear on it no more. */
  freed: readonly Entry[];
  /** Whether the record of a contact that vanished was dropped. */
  dropped: boolean;
  /** Channels of which our opt-out, stated by the CRM, is released (row 16). */
  released: readonly string[];
  /** Not read: what stands by an id may bear on the person still. */
  crm: Reading;
}

/**
 * Ends every entry that bears on the person, and what would write it again; and releases what we
 * opted out on the CRM's word. Nothing is sent.
 */
export async function allow(
  mirror: Mirror,
  { part, key, reason }: { part: MirrorPart; key: Key; reason: string },
  leave: Deadlines,
): Promise<Allowed> {
  bindDoNotContactList(mirror);
  const at = mirror.clock.now();
  const crm = await readNames(mirror, part, leave);
  const who = identityOf(mirror, part.type, key);
  const entries = mirror.doNotContact.concerning(who);
  const taken = entries.filter(({ through }) => through === 'address');
  const freed = entries.filter(({ through }) => through === 'id');
  const dropped = dropVanished(mirror, part.type, key);
  const ended = ({ seq }: Entry) => ({ seq, why: `allow: ${reason}` });
  const [ends, frees] = [taken.map(ended), freed.map(ended)];
  if (entries.length > 0) mirror.doNotContact.write([{ ...who, adds: [], ends, frees }], at);
  const released = mirror.snapshot.transaction(() => {
    end(mirror.snapshot, key);
    // Her record may be older than all that changes since.
    invalidateCursor(mirror.snapshot, part.type);
    return release(mirror, part.type, key);
  });
  return { at, taken, freed, dropped, released, crm };
}

/** The transaction is the caller's. */
function release({ snapshot: { recorded } }: Mirror, type: RecordType, key: Key): string[] {
  const row = recorded.get(type.name, key);
  const released = row && type.release?.(row);
  if (released) recorded.put(released.row);
  return released?.parts ?? [];
}

/**
 * What is recorded of a contact that vanished would have the next run remember it again. First of
 * all: stopped between the two, the ledger still holds it.
 */
function dropVanished({ snapshot }: Mirror, { name }: RecordType, key: Key): boolean {
  const { recorded, transaction } = snapshot;
  return transaction(() => {
    const row = recorded.get(name, key);
    if (!row || row.id !== undefined) return false;
    recorded.drop(name, key);
    return true;
  });
}
