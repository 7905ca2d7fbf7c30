/**
 * The last step of a run: reports to the CRM who unsubscribed on the platform (docs/write-back.md).
 * It finds the opt-outs to report (find-opt-outs.ts), delivers them within the limits of one run,
 * and journals each like a change. A failure is stored and printed, and the run continues.
 */
import type { Meta } from '../../store/database/meta-table.ts';
import {
  type Problem,
  isExpected,
  Interrupted,
  Invalid,
  RateLimited,
  type ExpectedError,
} from '../../domain/errors.ts';
import type { WriteBackSummary } from '../report/run-summary.ts';
import { type RunState, findingsNamed } from '../context/run-state.ts';
import { isRecord, onlyKey } from '../context/mirror-context.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Key } from '../../domain/record.ts';
import type { ReturnedRow } from '../../store/tables/opt-out-reports.ts';
import type { ReportResult } from '../../sources/write-back.ts';
import type { RunTally } from '../context/run-tally.ts';
import { inTurns } from '../context/work-in-parts.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import { type Finding, findOptOutsToReport, isStillOut } from './find-opt-outs.ts';

/** At most so many opt-outs that the CRM rejected in earlier runs are listed. */
const mostListed = 100;

/** The result. `stuck`: why nothing could be reported to the CRM; the run goes on. */
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
  const { run, begun, known, failure: runFailure, options, tally } = state;
  const { returns } = state.mirror;
  const { snapshot, writes } = run;
  const { optOutReports, meta, transaction } = snapshot;
  const type = begun.map((part) => part.type).find(({ capabilities }) => capabilities.optOuts);
  if (!returns || !type?.capabilities.optOuts || run.stop.aborted) return undefined;
  const of = { ...type, optOuts: type.capabilities.optOuts };
  const knowledge = findingsNamed(known, type.name);
  const conclusive = knowledge.certified && (knowledge.whole || isRecord(options.mode));
  const finding: Finding = { run, type: of, returns, known: knowledge, conclusive };
  const key = onlyKey(run);
  const isRead = known.has(type) && !runFailure && key !== '';
  const found = isRead ? await findOptOutsToReport(finding, key) : undefined;
  const before = optOutReports.counts({ kind: type.name });
  if (!writes) {
    const none = { waiting: before.waiting, leftOut: 0, doubtful: 0 };
    return { summary: { told: 0, rejected: before.rejected, ...(found ?? none) } };
  }
  const { told, failure } = await deliverReports({ ...finding, tally }, key);
  const stuckBefore = stuckIn(snapshot);
  if (failure ?? stuckBefore) {
    transaction(() => {
      if (!failure) meta.drop(metaName);
      else meta.set(metaName, storedStop.encode(stuckBefore?.since ?? run.clock.now(), failure));
    });
  }
  const { waiting, rejected } = optOutReports.counts({ kind: type.name });
  // Those that the CRM rejected in this run are already listed.
  for (const row of key === undefined ? optOutReports.rejected(type.name, mostListed) : []) {
    if (row.endedAt !== null && row.endedAt >= run.startedAt) continue;
    const { email, channel: part, reason, fix } = row;
    const about = { kind: type.name, key: email, part, fix: fix ?? '' };
    const problem = { ...about, class: 'rejected', cause: 'crm-refused' } as const;
    tally.notReported({ ...problem, reason: sayRejected(reason ?? '') }, false);
  }
  const { leftOut = 0, doubtful = 0 } = found ?? {};
  const summary = { told, rejected, waiting, leftOut, doubtful };
  if (!failure) return { summary };
  const many = counted(waiting, 'opt-out');
  const reason = `${many} could not be reported to the CRM; the next run tries again: ${failure.message}`;
  return { summary, stuck: { code: 'write-back-stuck', reason } };
}

/** The limits of one run. The rest waits for the next run. */
const mostTold = 1_000;
const mostMs = 60_000;

type ReportDelivery = Pick<Finding, 'run' | 'type' | 'returns'> & { tally: RunTally };

/** Reports the opt-outs that are due. Returns the expected error that stopped it, if any. */
async function deliverReports(
  delivery: ReportDelivery,
  key: Key | undefined,
): Promise<{ told: number; failure?: ExpectedError }> {
  const { run, type, returns } = delivery;
  const { optOutReports, transaction } = run.snapshot;
  const endsAt = run.clock.now() + mostMs;
  let told = 0;
  const count = (n: number): void => void (told += n);
  try {
    transaction(() => optOutReports.doubt(type.name, run.locks.others(run.id)));
    // If reporting twice differs from reporting once, the source tells which opt-outs with an
    // unknown outcome have arrived.
    const open = returns.arrived ? optOutReports.unknown(type.name) : [];
    if (open.length > 0) {
      const there = returns.arrived?.(open.map((row) => spelledForCrm(delivery, row)));
      const at = run.clock.now();
      transaction(() => {
        for (const { seq, id } of open)
          optOutReports.move(seq, there?.has(id) ? 'acked' : 'planned', { at });
      });
    }
    for await (const due of inTurns(run, batchesOf(delivery, { key, endsAt })))
      await tellSome(delivery, due, count);
  } catch (error) {
    if (!isExpected(error)) throw error;
    if (!(error instanceof Interrupted)) return { told, failure: error };
  }
  return { told };
}

/** Yields the opt-outs that are due, a request at a time, within the limits of one run. */
function* batchesOf(
  { run, type, returns }: ReportDelivery,
  { key, endsAt }: { key: Key | undefined; endsAt: number },
): Generator<ReturnedRow[]> {
  let before = '';
  for (let tried = 0; tried < mostTold; tried += returns.most) {
    const at = run.clock.now();
    if (run.stop.aborted || at >= endsAt) return;
    const count = Math.min(returns.most, mostTold - tried);
    const { due: dueOfAll, dueOf } = run.snapshot.optOutReports;
    const which = { kind: type.name, at, count };
    const due = key === undefined ? dueOfAll(which) : dueOf({ ...which, key });
    // Opt-outs that other runs have taken remain due; without this check the loop would not end.
    const seqs = due.map(({ seq }) => seq).join();
    if (due.length === 0 || seqs === before) return;
    before = seqs;
    yield due;
  }
}

/** Reports several at once, or one by one if one spoils the rest. Throws a stored failure. */
async function tellSome(
  delivery: ReportDelivery,
  due: readonly ReturnedRow[],
  count: (n: number) => void,
): Promise<void> {
  try {
    count(await tellBatch(delivery, due));
  } catch (error) {
    const isTogether = delivery.returns.reportsTogether && due.length > 1;
    if (!(error instanceof Invalid) || !isTogether) throw error;
    // An expected failure is already stored with its opt-out.
    const ignore = (failure: unknown): number => {
      if (!isExpected(failure)) throw failure;
      return 0;
    };
    for (const one of due) count(await tellBatch(delivery, [one]).catch(ignore));
    throw error;
  }
}

/**
 * Reports a batch and returns how many opt-outs the CRM accepted. Drops opt-outs of people who are
 * subscribed again, and opt-outs that the CRM no longer accepts. Skips opt-outs that another run
 * has taken. Throws the failure after storing it.
 */
async function tellBatch(delivery: ReportDelivery, due: readonly ReturnedRow[]): Promise<number> {
  const { run, returns, type, tally } = delivery;
  const { optOutReports, transaction } = run.snapshot;
  const at = run.clock.now();
  // The rest is marked as sent, on disk before the request is sent.
  const batch = transaction(() => {
    const isDue = (row: ReturnedRow) => returns.takes(row) && isStillOut(delivery, row);
    const still = due.filter(isDue);
    for (const row of due) if (!still.includes(row)) optOutReports.drop(row.seq);
    const free = still.filter(({ email, crmId }) =>
      run.locks.beginInFlight(run.id, email, [crmId]),
    );
    for (const { seq } of free) optOutReports.move(seq, 'sent', { at, run: run.id });
    return free;
  });
  if (batch.length === 0) return 0;
  const answers: ReportResult[] = [];
  let failure: ExpectedError | undefined;
  try {
    const reports = batch.map((row) => spelledForCrm(delivery, row));
    for await (const told of returns.tell(reports, run.abort)) {
      const { email } = batch[answers.length] ?? { email: '' };
      answers.push(told);
      const isLast = batch.slice(answers.length).every((row) => row.email !== email);
      if (isLast) run.locks.endInFlight(run.id, email);
    }
  } catch (error) {
    if (!isExpected(error)) throw error;
    failure = error;
  } finally {
    for (const { email } of batch) run.locks.endInFlight(run.id, email);
  }
  const endedAt = run.clock.now();
  const rest = failure instanceof Invalid || failure instanceof RateLimited ? 'planned' : 'unknown';
  // Without a response the outcome is unknown, unless the failure shows that nothing arrived.
  transaction(() => {
    for (const [nth, row] of batch.entries()) {
      const told = answers[nth];
      const { seq, email: key, channel: part } = row;
      if (!told) optOutReports.move(seq, rest, { at: endedAt, tried: nth === answers.length });
      else if (told.is === 'told') optOutReports.move(seq, 'acked', { at: endedAt });
      else {
        const { reason, fix } = told;
        const retryAt = endedAt + retrySchedules.rejectedReport.firstMs;
        const refused = { at: endedAt, reason, fix, retryAt, tried: true };
        optOutReports.move(seq, 'rejected', refused);
        const about = { kind: type.name, key, part, reason: sayRejected(reason), fix };
        const problem = { ...about, class: 'rejected', cause: 'crm-refused' } as const;
        tally.notReported(problem, row.state !== 'rejected');
      }
    }
  });
  if (failure) throw failure;
  return answers.filter(({ is }) => is === 'told').length;
}

function spelledForCrm({ run, type }: ReportDelivery, report: ReturnedRow): ReturnedRow {
  const rows = run.snapshot.staging.desired(type.name, report.email);
  const row = rows.find(({ id }) => id === report.crmId);
  return { ...report, email: (row && type.optOuts.spelling(row)) ?? report.email };
}

export function sayRejected(reason: string): string {
  return `the CRM refused this opt-out: ${reason}`;
}

const metaName = 'returns';

/** The stored text is `<since> <reason> → <fix>`, without the arrow if there is no fix. */
const storedStop = {
  encode: (since: number, failure: ExpectedError): string => `${since} ${failure.message}`,
  decode(text: string) {
    const [, since, reason = '', fix] = /^(\S*) ?(.*?)(?: → (.*))?$/s.exec(text) ?? [];
    return { since: Number(since), reason, fix };
  },
};

/** Returns since when (milliseconds since the epoch) and why nothing can be reported, if so. */
export function stuckIn({ meta }: { meta: Meta }) {
  const text = meta.get(metaName);
  return text === undefined ? undefined : storedStop.decode(text);
}
