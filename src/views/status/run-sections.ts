/** Shows runs: their list, and one with its changes and requests. All functions are pure. */
import { renderProblem } from '../../domain/errors.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { byWords, changeName, outcomeName, range } from '../../compose/output/format-values.ts';
import type { Requests } from '../../store/memory/requests.ts';
import { fullWords } from '../run/run-sections.ts';
import { ruleText } from '../audit/entry-document.ts';
import {
  type Item,
  names,
  numbers,
  present,
  type Section,
  type Sign,
  type Text,
} from '../sections.ts';
import {
  type ListedRun,
  totalOf,
  type ToldChange,
  type ToldChanges,
  type ToldRun,
} from './run-history.ts';

/**
 * Returns the list of runs. `isVerbose`: with when they began, which their ids say too, why they
 * were full, and their requests; without, it fits 80 columns. `now`: for a browser, where the page
 * of a run has the rest. `undoneBy` returns the run that has undone a run.
 */
export function runsSection(
  runs: readonly ListedRun[],
  {
    isVerbose = false,
    none,
    now,
    undoneBy,
  }: {
    isVerbose?: boolean;
    none: string;
    now?: number;
    undoneBy?: ((run: string) => string | undefined) | undefined;
  },
): Section {
  const isPage = now !== undefined;
  const rows = runs.map((run) => {
    const { requests, reasons, askedBy, startedAt, mode } = run;
    const [reason, ...more] = reasons;
    const asked = typeof askedBy?.name === 'string' && `asked for by ${askedBy.name}`;
    const id = { page: `runs/${run.run}`, text: run.run };
    const took = tookWords(run);
    const changes = changesWords(run.changes, run.status);
    const why = more.length > 0 ? `${reason} (and ${more.length} more)` : reason;
    if (!isPage && !isVerbose) {
      const made = changes === 'none' ? 'no changes' : changes;
      return { cells: [id, mode, took, `${statusWords(run)}; ${made}`], notes: present(why) };
    }
    const ago = isPage && `${range(Math.max(0, now - Date.parse(startedAt)))} ago`;
    const codes = isPage ? '' : run.fullBecause.map(({ code }) => code).join(', ');
    const [what, ...notes] = isPage && changes === 'none' && why ? [why] : [changes, why];
    const cells = [
      id,
      ago ? { at: startedAt, ago } : startedAt,
      `${mode}${codes && ` (${codes})`}`,
      statusText(run, isPage ? brief : usual),
      took,
      ...(isPage ? [] : [requests ? withCommas(requests.total) : '–']),
      what,
    ];
    const undo = undoneBy?.(run.run);
    const undone: Text | false = undo !== undefined && [
      { strong: 'Undone' },
      ' by ',
      { page: `runs/${undo}`, text: `run ${undo}` },
    ];
    return { cells, notes: present<Text>(undone, asked, ...notes) };
  });
  const long = ['Started', 'Mode', 'Status', numbers('Took')];
  let columns = [names('Run'), 'Mode', numbers('Took'), 'Status and changes'];
  if (isVerbose) columns = [names('Run'), ...long, numbers('Requests'), 'Changes'];
  if (isPage) columns = [names('Run'), ...long, 'Changes'];
  return { table: { columns, rows, leavesOut: ['Started', 'Requests', 'Mode'] }, none };
}

/** Returns what is known of a run besides its changes. `isVerbose`: with its plan and readings. */
export function runSection(run: ListedRun, title: string | undefined, isVerbose: boolean): Section {
  const { certificate, askedBy, undoes, status, changes } = run;
  // The hash of an empty plan says nothing of a run that failed before it had one.
  const plan = status === 'failed' && totalOf(changes) === 0 ? null : run.plan;
  const yes = (value: boolean): string => (value ? 'yes' : 'no');
  const readings =
    certificate && `CRM ${yes(certificate.source)}, platform ${yes(certificate.platform)}`;
  return {
    title,
    facts: present<readonly [string, Text]>(
      ['mode', run.mode],
      ['status', statusText(run)],
      typeof askedBy?.name === 'string' && ['asked for by', askedBy.name],
      undoes !== undefined && ['undoes', { page: `runs/${undoes}`, text: undoes }],
      ['started', { moment: run.startedAt }],
      ['ended', run.endedAt === null ? '–' : { moment: run.endedAt }],
      ['took', tookWords(run)],
      isVerbose && plan !== null && ['plan', plan],
      isVerbose && readings !== null && ['complete readings', readings],
    ),
    lines: [...fullWords(run), ...run.reasons],
  };
}

export function requestsSection({ requests }: ToldRun): Section {
  const rows = Object.entries(requests?.byRoute ?? {})
    .toSorted(([, a], [, b]) => b - a)
    .map(([route, n]) => [route, withCommas(n)]);
  const words =
    requests &&
    `${withCommas(requests.total)} in all, of which ${withCommas(requests.rateLimited)} were ` +
      'delayed by a rate limit';
  return {
    title: 'Requests',
    none: 'They are counted when the run ends.',
    lines: words === null ? [] : [words],
    table: { columns: ['Route', numbers('Requests')], rows },
  };
}

/** Returns the failures that the request log has of a run; undefined if nothing is logged yet. */
export function failuresSection(
  found: ReturnType<Requests['failedOf']> | undefined | { fault: string },
  { startedAt, status }: ToldRun,
): Section {
  const title = 'Errors by cause';
  if (found === undefined) return { title, none: 'No requests are logged yet.' };
  if ('fault' in found) return { title, none: found.fault };
  const { since, failed } = found;
  const isCut = since === undefined || since > Date.parse(startedAt) + 1_000;
  const cut = 'The log of the requests does not go back to the beginning of this run.';
  const lines = failed.map(({ route, status, n }) => {
    const answer = status === null ? 'no answer' : `status ${status}`;
    return `${route}: ${withCommas(n)} × ${answer}`;
  });
  return {
    title,
    lines: [...(isCut ? [cut] : []), ...lines],
    isList: true,
    none: status === 'failed' ? 'No request: see the reason above.' : 'No request failed.',
  };
}

/** A change of a run as it is shown: with its record, and the rule that decided it. */
export interface ShownChange {
  told: ToldChange;
  record: { kind: RecordTypeName; key: Key };
  rule: string | null;
}

const signs: Readonly<Record<string, Sign>> = {
  create: '+',
  opt_in: '+',
  opt_out: '−',
  delete: '−',
  archive: '−',
};

export function changeItem({ told, record, rule }: ShownChange, { status } = { status: '' }): Item {
  const { op, outcome, part, key, reason, fix, approval } = told;
  const isDone = outcome === 'acked';
  const notDone = outcome === 'stale' ? '·' : '!';
  const what = `${isDone ? '' : `${outcomeWords(outcome, status)}: `}${changeName(op, isDone)}`;
  return {
    sign: isDone ? (signs[op] ?? '~') : notDone,
    text: [
      `${what} ${record.kind === 'template' ? 'template ' : ''}`,
      { record, name: key },
      ...(part === '' ? [] : [' in ', { channel: part }]),
    ],
    notes: present(
      reason !== null && renderProblem({ reason, fix }),
      rule !== null && ruleText(rule),
      approval && `approved${byWords(approval)}`,
    ),
  };
}

/** Formats the status of a run, such as: still running (contacts only) */
export function statusWords(
  { status, only }: { status: string; only: string | null },
  words: Readonly<Record<string, string>> = usual,
): string {
  const told = words[status] ?? status;
  return only === null ? told : `${told} (${only} only)`;
}

const usual = {
  rejected: 'done, some records have problems',
  held: 'done, some changes await approval',
  running: 'still running',
};
/** The same beside other columns. */
const brief = { rejected: 'with problems', held: 'awaits approval', running: 'running' };

function statusText(run: ToldRun, words = usual): Text {
  const text = statusWords(run, words);
  if (run.status === 'done') return { tone: 'good', text };
  return { tone: /^(failed|interrupted)$/.test(run.status) ? 'bad' : 'busy', text };
}

export function tookWords({ ms }: ToldRun): string {
  if (ms === null) return '–';
  return ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : range(ms);
}

function outcomeWords(state: string, status: string): string {
  const isOpen = state === 'planned' || state === 'stale';
  if (isOpen && /^(interrupted|failed)$/.test(status)) return 'left to the next run';
  return state === 'planned' && status === 'running' ? 'still to send' : outcomeName(state);
}

/** Formats counts such as: 3 created, 1 template updated; still to send: 2 opt out */
export function changesWords(changes: ToldChanges, status: string): string {
  const [done, byOutcome] = ['', new Map<string, string[]>([['', []]])];
  const count = (of: ToldChanges['contacts'], kind: RecordTypeName): void => {
    for (const [op, states] of Object.entries(of)) {
      const counts = new Map<string, number>();
      for (const [state, n] of Object.entries(states)) {
        const outcome = state === 'acked' ? done : outcomeWords(state, status);
        // The second step of a creation is no change of its own.
        const created = op === 'complete' ? (of['create']?.[state] ?? 0) : 0;
        if (n > created) counts.set(outcome, (counts.get(outcome) ?? 0) + n - created);
      }
      for (const [outcome, n] of counts) {
        const number = kind === 'template' ? counted(n, 'template') : withCommas(n);
        const words = `${number} ${changeName(op, outcome === done)}`;
        byOutcome.set(outcome, [...(byOutcome.get(outcome) ?? []), words]);
      }
    }
  };
  count(changes.contacts, 'contact');
  count(changes.templates, 'template');
  const words = [...byOutcome].flatMap(([outcome, found]) => {
    if (found.length === 0) return [];
    return outcome === done ? [found.join(', ')] : [`${outcome}: ${found.join(', ')}`];
  });
  const all = words.join('; ') || 'none';
  return changes.isCut ? `${all}; and more, which are not counted` : all;
}
