/**
 * Reads the people who were reset (`state reset`) once more. A full run lists them anyway; a fast
 * run reads each of them, so that it decides by what the platform shows now.
 */
import { Interrupted, isExpected, type Problem } from '../../domain/errors.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { counted } from '../../domain/values/counted.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import { lookUp } from './person-observation.ts';

/** Each costs a few requests, and a reset is made by hand. */
const readAtMost = 100;

/** Holds any value while a record may be reset, so that other runs need not look for one. */
const nameOf = (kind: RecordTypeName): string => `reset of ${kind}s`;

/**
 * Marks a person to be read again. Returns whether the person is recorded. Call it within a
 * transaction.
 */
export function markReset(
  { recorded, meta }: Snapshot,
  { name }: Pick<RecordType, 'name'>,
  key: Key,
): boolean {
  const isRecorded = recorded.reset(name, key);
  if (isRecorded) meta.set(nameOf(name), 'yes');
  return isRecorded;
}

/**
 * Reads the reset people into staging and makes them candidates. Anybody who could not be read
 * stays reset for the next run. Returns a note in that case. Throws Interrupted, and unexpected
 * errors.
 */
export async function readReset(
  run: RunContext,
  type: RecordType,
  known: Findings,
): Promise<Problem[]> {
  const { meta, recorded, candidates, transaction } = run.snapshot;
  const { name } = type;
  if (meta.get(nameOf(name)) === undefined) return [];
  const keys = recorded.resets(name, readAtMost);
  if (keys.length === 0 && run.writes) transaction(() => meta.drop(nameOf(name)));
  for (const [at, key] of keys.entries()) {
    try {
      await lookUp(run, type, { key, known });
    } catch (error) {
      if (!isExpected(error) || error instanceof Interrupted) throw error;
      return [noteOf(keys.length - at, error.message)];
    }
    candidates.add(name, key);
  }
  return [];
}

function noteOf(people: number, why: string): Problem {
  const reason = `${counted(people, 'reset person', 'reset people')} could not be read again: ${why}`;
  return { code: 'note', reason, fix: 'the next run tries again' };
}
