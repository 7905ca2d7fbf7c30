import type { Clock, Random } from '../../domain/clock.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import type { AbsenceDue, Key } from '../../domain/record.ts';
import type { Forecast } from '../report/duration-forecast.ts';
import type { Guards } from '../report/guard-rules.ts';
import type { Plan } from '../report/change-plan.ts';
import type { Platform } from '../../platform/api-client.ts';
import type { RequestCounts } from '../report/run-summary.ts';
import type { DoNotContactList } from '../../do-not-contact/contact-list.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { WriteBack } from '../../sources/write-back.ts';
import type { Source } from '../../sources/source.ts';
import type { PersonLocks } from './person-locks.ts';

/** One mirror, put together: everything a run needs, and nothing it has to look for. */
export interface Mirror {
  name: string;
  parts: readonly MirrorPart[];
  /** How the CRM is told who left on the platform; undefined: it is not. */
  returns?: WriteBack | undefined;
  snapshot: Snapshot;
  account: Account;
  doNotContact: DoNotContactList;
  /** What it shares with other runs of this process on the same mirror. */
  locks: PersonLocks;
  /** What is to be said of how it was put together, one line each. */
  notes: readonly string[];
  clock: Clock;
  random: Random;
  /**
   * One request's deadline: a creation of unknown outcome is looked for only after it has passed.
   */
  timeoutMs: number;
  /** Of the first pass of a listing, and of those that follow when it proves nothing. */
  pageSizes: readonly [number, ...number[]];
  /** Runs and changes older than this are dropped. */
  keepMs: number;
  guards: Guards;
  /** What happens to people who left the CRM, where the configuration does not say it itself. */
  unstated?: Unstated | undefined;
  /** Share of each route's limit that is left to other programs, 0 to 1. */
  reserve: number;
  requests(): RequestCounts;
  /** By route, as the platform's answers tell. */
  limits(): Record<string, RouteLimit>;
  /** The platform's time of day, as far as its answers tell; milliseconds since the epoch. */
  platformNow(): number | undefined;
}

/** By which defaults people who left the CRM are opted out, and deleted. */
interface Unstated extends AbsenceDue {
  deletes: 'off' | 'created' | 'owned';
  deleteAfterMs: number;
}

/** Whose records on the platform it keeps equal; its snapshot belongs to one of these. */
export interface Account {
  url: string;
  apiKey: string;
  platform: Pick<Platform, 'contacts' | 'templates'>;
}

/** One kind of record and where its truth lives. */
export interface MirrorPart {
  type: RecordType;
  source: Source;
  /** Names how the source is read: a cursor of another reading is none. Undefined: none is kept. */
  manner?: string | undefined;
}

/**
 * full: lists the platform. fast: takes what is recorded for it. single: reads one person there,
 * and decides upon nobody else; no absence is concluded from it. record: the same for whoever
 * stands under this id of the source, which is asked for nothing else; it has to have `one`.
 */
export type Mode = 'full' | 'fast' | { single: Key } | { record: string };

export interface RunOptions {
  mode: Mode;
  /** false = a plan: nothing is written on the platform, and nothing is recorded. */
  writes: boolean;
  /** Undefined: every part of the mirror. */
  only: 'contacts' | 'templates' | undefined;
  /**
   * Asked before anything of the plan is done; throws Invalid to refuse it. A run that asks does
   * what it has planned, and plans nothing more.
   */
  agrees?(plan: Plan): void;
  /** Told before the first change is sent. */
  foresees?(forecast: Forecast): void;
  /** Deletes nobody, and no guard holds whom it brings in. */
  firstLoad?: boolean | undefined;
  /** The snapshot was put back from a backup, and the platform was not listed since. */
  restored?: boolean | undefined;
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

export function modeName(mode: Mode): 'full' | 'fast' | 'single' {
  return typeof mode === 'string' ? mode : 'single';
}

export function isRecord(mode: Mode): mode is { record: string } {
  return typeof mode === 'object' && 'record' in mode;
}

/** The only record that a run is about, '' until it is known; undefined: it is about all. */
export function onlyKey({ mode }: Pick<RunOptions, 'mode'>): Key | undefined {
  if (typeof mode === 'string') return undefined;
  return isRecord(mode) ? '' : mode.single;
}
