/** Formats the runs of a snapshot as documents for --json and as text for tables. */
import { z } from 'zod';
import type { RecordTypeName } from '../../domain/record.ts';
import type { KeptRun } from '../../snapshot/tables/run-history.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { instant, instantOrNull, range } from '../output/format-values.ts';

/** The part of a stored summary that is read. Earlier versions may not have written all of it. */
const kept = z.object({
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
  reasons: z.array(z.string()).default([]),
});

type Outcomes = Record<string, Record<string, number>>;

/** A run. Null fields are unknown because the run has not ended. */
export interface ToldRun {
  run: string;
  mode: string;
  only: 'contacts' | 'templates' | null;
  /**
   * The status of the summary. `running` means that the run has not ended and a process has the
   * lease.
   */
  status: string;
  startedAt: string;
  endedAt: string | null;
  ms: number | null;
  plan: string | null;
  requests: z.output<typeof kept>['requests'];
  /** A side that was not read counts as not certified. */
  certificate: { source: boolean; platform: boolean } | null;
  reasons: string[];
}

/** The number of changes by operation and state, such as `contacts.opt_in.acked`. */
export interface ToldChanges {
  contacts: Outcomes;
  templates: Outcomes;
}

/** Returns the document of a run. `running` is the id of the run that may be in progress. */
export function tellRun(run: KeptRun, running: string | undefined): ToldRun {
  const { only, requests, certificate, reasons } = kept.parse(JSON.parse(run.summary ?? '{}'));
  const ended = run.endedAt !== null;
  const unfinished = run.id === running ? 'running' : 'interrupted';
  return {
    run: run.id,
    mode: run.mode,
    only,
    status: ended ? run.status : unfinished,
    startedAt: instant(run.startedAt),
    endedAt: instantOrNull(run.endedAt),
    ms: run.endedAt === null ? null : run.endedAt - run.startedAt,
    plan: run.plan || null,
    requests,
    certificate: certificate && {
      source: certificate.source ?? false,
      platform: certificate.platform ?? false,
    },
    reasons,
  };
}

/**
 * Returns the id of the run that may be in progress: the newest, if it has not ended and another
 * process has the lease.
 */
export function runningOf({ runs }: Snapshot, leased: boolean): string | undefined {
  const [newest] = leased ? runs.newest(1) : [];
  return newest?.endedAt === null ? newest.id : undefined;
}

/** Counts the changes of a run by operation and state. */
export function tellChanges({ journal }: Snapshot, run: string): ToldChanges {
  const told: ToldChanges = { contacts: {}, templates: {} };
  for (const { kind, op, state, n } of [...journal.tally(run)].flat()) {
    const of = told[pluralOf(kind)];
    of[op] = { ...of[op], [state]: (of[op]?.[state] ?? 0) + n };
  }
  return told;
}

/** Returns the plural of a record type, which is used as its JSON key. */
export function pluralOf(kind: RecordTypeName): 'contacts' | 'templates' {
  return kind === 'contact' ? 'contacts' : 'templates';
}

/** Formats the status of a run, such as: interrupted or still running (contacts only) */
export function statusWords({ status, endedAt, only }: ToldRun): string {
  const words = status === 'rejected' ? 'done, some rejected' : status;
  const told = endedAt === null && status === 'running' ? 'interrupted or still running' : words;
  return only === null ? told : `${told} (${only} only)`;
}

/** Formats the duration of a run. */
export function tookWords({ ms }: ToldRun): string {
  if (ms === null) return '–';
  return ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : range(ms);
}
