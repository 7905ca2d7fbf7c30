/** A plan as a value: what a run would send, counted and named by a hash. */
import { createHash } from 'node:crypto';
import type { Change, Op } from '../../domain/change.ts';
import { canonicalJson, type RecordTypeName } from '../../domain/record.ts';

export type ChangeCounts = Partial<Record<Op | 'adopt' | 'forget', number>>;

export interface Plan {
  /** Names exactly these changes: equal plans have equal hashes. 16 hexadecimal digits. */
  hash: string;
  changes: Record<RecordTypeName, ChangeCounts>;
}

/** A plan in the making: its changes come in its order, each once. */
export interface Planning {
  add(changes: Iterable<Change>): void;
  done(): Plan;
}

/** Whether a guard holds a change makes no difference. */
export function planning(): Planning {
  const hash = createHash('sha256');
  const counts: Record<RecordTypeName, ChangeCounts> = { contact: {}, template: {} };
  return {
    add(changes) {
      for (const { kind, key, op, part, target, body, phase, guard } of changes) {
        // In the order of canonical JSON, which saves sorting it.
        const named = { body, guard, key, kind, op, part, phase, target };
        hash.update(`${canonicalJson(named)}\n`);
        counts[kind][op] = (counts[kind][op] ?? 0) + 1;
      }
    },
    done: () => ({ hash: hash.digest('hex').slice(0, 16), changes: counts }),
  };
}
