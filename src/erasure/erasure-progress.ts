/** Keeps account of an erasure in the snapshot, step by step. */
import type { Deed } from '../records/capabilities.ts';
import { acked, type RecordType } from '../records/record-type.ts';
import { Busy } from '../domain/errors.ts';
import type { Key } from '../domain/record.ts';
import type { Purged } from '../snapshot/tables/record-purge.ts';
import { invalidateCursor } from '../engine/finish/source-cursor.ts';
import { latestNow } from '../engine/context/platform-knowledge.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { begun, end, keep, type Unfinished } from './pending/unfinished-erasures.ts';

/** The account of one erasure, see `accountOf`. */
export type ErasureAccount = ReturnType<typeof accountOf>;

/**
 * Notes the erasure as begun and returns its account: `done` returns what is done so far, the other
 * functions note one more step.
 */
export function accountOf(mirror: Mirror, key: Key, since: number) {
  const { snapshot, clock } = mirror;
  const { transaction, recorded, purge } = snapshot;
  let now = begun(snapshot, key, since);
  const note = (next: Unfinished, also?: () => void): void => {
    transaction(() => {
      also?.();
      keep(snapshot, next);
    });
    now = next;
  };
  /** Records the opt-out as ours, in case the erasure gets no further. */
  const optedOut = (type: RecordType, { id, channel }: Deed & { is: 'opted out' }): void => {
    const row = recorded.get(type.name, key);
    if (!row) return;
    const about = { kind: type.name, key, part: channel, target: id, body: '{}', phase: 0 };
    const ack = { ...acked({ id }), at: clock.now(), latest: latestNow(mirror) };
    const after = type.acknowledge(row, { ...about, op: 'opt_out' }, ack);
    if (after) recorded.put(after);
  };
  note(now);
  return {
    done: (): Unfinished => now,
    looked: () => note({ ...now, found: now.found ?? [] }),
    tell: (type: RecordType, deed: Deed) =>
      note(withDeed(now, deed), () => deed.is === 'opted out' && optedOut(type, deed)),
    /**
     * Drops the person from the snapshot's tables and from its file, then ends the erasure. Throws
     * Busy while another process reads the snapshot, and then notes the person's key again.
     */
    purge(type: RecordType, ids: readonly string[]): void {
      transaction(() => {
        now = withPurged(now, purge.rows(type.name, key, ids));
        keep(snapshot, { ...now, key: undefined, told: undefined });
        // It is no longer known who else had this address, so the source has to be read as a
        // whole.
        invalidateCursor(snapshot, type);
      });
      try {
        purge.scrub();
      } catch (error) {
        if (error instanceof Busy) note(now);
        throw error;
      }
      transaction(() => end(snapshot, key));
    },
  };
}

/** Adds a deed, and counts each contact once. */
function withDeed(one: Unfinished, deed: Deed): Unfinished {
  if (deed.is === 'opted out') return { ...one, optedOut: one.optedOut + 1 };
  return { ...one, [deed.is]: [...new Set([...(one[deed.is] ?? []), deed.id])] };
}

/** Adds the rows that were dropped to those of earlier attempts. */
function withPurged(one: Unfinished, more: Purged): Unfinished {
  const before = one.purged;
  const sum = (of: keyof Purged): number => (before?.[of] ?? 0) + more[of];
  return {
    ...one,
    purged: {
      recorded: sum('recorded'),
      origins: sum('origins'),
      problems: sum('problems'),
      changes: sum('changes'),
      absences: sum('absences'),
      held: sum('held'),
      returned: sum('returned'),
    },
  };
}
