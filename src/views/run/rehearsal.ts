/** Shows a rehearsal: its document, which --json of `rehearse` prints, and what is shown of it. */
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import { deferredCount } from '../../domain/guards/plan-rule.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Config } from '../../config/config.ts';
import { changeName, lasting } from '../../compose/output/format-values.ts';
import { problemsSection, type ShownGroup } from '../lookup/problem-groups.ts';
import { limitWords } from '../../engine/report/duration-forecast.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import { heldIn, type PlannedRecord, type Summary } from '../../engine/report/run-summary.ts';
import { type optedOutAfter, optedOutWords } from '../lookup/missing-people.ts';
import {
  names,
  numbers,
  present,
  type Section,
  type Span,
  type Text,
  type Tone,
} from '../sections.ts';
import { countsTable, doneGroups, joined, type Who } from './change-groups.ts';
import { sizeLines } from './run-sections.ts';

/** The state of a contact; `suppressed` is one that is subscribed, and sent no mail. */
export interface PersonState {
  status: 'subscribed' | 'unsubscribed' | 'blocked' | 'suppressed';
  channels: Readonly<Record<string, 'opt_in' | 'opt_out'>>;
}
/** Null if there is none. */
type State = PersonState | null;
type Change = Pick<PlannedRecord, 'op' | 'parts' | 'held' | 'reason'>;
interface Ends {
  before: number;
  after: number;
}

/** The limit of a route, and where it comes from. */
export interface UsedLimit {
  route: string;
  limit: number;
  windowMs: number;
  from: 'given' | 'seen' | 'assumed';
}

export interface RehearsedRun extends Pick<
  Summary,
  | 'status'
  | 'mode'
  | 'only'
  | 'plan'
  | 'ms'
  | 'contacts'
  | 'templates'
  | 'requests'
  | 'deferred'
  | 'canaries'
  | 'reasons'
> {
  config: string;
  limits: readonly UsedLimit[];
  groups: readonly ShownGroup[];
  end: {
    contacts: Ends;
    templates: Ends;
    channels: readonly (Ends & { id: string; name: string | null })[];
  };
  /** `waiting`: those who are opted out if they stay missing. */
  missing: Ends & { waiting: number; optedOutAfter: ReturnType<typeof optedOutAfter> };
  peopleCount: number;
  people: readonly { key: string; before: State; after: State; changes: readonly Change[] }[];
  changedTemplates: readonly { name: string; before: boolean; after: boolean }[];
}

/** What one configuration does with a person; a person may have several contacts. */
interface Outcome {
  states: readonly PersonState[];
  changes: readonly Change[];
  missing: boolean;
}

/** The document. `against`: the rehearsal of the live configuration, and who differs. */
export interface Rehearsal extends RehearsedRun {
  mirror: string;
  seed: number;
  sent: 0;
  reads: number;
  readMs: number;
  against: RehearsedRun | null;
  differences: readonly { key: string; config: Outcome; against: Outcome }[] | null;
}

/** Returns whether what a process of this program has printed is the document of a rehearsal. */
export function isRehearsal(value: unknown): value is Rehearsal {
  return typeof value === 'object' && value !== null && 'end' in value && 'people' in value;
}

export const endings: Readonly<Record<Summary['status'], { tone: Tone; text: string }>> = {
  done: { tone: 'good', text: 'It would end well.' },
  held: { tone: 'busy', text: 'It would end, except for what awaits approval.' },
  rejected: { tone: 'busy', text: 'It would end, but some records have problems.' },
  failed: { tone: 'bad', text: 'It would fail.' },
  interrupted: { tone: 'bad', text: 'The rehearsal was interrupted.' },
};

const modes: Readonly<Record<Summary['mode'], string>> = {
  full: 'full comparison',
  fast: 'compared with what is recorded',
  single: '',
  undo: '',
};

/** Returns the sentence above the sections. `planned`: the changes that no guard would hold. */
export function rehearsalTitle(rehearsal: Rehearsal, planned: number): string {
  const { mirror, mode, ms, status, deferred } = rehearsal;
  const done = doneGroups(rehearsal).reduce((sum, { n }) => sum + n, 0);
  const held = heldCount(rehearsal);
  const later = deferredCount(deferred);
  let what = held > 0 ? 'nothing done' : 'nothing to do';
  if (done > 0) what = counted(done, 'change');
  if (done < planned) what = `${withCommas(done)} of ${counted(planned, 'planned change')}`;
  let ending = endings[status].text;
  if (status === 'failed' && done < planned)
    ending = `It would fail; ${counted(planned - done, 'planned change')} would not be made.`;
  const who = `of ${counted(held, 'record')} would await approval.`;
  if (held > 0) {
    ending = status === 'held' ? `It would end; changes ${who}` : `${ending} Changes ${who}`;
  }
  if (later > 0) ending += ` ${counted(later, 'record')} would wait for a later run.`;
  return `Rehearsal for ${mirror} (${modes[mode]}): ${what}, in ${lasting(ms)}. ${ending}`;
}

/** Returns how many people and templates would await approval. */
export function heldCount(run: RehearsedRun): number {
  return Object.values(heldIn(run)).reduce((sum, n) => sum + n, 0);
}

export interface RehearsalView {
  config: Config;
  who: Who;
  approving: Span;
  most: number;
  namesAll: string;
  /** Says since when the limit of a route is known. */
  asOf?(route: string): string;
}

/** Returns the sections of a rehearsal. */
export function rehearsalSections(rehearsal: Rehearsal, view: RehearsalView): Section[] {
  const { people, peopleCount, changedTemplates, reads, end } = rehearsal;
  const templates = changedTemplates.slice(0, mostTemplates).map(({ name }) => name);
  const more = changedTemplates.length > templates.length ? ' …' : '';
  const ends = [
    { what: 'contacts on the platform', ...end.contacts },
    ...end.channels.map(({ id, name, ...of }) => ({ what: `subscribed to ${name ?? id}`, ...of })),
    ...(end.templates.before + end.templates.after > 0
      ? [{ what: 'templates', ...end.templates }]
      : []),
  ];
  const { approving } = view;
  const held = heldIn(rehearsal);
  return [
    {
      title: 'What it would do',
      table: countsTable(doneGroups(rehearsal), rehearsal, true),
      none: 'Nothing.',
    },
    {
      title: 'What would await approval',
      lines: guardNames
        .filter((guard) => held[guard] > 0)
        .map((guard) => {
          const { recordType, words } = guardRows[guard];
          const people = `${countWords(recordType, held[guard])} would await approval`;
          const what = `${people} (${words.counted}; ${words.cause}): after the run, `;
          return [what, approving, ' lets the next run do it'];
        }),
      isList: true,
    },
    { title: 'What would wait for a later run', lines: laterLines(rehearsal), isList: true },
    {
      title: 'The platform today, and after the run',
      lines: [...sizeLines(rehearsal, view.config, true), ...missingLines(rehearsal)],
      table: {
        columns: [names('What'), numbers('Today'), numbers('After')],
        rows: ends.map(({ what, before, after }) => [what, withCommas(before), withCommas(after)]),
      },
    },
    requestsSection(rehearsal, view),
    {
      title: `Who would end otherwise than today (${countOf(peopleCount, people, view)})`,
      table: {
        columns: [who, 'Today → after the run', 'Why'],
        rows: people
          .slice(0, view.most)
          .map(({ key, before, after, changes }) => [
            view.who({ kind: 'contact', key }),
            [...stateText(before), ' → ', ...stateText(after)],
            { tone: 'quiet', text: [...new Set(changes.map(({ reason }) => reason))].join('; ') },
          ]),
      },
    },
    {
      title: 'Templates that would change',
      lines: templates.length === 0 ? [] : [`${templates.join(', ')}${more}`],
    },
    problemsSection(rehearsal.groups),
    ...differenceSections(rehearsal, view),
    {
      title: 'What was sent',
      lines: [
        `Nothing: the platform was read with ${counted(reads, 'request')}, and neither it, nor the ` +
          'CRM, nor a file of the mirror was changed.',
      ],
    },
  ];
}

const mostTemplates = 50;
const who = names('Who');

function countOf(
  all: number,
  listed: readonly unknown[],
  { most, namesAll }: RehearsalView,
): string {
  const n = Math.min(listed.length, most);
  return n < all ? `${withCommas(n)} of ${withCommas(all)}; ${namesAll}` : withCommas(all);
}

function laterLines({ deferred, canaries = [] }: RehearsedRun): string[] {
  const later = deferredCount(deferred);
  if (later === 0) return [];
  return [
    `${counted(later, 'record')}, because the configuration allows such changes at certain hours ` +
      'only, or begins with a canary',
    ...canaries
      .filter(({ state }) => state === 'applying' || state === 'waiting')
      .filter(({ class: of }) => deferred[of] > 0)
      .map(({ class: of, size }) => {
        const count = (n: number): string => countWords(guardRows[of].recordType, n);
        return `${count(deferred[of])} would wait until the canary of ${count(size)} has been read back (policy.canary)`;
      }),
  ];
}

function missingLines({ missing }: RehearsedRun): string[] {
  const { before, after, waiting, optedOutAfter: until } = missing;
  if (after === 0 && before === 0) return [];
  const than = after > before ? `, ${withCommas(after - before)} more than now` : '';
  const some = waiting === after ? '' : `${withCommas(waiting)} of them `;
  const then = waiting === 0 ? '' : `: ${some}${optedOutWords(until)}`;
  return [`${counted(after, 'person', 'people')} would be missing from the CRM${than}${then}`];
}

const origins: Readonly<Record<UsedLimit['from'], string>> = {
  given: 'given for this rehearsal',
  seen: 'stated by the platform',
  assumed: 'assumed: it is not known yet, and can be given',
};

function requestsSection({ requests, limits }: Rehearsal, { asOf }: RehearsalView): Section {
  const { byRoute, rateLimited } = requests;
  const refused = `${withCommas(rateLimited)} of them would be refused by a rate limit (429).`;
  const rows = Object.entries(byRoute)
    .toSorted(([, a], [, b]) => b - a)
    .map(([route, n]) => {
      const known = limits.find((one) => one.route === route);
      const words = known ? limitWords({ ...known, others: 0 }, lasting) : '–';
      const since = known?.from === 'seen' ? (asOf?.(route) ?? '') : '';
      return [route, withCommas(n), words, known ? `${origins[known.from]}${since}` : '–'];
    });
  return {
    title: 'Requests by route',
    lines: rateLimited > 0 ? [refused] : [],
    table: {
      columns: [names('Route'), numbers('Requests'), numbers('Limit'), 'The limit is'],
      rows,
    },
  };
}

function differenceSections(rehearsal: Rehearsal, view: RehearsalView): Section[] {
  const { config: file, against: other, differences } = rehearsal;
  if (!other || !differences) return [];
  const n = rehearsal.missing.after - other.missing.after;
  const canaries = [rehearsal, other].flatMap((one) => one.canaries ?? []);
  const outcome = ({ states, changes, missing }: Outcome, run: RehearsedRun): Text[] => [
    states.length === 0 ? stateText(null) : joined(states.map(stateText), ' / '),
    {
      tone: 'quiet',
      text:
        changesWords(changes) +
        (missing ? `; missing from the CRM: ${optedOutWords(run.missing.optedOutAfter)}` : ''),
    },
  ];
  return [
    {
      title: `${other.config} would take ${lasting(other.ms)}. ${endings[other.status].text}`,
      lines: present(
        ...missingLines(other),
        canaries.length > 0 &&
          'A canary limits what a run changes: to compare everything, rehearse copies without ' +
            'policy.canary.',
        n > 0 &&
          `With ${file}, ${counted(n, 'more person', 'more people')} would be missing from the ` +
            `CRM than with ${other.config}: ${optedOutWords(rehearsal.missing.optedOutAfter)}`,
        differences.length === 0 && 'Both configurations do the same with every person.',
      ),
      none: '',
    },
    {
      title: `People treated otherwise by ${file} (${countOf(differences.length, differences, view)})`,
      table: {
        columns: [who, 'Configuration', 'After the run', 'Why'],
        leavesOut: ['Why'],
        rows: differences.slice(0, view.most).flatMap(({ key, config, against }) => [
          [view.who({ kind: 'contact', key }), other.config, ...outcome(against, other)],
          ['', file, ...outcome(config, rehearsal)],
        ]),
      },
    },
  ];
}

/** Returns the state of a contact: `ch_news in, ch_product out, blocked` */
function stateText(state: State): Span[] {
  if (!state) return ['not there'];
  const { status, channels } = state;
  const parts = Object.entries(channels).map(([channel, is]): Span[] => [
    { channel },
    is === 'opt_in' ? ' in' : ' out',
  ]);
  if (status !== 'subscribed') parts.push([status]);
  return parts.length === 0 ? ['in no channel'] : joined(parts);
}

/** Returns the changes with their reasons: `opt out ch_news: the CRM says so` */
function changesWords(changes: readonly Change[]): string {
  if (changes.length === 0) return 'nothing to do';
  const words = changes.map(({ op, parts, held, reason }) => {
    const waits = held ? ' (awaits approval)' : '';
    return `${[changeName(op, false), parts.join(', ')].join(' ').trim()}${waits}: ${reason}`;
  });
  return words.join('; ');
}
