/**
 * Shows what has happened in mirrors, the newest first: each run that changed, began to hold or to
 * fail, with its changes folded, new problems, opt-outs on the platform and decisions.
 */
import { renderProblem } from '../../domain/errors.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Key } from '../../domain/record.ts';
import { withMemory } from '../../store/memory/memory.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { documentsOf, entrySection, pendingDecisions } from '../audit/entry-document.ts';
import { classWords } from '../lookup/problem-groups.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import {
  type Item,
  listed,
  present,
  type Section,
  type Span,
  spansOf,
  type Text,
} from '../sections.ts';
import { changeOf, type ListedRun, listedRuns } from './run-history.ts';
import { changeItem, changesWords, statusWords } from './run-sections.ts';

/** Something that has happened in a mirror; `at` is in milliseconds since the epoch. */
interface Happened {
  at: number;
  /** What stands behind the time and the mirror. */
  words: readonly Span[];
  /** What unfolds. */
  section(): Section;
  /** How often it happened; 0 for one act, however many mirrors have noted it. By default 1. */
  times?: number;
  /** In a row, what has the same is one thing that happened several times or in several mirrors. */
  same?: string;
}

interface Period {
  since: number;
  before: number;
  count: number;
}

/**
 * Returns what happened from `since` until before `before`, both in milliseconds since the epoch,
 * newest first: its newest `count` at least.
 */
export function readHappened(seen: Seen & { snapshot: Snapshot }, period: Period): Happened[] {
  const { snapshot, config } = seen;
  const { since, before, count } = period;
  const problems = new Map(snapshot.retryLater.since(since).map((one) => [one.run, one]));
  const ids = JSON.stringify([...problems.keys()]);
  const runs = snapshot.runs.news({ since, before, ids, count });
  const found = listedRuns(seen, runs, 1).map((run, nth): Happened => {
    const { startedAt = 0, endedAt = null, held = 0, times = 1 } = runs[nth] ?? {};
    const fresh = problems.get(run.run)?.n ?? 0;
    problems.delete(run.run);
    const isWell = /^(done|held|rejected)$/.test(run.status);
    const tone = run.status === 'running' ? 'busy' : 'bad';
    const changes = changesWords(run.changes, run.status);
    const words = present<Text>(
      run.mode === 'single' && run.askedBy?.by === 'event' && 'event',
      !isWell && { tone, text: `${run.mode} run ${statusWords(run)}` },
      !isWell && run.reasons[0],
      changes !== 'none' && changes,
      held > 0 && `${withCommas(held)} await approval`,
      fresh > 0 && counted(fresh, 'new problem'),
    );
    const spans = words.flatMap((one, at) => [...(at === 0 ? [] : [' · ']), ...spansOf(one)]);
    const section = (): Section => {
      const lines = [...changeLines(seen, run), ...problemLines(seen, run.run, since)];
      return { isList: true, lines };
    };
    const about = { at: endedAt ?? startedAt, words: spans, section };
    return isWell ? about : { ...about, times, same: JSON.stringify(spans) };
  });
  // Of a run that changed nothing for one person, only the problem is kept.
  const single = [...problems.values()]
    .filter(({ run }) => !snapshot.runs.get(run))
    .map(({ run, at, n }): Happened => {
      const section = () => ({ isList: true, lines: problemLines(seen, run, since) });
      return { at, words: [counted(n, 'new problem')], section };
    });
  const rows = withMemory(config.memory, ({ log }) =>
    log.noWrites({ type: 'decision', from: since, to: before, count }).map(documentsOf(log)),
  );
  // The next run adds the others to the log.
  const decided = [...pendingDecisions(snapshot, count), ...(rows ?? [])].map((entry): Happened => {
    const { title = '', facts } = entrySection(entry);
    const same = JSON.stringify([entry.at.slice(0, 16), title, facts]);
    const act = { at: Date.parse(entry.at), words: spansOf(title), times: 0, same };
    return { ...act, section: () => ({ facts }) };
  });
  const isThen = ({ at }: Happened): boolean => at >= since && at < before;
  return [...found, ...single, ...decided, ...platformOptOuts(seen, period)]
    .filter(isThen)
    .toSorted((a, b) => b.at - a.at);
}

const linesShown = 10;
const problemsShown = 50;
const minuteMs = 60_000;

function changeLines({ snapshot, names }: Seen & { snapshot: Snapshot }, told: ListedRun): Item[] {
  const { run } = told;
  const { changes, next } = snapshot.outcomes.ofRun(run, { count: linesShown });
  const lines = changes.map(({ rule: _, ...change }) =>
    changeItem({ told: changeOf(change, names(change)), record: change, rule: null }, told),
  );
  const more = { page: `runs/${run}`, text: `${next === undefined ? 'Run' : 'All of run'} ${run}` };
  return [...lines, { text: more, notes: [] }];
}

/** Returns the first problems that a run was the first to find, and the link to all. */
function problemLines(
  { snapshot, names }: Seen & { snapshot: Snapshot },
  run: string,
  since: number,
): Item[] {
  const found = snapshot.problems.counted.listNew(run, since, problemsShown);
  // A reason names the place of its record in the CRM, which tells it from another one.
  const causes = Map.groupBy(found, ({ class: of, about, option, reason, fix }) => {
    const why = option === null ? about : `${option}: ${about}`;
    return `${classWords[of]}: ${renderProblem({ reason: about === '' ? reason : why, fix })}`;
  });
  const lines = [...causes].map(([text, records]): Item => {
    const people = records.map(({ kind, key }): Span => {
      return { record: { kind, key }, name: names({ kind, key }) };
    });
    return { sign: '!', text, notes: [listed(people)] };
  });
  const all = { text: { page: 'problems', text: 'Problems' }, notes: [] };
  return lines.length === 0 ? [] : [...lines, all];
}

/** Returns who opted out on the platform, and who was reported to the CRM, by the minute. */
function platformOptOuts(
  { snapshot, names }: Seen & { snapshot: Snapshot },
  { since, before, count }: Period,
): Happened[] {
  const { figures, optOutReports } = snapshot;
  const isAny = figures.optOuts(1, since).some(({ origin }) => origin === 'platform');
  const left = isAny ? figures.madeThere({ since, before, count: count * linesShown }) : [];
  const reports = optOutReports.accepted(since, before, count * linesShown);
  const reported = reports.map(({ email: key, channel, endedAt }) => {
    return { key, channel: channel === '*' ? '' : channel, at: endedAt ?? 0 };
  });
  const groups = (all: { key: Key; channel: string; at: number }[], what: string) =>
    [...Map.groupBy(all, ({ at }) => Math.floor(at / minuteMs)).values()].map((group): Happened => {
      const lines = group.slice(0, linesShown).map(({ key, channel }): Item => {
        const record = { kind: 'contact', key } as const;
        const where: Span[] = channel === '' ? [' of all mail'] : [' in ', { channel }];
        return { sign: '−', text: [{ record, name: names(record) }, ...where], notes: [] };
      });
      const more = group.length - lines.length;
      const rest = more > 0 ? [{ text: `… and ${withCommas(more)} more`, notes: [] }] : [];
      const section = () => ({ isList: true, lines: [...lines, ...rest] });
      return {
        at: group[0]?.at ?? 0,
        words: [`${counted(group.length, 'opt-out')} ${what}`],
        section,
      };
    });
  return [...groups(left, 'made on the platform'), ...groups(reported, 'reported to the CRM')];
}
