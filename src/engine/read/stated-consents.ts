/**
 * Remembers what the CRM states about each person, for the guards of later runs. A run stores it
 * after what it withholds, and before it sends anything: if it is interrupted, the next run knows
 * what this one has read, and still knows what awaits approval.
 */
import type { Key } from '../../domain/record.ts';
import type { RecordType } from '../../records/record-type.ts';
import { mappingOf, onlyKey } from '../context/mirror-context.ts';
import { identityOf } from '../context/person-identity.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { findingsOf, type RunState } from '../context/run-state.ts';
import { inTurns } from '../context/work-in-parts.ts';

/** Stores what the records of this reading state. People who were erased are left out. */
export async function storeStated(state: RunState): Promise<void> {
  const { run, parts } = state;
  if (run.undo) return;
  const { stated, transaction } = run.snapshot;
  const isAny = run.doNotContact.erased() !== undefined;
  for (const { type } of parts) {
    const { certified, whole } = findingsOf(state, type);
    if (!type.capabilities.channels) continue;
    const isLimited = run.selection !== undefined;
    const isWhole = whole && onlyKey(run) === undefined;
    for await (const range of inTurns(run, stated.ranges(type.name))) {
      const erased = isAny ? erasedAmong(run, type, stated.newKeys(type.name, range)) : [];
      const but = [...supersededKeys(run, type), ...erased];
      const mapping = mappingOf(run) ?? '';
      const reading = { but, certified: certified && !isLimited, whole: isWhole, mapping };
      transaction(() => stated.store(type.name, range, { ...reading, at: run.clock.now() }));
    }
  }
}

/** Returns the keys of people who were erased under this address, or as a record with these ids. */
function erasedAmong(run: RunContext, type: RecordType, keys: readonly Key[]): Key[] {
  return keys.filter((key) =>
    run.doNotContact
      .concerning(identityOf(run, type, key))
      .some(({ cause }) => cause === 'erasure'),
  );
}
