/**
 * Forgets one person on demand: the ledger first, then the platform, then the snapshot. Whatever
 * stops it on the way, the ledger has it already, and it can be done again.
 */
import type { Erased, Kind, Leave } from '../kind/kind.ts';
import { RateLimited, Rejected, Unavailable } from '../model/errors.ts';
import { all, type Memory } from '../model/ledger.ts';
import type { Key } from '../model/record.ts';
import type { Purged } from '../snapshot/purge.ts';
import { proveOwn } from './belong.ts';
import { bindLedger } from './ledger.ts';
import type { Mirror } from './mirror.ts';
import { whoOf } from './remember.ts';

/** What was done of it. Times in milliseconds since the epoch. */
export interface Certificate {
  at: number;
  /** The entry that keeps the person from being brought back; `since` it was first asked for. */
  entry: { ledger: string; seq: number; since: number };
  /** Undefined: the platform could not be asked, or did not do it. */
  erased: Erased | undefined;
  purged: Purged | undefined;
  /** Other addresses that the same CRM records, or contact, had or have: nothing was done there. */
  also: Key[];
  /** Why not all of it was done. */
  failure: string | undefined;
}

/** Throws Interrupted, Busy and Invalid; what the platform says against it is in the answer. */
export async function forget(
  mirror: Mirror,
  { kind, key }: { kind: Kind; key: Key },
  leave: Leave,
): Promise<Certificate> {
  const { snapshot, clock } = mirror;
  bindLedger(mirror);
  const at = clock.now();
  const who = whoOf(mirror, kind, key);
  const entry = enter(mirror, who, at);
  const also = snapshot.recorded.namesakes(kind.name, key);
  try {
    // Where others answer, that nobody is found proves nothing.
    await proveOwn(mirror, leave.signal);
    const isOpen = snapshot.journal.open(kind.name).some((change) => change.key === key);
    // What a process that has ended has sent may still arrive.
    if (isOpen) await clock.sleep(mirror.timeoutMs, leave.signal);
    const recorded = snapshot.recorded.get(kind.name, key);
    const erased = await kind.erase?.({ key, recorded }, leave);
    const purged = snapshot.transaction(() => snapshot.purge.rows(kind.name, key, who.ids));
    snapshot.purge.scrub();
    return { at, entry, erased, purged, also, failure: undefined };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const failure = error.message;
    return { at, entry, erased: undefined, purged: undefined, also, failure };
  }
}

/** What the platform, or the way to it, has against it. */
function isRefusal(error: unknown): error is Error {
  return [Unavailable, Rejected, RateLimited].some((known) => error instanceof known);
}

type Who = ReturnType<typeof whoOf>;

/** Asked for again, an erasure stands since the first time. */
function enter({ ledger }: Mirror, who: Who, at: number): Certificate['entry'] {
  const standing = () =>
    ledger
      .concerning(who)
      .find(({ cause, through }) => cause === 'erasure' && through === 'address');
  const before = standing();
  const erasure: Memory = { part: all, cause: 'erasure', contact: null, after: null, by: at };
  if (!before?.bears) ledger.write([{ ...who, adds: [before ?? erasure], ends: [] }], at);
  const { seq = 0, by = at } = standing() ?? {};
  return { ledger: ledger.id, seq, since: by };
}
