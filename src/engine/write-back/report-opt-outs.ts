/**
 * The last step of a run: reports to the CRM who unsubscribed on the platform (docs/write-back.md).
 * For each person who is known to have unsubscribed there, it finds one opt-out for each of the
 * person's CRM records, delivers them within the limits of one run, and journals each like a
 * change. A failure is stored and printed, and the run continues.
 *
 *   the person unsubscribed, and        stored so far                 result
 *   the CRM wants the person in, or
 *     says nothing                      nothing, or needless          planned
 *     the same                          anything else                 unchanged
 *   the CRM states the opt-out, or
 *     has no such record                planned, rejected, nothing    needless
 *   anything; it is doubtful whether    planned, rejected, unknown    needless; otherwise unchanged
 *     the person unsubscribed
 *   the record was not read             nothing                       planned if the run read only
 *                                                                     changes, otherwise nothing
 *   the person is subscribed again      anything                      dropped: a later opt-out is a
 *                                                                     new one
 */
import { createHmac } from 'node:crypto';
import {
  type Problem,
  isExpected,
  Interrupted,
  Invalid,
  RateLimited,
  Rejected,
  Unavailable,
  type ExpectedError,
} from '../../domain/errors.ts';
import type { OptOutReport } from '../../domain/opt-out-report.ts';
import type { Key, DesiredRow, ObservedRow } from '../../domain/record.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import { counted } from '../../domain/values/counted.ts';
import type {
  PlatformOptOut,
  PlatformOptOuts,
} from '../../records/contact/consent/platform-opt-outs.ts';
import type { ReportResult, WriteBack } from '../../sources/source.ts';
import type { RecordName, RecordRange } from '../../store/database/key-range.ts';
import type { Meta } from '../../store/database/meta-table.ts';
import type { ReturnedRow } from '../../store/tables/opt-out-reports.ts';
import { isRecord, type MirrorContacts, onlyKey } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import { type Findings, type RunResults, findingsOf } from '../context/run-results.ts';
import type { RunTally } from '../context/run-tally.ts';
import { inTurns } from '../context/work-in-parts.ts';
import { unfinishedIn } from '../erasure/pending/unfinished-erasures.ts';
import { sayRejected } from '../report/problem-groups.ts';
import type { WriteBackSummary } from '../report/run-summary.ts';

/** At most so many opt-outs that the CRM rejected in earlier runs are listed. */
const mostListed = 100;

const kind = 'contact' as const;

/** The result. `stuck`: why not everything could be reported to the CRM; the run goes on. */
export interface Reported {
  summary: WriteBackSummary;
  stuck?: Problem;
}

/**
 * Stores which opt-outs to report to the CRM, and reports them; a plan only counts them. Returns
 * undefined if this mirror, or this kind of run, reports nothing.
 */
export async function reportOptOuts(results: RunResults): Promise<Reported | undefined> {
  const { run, begun, known, failure: runFailure, options, tally, breaker } = results;
  const { snapshot, writes, returns } = run;
  const { optOutReports, meta, transaction } = snapshot;
  // An undo decides about few people, and the next run about the others.
  if (!returns || !begun.contacts || run.undo || run.stop.aborted) return undefined;
  const knowledge = findingsOf(known, kind);
  const conclusive = knowledge.certified && (knowledge.whole || isRecord(options.mode));
  const { contacts } = begun;
  const { optOuts } = contacts;
  const none: FoundOptOuts = { waiting: 0, leftOut: 0, doubtful: 0 };
  const finding: Finding = { run, optOuts, returns, known: knowledge, conclusive, found: none };
  const key = onlyKey(run);
  const isRead = known.has(kind) && !runFailure && key !== '';
  const found = isRead ? await findOptOutsToReport(finding, key) : undefined;
  const before = optOutReports.counts({ kind });
  if (!writes) {
    const { rejected, waiting } = before;
    return { summary: { told: 0, rejected, ...(found ?? { ...none, waiting }) } };
  }
  const unread = new Map<Key, ExpectedError>();
  const endsAt = run.clock.now() + mostMs;
  const mayRead = () =>
    !breaker.stopped() && run.clock.now() < endsAt && ![...unread.values()].some(isAboutAll);
  const delivery = { ...finding, contacts, tally, shown: new Map(), unread, mayRead, endsAt };
  const { told, failure } = await deliverReports(delivery, key);
  const stuckBefore = stuckIn(snapshot);
  const { waiting, rejected } = optOutReports.counts({ kind });
  // If all wait because nobody could be read, it is not known whether the CRM can be reached.
  if (failure ?? ((told > 0 || waiting === 0) && stuckBefore)) {
    transaction(() => {
      if (!failure) meta.drop(metaName);
      else meta.set(metaName, storedStop.encode(stuckBefore?.since ?? run.clock.now(), failure));
    });
  }
  // Those that the CRM rejected in this run are already listed.
  for (const row of key === undefined ? optOutReports.rejected(kind, mostListed) : []) {
    if (row.endedAt !== null && row.endedAt >= run.startedAt) continue;
    const { email, channel: part, reason, fix } = row;
    const about = { kind, key: email, part, fix: fix ?? '' };
    const problem = { ...about, class: 'rejected', cause: 'crm-refused' } as const;
    tally.notReported({ ...problem, reason: sayRejected(reason ?? '') }, false);
  }
  const summary = { told, rejected, ...none, ...found, waiting };
  const error = failure ?? [...unread.values()].at(-1);
  if (!error) return { summary };
  const what = failure
    ? `${counted(waiting, 'opt-out')} could not be reported to the CRM`
    : `${counted(unread.size, 'contact')} to report could not be read on the platform`;
  const reason = `${what}; the next run tries again: ${error.message}`;
  return { summary, stuck: { code: 'write-back-stuck', reason } };
}

interface Finding {
  run: RunContext;
  optOuts: PlatformOptOuts;
  returns: WriteBack;
  known: Findings;
  /** Whether a record that was not read does not exist, of all or of the given person. */
  conclusive: boolean;
  found: FoundOptOuts;
}

interface FoundOptOuts {
  waiting: number;
  /** The number of opt-outs that cannot be reported in the configured way. */
  leftOut: number;
  /** The number of opt-outs not reported because it is doubtful that the person made them. */
  doubtful: number;
}

/** A range is this small because each person in it needs a dozen queries. */
const peopleAtOnce = 500;

const isOpen = new Set(['planned', 'unknown', 'sent']);

/** Stores what to report to the CRM, for one person or for all people. A plan only counts it. */
async function findOptOutsToReport(finding: Finding, key: Key | undefined): Promise<FoundOptOuts> {
  const { run, optOuts, found } = finding;
  const { optOutReports, ranges, transaction } = run.snapshot;
  const look = (keys: RecordRange | RecordName): void => {
    const isErased = run.doNotContact.erased() ?? (() => false);
    const rows = new Map(optOutReports.of(keys).map((row) => [nameOf(row), row]));
    // The opt-outs of an interrupted erasure are ours, not the person's.
    const isBegun = new Set(unfinishedIn(run.snapshot).map((one) => one.key));
    const barred = optOutReports.barred(keys).filter((one) => !one.key.startsWith('#'));
    const left = new Map(optOutReports.leavers(keys).map((row) => [row.key, row]));
    // A plan has noted some people and not recorded them.
    if (!run.writes) for (const row of optOutReports.noted(keys)) left.set(row.key, row);
    const facts = run.facts.known();
    const people = [
      ...[...left.values()].map((row) => ({ key: row.key, outs: optOuts.recorded(row, facts) })),
      ...barred.map((one) => remembered(finding, one.key)),
    ];
    const outs = people
      .filter((one) => !isErased(one.key) && !isBegun.has(one.key))
      .flatMap((one) => one.outs.map((out) => ({ email: one.key, ...out })))
      .flatMap((out) => idsOf(run, out.email).map((crmId) => ({ crmId, ...out })));
    const writes = outs.map((out) => {
      const row = rows.get(nameOf(out));
      rows.delete(nameOf(out));
      const { cause } = out;
      if (cause === 'doubtful') return doubt(finding, { ...out, cause: 'opt_out' }, row);
      return weigh(finding, { ...out, cause }, row);
    });
    writes.push(...[...rows.values()].map((row) => weighLost(finding, row)));
    const all = writes.filter((write) => write !== undefined);
    if (run.writes && all.length > 0) transaction(() => all.forEach((write) => write()));
  };
  if (key !== undefined) look({ kind, key });
  else for await (const range of inTurns(run, ranges.ofKeys(kind, peopleAtOnce))) look(range);
  return found;
}

function nameOf({ email, crmId, channel }: { email: string; crmId: string; channel: string }) {
  return JSON.stringify([email, crmId, channel]);
}

function remembered({ run, optOuts }: Finding, key: Key) {
  const entries = run.doNotContact.concerning({ key, ids: [] });
  const outs = new Map<string, PlatformOptOut>();
  for (const entry of entries) {
    const out = optOuts.remembered(entry, run.facts.known());
    const before = out && outs.get(out.channel);
    if (out && (!before || before.cause === 'doubtful')) outs.set(out.channel, out);
  }
  return { key, outs: [...outs.values()] };
}

/**
 * Returns the person's CRM ids, with '' for a record without one. A former id counts only while no
 * other person has the address, and none has received it since. Under a new address, the record
 * belongs to another person.
 */
function idsOf({ snapshot }: RunContext, key: Key): string[] {
  const { staging, recorded } = snapshot;
  const now = staging.desired(kind, key).map(({ id }) => id);
  const isLast = (id: string): boolean => !recorded.hasLaterOrigin(kind, id, key);
  const isHers = (id: string): boolean => {
    const isRead = staging.keysOf(kind, [id]).length > 0;
    if (isRead) return now.includes(id) || (now.length === 0 && isLast(id));
    return recorded.ofOrigin(kind, id, key).length === 0;
  };
  return [...new Set([...now, ...recorded.originsOf(kind, key).filter(isHers)])];
}

type One = Omit<OptOutReport, 'id'>;

/** What is to be stored about an opt-out, if anything. */
type Write = (() => unknown) | undefined;

/** Counts an opt-out if it waits or is left out, and returns what to store. */
function weigh(finding: Finding, one: One, row: ReturnedRow | undefined): Write {
  const { run, returns, found } = finding;
  const { optOutReports } = run.snapshot;
  const verdict = verdictOn(finding, one);
  // The next certified reading covers everybody who was missing from a failed one.
  if (verdict === 'unread' && !row && !finding.known.certified) return undefined;
  const isUntold = row?.state === 'planned' || row?.state === 'rejected';
  if (verdict === 'needless' && !row) return () => add(finding, one, 'needless');
  if (verdict === 'needless' && isUntold) return endNeedless(run, row);
  if (verdict === 'tell' || !row) {
    if (!returns.takes(one)) {
      found.leftOut += 1;
      return isUntold ? () => optOutReports.drop(row.seq) : undefined;
    }
    if (!row || row.state === 'needless') {
      found.waiting += 1;
      return () => {
        if (row) optOutReports.drop(row.seq);
        add(finding, one, 'planned');
      };
    }
  }
  if (isOpen.has(row.state)) found.waiting += 1;
  return undefined;
}

function endNeedless({ snapshot, clock }: RunContext, { seq }: ReturnedRow): Write {
  const at = clock.now();
  return () => snapshot.optOutReports.move(seq, 'needless', { at });
}

/** Ends the report of an opt-out that has become doubtful. It is not reported to the CRM. */
function doubt(finding: Finding, one: One, row: ReturnedRow | undefined): Write {
  if (verdictOn(finding, one) === 'tell') finding.found.doubtful += 1;
  const isUnsettled = row && ['planned', 'unknown', 'rejected'].includes(row.state);
  return isUnsettled ? endNeedless(finding.run, row) : undefined;
}

/** Stores an opt-out. Its id is stable while the snapshot knows its time, and names nobody. */
function add({ run }: Finding, one: One, state: 'planned' | 'needless'): void {
  const { meta, optOutReports } = run.snapshot;
  const text = JSON.stringify([one.email, one.crmId, one.channel, one.by]);
  const hash = createHmac('sha256', meta.get('name-key') ?? '')
    .update(text)
    .digest('hex');
  const id = `ret_${hash.slice(0, 32)}`;
  optOutReports.add({ ...one, kind, id, state, at: run.clock.now() });
}

/** Compares the opt-out with what the CRM now states in the record, under any address. */
function verdictOn(
  { run, optOuts, conclusive }: Finding,
  one: One,
): 'tell' | 'needless' | 'unread' {
  const { staging, recorded } = run.snapshot;
  const { email, crmId } = one;
  const keys = crmId === '' ? [email] : staging.keysOf(kind, [crmId]);
  const rows = keys.flatMap((key) => staging.desired(kind, key)).filter(({ id }) => id === crmId);
  if (rows.length === 0) return conclusive ? 'needless' : 'unread';
  const present = rows.filter(({ presence }) => presence === 'present');
  // A bounce concerns only the address, so records with another address do not count.
  const of = one.cause === 'bounce' ? present.filter(({ key }) => key === email) : present;
  if (of.length === 0) return 'needless';
  // The CRM's consent may be newer than the opt-out; the consent decision comes first.
  const rowOf = ({ key }: DesiredRow) => recorded.get(kind, key ?? email);
  if (of.some((row) => optOuts.isNewer(row, one, rowOf(row)))) return 'unread';
  return of.some((row) => optOuts.saysSo(row, one)) ? 'needless' : 'tell';
}

/** Ends a stored opt-out that was not found again, if there is no need to report it any more. */
function weighLost(finding: Finding, row: ReturnedRow): Write {
  const { run, found } = finding;
  const { recorded, optOutReports } = run.snapshot;
  const isRecorded = recorded.get(kind, row.email) !== undefined;
  if (isRecorded && !isStillOut(finding, row)) return () => optOutReports.drop(row.seq);
  const isUntold = row.state === 'planned' || row.state === 'rejected';
  if (!isRecorded && isUntold && verdictOn(finding, row) === 'needless')
    return endNeedless(run, row);
  if (isOpen.has(row.state)) found.waiting += 1;
  return undefined;
}

/** Returns whether the person is currently unsubscribed and is known to have done it. */
function isStillOut(finding: Finding, { email, channel }: ReturnedRow): boolean {
  const { run, optOuts } = finding;
  if (run.doNotContact.erased()?.(email)) return false;
  const row = run.snapshot.recorded.get(kind, email);
  const known = row && optOuts.recorded(row, run.facts.known());
  const outs = known ?? remembered(finding, email).outs;
  return outs.some((out) => out.channel === channel && out.cause !== 'doubtful');
}

/** The rest waits for the next run. */
const mostTold = 1_000;
const mostRead = 100;
const mostMs = 60_000;

interface ReportDelivery extends Finding {
  tally: RunTally;
  contacts: MirrorContacts;
  /** What a fast run, which observes nobody, has read of people before it reports them. */
  shown: Map<Key, readonly ObservedRow[]>;
  /** Why it could not read the others, whose reports wait. */
  unread: Map<Key, ExpectedError>;
  mayRead(): boolean;
  endsAt: number;
}

/** Reports the opt-outs that are due. Returns the expected error that stopped it, if any. */
async function deliverReports(
  delivery: ReportDelivery,
  key: Key | undefined,
): Promise<{ told: number; failure?: ExpectedError }> {
  const { run, returns } = delivery;
  const { optOutReports, transaction } = run.snapshot;
  let told = 0;
  const count = (n: number): void => void (told += n);
  try {
    transaction(() => optOutReports.doubt(kind, run.locks.others(run.id)));
    // If reporting twice differs from reporting once, the source tells which opt-outs with an
    // unknown outcome have arrived.
    const open = returns.arrived ? optOutReports.unknown(kind) : [];
    if (open.length > 0) {
      const there = returns.arrived?.(open.map((row) => spelledForCrm(delivery, row)));
      const at = run.clock.now();
      transaction(() => {
        for (const { seq, id } of open)
          optOutReports.move(seq, there?.has(id) ? 'acked' : 'planned', { at });
      });
    }
    for await (const due of inTurns(run, batchesOf(delivery, key)))
      await tellSome(delivery, due, count);
  } catch (error) {
    if (!isExpected(error)) throw error;
    if (!(error instanceof Interrupted)) return { told, failure: error };
  }
  return { told };
}

function* batchesOf(
  { run, returns, unread, endsAt }: ReportDelivery,
  key: Key | undefined,
): Generator<ReturnedRow[]> {
  let before = '';
  for (let tried = 0; tried < mostTold; tried += returns.most) {
    const at = run.clock.now();
    if (run.stop.aborted || at >= endsAt) return;
    const count = Math.min(returns.most, mostTold - tried);
    const { due: dueOfAll, dueOf } = run.snapshot.optOutReports;
    const which = { kind, at, count: unread.size === 0 ? count : mostTold };
    const dueOrUnread = key === undefined ? dueOfAll(which) : dueOf({ ...which, key });
    const due = dueOrUnread.filter(({ email }) => !unread.has(email)).slice(0, count);
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
 * Reports a batch and returns how many opt-outs the CRM accepted. Drops those of people who are
 * subscribed again, and those that the CRM no longer takes; skips those that another run has taken.
 * Throws the failure after storing it.
 */
async function tellBatch(delivery: ReportDelivery, due: readonly ReturnedRow[]): Promise<number> {
  const { run, returns, tally, shown, optOuts } = delivery;
  const { optOutReports, transaction } = run.snapshot;
  const known = run.mode === 'fast' ? await readContacts(delivery, due) : due;
  const at = run.clock.now();
  // The rest is marked as sent, on disk before the request is sent.
  const batch = transaction(() => {
    const isDue = (row: ReturnedRow) =>
      returns.takes(row) &&
      isStillOut(delivery, row) &&
      !optOuts.isBack(shown.get(row.email) ?? [], row);
    const still = known.filter(isDue);
    for (const row of known) if (!still.includes(row)) optOutReports.drop(row.seq);
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
    const open = batch.filter(({ state }) => state === 'unknown');
    const repeated = new Set(open.map(({ id }) => id));
    for await (const told of returns.tell(reports, run.abort, repeated)) {
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
  const isRefused = failure instanceof Invalid || failure instanceof RateLimited;
  // Without a response the outcome is unknown, unless the failure shows that nothing arrived.
  transaction(() => {
    for (const [nth, row] of batch.entries()) {
      const told = answers[nth];
      const { seq, email: key, channel: part } = row;
      const rest = isRefused && row.state !== 'unknown' ? 'planned' : 'unknown';
      if (!told) optOutReports.move(seq, rest, { at: endedAt, tried: nth === answers.length });
      else if (told.is === 'told') optOutReports.move(seq, 'acked', { at: endedAt });
      else {
        const { reason, fix } = told;
        const retryAt = endedAt + retrySchedules.rejectedReport.firstMs;
        const refused = { at: endedAt, reason, fix, retryAt, tried: true };
        optOutReports.move(seq, 'rejected', refused);
        const about = { kind, key, part, reason: sayRejected(reason), fix };
        const problem = { ...about, class: 'rejected', cause: 'crm-refused' } as const;
        tally.notReported(problem, row.state !== 'rejected');
      }
    }
  });
  if (failure) throw failure;
  return answers.filter(({ is }) => is === 'told').length;
}

/** Reads the contacts to report, and returns the reports of those that it could read. */
async function readContacts(
  { run, contacts, shown, unread, mayRead }: ReportDelivery,
  due: readonly ReturnedRow[],
): Promise<ReturnedRow[]> {
  for (const { email: key } of due) {
    if (shown.has(key) || unread.has(key)) continue;
    if (shown.size + unread.size === mostRead || !mayRead()) break;
    try {
      const id = run.snapshot.recorded.get(kind, key)?.id;
      shown.set(key, await contacts.read({ key, id }, run.stop));
    } catch (error) {
      if (!isExpected(error) || error instanceof Interrupted) throw error;
      unread.set(key, error);
    }
  }
  return due.filter(({ email }) => shown.has(email));
}

/** Returns whether the platform would answer a request about another contact likewise. */
function isAboutAll(error: ExpectedError): boolean {
  if (error instanceof Unavailable) return error.status === undefined;
  return !(error instanceof Rejected) || [401, 403].includes(error.status);
}

function spelledForCrm({ run, optOuts }: ReportDelivery, report: ReturnedRow): ReturnedRow {
  const rows = run.snapshot.staging.desired(kind, report.email);
  const row = rows.find(({ id }) => id === report.crmId);
  return { ...report, email: (row && optOuts.spelling(row)) ?? report.email };
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
