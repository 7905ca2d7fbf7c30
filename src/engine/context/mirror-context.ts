import type { Op } from '../../domain/change.ts';
import type { Clock, Random } from '../../domain/clock.ts';
import type { Contacts } from '../../records/contact/contacts.ts';
import type { Templates } from '../../records/template/templates.ts';
import type { CanaryPolicy } from '../../domain/guards/canary.ts';

import type { RouteLimit } from '../../domain/route-limit.ts';
import type { ChangeWindow } from '../../domain/guards/change-window.ts';
import type { PlanRule } from '../../domain/guards/plan-rule.ts';
import type { Key } from '../../domain/record.ts';
import type { FullCode, PlanView, Plan, RequestCounts } from '../report/run-summary.ts';
import type { Forecast } from '../report/duration-forecast.ts';
import type { Guards } from '../../domain/guards/guard-limits.ts';
import type { DoNotContactList } from '../../store/memory/do-not-contact.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { WriteBack, Source } from '../../sources/source.ts';
import type { OutageRecord } from '../../store/health-file.ts';
import type { AuditTrail, ErasableMemory } from '../../store/memory/audit-trail.ts';
import type { OnlyPeople } from './people-selection.ts';
import type { PersonLocks } from './person-locks.ts';

/** One assembled mirror: everything that a run needs. */
export interface Mirror {
  name: string;
  /** The people to keep in step; undefined if the mirror has templates only. */
  contacts?: MirrorContacts | undefined;
  templates?: MirrorTemplates | undefined;
  /** Reports to the CRM who unsubscribed on the platform; if undefined, nothing is reported. */
  returns?: WriteBack | undefined;
  snapshot: Snapshot;
  account: Account;
  memory: ErasableMemory;
  /** The list in the memory, as the runs of this mirror see it that go one after the other. */
  doNotContact: DoNotContactList;
  /** Shared by all runs of this process on the same mirror. */
  locks: PersonLocks;
  /** Remarks about how the mirror was assembled, one line each. */
  notes: readonly string[];
  clock: Clock;
  random: Random;
  /** The deadline of a request in milliseconds; only then is a silent creation looked for. */
  timeoutMs: number;
  /** The page size of a listing's first pass, and of the later ones, if any are needed. */
  pageSizes: readonly [number, ...number[]];
  /** Runs and changes older than this are deleted; in milliseconds. */
  keepMs: number;
  guards: Guards;
  /** What asks for an approval in addition to the guards. */
  rules: readonly PlanRule[];
  /** The hours in which classes of changes are made; none: always. */
  windows: readonly ChangeWindow[];
  /** What is changed first, and read back before the rest; undefined if everything goes at once. */
  canary?: CanaryPolicy | undefined;
  /** The time zone of rules and windows: an IANA name. */
  timezone: string;
  approvers?: Approvers | undefined;
  /** The audit log; undefined if none is wanted, or for a plan, which writes nothing. */
  audit?: AuditTrail | undefined;
  /** The most recorded people that a fast run compares with its reading in memory. */
  mostCompared?: number | undefined;
  /** The number of people to begin with. */
  sample?: number | undefined;
  /** The share of each route's limit that is left to other programs, from 0 to 1. */
  reserve: number;
  /** Records what is out of order now; undefined if this process writes nothing. */
  outages?: Pick<OutageRecord, 'failed' | 'works' | 'confirm'> | undefined;
  requestLog?: { setRun(id: string | undefined): void; flush(): void } | undefined;
  requests(): RequestCounts;
  /** Returns the limits by route, as the platform's responses state them. */
  limits(): Record<string, RouteLimit>;
  /** The platform's time in milliseconds since the epoch; undefined if no response stated it. */
  platformNow(): number | undefined;
}

/** The account on the platform whose records a mirror keeps in step with the CRM. */
export interface Account {
  /** The name of the mirror. */
  mirror: string;
  url: string;
  apiKey: string;
  platform: AccountReads;
}

/** What shows whose account it is, and the platform's time. It throws the client's errors. */
export interface AccountReads {
  contacts: {
    retrieve(
      id: string,
      how: { signal: AbortSignal; person: Key },
    ): Promise<{ email: string } | undefined>;
    list(
      query: { page: number; limit: number; brief: true },
      how: { signal: AbortSignal },
    ): Promise<unknown>;
  };
  templates: {
    all(query: object, how: { signal: AbortSignal }): AsyncIterable<{ id: string }>;
    list(
      query: { page: number; limit: number },
      how: { signal: AbortSignal },
    ): Promise<{ templates: { organizationId?: string | null | undefined }[] }>;
  };
}

export interface MirrorContacts extends Contacts {
  source: Source;
  /** A hash of how the source is read; a cursor of another way is not used. None: no cursor. */
  manner?: string | undefined;
}

export interface MirrorTemplates extends Templates {
  source: Source;
}

/**
 * The people that a run covers, and whether it lists the platform.
 *
 *   full     all people; lists the platform
 *   fast     all people; assumes that the platform has what is recorded
 *   single   one person; reads that person on the platform, and concludes nothing from absence
 *   record   the person of one record of the source; only that one is read (source's `one`)
 *   undo     the records that an earlier run changed; lists the platform
 */
export type Mode = 'full' | 'fast' | 'undo' | { single: Key } | { record: string };

/** How a run goes, for all of its steps. */
export interface RunSettings {
  mode: Mode;
  /** False for a plan, which writes nothing on the platform and records nothing. */
  writes: boolean;
  /** Whether this is a first load, which deletes nobody and needs no approval for opt-ins. */
  firstLoad?: boolean | undefined;
  /** Whether the snapshot was restored from a backup and the platform has not been listed since. */
  restored?: boolean | undefined;
  /** When aborted, the run starts nothing new and finishes what is in flight. */
  stop: AbortSignal;
  /** Aborted some seconds after `stop`: the run then gives up what is in flight. */
  abort: AbortSignal;
  progress(progress: Progress): void;
}

export interface RunOptions extends RunSettings {
  because?: readonly FullCode[] | undefined;
  /** If undefined, the run covers both. */
  only: 'contacts' | 'templates' | undefined;
  /**
   * Receives the plan before any of its changes is sent, and throws Invalid to refuse it. A run
   * with this option sends what it has planned and does not plan again.
   */
  agrees?(plan: Plan): void;
  /** Receives each round's plan (from 1) as people read it, once the guards have judged it. */
  shows?(view: PlanView, round: number): Promise<void>;
  /** Receives the forecast before the first change is sent. */
  foresees?(forecast: Forecast): void;
  onlyPeople?: OnlyPeople | undefined;
  approve?: ToApprove | undefined;
  /** What to undo, in mode `undo`. */
  undo?: ToUndo | undefined;
  /** What asked for the run, for the audit log; by default a program that embeds the engine. */
  by?: { by: 'schedule' | 'event' | 'command' | 'program'; name?: string | undefined } | undefined;
}

export interface ToUndo {
  /** Its id, or `last`: the newest run but undos that has changed anything. */
  run: string;
  /** The operations to undo; undefined for all. */
  ops?: readonly Op[] | undefined;
  /** For the audit log; undefined for a plan. */
  decision?: RunDecision | undefined;
}

/** Who has to sign approvals, and the mirror and account that their signatures are bound to. */
export interface Approvers {
  /** The number of approvers who have to sign the same changes. */
  readonly need: number;
  /** The public keys by name: Ed25519, base64 (SPKI). */
  readonly keys: Readonly<Record<string, string>>;
  readonly mirror: string;
  readonly platform: string;
}

interface RunDecision {
  by: string;
  reason: string | null;
  /** The user and the host that gave the command; undefined if no command did. */
  caller?: string | undefined;
}

export interface ToApprove extends RunDecision {
  /** The hash of an earlier plan with changes that await approval, or of this run's plan. */
  plan: string;
}

export interface Progress {
  /** Asking: about the account, changes without an answer, or single people on the platform. */
  stage: 'asking' | 'reading' | 'listing' | 'deciding' | 'applying';
  kind: string;
  done: number;
  /** Undefined while the total is unknown. */
  of: number | undefined;
  /** The share of the source that has been read, from 0 to 1, if the source knows its size. */
  share?: number | undefined;
}

export function modeName(mode: Mode): 'full' | 'fast' | 'single' | 'undo' {
  return typeof mode === 'string' ? mode : 'single';
}

export function isRecord(mode: Mode): mode is { record: string } {
  return typeof mode === 'object' && 'record' in mode;
}

/** Returns the person that a run is about, '' until that is known; undefined for all people. */
export function onlyKey({ mode }: { mode: Mode }): Key | undefined {
  if (typeof mode === 'string') return undefined;
  return isRecord(mode) ? '' : mode.single;
}
