/**
 * Declares what every step of a run needs, and provides the lookups that steps use. The first load
 * of a mirror ends with the first completed full run whose source contained at least one person.
 */
import { closeEntries, drain, noteFault } from '../../store/memory/audit-trail.ts';
import type { Problem } from '../../domain/errors.ts';
import type { JournaledChange } from '../../domain/change.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { LearnedFacts } from './platform-knowledge.ts';
import { type GroupCommit, untilDone } from './work-in-parts.ts';
import type { PeopleSelection } from './people-selection.ts';
import type { UndoneRun } from './undo-run.ts';
import { type Mirror, onlyKey, type RunSettings } from './mirror-context.ts';
import type { Snapshot } from '../../store/snapshot.ts';

/** A run of a mirror: what every step needs, and none writes to. */
export interface RunContext extends Mirror, RunSettings {
  id: string;
  /** When the run began by our clock, in milliseconds since the epoch. */
  startedAt: number;
  /** Until when a backup that was put back may lack contacts of ours (platform-knowledge.ts). */
  restoredUntil: number;
  facts: LearnedFacts;
  /** Writes to the snapshot in one transaction with other changes that end at the same time. */
  groupCommit: GroupCommit;
  /** Whether only opt-outs are planned, because the platform refused too many changes. */
  quarantined: boolean;
  /** Asks the platform for its time, once in the run. */
  askPlatformTime(): Promise<void>;
  /** The people that the run is limited to; undefined if it may change everybody. */
  selection: PeopleSelection | undefined;
  undo: UndoneRun | undefined;
}

/** Returns the changes whose outcome this run has to find out, without those of other runs. */
export function openChanges(run: RunContext, kind: RecordTypeName): JournaledChange[] {
  const only = onlyKey(run);
  const open = run.snapshot.journal.open(kind);
  if (only !== undefined) return open.filter(({ key }) => key === only);
  const others = run.locks.others(run.id);
  return open.filter((change) => !others.includes(change.run));
}

/** A record observed longer ago than this is read again before an opt-in. */
const freshMs = 15 * 60_000;

/** Returns whether something was observed in this run and less than 15 minutes ago. */
export function isFresh(run: RunContext, at: number): boolean {
  return at >= run.startedAt && run.clock.now() - at < freshMs;
}

/**
 * Returns the keys of the people that other runs have locked since this run began: the keys that
 * those runs know, and the keys that this run's reading has for the same CRM ids.
 */
export function supersededKeys({ locks, snapshot, id }: RunContext): Key[] {
  const { keys, ids } = locks.superseded(id);
  // What other runs change about these people is compared with what this run has read of them.
  for (const key of keys) snapshot.staging.unchanged.stageKey(key);
  if (ids.size === 0) return [...keys];
  return [...new Set([...keys, ...snapshot.staging.keysOf('contact', [...ids])])];
}

/** Returns whether another run has locked this person since this run began. */
export function isSuperseded(run: RunContext, key: Key): boolean {
  const { keys, ids } = run.locks.superseded(run.id);
  return (
    keys.has(key) ||
    (ids.size > 0 && run.snapshot.staging.idsOf('contact', key).some((id) => ids.has(id)))
  );
}

/** Moves what is remembered of writes to the audit log. Returns why that is not possible, if so. */
export async function writeAuditLog(mirror: Mirror): Promise<string | undefined> {
  const { audit, snapshot } = mirror;
  return audit && untilDone(mirror, () => drain(audit, snapshot));
}

/** Does the same and signs the log. `prunes`: removes old entries. Returns a note of failure. */
export async function closeAuditLog(mirror: Mirror, prunes: boolean): Promise<Problem | undefined> {
  const { audit, snapshot, clock } = mirror;
  const unwritten = await writeAuditLog(mirror);
  const fault = unwritten ?? (audit && closeEntries(audit, snapshot, { at: clock.now(), prunes }));
  return noteFault(snapshot, fault);
}

/** The meta key of the full run that ended the first load. */
const loaded = 'loaded';

/** Returns whether the mirror is still being loaded for the first time. */
export function isFirstLoad(of: { firstLoad?: boolean | undefined; snapshot: Snapshot }): boolean {
  return of.firstLoad === true || of.snapshot.meta.get(loaded) === undefined;
}

/** Returns whether no full run of a mirror with people has ended yet. */
export function isUnloaded({ contacts, snapshot }: Mirror): boolean {
  return contacts !== undefined && isFirstLoad({ snapshot });
}

/** Ends the first load if it has not ended yet. Must be called within a transaction. */
export function endFirstLoad({ meta }: Snapshot, run: string): void {
  if (meta.get(loaded) === undefined) meta.set(loaded, run);
}
