/**
 * Finds out the outcome of changes that were sent but got no response. It reads and never sends a
 * change again. A creation or a delete may still arrive until one timeout has passed since it was
 * sent. If the read fails, the change keeps its state for the next run.
 */
import type { JournaledChange } from '../../domain/change.ts';
import { type SendOutcome, outcomeOf } from '../../records/record-type.ts';
import { withTarget } from './apply-changes.ts';
import { isFresh, openChanges } from '../context/run-context.ts';
import { type ApplyContext, knownOf } from './apply-context.ts';
import { recordOutcome } from './record-outcome.ts';
import { beginInFlight, endInFlight } from './in-flight.ts';

/**
 * Recovers the changes of one record type that have no known outcome and that no other run is
 * working on.
 */
export async function recover(applying: ApplyContext): Promise<void> {
  const { run, type, breaker } = applying;
  for (const open of openChanges(run, type.name)) {
    if (run.stop.aborted || breaker.stopped()) return;
    // The run that has locked the person recovers this change.
    if (!beginInFlight(applying, open.key)) continue;
    try {
      await recoverOne(applying, open);
    } finally {
      endInFlight(applying, open.key);
    }
  }
}

async function recoverOne(applying: ApplyContext, open: JournaledChange): Promise<void> {
  const { run, type, toBeListed } = applying;
  const change = withTarget(applying, open);
  await passTimeout(applying, change);
  const outcome = await find(applying, change);
  if (outcome) await recordOutcome(applying, change, { outcome });
  const isNews = outcome?.is === 'acked' && (outcome.undone || outcome.observed !== undefined);
  const news = isNews || (outcome?.is === 'acked' && change.op === 'create');
  if (!news) return;
  // A listing that follows is newer, and shows which other record has the address.
  if (!toBeListed) run.snapshot.staging.assume(type.name, change.key);
  run.snapshot.candidates.add(type.name, change.key);
}

async function find(
  applying: ApplyContext,
  change: JournaledChange,
): Promise<SendOutcome | undefined> {
  const { run, type, breaker } = applying;
  // An opt-out is sent without a prior read, and the person may have unsubscribed since an earlier
  // read.
  const unseen = change.op === 'opt_out' && !knownOf(applying, change).fresh;
  const late = change.run !== run.id || unseen || !isFresh(run, change.sentAt ?? 0);
  try {
    const recorded = run.snapshot.recorded.get(type.name, change.key);
    const facts = run.facts.known();
    return await type.recover(change, { late, facts, recorded, signal: run.abort });
  } catch (error) {
    const outcome = outcomeOf(error);
    if (outcome.is !== 'rejected') breaker.note(type, change, outcome);
    return undefined;
  }
}

/**
 * Waits until the request can no longer arrive. A request of another run was sent before this run
 * began.
 */
async function passTimeout(
  { run, timeoutMs }: ApplyContext,
  change: JournaledChange,
): Promise<void> {
  const mayArrive = change.op === 'create' || change.op === 'delete';
  if (!mayArrive || change.sentAt === undefined) return;
  const sentAt = change.run === run.id ? change.sentAt : run.startedAt;
  const wait = sentAt + timeoutMs - run.clock.now();
  if (wait > 0) await run.clock.sleep(wait, run.stop);
}
