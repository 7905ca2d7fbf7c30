/** Renders a rehearsal as lines for people. All functions are pure. */
import { doneGroups } from '../../compose/output/change-groups.ts';
import { stateWords } from '../../compose/output/change-words.ts';
import { optedOutAfter, optedOutWords } from '../../views/lookup/missing-people.ts';
import { lasting } from '../../compose/output/format-values.ts';
import { commandLine } from '../../compose/output/printed-commands.ts';
import { apart, renderSummary } from '../../compose/output/summary-text.ts';
import { styledTable } from '../../compose/output/table.ts';
import { type Line, lineOf, styled } from '../../compose/output/text-style.ts';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { signing } from '../../engine/report/approval-rules.ts';
import { limitWords } from '../../engine/report/forecast-text.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import { heldIn, type Summary } from '../../engine/report/run-summary.ts';
import type { Outcome, PersonDifference } from './compare-rehearsals.ts';
import { changedPeople, changedTemplates, countSubscribed } from './platform-state.ts';
import { recordName, type Rehearsed } from './rehearse-run.ts';
import { endings, titleOf } from './report-title.ts';
import { changesWords, explainedFirst, reasonWords, statesWords } from './report-words.ts';

/** How a rehearsal is shown. */
export interface Shown {
  /** The configuration as the user named it. */
  file: string;
  /** Returns the name of a person. */
  nameOf(key: string): string;
  /** How many people to name. */
  most: number;
}

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
  const planned = (key: string) => changes.get(recordName({ kind: 'contact', key })) ?? [];
  const people = explainedFirst(changedPeople(before, after), { changes });
  const templates = changedTemplates(before, after).map(({ key }) => key);
  const rows = people.slice(0, most).map(({ key, before: was, after: is }): Line[] => {
    const why = reasonWords(planned(key));
    return [nameOf(key), stateWords(was), '→', stateWords(is), styled('dim', why)];
  });
  return [
    styled('bold', titleOf(rehearsed)),
    ...failureLines(summary),
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

function failureLines({ status, reasons }: Pick<Summary, 'status' | 'reasons'>): Line[] {
  if (status !== 'failed') return [];
  return reasons.map((reason) => lineOf('  ', styled('red', '!'), ` ${reason}`));
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

/** Says what would wait for a canary, because a rehearsal is about one run. */
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

/** Returns a line for each route: its requests, and the limit with its origin. */
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

/** Says how many recorded people would be missing from the CRM, and what becomes of them. */
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

/** Two rehearsals, and the people that they treat differently. */
interface Comparison {
  differences: readonly PersonDifference[];
  one: Rehearsed;
  other: Rehearsed;
}

/** Says how many more people one configuration leaves out. */
function moreMissing({
  file,
  mine,
  against,
  other,
}: {
  file: string;
  mine: Rehearsed;
  against: string;
  other: Rehearsed;
}): Line[] {
  const n = mine.missing.after.length - other.missing.after.length;
  if (n <= 0) return [];
  const who = counted(n, 'more person', 'more people');
  const later = optedOutWords(optedOutAfter(mine.config));
  return [
    lineOf(
      styled('bold', `With ${file}, ${who} would be missing from the CRM`),
      ` than with ${against}: ${later}`,
    ),
  ];
}

/** Renders the people that two configurations treat differently. */
export function differenceLines(
  { differences, one: mine, other }: Comparison,
  { file, against, nameOf, most }: Shown & { against: string },
): Line[] {
  const { summary } = other;
  const title = `${against} would take ${lasting(summary.ms)}. ${endings[summary.status]}`;
  const absence = (config: Rehearsed['config']): string =>
    `; missing from the CRM: ${optedOutWords(optedOutAfter(config))}`;
  const words = (of: Outcome, { config }: Rehearsed): Line[] => [
    statesWords(of.states),
    styled('dim', changesWords(of.changes) + (of.isMissing ? absence(config) : '')),
  ];
  const rows = differences.slice(0, most).flatMap(({ key, one, other: their }): Line[][] => [
    [nameOf(key), against, ...words(their, other)],
    ['', file, ...words(one, mine)],
  ]);
  const what = `People treated otherwise by ${file}`;
  return [
    '',
    title,
    ...missingLines(other),
    ...canaryNote(mine, other),
    ...moreMissing({ file, mine, against, other }),
    ...(differences.length === 0
      ? ['Both configurations do the same with every person.']
      : ['', ...titled(what, { all: differences.length, shown: most }, rows)]),
  ];
}

/** States that a canary limits what is compared. */
function canaryNote(...both: readonly Rehearsed[]): Line[] {
  if (both.every(({ summary }) => (summary.canaries ?? []).length === 0)) return [];
  return [
    'A canary limits what a run changes: to compare everything, rehearse copies without policy.canary.',
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
