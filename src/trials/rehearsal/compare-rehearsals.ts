/** Compares two rehearsals of the same mirror, person by person. */
import type { Key } from '../../domain/record.ts';
import type { PlannedRecord } from '../../engine/report/run-summary.ts';
import { type PersonState, sameState, statesByKey } from './platform-state.ts';
import { recordName, type Rehearsed } from './rehearse-run.ts';

/** What one configuration does with a person. */
export interface Outcome {
  /** The contacts of the person in the end. */
  states: readonly PersonState[];
  changes: readonly PlannedRecord[];
  /** Whether the person is recorded, and missing from the CRM after the run. */
  isMissing: boolean;
}

/** Two configurations treat this person differently. */
export interface PersonDifference {
  key: Key;
  one: Outcome;
  other: Outcome;
}

/**
 * Returns the people whose end state, absence or planned changes differ, in the order of their
 * keys. Two changes are the same if they do the same in the same channels, whatever the reason.
 */
export function compareRehearsals(one: Rehearsed, other: Rehearsed): PersonDifference[] {
  const [mine, theirs] = [outcomesOf(one), outcomesOf(other)];
  const keys = new Set([...mine.keys(), ...theirs.keys()]);
  return [...keys].toSorted().flatMap((key): PersonDifference[] => {
    const [first, second] = [mine.of(key), theirs.of(key)];
    const isSame =
      first.isMissing === second.isMissing &&
      first.states.length === second.states.length &&
      first.states.every((state) => second.states.some((their) => sameState(state, their))) &&
      changeText(first) === changeText(second);
    return isSame ? [] : [{ key, one: first, other: second }];
  });
}

function outcomesOf({ after, changes, missing }: Rehearsed) {
  const gone = new Set(missing.after.map(({ key }) => key));
  const states = statesByKey(after);
  const planned = (key: Key) => changes.get(recordName({ kind: 'contact', key })) ?? [];
  const changed = [...changes.values()].flatMap(([record]) =>
    record?.kind === 'contact' ? [record.key] : [],
  );
  return {
    keys: () => [...states.keys(), ...changed, ...gone],
    of: (key: Key): Outcome => ({
      states: states.get(key) ?? [],
      changes: planned(key),
      isMissing: gone.has(key),
    }),
  };
}

function changeText({ changes }: Outcome): string {
  const texts = changes.map(({ op, held, parts }) => JSON.stringify([op, held, parts.toSorted()]));
  return texts.toSorted().join();
}
