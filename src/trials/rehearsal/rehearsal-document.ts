/**
 * Makes the document of a rehearsal, which the view shows, and compares two rehearsals of the same
 * mirror, person by person. All functions are pure.
 */
import type { Key } from '../../domain/record.ts';
import { shownGroups } from '../../views/lookup/problem-groups.ts';
import type { PlannedRecord } from '../../engine/report/run-summary.ts';
import { optedOutAfter } from '../../views/lookup/missing-people.ts';
import type { Names } from '../../views/lookup/person-names.ts';
import type { PersonState, Rehearsal, RehearsedRun } from '../../views/run/rehearsal.ts';
import type { PlatformState } from './platform-view.ts';
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
  const people = differences(before.people, after.people, sameState).toSorted(
    (a, b) => Number(!changesOf(a.key)) - Number(!changesOf(b.key)),
  );
  const isText = (one: string, other: string): boolean => one === other;
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
    people: people.slice(0, most).map(({ key, before, after }) => ({
      key: names({ kind: 'contact', key }),
      before: before ?? null,
      after: after ?? null,
      changes: (changesOf(key) ?? []).map(shownChange),
    })),
    changedTemplates: differences(before.templates, after.templates, isText).map((one) => ({
      name: one.key,
      before: one.before !== undefined,
      after: one.after !== undefined,
    })),
  };
}

function shownChange({ op, parts, held, reason }: PlannedRecord) {
  return { op, parts, held, reason };
}

type Differences = NonNullable<Rehearsal['differences']>;
type Outcome = Differences[number]['config'];

/**
 * Returns the people whose end state, absence or planned changes differ, in the order of their
 * keys. Two changes are the same if they do the same in the same channels, whatever the reason.
 */
export function compareRehearsals(
  one: Rehearsed,
  other: Rehearsed,
  { names, most }: Naming,
): Differences {
  const [mine, theirs] = [outcomesOf(one), outcomesOf(other)];
  const keys = new Set([...mine.keys(), ...theirs.keys()]);
  const found = [...keys].toSorted().flatMap((key) => {
    const [config, against] = [mine.of(key), theirs.of(key)];
    const isSame =
      config.missing === against.missing &&
      config.states.length === against.states.length &&
      config.states.every((state) => against.states.some((other) => sameState(state, other))) &&
      changeText(config) === changeText(against);
    return isSame ? [] : [{ key, config, against }];
  });
  return found
    .slice(0, most)
    .map(({ key, ...outcomes }) => ({ key: names({ kind: 'contact', key }), ...outcomes }));
}

/** Returns what a rehearsal does with each person, without the ids, which differ between two. */
function outcomesOf({ after, changes, missing }: Rehearsed) {
  const gone = new Set(missing.after.map(({ key }) => key));
  const states = Map.groupBy(after.people.values(), ({ key }) => key);
  const changed = [...changes.values()].flatMap(([record]) =>
    record?.kind === 'contact' ? [record.key] : [],
  );
  return {
    keys: () => [...states.keys(), ...changed, ...gone],
    of: (key: Key): Outcome => ({
      states: (states.get(key) ?? []).map(({ state }) => state),
      changes: (changes.get(recordName({ kind: 'contact', key })) ?? []).map(shownChange),
      missing: gone.has(key),
    }),
  };
}

function changeText({ changes }: Outcome): string {
  const texts = changes.map(({ op, held, parts }) => JSON.stringify([op, held, parts.toSorted()]));
  return texts.toSorted().join();
}

function countSubscribed({ people }: PlatformState, channel: string): number {
  let n = 0;
  for (const { state } of people.values())
    if (state.status === 'subscribed' && state.channels[channel] === 'opt_in') n += 1;
  return n;
}

function sameState(one: PersonState, other: PersonState): boolean {
  const [mine, theirs] = [Object.entries(one.channels), Object.entries(other.channels)];
  return (
    one.status === other.status &&
    mine.length === theirs.length &&
    mine.every(([id, is]) => other.channels[id] === is)
  );
}

type ById<State> = ReadonlyMap<string, { key: string; state: State }>;

/** Returns the records that differ, in the order of their keys; undefined is no state. */
function differences<State>(
  before: ById<State>,
  after: ById<State>,
  isSame: (one: State, other: State) => boolean,
): { key: string; before: State | undefined; after: State | undefined }[] {
  const ids = new Set([...before.keys(), ...after.keys()]);
  const found = [...ids].flatMap((id) => {
    const [was, is] = [before.get(id), after.get(id)];
    if (was && is && isSame(was.state, is.state)) return [];
    return [{ key: (was ?? is)?.key ?? '', before: was?.state, after: is?.state }];
  });
  return found.toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)));
}
