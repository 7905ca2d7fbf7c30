/**
 * Makes the document of a rehearsal, which the view shows, and compares two rehearsals of the same
 * mirror, person by person. All functions are pure.
 */
import type { Key } from '../../domain/record.ts';
import { shownGroups } from '../../views/lookup/problem-groups.ts';
import type { PlannedRecord } from '../../engine/report/run-summary.ts';
import { optedOutAfter } from '../../views/lookup/missing-people.ts';
import type { Names } from '../../views/lookup/person-names.ts';
import type { Rehearsal, RehearsedRun } from '../../views/run/rehearsal.ts';
import {
  changedPeople,
  changedTemplates,
  countSubscribed,
  type PersonState,
  sameState,
  statesByKey,
} from './platform-state.ts';
import { recordName, type Rehearsed } from './rehearse-run.ts';

/** How people are named, whether values of the CRM are shown, and how many people are in it. */
interface Naming {
  names: Names;
  addresses: boolean;
  most: number;
}

/** Returns the document of one rehearsal. People whose changes have a reason come first. */
export function rehearsedRun(
  { config, summary, limits, missing, before, after, changes }: Rehearsed,
  { names, addresses, most }: Naming,
): RehearsedRun {
  const { status, mode, only, plan, contacts, templates, requests, reasons, ms } = summary;
  const { canaries, deferred } = summary;
  const changesOf = (key: string) => changes.get(recordName({ kind: 'contact', key }));
  const people = changedPeople(before, after).toSorted(
    (a, b) => Number(!changesOf(a.key)) - Number(!changesOf(b.key)),
  );
  return {
    config: config.file,
    status,
    mode,
    only,
    plan,
    ms,
    contacts,
    templates,
    requests,
    deferred,
    ...(canaries && { canaries }),
    limits: limits.filter(({ route }) => (requests.byRoute[route] ?? 0) > 0),
    reasons,
    groups: shownGroups(summary.groups, { names, addresses }),
    end: {
      contacts: { before: before.people.size, after: after.people.size },
      templates: { before: before.templates.size, after: after.templates.size },
      channels: (config.contacts?.channels ?? []).map(({ id, name }) => ({
        id,
        name: name ?? null,
        before: countSubscribed(before, id),
        after: countSubscribed(after, id),
      })),
    },
    missing: {
      before: missing.before,
      after: missing.after.length,
      waiting: missing.after.filter(({ isWaiting }) => isWaiting).length,
      optedOutAfter: optedOutAfter(config),
    },
    peopleCount: people.length,
    people: people.slice(0, most).map((one) => ({
      key: names({ kind: 'contact', key: one.key }),
      before: shownState(one.before),
      after: shownState(one.after),
      changes: (changesOf(one.key) ?? []).map(shownChange),
    })),
    changedTemplates: changedTemplates(before, after).map(({ key, ...states }) => ({
      name: key,
      before: states.before !== undefined,
      after: states.after !== undefined,
    })),
  };
}

/** Describes the people that two configurations treat differently. */
export function differencesDocument(
  differences: readonly PersonDifference[],
  { names, most }: Naming,
): Rehearsal['differences'] {
  const shown = ({ states, changes, isMissing: missing }: PersonDifference['one']) => ({
    states: states.map(shownState),
    changes: changes.map(shownChange),
    missing,
  });
  return differences.slice(0, most).map(({ key, one, other }) => ({
    key: names({ kind: 'contact', key }),
    config: shown(one),
    against: shown(other),
  }));
}

function shownState(state: PersonState | undefined) {
  return state ? { status: state.status, channels: state.channels } : null;
}

function shownChange({ op, parts, held, reason }: PlannedRecord) {
  return { op, parts, held, reason };
}

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
