/** Whom other runs took since this one began, by what this one has read of the source. */
import type { RecordType } from '../../records/record-type.ts';
import type { Key } from '../../domain/record.ts';
import type { RunContext } from './run-context.ts';

/** Under the keys that the others know, and under those that she has by this run's reading. */
export function supersededKeys(
  { locks, snapshot, id }: RunContext,
  { name, read }: RecordType,
): Key[] {
  if (!read) return [];
  const { keys, ids } = locks.superseded(id);
  if (ids.size === 0) return [...keys];
  return [...new Set([...keys, ...snapshot.staging.keysOf(name, [...ids])])];
}

/** Whether she is one of them. */
export function isSuperseded(run: RunContext, { name, read }: RecordType, key: Key): boolean {
  if (!read) return false;
  const { keys, ids } = run.locks.superseded(run.id);
  return (
    keys.has(key) ||
    (ids.size > 0 && run.snapshot.staging.idsOf(name, key).some((id) => ids.has(id)))
  );
}
