/**
 * The audit log as runs and commands write and read it. Entries wait in the snapshot until they are
 * in the log, so that a memory that cannot be written stops no run. The snapshot also knows the
 * last entry, so that a log which has lost some gets an entry of the gap.
 */
import { Busy, type Problem, Unavailable, isExpected } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import type { ChangeReason } from '../../domain/change.ts';
import { storedJson } from '../../domain/stored-json.ts';
import { type Meta, storedFact } from '../database/meta-table.ts';
import type { Snapshot } from '../snapshot.ts';
import type { UnauditedRow } from '../tables/unaudited.ts';
import { type DecisionEntry, type RunEntry, type WriteEntry, readEntry } from './audit-entry.ts';
import type { AuditLog, Appended, Head } from './audit-log.ts';

export interface AuditTrail {
  log: AuditLog;
  /** Entries older than this are removed; in milliseconds. */
  keepMs: number;
}

/** The memory, as far as an erasure needs it. */
export interface ErasableMemory {
  log: AuditLog;
  /** Removes what the logs and the list have of a person's key. */
  forget(person: { key: Key; contacts: readonly string[] }, said: { at: number; by: string }): void;
}

const faultName = 'audit-fault';

/** Returns why the last run that writes could not write the log; undefined if it could. */
export function storedFault(meta: Meta): string | undefined {
  return meta.get(faultName);
}

/** Remembers for `status` why the log could not be written, and returns a note. */
export function noteFault(
  { meta, transaction }: Snapshot,
  fault: string | undefined,
): Problem | undefined {
  const says = fault && `it ${fault}; its entries wait in the snapshot`;
  if (says !== meta.get(faultName))
    transaction(() => (says === undefined ? meta.drop(faultName) : meta.set(faultName, says)));
  if (fault === undefined) return undefined;
  return {
    code: 'audit-log',
    reason: `the audit log ${fault}; its entries wait in the snapshot`,
    fix: 'mend that: the next run writes them',
  };
}

/**
 * Moves a part of what the snapshot remembers to the log. Returns true if there may be more, or why
 * the log cannot be written: everything then stays in the snapshot.
 */
export function drain({ log }: AuditTrail, snapshot: Snapshot): true | string | undefined {
  const more = drainSome(snapshot, log);
  return more instanceof Error ? notWritten(more) : more || undefined;
}

/** Signs what was added, and removes what is too old. Returns why that is not possible, if so. */
export function closeEntries(
  { log, keepMs }: AuditTrail,
  { meta, transaction }: Snapshot,
  { at, prunes }: { at: number; prunes: boolean },
): string | undefined {
  const before = log.head().seq;
  const fault = faultOf(() => {
    if (prunes) log.prune(at - keepMs, at);
    log.checkpoint(at);
  });
  if (fault) return notWritten(fault);
  if (log.head().seq !== before) transaction(() => rememberHead(meta, log));
  return undefined;
}

/**
 * Removes what the memory has of a person, after everything that is remembered of them is in the
 * log: nobody can tell any more who those entries are about. Throws Busy, or Unavailable if the
 * memory cannot be written.
 */
export function forgetInMemory(
  { memory, audit, snapshot }: { memory: ErasableMemory; audit?: unknown; snapshot: Snapshot },
  person: { key: Key; contacts: readonly string[] },
  said: { at: number; by: string },
): void {
  const { log } = memory;
  let more: boolean | Error = audit !== undefined;
  while (more === true) more = drainSome(snapshot, log);
  const fault = more || faultOf(() => memory.forget(person, said));
  if (fault instanceof Busy) throw fault;
  if (fault) {
    const reason = `the memory cannot be written (${fault.message}), so it still has the person's key`;
    throw new Unavailable(reason, { fix: 'mend that, and forget them again', acted: 'no' });
  }
  if (audit !== undefined) snapshot.transaction(() => rememberHead(snapshot.meta, log));
}

/** Does not name the person. */
export function erasureWrite(
  write: Pick<WriteEntry, 'at' | 'op' | 'part' | 'rule' | 'before' | 'outcome'>,
): string {
  const nothing = { status: null, says: null, record: null, statedAt: null, approval: null };
  const more = { ...nothing, request: null, after: null, template: null };
  const entry: WriteEntry = { type: 'write', run: 0, ...more, ...write };
  return JSON.stringify(entry);
}

/** A decision to be remembered; `statement` and `signer` are those of a signed one. */
export type Decision = Omit<DecisionEntry, 'type' | OfPlans> &
  Partial<Pick<DecisionEntry, OfPlans>>;
type OfPlans = 'statement' | 'signer' | 'plan' | 'changes';

/** Remembers a decision, to be moved to the log. Call it within a transaction. */
export function addDecision(
  { unaudited }: { unaudited: Snapshot['unaudited'] },
  decision: Decision,
  key: Key | null = null,
): void {
  const { at } = decision;
  unaudited.addEntry({ entry: JSON.stringify({ type: 'decision', ...decision }), key, at });
}

function notWritten({ message }: Error): string {
  return `cannot be written (${message})`;
}

const atOnce = 500;

/**
 * Moves the oldest rows of what the snapshot remembers for the log: outcomes of changes, and
 * decisions. Returns whether there may be more, or the error for which the log cannot be written.
 * Throws the errors of the snapshot.
 *
 *   the process dies before the log has them      the next run moves them
 *   it dies before the snapshot has dropped them  the log tells that it has them already
 *   the log cannot be written                     they stay in the snapshot, and the run says so
 */
function drainSome(snapshot: Snapshot, log: AuditLog): boolean | Error {
  const rows = snapshot.unaudited.next(atOnce);
  const last = rows.at(-1);
  if (!last) return false;
  const fault = faultOf(() => {
    const fresh = rows.filter(({ writer, id }) => id > log.reached(writer));
    const ends = new Map(rows.map(({ writer, id }) => [writer, id]));
    const { runs } = snapshot;
    const named = new Set<string>();
    log.append(
      fresh.flatMap((row): Appended[] => {
        if (row.entry !== null) {
          return [{ entry: readEntry(JSON.parse(row.entry)), person: row.key ?? undefined }];
        }
        const write = writeIn(row);
        // The change was purged together with its person.
        if (!write) return [];
        const { run = '' } = write;
        if (named.has(run) || log.knowsRun(run)) return [write];
        named.add(run);
        const known = runs.get(run);
        if (!known) return [write];
        const { mode, startedAt: at } = known;
        const asked = known.asked === null ? { by: 'unknown' } : storedAsked.decode(known.asked);
        const { by, name = null, mapping = null, undoes = null } = asked;
        return [{ entry: { type: 'run', at, id: run, mode, by, name, mapping, undoes } }, write];
      }),
      ends,
    );
  });
  if (fault) return fault;
  snapshot.transaction(() => {
    snapshot.unaudited.drop(last.id);
    rememberHead(snapshot.meta, log);
  });
  return rows.length === atOnce;
}

/** Returns the error of the log's file, if the work throws one; rethrows others. */
export function faultOf(work: () => void): Error | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (!isExpected(error) && error.name !== 'SqliteError') throw error;
    return error;
  }
}

const storedHead = storedFact<{ log: string; seq: number; hash: string }>(
  'audit-head',
  'the known end of the audit log',
);

/** The end of the log that the snapshot knows: by it, an end that was cut is found. */
export function knownHead(meta: Meta): (Head & { log: string }) | undefined {
  const known = storedHead.read(meta);
  return known && { ...known, hash: Buffer.from(known.hash, 'hex') };
}

/** Whether it is another log, its end was cut, or that entry was replaced. */
export function lacksKnownEnd(log: AuditLog, known: { log: string } & Head): boolean {
  if (known.log !== log.id || known.seq > log.head().seq) return true;
  // An entry that was removed as too old is not there.
  return log.hashAt(known.seq)?.equals(known.hash) === false;
}

/** Adds an entry that says so if the log lacks the end that is known. Returns it in words. */
export function noteGap(
  log: AuditLog,
  known: ReturnType<typeof knownHead>,
  at: number,
): string | undefined {
  if (!known || !lacksKnownEnd(log, known)) return undefined;
  const { seq } = log.head();
  log.append([{ entry: { type: 'gap', at, log: known.log, upTo: known.seq } }]);
  const end = known.seq > seq ? 'entry' : 'another entry';
  return (
    `the audit log ends at entry ${seq}, and the snapshot knows ${end} ${known.seq} of the log ` +
    `${known.log}: entries are lost, and an entry says so`
  );
}

/** Call it within a transaction. */
export function rememberHead(meta: Meta, log: AuditLog): void {
  const { seq, hash } = log.head();
  storedHead.write(meta, { log: log.id, seq, hash: hash.toString('hex') });
}

const storedAsked = storedJson<Partial<RunEntry> & { by: string }>('who asked for a run');
const storedReason = storedJson<ChangeReason>('the reason of a change');

function writeIn({ at, run, op, key, outcome, ...row }: UnauditedRow): Appended | undefined {
  if (run === null || op === null || key === null || outcome === null) return undefined;
  const unknown: ChangeReason = { rule: 'unknown', before: 'unknown' };
  const reason = row.why === null ? unknown : storedReason.decode(row.why);
  const { rule, before, says = null, statedAt = null, after = null, records } = reason;
  const isContact = row.kind === 'contact';
  return {
    entry: {
      type: 'write',
      at,
      run: 0,
      op,
      part: row.part ?? '',
      rule,
      outcome,
      before,
      status: row.status,
      says,
      record: isContact ? null : (records ?? null),
      statedAt,
      approval: row.approved,
      request: row.request,
      after,
      template: isContact ? null : key,
    },
    person: isContact ? key : undefined,
    records,
    run,
  };
}
