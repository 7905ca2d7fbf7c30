/**
 * Observes single people on the platform: the person that a run is about, and those who were reset
 * (`retry --read-again`). A full run lists the latter anyway; a fast run reads each of them, so
 * that it decides by what the platform shows now.
 */
import type { Key, ObservedRow } from '../../domain/record.ts';
import type { PersonLock } from '../context/person-locks.ts';
import { personIsLocked } from '../read/partial-read.ts';
import type { MirrorContacts } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-results.ts';
import { statesOf } from '../read/record-states.ts';
import { Interrupted, isExpected, type Problem } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Snapshot } from '../../store/snapshot.ts';

export interface PersonFindings {
  key: Key;
  known: Findings;
}

/** Locks what the source knows of the person, and reads the person there. Throws Busy. */
export async function observePerson(
  run: RunContext,
  contacts: MirrorContacts,
  { lock, ...single }: PersonFindings & { lock: PersonLock | undefined },
): Promise<void> {
  const also = {
    keys: formerKeys(run, single),
    ids: run.snapshot.staging.idsOf('contact', single.key),
  };
  if (lock?.extend(also) === false) throw personIsLocked();
  await lookUp(run, contacts, single);
}

/** Reads into staging what the platform shows about a person, with former addresses. */
export async function lookUp(
  run: RunContext,
  contacts: MirrorContacts,
  single: PersonFindings,
): Promise<void> {
  await stageOne(run, contacts, single.key);
  for (const key of formerKeys(run, single)) await stageOne(run, contacts, key);
}

/** Returns the keys to decide: the person's key, and former keys that no other record has now. */
export function keysOf(run: RunContext, single: PersonFindings): Key[] {
  const { staging } = run.snapshot;
  const former = formerKeys(run, single);
  return [single.key, ...former.filter((key) => staging.desired('contact', key).length === 0)];
}

/** Returns the other keys under which the person is recorded, based on the current source. */
function formerKeys(run: RunContext, single: PersonFindings): Key[] {
  return [...new Set(statesOf(run, single).former.map(({ row }) => row.key))];
}

/** Stages what was read about a record; a contact with another key goes under that one. */
export function stageObservation(
  { snapshot: { staging } }: RunContext,
  { key, rows }: { key: Key; rows: readonly ObservedRow[] },
): void {
  const isHere = ({ alias }: ObservedRow): boolean => alias === key;
  staging.addObserved(rows.filter(isHere), key);
  staging.addObserved(rows.filter((row) => !isHere(row)));
}

async function stageOne(run: RunContext, contacts: MirrorContacts, key: Key): Promise<void> {
  const { staging, recorded } = run.snapshot;
  const rows = await contacts.read({ key, id: recorded.get('contact', key)?.id }, run.stop);
  run.snapshot.stage(() => {
    stageObservation(run, { key, rows });
    staging.addLooked('contact', key, run.clock.now());
  });
}

/** Each costs a few requests, and a reset is made by hand. */
const readAtMost = 100;

/** Holds any value while a record may be reset, so that other runs need not look for one. */
const resetName = 'reset of contacts';

/** Marks a person to be read again. Returns whether there is one. Call it in a transaction. */
export function markReset({ recorded, meta }: Snapshot, key: Key): boolean {
  const isRecorded = recorded.reset('contact', key) > 0;
  if (isRecorded) meta.set(resetName, 'yes');
  return isRecorded;
}

/**
 * Reads the reset people into staging and makes them candidates. Anybody who could not be read
 * stays reset for the next run. Returns a note in that case. Throws Interrupted, and unexpected
 * errors.
 */
export async function readReset(
  run: RunContext,
  contacts: MirrorContacts,
  known: Findings,
): Promise<Problem[]> {
  const { meta, recorded, candidates, transaction } = run.snapshot;
  if (meta.get(resetName) === undefined) return [];
  const keys = recorded.resets('contact', readAtMost);
  if (keys.length === 0 && run.writes) transaction(() => meta.drop(resetName));
  for (const [at, key] of keys.entries()) {
    try {
      await lookUp(run, contacts, { key, known });
    } catch (error) {
      if (!isExpected(error) || error instanceof Interrupted) throw error;
      const people = counted(keys.length - at, 'reset person', 'reset people');
      const reason = `${people} could not be read again: ${error.message}`;
      return [{ code: 'note', reason, fix: 'the next run tries again' }];
    }
    candidates.add('contact', key);
  }
  return [];
}
