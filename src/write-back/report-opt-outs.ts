/**
 * The last step of a run: tells the CRM who unsubscribed on the platform (README, back to the CRM).
 */
import type { ReturnsSummary } from '../engine/report/run-summary.ts';
import type { RunState } from '../engine/context/run-state.ts';
import { onlyKey } from '../engine/context/mirror-context.ts';
import { type Finding, findOptOutsToReport } from './find-opt-outs.ts';
import { knowledgeNamed } from '../engine/context/source-knowledge.ts';
import { noteStuck, sayRejected, deliverReports } from './report-delivery.ts';

const listed = 100;

/**
 * Notes which opt-outs the CRM has to be told of, and tells them; a plan only counts. Concludes
 * nothing from what the run could not read, and tells what waits all the same. Returns undefined if
 * this mirror, or such a run, tells nothing.
 */
export async function reportOptOuts(context: RunState): Promise<ReturnsSummary | undefined> {
  const { run, begun, known, failure, isEvent, tally } = context;
  const { returns, snapshot, writes } = run;
  const type = begun.map((part) => part.type).find(({ outs }) => outs);
  if (!returns || !type?.outs || run.stop.aborted) return undefined;
  const of = { ...type, outs: type.outs };
  const knowledge = knowledgeNamed(known, type.name);
  const conclusive = knowledge.certified && (knowledge.whole || isEvent);
  const finding: Finding = { run, type: of, returns, known: knowledge, conclusive };
  const key = onlyKey(run);
  const isRead = known.has(type) && !failure && key !== '';
  const found = isRead ? await findOptOutsToReport(finding, key) : undefined;
  const before = snapshot.optOutReports.counts(type.name);
  if (!writes) {
    const none = { waiting: before.waiting, leftOut: 0, doubtful: 0 };
    return { told: 0, rejected: before.rejected, ...(found ?? none) };
  }
  const account = await deliverReports({ ...finding, tally }, key);
  noteStuck(snapshot, account, run.clock.now());
  const { waiting, rejected } = snapshot.optOutReports.counts(type.name);
  if (account.failure) context.stuck = sayStuck(waiting, account.failure);
  listKnown(context, type.name);
  const { leftOut = 0, doubtful = 0 } = found ?? {};
  return { told: account.told, rejected, waiting, leftOut, doubtful };
}

/**
 * Lists the opt-outs that the CRM rejected in earlier runs; those of this run are listed already.
 */
function listKnown({ run, tally }: RunState, kind: 'contact' | 'template'): void {
  if (onlyKey(run) !== undefined) return;
  for (const row of run.snapshot.optOutReports.rejected(kind, listed)) {
    const { email: key, channel: part, reason, fix } = row;
    if (row.endedAt !== null && row.endedAt >= run.startedAt) continue;
    const problem = { kind, key, class: 'rejected' as const, part, fix: fix ?? '' };
    tally.returned({ ...problem, reason: sayRejected(reason ?? '') }, false);
  }
}

function sayStuck(waiting: number, { message }: Error): string {
  const many = waiting === 1 ? 'an opt-out' : `${waiting} opt-outs`;
  return `the CRM could not be told of ${many}, the next run tries again: ${message}`;
}
