/** Takes back what the ledger holds against one person. */
import type { Kind } from '../kind/kind.ts';
import type { Entry } from '../model/ledger.ts';
import type { Key } from '../model/record.ts';
import { bindLedger } from './ledger.ts';
import type { Mirror } from './mirror.ts';
import { whoOf } from './remember.ts';

export interface Allowed {
  /** Milliseconds since the epoch. */
  at: number;
  taken: readonly Entry[];
  /** Entries of other addresses, which stand. */
  others: number;
  /** Whether the record of a contact that vanished was dropped. */
  dropped: boolean;
}

/** Ends every entry of the address, and what would write it again. Nothing is sent by it. */
export function allow(
  mirror: Mirror,
  { kind, key }: { kind: Kind; key: Key },
  reason: string,
): Allowed {
  bindLedger(mirror);
  const at = mirror.clock.now();
  const who = whoOf(mirror, kind, key);
  const entries = mirror.ledger.concerning(who);
  const taken = entries.filter(({ through }) => through === 'address');
  const dropped = dropVanished(mirror, kind, key);
  const ends = taken.map(({ seq }) => ({ seq, why: `allow: ${reason}` }));
  if (ends.length > 0) mirror.ledger.write([{ ...who, adds: [], ends }], at);
  return { at, taken, others: entries.length - taken.length, dropped };
}

/**
 * What is recorded of a contact that vanished would have the next run remember it again. First of
 * all: stopped between the two, the ledger still holds it.
 */
function dropVanished({ snapshot }: Mirror, { name }: Kind, key: Key): boolean {
  const { recorded, transaction } = snapshot;
  return transaction(() => {
    const row = recorded.get(name, key);
    if (!row || row.id !== undefined) return false;
    recorded.drop(name, key);
    return true;
  });
}
