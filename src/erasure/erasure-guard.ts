/**
 * How many people were erased on the word of events, for the guard for deletes: as many in a day as
 * it lets one run delete, and twice that in seven days. Whoever can have events sent could else
 * have everybody erased, and nothing brings them back.
 */
import { z } from 'zod';
import type { RecordType } from '../records/record-type.ts';
import type { Key } from '../domain/record.ts';
import { judge, weekMs } from '../engine/report/guard-rules.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { unfinishedIn } from './pending/unfinished-erasures.ts';
import { shortHash } from '../engine/context/display-name.ts';

const name = 'erased-by-events';
const dayMs = 86_400_000;

/** When, in milliseconds since the epoch. */
const times = z.array(z.number());

/**
 * Whether one more may be erased, which is counted then; one that was begun before, or that
 * somebody has asked for by hand, is not asked about again. The transaction is the caller's.
 */
export function passesGuard(
  { snapshot, guards, clock }: Pick<Mirror, 'snapshot' | 'guards' | 'clock'>,
  type: RecordType,
  key: Key,
): boolean {
  const { meta, shaping } = snapshot;
  const its = shortHash(meta, key);
  const before = unfinishedIn(snapshot).find(({ hash }) => hash === its);
  if (before?.by === 'forget' && !before.held) return true;
  const now = clock.now();
  const week = times.parse(JSON.parse(meta.get(name) ?? '[]')).filter((at) => at > now - weekMs);
  const volume = {
    guard: 'delete',
    fresh: 1,
    all: week.filter((at) => at > now - dayMs).length + 1,
    unapproved: 1,
    week: week.length,
    get of() {
      return shaping.owned(type.name).all;
    },
  } as const;
  // One by one they have no shape.
  if (judge(volume, guards.delete)) return false;
  meta.set(name, JSON.stringify([...week, now]));
  return true;
}
