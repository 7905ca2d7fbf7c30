/** Begins a run: gives it an id, and handles the unfinished work of earlier runs. */
import { Invalid, type Problem } from '../domain/errors.ts';
import {
  createCircuitBreaker,
  isInForce,
  quarantineOf,
  sayQuarantine,
} from './context/circuit-breaker.ts';
import { approvalsOf } from './judge/holds.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { needsSignature } from './report/guard-text.ts';
import {
  kindsIn,
  noVerdict,
  type RunParts,
  type RunResults,
  type SourceCursor,
} from './context/run-results.ts';
import type { RunContext } from './context/run-context.ts';
import { type Mirror, modeName, onlyKey, type RunOptions } from './context/mirror-context.ts';
import { bindDoNotContactList } from './context/do-not-contact-binding.ts';
import { askOnce, createFacts, restoredUntil } from './context/platform-knowledge.ts';
import { selectionOf } from './context/people-selection.ts';
import { createTally } from './context/run-tally.ts';
import { invalidateCursor, loadCursor } from './finish/source-cursor.ts';
import { undoneRun } from './context/undo-run.ts';
import { untilDone, createGroupCommit } from './context/work-in-parts.ts';

/**
 * Runs `work` as a run that has found nothing yet: clears staging and, if it writes, stores that it
 * began. The run ends whatever the outcome; what it has read stays in staging.
 */
export async function inRun<T>(
  mirror: Mirror,
  options: RunOptions,
  work: (found: RunResults) => Promise<T>,
): Promise<T> {
  const found = beginRun(mirror, options);
  try {
    return await work(found);
  } finally {
    found.lock?.release();
    mirror.snapshot.staging.unchanged.clear();
    mirror.requestLog?.setRun(undefined);
    mirror.locks.end(found.run.id);
  }
}

function beginRun(mirror: Mirror, options: RunOptions): RunResults {
  const { snapshot, locks, approvers } = mirror;
  const { writes, approve } = options;
  if (approve && approvers) throw needsSignature(approvers, approve.plan);
  if (approve) refuseOtherPlan(snapshot, approve.plan, options.undo);
  // The run's clock advances evenly, even if the machine's clock is changed.
  const { now, monotonic, sleep } = mirror.clock;
  const offset = now() - monotonic();
  const clock = { now: () => Math.round(offset + monotonic()), monotonic, sleep };
  const startedAt = clock.now();
  const quarantine = quarantineOf(snapshot.meta);
  const isHeld = isInForce(quarantine, startedAt);
  const quarantined = isHeld && writes;
  const inQuarantine = isHeld ? [sayQuarantine(quarantine)] : [];
  const stamp = new Date(startedAt).toISOString().replace(/[-:]|\.\d+/g, '');
  let id: string;
  // The random part distinguishes runs that begin within the same second.
  do {
    const own = Math.floor(mirror.random() * 0x10000);
    id = `${stamp}-${own.toString(16).padStart(4, '0')}`;
  } while (snapshot.runs.get(id));
  const run: RunContext = {
    ...mirror,
    // One by one, because other options of a caller must not replace fields of the mirror.
    mode: options.mode,
    writes,
    firstLoad: options.firstLoad,
    restored: options.restored,
    stop: options.stop,
    abort: options.abort,
    progress: options.progress,
    id,
    startedAt,
    clock,
    quarantined,
    restoredUntil: restoredUntil(snapshot),
    facts: createFacts(snapshot, writes),
    groupCommit: createGroupCommit(snapshot, clock),
    selection: selectionOf(mirror, options.onlyPeople),
    undo: options.undo && undoneRun(snapshot, options.undo, id),
    askPlatformTime: askOnce(mirror.account.platform, options.stop),
  };
  const isAlone = onlyKey(options) !== undefined;
  const begun: RunParts = {
    contacts: options.only === 'templates' ? undefined : mirror.contacts,
    // A run about one person leaves templates alone.
    templates: options.only === 'contacts' || isAlone ? undefined : mirror.templates,
  };
  snapshot.staging.clear();
  snapshot.candidates.clear();
  if (writes) bindDoNotContactList({ ...mirror, clock });
  const cursor = writes
    ? snapshot.transaction(() => start(run, begun, options))
    : loadCursor(snapshot, begun.contacts, options);
  const { notes: onApprovals, ...approved } = approvalsOf(run, approve);
  const notes = mirror.notes.map((reason): Problem => ({ code: 'note', reason }));
  const { ended: endedBefore } = locks.count();
  // This comes last, because a run that has begun must end.
  mirror.requestLog?.setRun(id);
  locks.begin(id, isAlone ? 'one' : 'all');
  const { keys, ids } = locks.superseded(id);
  return {
    mirror,
    options,
    run,
    begun,
    cursor,
    supersededAtStart: keys.size + ids.size > 0,
    endedBefore,
    ...approved,
    tally: createTally(snapshot),
    breaker: createCircuitBreaker(),
    parts: begun,
    lock: undefined,
    known: new Map(),
    unread: undefined,
    reasons: quarantined ? inQuarantine : [],
    notes: [...notes, ...onApprovals, ...(quarantined ? [] : inQuarantine)],
    because: run.mode === 'full' ? [...(options.because ?? [])] : [],
    plan: undefined,
    forecast: undefined,
    passed: { contact: 0, template: 0 },
    verdict: noVerdict,
    failure: undefined,
  };
}

/** Stores that the run began. Returns the cursor. Call it within a transaction. */
function start(run: RunContext, begun: RunParts, options: RunOptions): SourceCursor {
  const { snapshot, locks, id, mode, startedAt: at, undo } = run;
  const { by = { by: 'program' }, onlyPeople }: RunOptions = options;
  const others = locks.others(id);
  const isAlone = onlyKey(run) !== undefined;
  let isLeft = false;
  for (const kind of kindsIn(begun)) {
    snapshot.unaudited.addUnanswered({ kind, at, but: others });
    snapshot.journal.doubt(kind, others);
    if (!isAlone && snapshot.journal.hasLeft(kind, others)) isLeft = true;
  }
  // A run about a few people tries a mapping, so the next one about all people is its first.
  const mapping = onlyPeople ? null : (run.contacts?.manner ?? null);
  const asked = { by: by.by, name: by.name ?? null, mapping, undoes: undo?.run };
  snapshot.runs.start({ id, mode: modeName(mode), at, asked: JSON.stringify(asked) });
  const since = loadCursor(snapshot, begun.contacts, run);
  // Only a reading of everything shows what an undone person needs next.
  if (undo && begun.contacts) invalidateCursor(snapshot);
  // A run that died may have left work for people whose records never change again, so everything
  // is read.
  return isLeft ? { without: 'run-died' } : since;
}

/** Refuses to approve a plan in a run that does not make its changes. Throws Invalid. */
function refuseOtherPlan(snapshot: Snapshot, plan: string, undo: RunOptions['undo']): void {
  const found = snapshot.holds.get(plan);
  if (!found) return;
  const { undoes } = found;
  if (undoes === null) {
    if (!undo) return;
    throw new Invalid(`${plan} is not a plan of this undo`, {
      fix: `\`crm-mirror approve ${plan}\``,
    });
  }
  if (undo && (undo.run === 'last' || undo.run === undoes)) return;
  throw new Invalid(`only the undo of run ${undoes} makes the changes of the plan ${plan}`, {
    fix: `\`crm-mirror undo ${undoes} --approve ${plan}\``,
  });
}

/** Abandons the planned changes of runs that have ended; they are not sent any more. */
export async function abandonLeftovers(run: RunContext, begun: RunParts): Promise<void> {
  const { journal, transaction } = run.snapshot;
  for (const kind of kindsIn(begun)) {
    await untilDone(run, () => {
      const others = [...run.locks.others(run.id), run.id];
      return transaction(() => journal.abandon(kind, run.startedAt, others));
    });
  }
}
