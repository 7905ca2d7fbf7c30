/**
 * Makes documents of the runs of a snapshot, and compares the last ones with the
 * thresholds of the configuration (`alerts`). Crossing one needs attention, and stops nothing; one
 * that is not set is never crossed. `alerts.proofAge` is in status-document.ts.
 */
import { checkedJson, storedJson } from '../../domain/stored-json.ts';
import { z } from 'zod';
import type { RecordTypeName } from '../../domain/record.ts';
import { type KeptRun, type KeptChange, isLater } from '../../store/tables/run-history.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { instant, instantOrNull, lasting, approvalOf } from '../../compose/output/format-values.ts';
import { runInProgress } from '../../compose/run-progress.ts';
import { counted, withCommas, median } from '../../domain/values/counted.ts';
import type { Seen } from '../lookup/seen-mirror.ts';
import type { Config } from '../../config/config.ts';

/** The part of a stored summary that is read; nothing of it is there while a run lasts. */
const kept = checkedJson(
  'the summary of a run',
  z.object({
    only: z.enum(['contacts', 'templates']).nullable().default(null),
    requests: z
      .object({
        total: z.number(),
        byRoute: z.record(z.string(), z.number()),
        rateLimited: z.number(),
      })
      .nullable()
      .default(null),
    certificate: z
      .object({ source: z.boolean().nullable(), platform: z.boolean().nullable() })
      .nullable()
      .default(null),
    attempted: z.object({ sent: z.number(), refused: z.number() }).nullable().default(null),
    reasons: z.array(z.string()).default([]),
    fullBecause: z.array(z.object({ code: z.string(), reason: z.string() })).default([]),
    undoes: z.string().optional(),
  }),
);

const asked = storedJson<{ by: string; name: string | null }>('who asked for a run');

/** The number of changes by operation and state, such as `contacts.opt_in.acked`. */
export interface ToldChanges {
  contacts: Record<string, Record<string, number>>;
  templates: Record<string, Record<string, number>>;
  /** Set if there may be more changes, which were not counted. */
  isCut?: true;
}

/** A run. Null fields are unknown because the run has not ended. */
export type ToldRun = ReturnType<typeof tellRun>;

/** Returns the document of a run. `isRunning` tells which unfinished runs are in progress. */
export function tellRun(run: KeptRun, isRunning: (run: KeptRun) => boolean) {
  const { only, requests, certificate, attempted, reasons, fullBecause, undoes } = kept.decode(
    run.summary ?? '{}',
  );
  const ended = run.endedAt !== null;
  const unfinished = isRunning(run) ? 'running' : 'interrupted';
  const asker = run.asked === null ? null : asked.decode(run.asked);
  return {
    run: run.id,
    mode: run.mode,
    only,
    /** That of the summary; `running`: it has not ended and a process has the lease. */
    status: ended ? run.status : unfinished,
    startedAt: instant(run.startedAt),
    endedAt: instantOrNull(run.endedAt),
    ms: run.endedAt === null ? null : run.endedAt - run.startedAt,
    plan: run.plan || null,
    requests,
    /** A side that was not read counts as not certified. */
    certificate: certificate && {
      source: certificate.source ?? false,
      platform: certificate.platform ?? false,
    },
    /** The changes that the platform answered, and refused. */
    attempted,
    reasons,
    /** Why the run compared everything, or read the whole source; empty if it did neither. */
    fullBecause,
    ...(undoes !== undefined && { undoes }),
    askedBy: asker && { by: asker.by, name: asker.name },
  };
}

/** Returns the record type that a run that has ended was limited to; null if it was not. */
export function onlyIn({ summary }: KeptRun): ToldRun['only'] {
  return kept.decode(summary ?? '{}').only;
}

/**
 * Returns a function that tells whether a run is in progress: it has not ended, and the process
 * that has the lease began it. Of runs about one person, only the newest can be.
 */
export function runningOf(snapshot: Snapshot, leased: boolean): (run: KeptRun) => boolean {
  if (!leased) return () => false;
  const now = runInProgress(snapshot, leased);
  const newest = snapshot.runs.newest(1, { mode: 'single' })[0]?.id;
  return ({ id, mode, startedAt, endedAt }) => {
    if (endedAt !== null) return false;
    return (now !== undefined && startedAt >= now.since) || (mode === 'single' && id === newest);
  };
}

/** The states in which a change stays when its run has ended. */
const final: ReadonlySet<string> = new Set(['acked', 'rejected', 'stale']);

/**
 * Counts the changes of a run by operation and state. Counting a million takes seconds: `hasEnded`
 * allows the counts that were stored at the end of the run, and `chunks` is the number of chunks of
 * the journal that are counted at most.
 */
function tellChanges(
  { journal, figures }: Snapshot,
  run: string,
  { hasEnded, chunks = Infinity }: { hasEnded: boolean; chunks: number | undefined },
): ToldChanges {
  const told: ToldChanges = { contacts: {}, templates: {} };
  const stored = hasEnded ? figures.changesOf(run) : undefined;
  const isFinal = stored?.every(({ state }) => final.has(state));
  const add = (counts: NonNullable<typeof stored>): void => {
    for (const { kind, op, state, n } of counts) {
      const of = told[pluralOf(kind)];
      of[op] = { ...of[op], [state]: (of[op]?.[state] ?? 0) + n };
    }
  };
  if (stored && isFinal) {
    add(stored);
    return told;
  }
  let counted = 0;
  for (const chunk of journal.tally(run)) {
    if (counted === chunks) return { ...told, isCut: true };
    counted += 1;
    add(chunk);
  }
  return told;
}

/** Returns the plural of a record type, which is used as its JSON key. */
export function pluralOf(kind: RecordTypeName): 'contacts' | 'templates' {
  return kind === 'contact' ? 'contacts' : 'templates';
}

export type ListedRun = ToldRun & { changes: ToldChanges };

/**
 * Returns the documents of runs, with the numbers of their changes. `chunks`: how many chunks of
 * the journal are counted for one run at most.
 */
export function listedRuns(
  { snapshot, leased }: Seen,
  runs: readonly KeptRun[],
  chunks?: number,
): ListedRun[] {
  if (!snapshot) return [];
  const isRunning = runningOf(snapshot, leased);
  return runs.map((run) => ({
    ...tellRun(run, isRunning),
    changes: tellChanges(snapshot, run.id, { hasEnded: run.endedAt !== null, chunks }),
  }));
}

export type ToldChange = ReturnType<typeof changeOf>;

/** Returns the document of a change. `key` is the name of the record. */
export function changeOf(change: KeptChange, key: string) {
  return {
    kind: change.kind,
    key,
    op: change.op,
    part: change.part,
    outcome: change.state,
    reason: change.reason,
    fix: change.fix,
    approval: approvalOf(change),
    plannedAt: instant(change.plannedAt),
    sentAt: instantOrNull(change.sentAt),
    endedAt: instantOrNull(change.endedAt),
  };
}

/** Returns how many changes are counted. */
export function totalOf({ contacts, templates }: ToldChanges): number {
  const states = [contacts, templates].flatMap((of) => Object.values(of));
  return states.flatMap((of) => Object.values(of)).reduce((sum, n) => sum + n, 0);
}

export interface Alert {
  threshold: 'refused' | 'runTime' | 'deviation';
  run: string;
  text: string;
  fix: string;
}

/** A few refused changes are problems of single records. */
const refusedAtLeast = 3;
/** With fewer runs than `few`, nothing is usual yet. */
const compared = { few: 10, most: 30 };
/** A run that differs by fewer changes is usual, whatever the others made. */
const changesAtLeast = 20;

/** Returns the thresholds that the last full run, and the last fast run after it, have crossed. */
export function alertsIn(snapshot: Snapshot, { alerts }: Config): Alert[] {
  if (Object.values(alerts).every((value) => value === undefined)) return [];
  const of = (mode: string): KeptRun[] =>
    snapshot.runs.newest(compared.most + 1, { mode }).filter(({ endedAt }) => endedAt !== null);
  const crossed = ([last, ...earlier]: KeptRun[]): Alert[] => {
    const tell = (run: KeptRun) => tellRun(run, () => false);
    return last ? alertsOf(tell(last), earlier.map(tell), alerts) : [];
  };
  const full = of('full');
  const fast = of('fast');
  const isFastLater = fast[0] && isLater(fast[0], full[0]);
  return [...crossed(full), ...(isFastLater ? crossed(fast) : [])];
}

/** Returns the thresholds that a run has crossed; `earlier` are the runs of the same mode. */
export function alertsOf(
  { run, mode, only, ms, attempted }: ToldRun,
  earlier: readonly ToldRun[],
  { refused: mostRefused, runTimeMs, deviation }: Partial<Config['alerts']>,
): Alert[] {
  const alerts: Alert[] = [];
  const add = (threshold: Alert['threshold'], text: string) =>
    alerts.push({ threshold, run, text, fix: `\`crm-mirror runs ${run}\` shows what it did` });
  const { sent, refused } = attempted ?? { sent: 0, refused: 0 };
  if (
    mostRefused !== undefined &&
    refused >= refusedAtLeast &&
    refused * 100 > sent * mostRefused
  ) {
    const share = Math.round((refused * 1000) / sent) / 10;
    const many = `${withCommas(refused)} of ${counted(sent, 'change')} (${share} %)`;
    add(
      'refused',
      `the platform refused ${many} of the last ${mode} run, and alerts.refused is ${mostRefused} %`,
    );
  }
  if (runTimeMs !== undefined && ms !== null && ms > runTimeMs) {
    const is = `and alerts.runTime is ${lasting(runTimeMs)}`;
    add('runTime', `the last ${mode} run took ${lasting(ms)}, ${is}`);
  }
  // A run is compared with those that ended well and covered the same record types.
  const before = earlier
    .filter((one) => one.only === only && /^(done|held|rejected)$/.test(one.status))
    .flatMap((one) => one.attempted?.sent ?? []);
  if (deviation === undefined || !attempted || before.length < compared.few) return alerts;
  // Single large runs move neither the median nor how far runs differ from it at the median.
  const usual = median(before);
  const spread = median(before.map((n) => Math.abs(n - usual)));
  const most = Math.floor(usual + Math.max(deviation * spread, changesAtLeast));
  if (sent > most) {
    add(
      'deviation',
      `the last ${mode} run made ${counted(sent, 'change')}; the ${before.length} before it made ` +
        `${withCommas(usual)} at the median, and up to ${withCommas(most)} are usual (alerts.deviation is ${deviation})`,
    );
  }
  return alerts;
}
