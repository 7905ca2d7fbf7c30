import type { Clock, Random } from '../../domain/clock.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import type { AbsenceDue, Key } from '../../domain/record.ts';
import type { Forecast } from '../report/duration-forecast.ts';
import type { Guards } from '../report/guard-rules.ts';
import type { Plan, RequestCounts } from '../report/run-summary.ts';
import type { Platform } from '../../platform/api-client.ts';
import type { DoNotContactList } from '../../do-not-contact/contact-list.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { WriteBack } from '../../sources/write-back.ts';
import type { Source } from '../../sources/source.ts';
import type { PersonLocks } from './person-locks.ts';

/** One mirror, put together: everything that a run needs. */
export interface Mirror {
  name: string;
  parts: readonly MirrorPart[];
  /** Reports to the CRM who unsubscribed on the platform; undefined: nothing is reported. */
  returns?: WriteBack | undefined;
  snapshot: Snapshot;
  account: Account;
  doNotContact: DoNotContactList;
  /** Shared by the runs of this process on the same mirror. */
  locks: PersonLocks;
  /** Remarks about how the mirror was put together, one line each. */
  notes: readonly string[];
  clock: Clock;
  random: Random;
  /**
   * The deadline of one request, in milliseconds. A creation without an answer is looked for only
   * when this has passed.
   */
  timeoutMs: number;
  /** The page size of the first pass of a listing, and of the passes that follow without proof. */
  pageSizes: readonly [number, ...number[]];
  /** Runs and changes older than this are dropped; milliseconds. */
  keepMs: number;
  guards: Guards;
  /** The default for people who are no longer in the CRM; undefined: the configuration says it. */
  unstated?: Unstated | undefined;
  /** The share of each route's limit that is left to other programs, 0 to 1. */
  reserve: number;
  /** Counts the requests so far. */
  requests(): RequestCounts;
  /** Returns the limits by route, as the platform's answers tell them. */
  limits(): Record<string, RouteLimit>;
  /** Returns the platform's time, in milliseconds since the epoch; undefined: no answer told it. */
  platformNow(): number | undefined;
}

/** The defaults by which people who are no longer in the CRM are opted out, and deleted. */
interface Unstated extends AbsenceDue {
  deletes: 'off' | 'created' | 'owned';
  deleteAfterMs: number;
}

/** The account on the platform whose records a mirror keeps equal. */
export interface Account {
  url: string;
  apiKey: string;
  platform: Pick<Platform, 'contacts' | 'templates'>;
}

/** A record type, and the source that decides about its records. */
export interface MirrorPart {
  type: RecordType;
  source: Source;
  /**
   * A hash of how the source is read: a cursor of another way of reading is not used. Undefined: no
   * cursor is kept.
   */
  manner?: string | undefined;
}

/**
 * The people that a run is about, and whether it lists the platform.
 *
 *   full     everybody; lists the platform
 *   fast     everybody; takes what is recorded for what the platform has
 *   single   one person; reads that person on the platform, and concludes nothing from absence
 *   record   the person of one record of the source, which is read alone; the source needs `one`
 */
export type Mode = 'full' | 'fast' | { single: Key } | { record: string };

export interface RunOptions {
  mode: Mode;
  /** false: a plan, which writes nothing on the platform and records nothing. */
  writes: boolean;
  /** Undefined: every part of the mirror. */
  only: 'contacts' | 'templates' | undefined;
  /**
   * Gets the plan before anything of it is done, and throws Invalid to refuse it. A run with this
   * does what it has planned and plans nothing more.
   */
  agrees?(plan: Plan): void;
  /** Gets the forecast before the first change is sent. */
  foresees?(forecast: Forecast): void;
  /** Whether this is a first load: it deletes nobody, and needs no approval for opt-ins. */
  firstLoad?: boolean | undefined;
  /** Whether the snapshot was restored from a backup and the platform was not listed since. */
  restored?: boolean | undefined;
  /** The hash of the plan to approve: an earlier one with changes that await it, or this run's. */
  approve?: string | undefined;
  /** When aborted: the run begins nothing new and finishes what is in flight. */
  stop: AbortSignal;
  /** When aborted, some seconds after `stop`: the run gives up what is in flight. */
  abort: AbortSignal;
  progress(progress: Progress): void;
}

/** How far a run has got. */
export interface Progress {
  stage: 'reading' | 'listing' | 'deciding' | 'applying';
  kind: string;
  done: number;
  /** Undefined while it is not known. */
  of: number | undefined;
}

/** Returns the mode as summaries name it. */
export function modeName(mode: Mode): 'full' | 'fast' | 'single' {
  return typeof mode === 'string' ? mode : 'single';
}

/** Returns whether a run is about one record of the source. */
export function isRecord(mode: Mode): mode is { record: string } {
  return typeof mode === 'object' && 'record' in mode;
}

/** Returns the key of the person that a run is about, '' until it is known; undefined: all. */
export function onlyKey({ mode }: Pick<RunOptions, 'mode'>): Key | undefined {
  if (typeof mode === 'string') return undefined;
  return isRecord(mode) ? '' : mode.single;
}
