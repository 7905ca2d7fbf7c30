/**
 * Shows what has happened in mirrors, the newest first: each run that changed, began to hold or to
 * fail, with its changes folded, new problems and decisions.
 */
import { instant } from '../../compose/output/format-values.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { withMemory } from '../../store/memory/memory.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { documentsOf, entrySection, pendingDecisions } from '../audit/entry-document.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import { present, type Section, type Span, spansOf, type Text } from '../sections.ts';
import { changeOf, listedRuns } from './run-history.ts';
import { changeItem, changesWords, statusWords } from './run-sections.ts';

/** Something that has happened in a mirror; `at` is in milliseconds since the epoch. */
interface Happened {
  at: number;
  /** What stands behind the time and the mirror. */
  words: readonly Span[];
  /** What unfolds: the changes of a run, or a section. */
  run?: string;
  section?: Section;
}

/**
 * Returns what happened from `since` until before `before`, both in milliseconds since the epoch,
 * newest first: its newest `count` at least.
 */
export function readHappened(
  seen: Seen & { snapshot: Snapshot },
  { since, before, count }: { since: number; before: number; count: number },
): Happened[] {
  const { snapshot, config } = seen;
  const problems = new Map(snapshot.retryLater.since(since).map((one) => [one.run, one]));
  const ids = JSON.stringify([...problems.keys()]);
  const runs = snapshot.runs.news({ since, before, ids, count });
  const found = listedRuns(seen, runs, 1).map((run, nth): Happened => {
    const { startedAt = 0, endedAt = null, held = 0 } = runs[nth] ?? {};
    const fresh = problems.get(run.run)?.n ?? 0;
    problems.delete(run.run);
    const isWell = /^(done|held|rejected)$/.test(run.status);
    const tone = run.status === 'running' ? 'busy' : 'bad';
    const changes = changesWords(run.changes, run.status);
    const words = present<Text>(
      run.mode === 'single' && run.askedBy?.by === 'event' && 'event',
      !isWell && { tone, text: statusWords(run) },
      !isWell && run.reasons[0],
      changes !== 'none' && changes,
      held > 0 && `${withCommas(held)} await approval`,
      fresh > 0 && counted(fresh, 'new problem'),
    );
    const spans = words.flatMap((one, at) => [...(at === 0 ? [] : [' · ']), ...spansOf(one)]);
    return { at: endedAt ?? startedAt, run: run.run, words: spans };
  });
  const section = { lines: [{ page: 'problems', text: 'Problems' }] };
  // Of a run that changed nothing for one person, only the problem is kept.
  const single = [...problems.values()]
    .filter(({ run }) => !snapshot.runs.get(run))
    .map(({ at, n }): Happened => ({ at, words: [counted(n, 'new problem')], section }));
  const rows = withMemory(config.memory, ({ log }) =>
    log.noWrites({ type: 'decision', from: since, to: before, count }).map(documentsOf(log)),
  );
  // The next run adds the others to the log.
  const decided = [...pendingDecisions(snapshot, count), ...(rows ?? [])].map((entry): Happened => {
    const { title = '', ...content } = entrySection(entry);
    return { at: Date.parse(entry.at), words: spansOf(title), section: content };
  });
  const isThen = ({ at }: Happened): boolean => at >= since && at < before;
  return [...found, ...single, ...decided].filter(isThen).toSorted((a, b) => b.at - a.at);
}

const changesShown = 10;

/** Returns the section of one of them, whose content is folded; `ofMany`: with the mirror. */
export function happenedSection(
  { at, words, run, section }: Happened,
  { snapshot, names, config: { mirror } }: Seen,
  ofMany: boolean,
): Section {
  const title = [
    { moment: instant(at) },
    ' ',
    ...(ofMany ? [{ strong: mirror }, ' '] : []),
    ...words,
  ];
  if (run === undefined || !snapshot)
    return { ...section, title, aside: undefined, isFolded: true };
  const { changes, next } = snapshot.outcomes.ofRun(run, { count: changesShown });
  const lines = changes.map(({ rule: _, ...change }) =>
    changeItem({ told: changeOf(change, names(change)), record: change, rule: null }),
  );
  const more = { page: `runs/${run}`, text: `${next === undefined ? 'Run' : 'All of run'} ${run}` };
  return { title, isFolded: true, isList: true, lines: [...lines, { text: more, notes: [] }] };
}
