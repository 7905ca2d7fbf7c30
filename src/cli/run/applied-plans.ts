/** Which plans were applied lately: each is, once. A fact of the snapshot. */
import { z } from 'zod';
import { type Meta, metaValue } from '../../snapshot/database/meta-table.ts';

const name = 'applied-plans';

/** The run that made the plan → when it was applied, in milliseconds since the epoch. */
const stored = z.record(z.string(), z.number());

/** When this plan was applied; undefined: not lately. */
export function appliedAt(meta: Meta, plan: string): number | undefined {
  return read(meta)[plan];
}

/** Remembers it, and no longer those applied before `oldest`: they are too old for another time. */
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
