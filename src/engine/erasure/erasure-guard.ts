/**
 * Limits how many people are erased because of events: in 24 hours as many as the guard for deletes
 * allows for one run, and twice as many in seven days. Otherwise anyone able to send events could
 * have all people erased, and nothing would bring them back.
 */
import { z } from 'zod';
import type { RecordType } from '../../records/record-type.ts';
import type { Key } from '../../domain/record.ts';
import { metaValue } from '../../store/database/meta-table.ts';
import { judge, weekMs } from '../report/guard-rules.ts';
import type { Mirror } from '../context/mirror-context.ts';
import { unfinishedIn } from './pending/unfinished-erasures.ts';
import { shortHash } from '../context/person-identity.ts';

const name = 'erased-by-events';
const dayMs = 86_400_000;

/** The times of the erasures, in milliseconds since the epoch. */
const times = z.array(z.number());

/**
 * Returns whether one more person may be erased, and counts the person if so. An erasure always
 * passes if `forget` has begun it or was called for it. Call it within a transaction.
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
  const week = (metaValue(meta, name, times) ?? []).filter((at) => at > now - weekMs);
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
  // Events arrive one by one, so the guard's rules about the shape of a plan do not apply.
  if (judge(volume, guards.delete)) return false;
  meta.set(name, JSON.stringify([...week, now]));
  return true;
}
