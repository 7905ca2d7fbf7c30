/** Holds what `allow` changed. */
import type { Deadlines } from '../../records/capabilities.ts';
import type { RecordType } from '../../records/record-type.ts';
import { all, type Entry } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import { addDecision } from '../../store/audit/audit-trail.ts';
import { invalidateCursor } from '../finish/source-cursor.ts';
import { bindDoNotContactList } from '../context/do-not-contact-binding.ts';
import type { Mirror, MirrorPart } from '../context/mirror-context.ts';
import { type CrmReading, readNames } from './source-identities.ts';
import { identityOf } from '../context/person-identity.ts';
import { end } from './pending/unfinished-erasures.ts';

export interface Allowed {
  /** The time of the change, in milliseconds since the epoch. */
  at: number;
  taken: readonly Entry[];
  /**
   * Entries created for other addresses that concerned the person through a CRM id. They remain
   * with those addresses and no longer concern the person.
   */
  freed: readonly Entry[];
  /** Whether the recorded row of a vanished contact was dropped. */
  dropped: boolean;
  /**
   * The channels from which we opted the person out because the CRM stated it, and whose opt-outs
   * are released (row 16).
   */
  released: readonly string[];
  /**
   * How the CRM was read. If it was not read, entries found only by an id may still concern the
   * person.
   */
  crm: CrmReading;
}

/** The person who may come back, who decided it, and why. */
interface Allowing {
  part: MirrorPart;
  key: Key;
  reason: string;
  by: string;
  /** The user and the host that gave the command; undefined if no command did. */
  caller?: string | undefined;
}

/**
 * Ends every entry of the do-not-contact list that concerns the person, drops what would create one
 * again, and releases the opt-outs that we sent because the CRM stated them. Sends nothing. Throws
 * Interrupted, and unexpected errors.
 */
export async function allow(
  mirror: Mirror,
  { part, key, reason, by, caller }: Allowing,
  leave: Deadlines,
): Promise<Allowed> {
  bindDoNotContactList(mirror);
  const at = mirror.clock.now();
  const crm = await readNames(mirror, part, leave);
  const who = identityOf(mirror, part.type, key);
  const entries = mirror.doNotContact.concerning(who);
  const taken = entries.filter(({ through }) => through === 'address');
  const freed = entries.filter(({ through }) => through === 'id');
  const isErased = taken.some(({ cause }) => cause === 'erasure');
  const isOperators = taken.some(({ cause }) => cause === 'operator');
  const dropped = dropVanished(mirror, part.type, key);
  const ends = taken.map(({ seq }) => ({ seq, why: `allow: ${reason}` }));
  const frees = freed.map(({ seq }) => seq);
  if (entries.length > 0) mirror.doNotContact.write([{ ...who, adds: [], ends, frees }], at);
  const released = mirror.snapshot.transaction(() => {
    const about = entries.map(entryText).join('; ') || null;
    const decision = {
      at,
      what: 'allow',
      name: by,
      reason,
      about,
      evidence: null,
      as: caller ?? null,
    };
    addDecision(mirror.snapshot, decision, key);
    end(mirror.snapshot, key);
    // The person's record may not be among the changes that an incremental reading returns.
    invalidateCursor(mirror.snapshot, part.type);
    return release(mirror, part.type, { key, isErased, isOperators });
  });
  return { at, taken, freed, dropped, released, crm };
}

/** Names an entry of the do-not-contact list for the audit log, without the person. */
function entryText({ cause, part, by, through }: Entry): string {
  const scope = part === all ? '' : ` of ${part}`;
  const other = through === 'id' ? ' (of another address, found by the CRM id)' : '';
  return `${cause}${scope}, listed ${new Date(by).toISOString()}${other}`;
}

/**
 * Releases opt-outs of ours and returns their channels, and records that an erasure was revoked.
 * Call it within a transaction.
 */
function release(
  { snapshot: { recorded } }: Mirror,
  { name, capabilities: { erasure } }: RecordType,
  { key, isErased, isOperators }: { key: Key; isErased: boolean; isOperators: boolean },
): string[] {
  const row = recorded.get(name, key);
  const released = row && erasure?.release(row);
  const next = isErased ? erasure?.unerased(key, released?.row ?? row) : released?.row;
  // An operator's opt-out had settled the person, and the next run has to decide anew.
  const undecided = row && isOperators ? { ...row, desired: undefined } : undefined;
  const changed = next ?? undecided;
  if (changed) recorded.put(changed);
  return released?.parts ?? [];
}

/**
 * Drops the recorded row of a vanished contact, because the next run would otherwise add the person
 * to the list again. Returns whether there was one. Call it before the list is written: if the
 * process dies in between, the list still protects the person.
 */
function dropVanished({ snapshot }: Mirror, { name, capabilities }: RecordType, key: Key): boolean {
  const { recorded, transaction } = snapshot;
  return transaction(() => {
    const row = recorded.get(name, key);
    if (!row || row.id !== undefined) return false;
    if (capabilities.doNotContact?.memories(row).length === 0) return false;
    recorded.drop(name, key);
    return true;
  });
}
