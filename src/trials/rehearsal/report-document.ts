/** Returns a rehearsal as the document of --json. All functions are pure. */
import { optedOutAfter } from '../../views/lookup/missing-people.ts';
import { shownGroups, type ShownGroup } from '../../compose/output/problem-groups.ts';
import type { PlannedRecord } from '../../engine/report/plan-view.ts';
import type { PersonDifference } from './compare-rehearsals.ts';
import {
  changedPeople,
  changedTemplates,
  countSubscribed,
  type PersonState,
} from './platform-state.ts';
import { recordName, type Rehearsed } from './rehearse-run.ts';
import { explainedFirst } from './report-words.ts';

/** How people are named. */
interface Naming {
  nameOf(key: string): string;
  addresses: boolean;
  /** How many people to name. */
  most: number;
}

/** Returns the document of one rehearsal. */
export function rehearsalDocument(rehearsed: Rehearsed, { nameOf, addresses, most }: Naming) {
  const { config, summary, limits, missing, before, after, changes } = rehearsed;
  const { status, mode, only, plan, contacts, templates, requests, reasons, ms } = summary;
  const { canaries, deferred } = summary;
  const names = ({ kind, key }: { kind: string; key: string }): string =>
    kind === 'contact' ? nameOf(key) : key;
  const groups: ShownGroup[] = shownGroups(summary.groups, { names, addresses });
  const of = (kind: 'contact' | 'template', key: string) =>
    (changes.get(recordName({ kind, key })) ?? []).map(shownChange);
  const people = explainedFirst(changedPeople(before, after), rehearsed);
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
    groups,
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
      key: nameOf(one.key),
      before: shownState(one.before),
      after: shownState(one.after),
      changes: of('contact', one.key),
    })),
    changedTemplates: changedTemplates(before, after).map(({ key, ...states }) => ({
      name: key,
      before: states.before !== undefined,
      after: states.after !== undefined,
    })),
  };
}

/** Returns the people that two configurations treat differently. */
export function differencesDocument(
  differences: readonly PersonDifference[],
  { nameOf, most }: Pick<Naming, 'nameOf' | 'most'>,
) {
  const shown = ({ states, changes, isMissing: missing }: PersonDifference['one']) => ({
    states: states.map(shownState),
    changes: changes.map(shownChange),
    missing,
  });
  return differences.slice(0, most).map(({ key, one, other }) => ({
    key: nameOf(key),
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
