/** Observes one person on the platform, for a run about that person only. */
import type { Key, ObservedRow } from '../../domain/record.ts';
import type { PersonLock } from '../context/person-locks.ts';
import { personIsLocked } from '../read/person-read.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import { statesOf } from '../read/record-states.ts';

/** The person, and what reading the source found. */
export interface PersonFindings {
  key: Key;
  known: Findings;
}

/**
 * Locks the keys and ids that the person currently has in the source, and reads into staging what
 * the platform shows about them. Throws Busy if another run has locked one of these.
 */
export async function observePerson(
  run: RunContext,
  type: RecordType,
  { lock, ...single }: PersonFindings & { lock: PersonLock | undefined },
): Promise<void> {
  const also = {
    keys: formerKeys(run, type, single),
    ids: run.snapshot.staging.idsOf(type.name, single.key),
  };
  if (lock?.extend(also) === false) throw personIsLocked();
  await lookUp(run, type, single);
}

/**
 * Reads into staging what the platform currently shows about a person, including former addresses.
 */
export async function lookUp(
  run: RunContext,
  type: RecordType,
  single: PersonFindings,
): Promise<void> {
  await stageOne(run, type, single.key);
  for (const key of formerKeys(run, type, single)) await stageOne(run, type, key);
}

/** Returns the keys to decide: the person's key, and former keys that no other record has now. */
export function keysOf(run: RunContext, type: RecordType, single: PersonFindings): Key[] {
  const { staging } = run.snapshot;
  const former = formerKeys(run, type, single);
  return [single.key, ...former.filter((key) => staging.desired(type.name, key).length === 0)];
}

/** Returns the other keys under which the person is recorded, based on the current source. */
function formerKeys(run: RunContext, type: RecordType, single: PersonFindings): Key[] {
  return [...new Set(statesOf(run, type, single).former.map(({ row }) => row.key))];
}

/**
 * Stages what was read about one record. A contact whose key has changed is staged under its new
 * key.
 */
export function stageObservation(
  { snapshot: { staging } }: RunContext,
  { keyedById }: RecordType,
  { key, rows }: { key: Key; rows: readonly ObservedRow[] },
): void {
  const isHere = ({ alias }: ObservedRow): boolean => keyedById || alias === key;
  staging.addObserved(rows.filter(isHere), key);
  staging.addObserved(rows.filter((row) => !isHere(row)));
}

async function stageOne(run: RunContext, type: RecordType, key: Key): Promise<void> {
  const { staging, recorded } = run.snapshot;
  const { personRead } = type.capabilities;
  if (!personRead) return;
  const rows = await personRead.read({ key, id: recorded.get(type.name, key)?.id }, run.stop);
  run.snapshot.stage(() => {
    stageObservation(run, type, { key, rows });
    staging.addLooked(type.name, key, run.clock.now());
  });
}
