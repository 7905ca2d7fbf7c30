/**
 * Shows what has happened in mirrors, the newest first: each run that changed, began to hold or
 * refused something, with its changes folded, new problems, failures and decisions.
 */
import { instant } from '../../compose/output/format-values.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { readMemory } from '../../store/memory/memory.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { documentsOf, entrySection, pendingDecisions } from '../audit/entry-document.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import { present, type Section, type Span, spansOf, type Text } from '../sections.ts';
import { changeOf, heldBy, listedRuns, pluralOf, type ToldChanges } from './run-history.ts';
import { changeItem, changesWords, statusWords } from './run-sections.ts';

/** Something that has happened in a mirror; `at` is in milliseconds since the epoch. */
export interface Happened {
  at: number;
  mirror: string;
  /** What stands behind the time and the mirror. */
  words: readonly Span[];
  /** The run whose changes unfold. */
  run?: string;
  /** What unfolds otherwise. */
  section?: Section;
}

/** How much is read of one mirror at once. */
const mostRead = 100;
const changesShown = 10;

/**
 * Returns what happened in a mirror from `since` until before `before` (epoch ms), newest first.
 * Everything from `from` on is among it: if there is more, it is older.
 */
export function readHappened(
  seen: Seen & { snapshot: Snapshot },
  { since, before }: { since: number; before: number },
): { found: Happened[]; from: number } {
  const { snapshot, config } = seen;
  const { mirror } = config;
  const problems = new Map(snapshot.retryLater.since(since).map((one) => [one.run, one]));
  const ids = JSON.stringify([...problems.keys()]);
  const runs = snapshot.runs.news({ since, before, ids, count: mostRead });
  const found: Happened[] = [];
  let failed = { words: '', runs: 0 };
  for (const [nth, run] of listedRuns(seen, runs, 1).entries()) {
    const kept = runs[nth];
    const held = kept?.holdsMore ? heldBy(kept) : 0;
    const fresh = problems.get(run.run)?.n ?? 0;
    problems.delete(run.run);
    const hasEndedWell = /^(done|held|rejected)$/.test(run.status);
    const changes = changesWords(run.changes, run.status);
    const words = present<Text>(
      !hasEndedWell && [
        { tone: run.status === 'running' ? 'busy' : 'bad', text: statusWords(run) },
        ...(run.reasons[0] === undefined ? [] : [` ${run.reasons[0]}`]),
      ],
      changes !== 'none' && changes,
      held > 0 && `${withCommas(held)} await approval`,
      fresh > 0 && counted(fresh, 'new problem'),
    );
    const spans = words.flatMap((one, at) => [...(at === 0 ? [] : [' · ']), ...spansOf(one)]);
    const isEvent = run.mode === 'single' && run.askedBy?.by === 'event';
    const at = kept?.endedAt ?? kept?.startedAt ?? 0;
    const same = run.status === 'failed' ? JSON.stringify(spans) : '';
    const again = same !== '' && failed.words === same && found.pop();
    failed = { words: same, runs: again ? failed.runs + 1 : 1 };
    found.push({
      ...(again || { at, mirror, run: run.run }),
      words: [
        ...(isEvent ? ['event: '] : []),
        ...spans,
        ...(again ? [` · ${failed.runs} runs since ${instant(at)}`] : []),
      ],
    });
  }
  const isCut = runs.length === mostRead;
  // Of a run that changed nothing for one person, only the problem is kept.
  for (const { at, n } of isCut ? [] : problems.values()) {
    const page = { page: 'problems', text: 'Problems' };
    const section = { lines: [[page]] };
    if (at < before) found.push({ at, mirror, words: [counted(n, 'new problem')], section });
  }
  const decisions = readDecisions(seen, { since, before });
  const ends = [isCut ? runs : [], decisions.length < mostRead ? [] : decisions];
  const from = Math.max(since, ...ends.map((some) => timeOf(some.at(-1)) ?? since));
  const all = [...found, ...decisions].filter(({ at }) => at >= from);
  return { found: all.toSorted((a, b) => b.at - a.at), from };
}

function timeOf(one: { at: number } | { endedAt: number | null; startedAt: number } | undefined) {
  return one && ('at' in one ? one.at : (one.endedAt ?? one.startedAt));
}

function readDecisions(
  { snapshot, config }: Seen & { snapshot: Snapshot },
  { since, before }: { since: number; before: number },
): Happened[] {
  const memory = readMemory(config.memory);
  try {
    const which = { type: 'decision', from: since, to: before, count: mostRead };
    const rows = memory?.log.noWrites(which) ?? [];
    const logged = memory ? rows.map(documentsOf(memory.log)) : [];
    // The next run adds these to the log.
    const pending = pendingDecisions(snapshot, mostRead);
    return [...pending, ...logged].flatMap((entry): Happened[] => {
      const at = Date.parse(entry.at);
      const { title, ...section } = entrySection(entry);
      const isThen = at >= since && at < before;
      return isThen ? [{ at, mirror: config.mirror, words: spansOf(title ?? ''), section }] : [];
    });
  } finally {
    memory?.close();
  }
}

/** Returns the section of one of them, whose content is folded; `ofMany`: with the mirror. */
export function happenedSection(
  { at, mirror, words, run, section }: Happened,
  { snapshot, names }: Seen,
  ofMany: boolean,
): Section {
  const title = [`${instant(at)} `, ...(ofMany ? [{ strong: mirror }, ' '] : []), ...words];
  if (run === undefined || !snapshot)
    return { ...section, title, aside: undefined, isFolded: true };
  const { changes, next } = snapshot.outcomes.ofRun(run, { count: changesShown });
  const lines = changes.map(({ rule: _, ...change }) =>
    changeItem(
      { told: changeOf(change, names(change)), record: change, rule: null },
      { status: '' },
    ),
  );
  const more = next === undefined ? `Run ${run}` : `All changes of run ${run}`;
  return {
    title,
    isFolded: true,
    isList: true,
    lines: [...lines, { text: { page: `runs/${run}`, text: more }, notes: [] }],
  };
}

/** Returns what runs about all people have changed since a time (epoch ms). */
export function changedSince({ figures }: Snapshot, since: number): ToldChanges {
  const changes: ToldChanges = { contacts: {}, templates: {} };
  for (const { kind, op, n } of figures.changedSince(since))
    changes[pluralOf(kind)][op] = { acked: n };
  return changes;
}

/** Says what runs about all people have changed in several mirrors together. */
export function sumWords(all: readonly ToldChanges[]): string {
  const sum: ToldChanges = { contacts: {}, templates: {} };
  for (const type of ['contacts', 'templates'] as const) {
    for (const [op, { acked = 0 }] of all.flatMap((one) => Object.entries(one[type])))
      sum[type][op] = { acked: (sum[type][op]?.['acked'] ?? 0) + acked };
  }
  return changesWords(sum, 'done');
}
