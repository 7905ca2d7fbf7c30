/**
 * The last step of a run: reports to the CRM who unsubscribed on the platform (docs/write-back.md).
 */
import type { Problem } from '../../domain/errors.ts';
import type { WriteBackSummary } from '../report/run-summary.ts';
import type { RunState } from '../context/run-state.ts';
import { isRecord, onlyKey } from '../context/mirror-context.ts';
import { type Finding, findOptOutsToReport } from './find-opt-outs.ts';
import { findingsNamed } from '../context/run-findings.ts';
import { noteStuck, sayRejected, deliverReports } from './report-delivery.ts';
import { counted } from '../../domain/values/counted.ts';

const listed = 100;

/**
 * The result. `stuck` states why nothing could be reported to the CRM; it does not stop the run.
 */
export interface Reported {
  summary: WriteBackSummary;
  stuck?: Problem;
}

/**
 * Stores which opt-outs to report to the CRM, and reports them; a plan only counts them. Concludes
 * nothing from what the run could not read, but still reports what is waiting. Returns undefined if
 * this mirror, or this kind of run, reports nothing.
 */
export async function reportOptOuts(state: RunState): Promise<Reported | undefined> {
  const { run, begun, known, failure, options, tally } = state;
  const { returns } = state.mirror;
  const { snapshot, writes } = run;
  const type = begun.map((part) => part.type).find(({ capabilities }) => capabilities.optOuts);
  if (!returns || !type?.capabilities.optOuts || run.stop.aborted) return undefined;
  const of = { ...type, optOuts: type.capabilities.optOuts };
  const knowledge = findingsNamed(known, type.name);
  const conclusive = knowledge.certified && (knowledge.whole || isRecord(options.mode));
  const finding: Finding = { run, type: of, returns, known: knowledge, conclusive };
  const key = onlyKey(run);
  const isRead = known.has(type) && !failure && key !== '';
  const found = isRead ? await findOptOutsToReport(finding, key) : undefined;
  const before = snapshot.optOutReports.counts(type.name);
  if (!writes) {
    const none = { waiting: before.waiting, leftOut: 0, doubtful: 0 };
    return { summary: { told: 0, rejected: before.rejected, ...(found ?? none) } };
  }
  const account = await deliverReports({ ...finding, tally }, key);
  noteStuck(snapshot, account, run.clock.now());
  const { waiting, rejected } = snapshot.optOutReports.counts(type.name);
  listKnown(state, type.name);
  const { leftOut = 0, doubtful = 0 } = found ?? {};
  const summary = { told: account.told, rejected, waiting, leftOut, doubtful };
  return account.failure ? { summary, stuck: sayStuck(waiting, account.failure) } : { summary };
}

/**
 * Lists the opt-outs that the CRM rejected in earlier runs; those of this run are already listed.
 */
function listKnown({ run, tally }: RunState, kind: 'contact' | 'template'): void {
  if (onlyKey(run) !== undefined) return;
  for (const row of run.snapshot.optOutReports.rejected(kind, listed)) {
    const { email: key, channel: part, reason, fix } = row;
    if (row.endedAt !== null && row.endedAt >= run.startedAt) continue;
    const of = { kind, key, part, fix: fix ?? '' };
    const problem = { ...of, class: 'rejected', cause: 'crm-refused' } as const;
    tally.notReported({ ...problem, reason: sayRejected(reason ?? '') }, false);
  }
}

function sayStuck(waiting: number, { message }: Error): Problem {
  const reason = `${counted(waiting, 'opt-out')} could not be reported to the CRM; the next run tries again: ${message}`;
  return { code: 'write-back-stuck', reason };
}
