/**
 * Tells the CRM who left, at the end of a run: so much of it as a run may take, each journaled like
 * a change. What goes wrong with it is said and noted, and stops nothing: the mirror is what it is.
 */
import { isExpected, Interrupted, Invalid, RateLimited, type Expected } from '../domain/errors.ts';
import type { Key } from '../domain/record.ts';
import type { ReturnedRow } from '../snapshot/tables/opt-out-reports.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { ReportResult } from '../sources/write-back.ts';
import { isStillOut, type Finding } from './find-opt-outs.ts';
import type { RunTally } from '../engine/context/run-tally.ts';

/** Of one run: more is for the next one, that nobody waits for it. */
const mostTold = 1_000;
const mostMs = 60_000;
/** What the CRM rejected is told again a day later. */
const againMs = 86_400_000;

type ReportDelivery = Pick<Finding, 'run' | 'type' | 'returns'> & { tally: RunTally };

export interface DeliveryAccount {
  told: number;
  /** Why nobody else was told in this run. */
  failure: Expected | undefined;
}

/** All that is due, or what is due of one person. */
export async function deliverReports(
  delivery: ReportDelivery,
  key: Key | undefined,
): Promise<DeliveryAccount> {
  const { run, type, returns } = delivery;
  const account: DeliveryAccount = { told: 0, failure: undefined };
  const { optOutReports, transaction } = run.snapshot;
  const endsAt = run.clock.now() + mostMs;
  let before = '';
  try {
    transaction(() => optOutReports.doubt(type.name, run.locks.others(run.id)));
    findArrived(delivery);
    for (let tried = 0; tried < mostTold; tried += returns.most) {
      if (run.stop.aborted || run.clock.now() >= endsAt) break;
      const count = Math.min(returns.most, mostTold - tried);
      const due = optOutReports.due(type.name, { at: run.clock.now(), count, key });
      if (due.length === 0) break;
      // Whom other runs have taken would be due again and again.
      const which = due.map(({ seq }) => seq).join();
      if (which === before) break;
      before = which;
      await tellSome(delivery, due, account);
      await run.clock.sleep(0);
    }
  } catch (error) {
    if (!isExpected(error)) throw error;
    if (!(error instanceof Interrupted)) account.failure = error;
  }
  return account;
}

/** Where twice is not the same as once, what is there already is told no more. */
function findArrived({ run, type, returns }: ReportDelivery): void {
  const { optOutReports, transaction } = run.snapshot;
  if (!returns.arrived) return;
  const open = optOutReports.unknown(type.name);
  if (open.length === 0) return;
  const there = returns.arrived(open);
  const at = run.clock.now();
  transaction(() => {
    for (const { seq, id } of open)
      optOutReports.move(seq, there.has(id) ? 'acked' : 'planned', { at });
  });
}

/**
 * Together; where the CRM refuses all of them for one of them, one by one. Throws what has kept any
 * of them from it, once that is noted.
 */
async function tellSome(
  delivery: ReportDelivery,
  due: readonly ReturnedRow[],
  account: DeliveryAccount,
): Promise<void> {
  try {
    account.told += await tellBatch(delivery, due);
  } catch (error) {
    const isTogether = delivery.returns.reportsTogether && due.length > 1;
    if (!(error instanceof Invalid) || !isTogether) throw error;
    for (const one of due) account.told += await tellBatch(delivery, [one]).catch(failed);
    throw error;
  }
}

/** What is wrong with it is noted with it; a bug is one here too. */
function failed(error: unknown): number {
  if (!isExpected(error)) throw error;
  return 0;
}

/** Answers how many were told. */
async function tellBatch(delivery: ReportDelivery, due: readonly ReturnedRow[]): Promise<number> {
  const { run, returns } = delivery;
  const batch = claim(delivery, due);
  if (batch.length === 0) return 0;
  const answers: ReportResult[] = [];
  let failure: Expected | undefined;
  try {
    for await (const told of returns.tell(batch, run.abort)) {
      const { email } = batch[answers.length] ?? { email: '' };
      answers.push(told);
      const isLast = batch.slice(answers.length).every((row) => row.email !== email);
      if (isLast) run.locks.leave(run.id, email);
    }
  } catch (error) {
    if (!isExpected(error)) throw error;
    failure = error;
  } finally {
    for (const { email } of batch) run.locks.leave(run.id, email);
  }
  settle(delivery, batch, { answers, failure });
  if (failure) throw failure;
  return answers.filter(({ is }) => is === 'told').length;
}

/**
 * On disk before anything leaves. Who is back by now is not told of, nor is what this CRM does not
 * take any more; whom another run has taken is left to a later one.
 */
function claim(delivery: ReportDelivery, due: readonly ReturnedRow[]): ReturnedRow[] {
  const { run, returns } = delivery;
  const { optOutReports, transaction } = run.snapshot;
  const at = run.clock.now();
  return transaction(() => {
    const [still, back] = parted(due, (row) => returns.takes(row) && isStillOut(delivery, row));
    for (const { seq } of back) optOutReports.drop(seq);
    const free = still.filter(({ email, crmId }) => run.locks.enter(run.id, email, [crmId]));
    for (const { seq } of free) optOutReports.move(seq, 'sent', { at, run: run.id });
    return free;
  });
}

function settle(
  { run, type, tally }: ReportDelivery,
  batch: readonly ReturnedRow[],
  { answers, failure }: { answers: readonly ReportResult[]; failure: Expected | undefined },
): void {
  const { optOutReports, transaction } = run.snapshot;
  const at = run.clock.now();
  const rest = failure instanceof Invalid || failure instanceof RateLimited ? 'planned' : 'unknown';
  transaction(() => {
    for (const [nth, row] of batch.entries()) {
      const told = answers[nth];
      const { seq, email: key, channel: part } = row;
      if (!told) optOutReports.move(seq, rest, { at, tried: nth === answers.length });
      else if (told.is === 'told') optOutReports.move(seq, 'acked', { at });
      else {
        const { reason, fix } = told;
        optOutReports.move(seq, 'rejected', {
          at,
          reason,
          fix,
          retryAt: at + againMs,
          tried: true,
        });
        const problem = { kind: type.name, key, class: 'rejected' as const, part };
        tally.returned({ ...problem, reason: sayRejected(reason), fix }, row.state !== 'rejected');
      }
    }
  });
}

export function sayRejected(reason: string): string {
  return `the CRM does not take this opt-out back: ${reason}`;
}

function parted<T>(all: readonly T[], is: (one: T) => boolean): [T[], T[]] {
  return [all.filter(is), all.filter((one) => !is(one))];
}

const name = 'returns';

/** Since when the CRM cannot be told anything, and why; undefined: it can, as far as is known. */
export function stuckIn({
  meta,
}: Pick<Snapshot, 'meta'>): { since: number; why: string } | undefined {
  const text = meta.get(name);
  if (text === undefined) return undefined;
  const [since = '', ...why] = text.split(' ');
  return { since: Number(since), why: why.join(' ') };
}

export function noteStuck(
  { meta, transaction }: Snapshot,
  { failure }: DeliveryAccount,
  at: number,
): void {
  const before = stuckIn({ meta });
  if (!failure && !before) return;
  transaction(() => {
    if (!failure) meta.drop(name);
    else meta.set(name, `${before?.since ?? at} ${failure.message}`);
  });
}
