/**
 * Finds out what became of changes that were sent and not answered, by reading, never by sending
 * again. A creation may still arrive until one time-out has passed since it was sent.
 */
import type { JournaledChange } from '../model/change.ts';
import { settle, type Applying } from './apply.ts';

export async function recover(applying: Applying): Promise<void> {
  const { run, kind, brake } = applying;
  for (const change of run.snapshot.journal.open(kind.name)) {
    if (run.stop.aborted || brake.stopped()) return;
    await settleAfter(applying, change);
    const outcome = await kind.recover(change, run.abort);
    if ('why' in outcome && outcome.is !== 'stale') brake.note(kind, change, outcome);
    else settle(applying, change, outcome);
  }
}

async function settleAfter({ run }: Applying, change: JournaledChange): Promise<void> {
  if (change.op !== 'create' || change.sentAt === undefined) return;
  const now = run.clock.now();
  const wait = Math.min(run.timeoutMs, change.sentAt + run.timeoutMs - now);
  if (wait > 0) await run.clock.sleep(wait, run.stop);
}
