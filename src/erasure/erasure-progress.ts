/** What an erasure has done so far, noted in the snapshot step by step. */
import type { Deed } from '../records/erasure-request.ts';
import { acked, type RecordType } from '../records/record-type.ts';
import { Busy } from '../domain/errors.ts';
import type { Key } from '../domain/record.ts';
import type { Purged } from '../snapshot/tables/record-purge.ts';
import { invalidateCursor } from '../engine/finish/source-cursor.ts';
import { latestNow } from '../engine/context/run-context.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { begun, end, keep, type Unfinished } from './pending/unfinished-erasures.ts';

export type ErasureAccount = ReturnType<typeof accountOf>;

/** What is noted of it in the snapshot, from its beginning on. */
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
  /** It is ours, should it go no further than that. */
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
    /** Throws Busy while another reads the snapshot; then it is kept under whose name it is. */
    purge(type: RecordType, ids: readonly string[]): void {
      transaction(() => {
        now = withPurged(now, purge.rows(type.name, key, ids));
        keep(snapshot, { ...now, key: undefined, told: undefined });
        // Who else stood under her name is known no more.
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

/** With one more deed, each counted once. */
function withDeed(one: Unfinished, deed: Deed): Unfinished {
  if (deed.is === 'opted out') return { ...one, optedOut: one.optedOut + 1 };
  return { ...one, [deed.is]: [...new Set([...(one[deed.is] ?? []), deed.id])] };
}

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
