/** A plan as a value: what a run would send, counted and named by a hash. */
import { createHash } from 'node:crypto';
import type { Change, Op } from '../model/change.ts';
import { canonicalJson, type KindName } from '../model/record.ts';

export type Counts = Partial<Record<Op | 'adopt' | 'forget', number>>;

export interface Plan {
  /** Names exactly these changes: equal plans have equal hashes. 16 hexadecimal digits. */
  hash: string;
  changes: Record<KindName, Counts>;
}

/** Reads the changes once, in their order; whether a guard holds them makes no difference. */
export function planOf(changes: Iterable<Change>): Plan {
  const hash = createHash('sha256');
  const counts: Record<KindName, Counts> = { contact: {}, template: {} };
  for (const { kind, key, op, part, target, body, phase, guard } of changes) {
    const named = { kind, key, op, part, target, body, phase, guard };
    hash.update(`${canonicalJson(named)}\n`);
    counts[kind][op] = (counts[kind][op] ?? 0) + 1;
  }
  return { hash: hash.digest('hex').slice(0, 16), changes: counts };
}
