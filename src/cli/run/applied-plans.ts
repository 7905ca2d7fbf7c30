/** Remembers in the snapshot which plans were applied lately, because each is applied once. */
import { z } from 'zod';
import { type Meta, metaValue } from '../../snapshot/database/meta-table.ts';

const name = 'applied-plans';

/** The id of the run that made the plan → when it was applied, in milliseconds since the epoch. */
const stored = z.record(z.string(), z.number());

/** Returns when this plan was applied; undefined: not lately. */
export function appliedAt(meta: Meta, plan: string): number | undefined {
  return read(meta)[plan];
}

/**
 * Remembers that a plan was applied, and forgets those applied before `oldest`, which are too old
 * to be applied anyway. `at` and `oldest`: milliseconds since the epoch.
 */
export function markApplied(
  meta: Meta,
  plan: string,
  { at, oldest }: { at: number; oldest: number },
): void {
  const recent = Object.entries(read(meta)).filter(([, time]) => time >= oldest);
  meta.set(name, JSON.stringify(Object.fromEntries([...recent, [plan, at]])));
}

function read(meta: Meta): z.infer<typeof stored> {
  return metaValue(meta, name, stored) ?? {};
}
