/**
 * Renders a rehearsal as lines for people and as the document of --json. All functions are pure.
 */
import { doneGroups } from '../../compose/output/change-groups.ts';
import { changeName, stateWords } from '../../compose/output/change-words.ts';
import { optedOutAfter, optedOutWords } from '../../views/lookup/missing-people.ts';
import { lasting } from '../../compose/output/format-values.ts';
import { commandLine } from '../../compose/output/printed-commands.ts';
import { apart, renderSummary } from '../../compose/output/summary-text.ts';
import { styledTable } from '../../compose/output/table.ts';
import { type Line, lineOf, styled } from '../../compose/output/text-style.ts';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { signing, countWords } from '../../engine/report/guard-text.ts';
import { limitWords } from '../../engine/report/duration-forecast.ts';
import { heldIn, type Summary, type PlannedRecord } from '../../engine/report/run-summary.ts';
import {
  changedPeople,
  changedTemplates,
  countSubscribed,
  type Difference,
  type PersonState,
} from './platform-state.ts';
import type { Outcome, PersonDifference } from './compare-rehearsals.ts';
import { recordName, type Rehearsed } from './rehearse-run.ts';
import { deferredCount } from '../../domain/guards/plan-rule.ts';
import { type ShownGroup, shownGroups } from '../../compose/output/problem-groups.ts';

/** How a rehearsal is shown. */
export interface Shown {
  /** The configuration as the user named it. */
  file: string;
  /** Returns the name of a person. */
  nameOf(key: string): string;
  /** How many people to name. */
  most: number;
}

type Naming = Omit<Shown, 'file'> & { addresses: boolean };

/** Renders what the run would do, how long it would take, and how it would end. */
export function rehearsalLines(rehearsed: Rehearsed, shown: Shown): Line[] {
  const { config, summary } = rehearsed;
  const [, ...lines] = renderSummary(summary, {
    writes: false,
    groups: doneGroups(summary),
    approvals: [...approvalLines(rehearsed, shown), ...canaryLines(rehearsed)],
    policy: {
      optIns: config.policy.optIns === 'off',
      protect: config.contacts?.protect !== undefined,
    },
    isVerbose: false,
  });
  const { before, after, changes } = rehearsed;
  const { most, nameOf } = shown;
  const row = (name: string, today: number, then: number): string[] => [
    name,
    withCommas(today),
    '→',
    withCommas(then),
  ];
  const channels = config.contacts?.channels ?? [];
  const people = explainedFirst(changedPeople(before, after), { changes });
  const templates = changedTemplates(before, after).map(({ key }) => key);
  const rows = people.slice(0, most).map(({ key, before: was, after: is }): Line[] => {
    const planned = changes.get(recordName({ kind: 'contact', key })) ?? [];
    const why = [...new Set(planned.map(({ reason }) => reason))].join('; ');
    return [nameOf(key), stateWords(was), '→', stateWords(is), styled('dim', why)];
  });
  return [
    styled('bold', titleOf(rehearsed)),
    ...(summary.status === 'failed'
      ? summary.reasons.map((reason) => lineOf('  ', styled('red', '!'), ` ${reason}`))
      : []),
    ...lines,
    ...apart(routeLines(rehearsed)),
    ...apart(
      styledTable(
        [
          ['', 'today', '', 'then'].map((cell) => styled('dim', cell)),
          row('contacts on the platform', before.people.size, after.people.size),
          ...channels.map(({ id, name }) =>
            row(
              `subscribed to ${name ?? id}`,
              countSubscribed(before, id),
              countSubscribed(after, id),
            ),
          ),
          ...(config.templates
            ? [row('templates', before.templates.size, after.templates.size)]
            : []),
        ],
        { indent: 2, right: [1, 3] },
      ),
    ),
    ...apart(missingLines(rehearsed)),
    ...apart([
      ...titled('People who end otherwise than today', { all: people.length, shown: most }, rows),
      ...(templates.length === 0
        ? []
        : [lineOf(styled('bold', 'Templates that change'), `: ${templates.join(', ')}`)]),
    ]),
  ];
}

function approvalLines({ summary, config }: Rehearsed, { file }: Shown): string[] {
  const held = heldIn(summary);
  const { plan, heldAs = plan } = summary;
  const words = config.approvers ? signing(heldAs) : `approve ${heldAs}`;
  return guardNames
    .filter((guard) => held[guard] > 0)
    .map((guard) => {
      const { recordType, words: of } = guardRows[guard];
      const who = `${countWords(recordType, held[guard])} would await approval (${of.counted})`;
      return `${who}: after the run, ${commandLine(words, file)} lets the next run do it`;
    });
}

function canaryLines({ summary: { canaries = [], deferred } }: Rehearsed): string[] {
  return canaries
    .filter(({ state }) => state === 'applying' || state === 'waiting')
    .filter(({ class: of }) => deferred[of] > 0)
    .map((one) => {
      const { recordType } = guardRows[one.class];
      const who = countWords(recordType, deferred[one.class]);
      const slice = countWords(recordType, one.size);
      return `${who} would wait until the canary of ${slice} has been read back (policy.canary)`;
    });
}

function routeLines({ summary: { requests }, limits }: Rehearsed): Line[] {
  const rows = limits.flatMap(({ route, limit, windowMs, from }): Line[][] => {
    const n = requests.byRoute[route] ?? 0;
    if (n === 0) return [];
    const words = limitWords({ limit, windowMs, others: 0 }, lasting);
    const fix = from === 'assumed' ? `: give it with --limit ${route}=REQUESTS/SECONDS` : '';
    return [
      [
        route,
        withCommas(n),
        counted(n, 'request').replace(/^\S+ /, ''),
        `${words} (${from}${fix})`,
      ],
    ];
  });
  const { rateLimited } = requests;
  const refused =
    rateLimited > 0 ? [`  ${withCommas(rateLimited)} of them would be refused (429)`] : [];
  return [...styledTable(rows, { indent: 2, right: [1] }), ...refused];
}

function missingLines({ missing: { before, after }, config }: Rehearsed): string[] {
  if (after.length === 0 && before === 0) return [];
  const who = counted(after.length, 'person', 'people');
  const more = after.length - before;
  const than = more > 0 ? `, ${withCommas(more)} more than now` : '';
  const n = after.filter(({ isWaiting }) => isWaiting).length;
  const some = n === after.length ? '' : `${withCommas(n)} of them `;
  const then = n === 0 ? '' : `: ${some}${optedOutWords(optedOutAfter(config))}`;
  return [`  ${who} would be missing from the CRM${than}${then}`];
}

/** Renders the people that two configurations treat differently. */
export function differenceLines(
  {
    differences,
    one: mine,
    other,
  }: { differences: readonly PersonDifference[]; one: Rehearsed; other: Rehearsed },
  { file, against, nameOf, most }: Shown & { against: string },
): Line[] {
  const { summary } = other;
  const title = `${against} would take ${lasting(summary.ms)}. ${endings[summary.status]}`;
  const absence = (config: Rehearsed['config']): string =>
    `; missing from the CRM: ${optedOutWords(optedOutAfter(config))}`;
  const words = (of: Outcome, { config }: Rehearsed): Line[] => [
    of.states.length === 0 ? stateWords(undefined) : of.states.map(stateWords).join(' / '),
    styled('dim', changesWords(of.changes) + (of.isMissing ? absence(config) : '')),
  ];
  const rows = differences.slice(0, most).flatMap(({ key, one, other: their }): Line[][] => [
    [nameOf(key), against, ...words(their, other)],
    ['', file, ...words(one, mine)],
  ]);
  const what = `People treated otherwise by ${file}`;
  const n = mine.missing.after.length - other.missing.after.length;
  const who = counted(n, 'more person', 'more people');
  return [
    '',
    title,
    ...missingLines(other),
    ...([mine, other].some(({ summary: { canaries = [] } }) => canaries.length > 0)
      ? [
          'A canary limits what a run changes: to compare everything, rehearse copies without policy.canary.',
        ]
      : []),
    ...(n > 0
      ? [
          lineOf(
            styled('bold', `With ${file}, ${who} would be missing from the CRM`),
            ` than with ${against}: ${optedOutWords(optedOutAfter(mine.config))}`,
          ),
        ]
      : []),
    ...(differences.length === 0
      ? ['Both configurations do the same with every person.']
      : ['', ...titled(what, { all: differences.length, shown: most }, rows)]),
  ];
}

function titled(
  title: string,
  { all, shown }: { all: number; shown: number },
  rows: readonly Line[][],
): Line[] {
  if (all === 0) return [];
  const n = Math.min(all, shown);
  const count = n < all ? `${withCommas(n)} of ${withCommas(all)}; --all names them all` : `${all}`;
  return [styled('bold', `${title} (${count})`), ...styledTable(rows, { indent: 2 })];
}

const modes = {
  full: 'full comparison',
  fast: 'compared with what is recorded',
  single: '',
  undo: '',
};

const endings: Record<Summary['status'], string> = {
  done: 'It would end well.',
  held: 'It would end, except for what awaits approval.',
  rejected: 'It would end, but some records have problems.',
  failed: 'It would fail.',
  interrupted: 'The rehearsal was interrupted.',
};

function titleOf({ summary, groups }: Rehearsed): string {
  const { mirror, mode, ms, status } = summary;
  const sum = (counts: readonly number[]): number => counts.reduce((all, n) => all + n, 0);
  // A template is created in two steps.
  const planned = sum(
    groups.map(({ kind, held, n, own }) => (kind === 'contact' ? n : own) * Number(!held)),
  );
  const done = sum(doneGroups(summary).map(({ n }) => n));
  const held = sum(Object.values(heldIn(summary)));
  const later = deferredCount(summary.deferred);
  let what = held > 0 ? 'nothing done' : 'nothing to do';
  if (done > 0) what = counted(done, 'change');
  if (done < planned) what = `${withCommas(done)} of ${counted(planned, 'planned change')}`;
  let ending =
    status === 'failed' && done < planned
      ? `It would fail; ${counted(planned - done, 'planned change')} would not be made.`
      : endings[status];
  const who = `of ${counted(held, 'record')} would await approval.`;
  if (held > 0) {
    ending = status === 'held' ? `It would end; changes ${who}` : `${ending} Changes ${who}`;
  }
  if (later > 0) ending += ` ${counted(later, 'record')} would wait for a later run.`;
  return `Rehearsal for ${mirror} (${modes[mode]}): ${what}, in ${lasting(ms)}. ${ending}`;
}

/** Returns the document of one rehearsal. */
export function rehearsalDocument(rehearsed: Rehearsed, { nameOf, addresses, most }: Naming) {
  const { config, summary, limits, missing, before, after, changes } = rehearsed;
  const { status, mode, only, plan, contacts, templates, requests, reasons, ms } = summary;
  const { canaries, deferred } = summary;
  const names = ({ kind, key }: { kind: string; key: string }): string =>
    kind === 'contact' ? nameOf(key) : key;
  const groups: ShownGroup[] = shownGroups(summary.groups, { names, addresses });
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
      changes: (changes.get(recordName({ kind: 'contact', key: one.key })) ?? []).map(shownChange),
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
  { nameOf, most }: Naming,
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

/** Formats the changes with their reasons: `opt out ch_news: the CRM says so` */
function changesWords(changes: readonly PlannedRecord[]): string {
  if (changes.length === 0) return 'nothing to do';
  const words = changes.map(({ op, parts, held, reason }) => {
    const waits = held ? ' (awaits approval)' : '';
    return `${[changeName(op, false), parts.join(', ')].join(' ').trim()}${waits}: ${reason}`;
  });
  return words.join('; ');
}

/** Sorts people so that those with a reason, which may be known of some only, come first. */
function explainedFirst(
  people: readonly Difference<PersonState>[],
  { changes }: Pick<Rehearsed, 'changes'>,
): Difference<PersonState>[] {
  const isUnexplained = ({ key }: Difference<PersonState>): number =>
    Number(!changes.has(recordName({ kind: 'contact', key })));
  return people.toSorted((a, b) => isUnexplained(a) - isUnexplained(b));
}
