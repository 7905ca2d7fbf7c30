import type { Clock, Random } from '../model/clock.ts';
import type { Kind } from '../kind/kind.ts';
import type { Guards } from '../plan/guard.ts';
import type { RequestCounts } from '../plan/summary.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { Source } from '../source/source.ts';

/** One mirror, put together: everything a run needs, and nothing it has to look for. */
export interface Mirror {
  name: string;
  parts: readonly MirrorPart[];
  snapshot: Snapshot;
  clock: Clock;
  random: Random;
  /**
   * One request's deadline: a creation of unknown outcome is looked for only after it has passed.
   */
  timeoutMs: number;
  /** Of the first pass of a listing, and of those that follow when it proves nothing. */
  pageSizes: readonly number[];
  /** Runs and changes older than this are dropped. */
  keepMs: number;
  guards: Guards;
  requests(): RequestCounts;
}

/** One kind of record and where its truth lives. */
export interface MirrorPart {
  kind: Kind;
  source: Source;
}

export interface RunOptions {
  mode: 'full' | 'fast';
  /** false = a plan: nothing is written on the platform, and nothing is recorded. */
  writes: boolean;
  /** Undefined: every part of the mirror. */
  only: 'contacts' | 'templates' | undefined;
  /** Deletes nobody, and no guard holds whom it brings in. */
  firstLoad?: boolean | undefined;
  /** The plan under which something was held that may pass now, or this run's own. */
  approve?: string | undefined;
  /** Aborted: take nothing new, finish what is in flight. */
  stop: AbortSignal;
  /** Aborted some seconds after `stop`: give up what is in flight. */
  abort: AbortSignal;
  progress(progress: Progress): void;
}

export interface Progress {
  stage: 'reading' | 'listing' | 'deciding' | 'applying';
  kind: string;
  done: number;
  /** Undefined while nobody knows. */
  of: number | undefined;
}

/** Everything within a run that its steps share. */
export interface Run extends Mirror, RunOptions {
  id: string;
  /** By our clock; milliseconds since the epoch. */
  startedAt: number;
}
