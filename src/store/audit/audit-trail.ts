/** The audit log as runs and commands write it. */
import { Busy, type Problem, Unavailable } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import type { Meta } from '../database/meta-table.ts';
import type { Snapshot } from '../snapshot.ts';
import type { DecisionEntry, WriteEntry } from './audit-entry.ts';
import type { AuditLog } from './audit-log.ts';
import { drainSome, faultOf, rememberHead } from './drain-unaudited.ts';
import type { SigningKey } from './signing-key.ts';

/** An open audit log, with the key that signs it. */
export interface AuditTrail {
  log: AuditLog;
  key: SigningKey;
  /** Entries older than this are removed; in milliseconds. */
  keepMs: number;
}

const faultName = 'audit-fault';

/** Returns why the last run that writes could not write the log; undefined if it could. */
export function storedFault(meta: Pick<Meta, 'get'>): string | undefined {
  return meta.get(faultName);
}

/** Remembers for `status` whether the log could be written. Returns a note if it could not. */
export function noteFault(
  { meta, transaction }: Remembering,
  fault: string | undefined,
): Problem | undefined {
  const says = fault && `it ${fault}; its entries wait in the snapshot`;
  if (says !== meta.get(faultName))
    transaction(() => (says === undefined ? meta.drop(faultName) : meta.set(faultName, says)));
  return fault === undefined ? undefined : sayFault(fault);
}

/** Says that the log cannot be opened or written. */
export function sayFault(fault: string): Problem {
  return {
    code: 'audit-log',
    reason: `the audit log ${fault}; its entries wait in the snapshot`,
    fix: 'mend that: the next run writes them',
  };
}

type Remembering = Pick<Snapshot, 'unaudited' | 'runs' | 'meta' | 'transaction'>;

/**
 * Moves a part of what the snapshot remembers to the log. Returns true if there may be more, or why
 * the log cannot be written: everything then stays in the snapshot.
 */
export function drain({ log }: AuditTrail, snapshot: Remembering): true | string | undefined {
  const more = drainSome(snapshot, log);
  return more instanceof Error ? notWritten(more) : more || undefined;
}

/** Signs what was added, and removes what is too old. Returns why that is not possible, if so. */
export function closeEntries(
  { log, key, keepMs }: AuditTrail,
  { meta, transaction }: Remembering,
  { at, prunes }: { at: number; prunes: boolean },
): string | undefined {
  const before = log.head().seq;
  const fault = faultOf(() => {
    if (prunes) log.prune(at - keepMs, at);
    log.checkpoint(key, at);
  });
  if (fault) return notWritten(fault);
  if (log.head().seq !== before) transaction(() => rememberHead(meta, log));
  return undefined;
}

/** A person, when they are erased, and who asked for it. */
interface Erased {
  key: Key;
  at: number;
  by: string;
}

/**
 * Drops the key of a person, after everything that is remembered of them is in the log: nobody can
 * tell any more who those entries are about. Throws Busy, or Unavailable if the log cannot be
 * written.
 */
export function eraseFromLog(
  { log, key: signing }: AuditTrail,
  snapshot: Remembering,
  { key, at, by }: Erased,
): void {
  let more: boolean | Error = true;
  while (more === true) more = drainSome(snapshot, log);
  const erased = () => {
    log.erase(key, { at, by });
    log.checkpoint(signing, at);
  };
  const fault = more instanceof Error ? more : faultOf(erased);
  if (fault instanceof Busy) throw fault;
  if (fault) {
    const reason = `the audit log cannot be written (${fault.message}), so it still has the person's key`;
    throw new Unavailable(reason, { fix: 'mend that, and forget them again', acted: 'no' });
  }
  snapshot.transaction(() => rememberHead(snapshot.meta, log));
}

/** Returns the entry of a write of an erasure, as JSON text; it does not name the person. */
export function erasureWrite(
  write: Pick<WriteEntry, 'at' | 'op' | 'part' | 'rule' | 'before' | 'outcome'>,
): string {
  const nothing = { status: null, says: null, record: null, statedAt: null, approval: null };
  const more = { ...nothing, request: null, after: null, template: null };
  const entry: WriteEntry = { type: 'write', run: 0, ...more, ...write };
  return JSON.stringify(entry);
}

/** The fields of a decision that somebody has signed. */
type Signed = 'statement' | 'signer';

/** A decision to be remembered. */
export type Decision = Omit<DecisionEntry, 'type' | Signed> & Partial<Pick<DecisionEntry, Signed>>;

/** Remembers a decision, to be moved to the log. Call it within a transaction. */
export function addDecision(
  { unaudited }: Pick<Snapshot, 'unaudited'>,
  decision: Decision,
  key: Key | null = null,
): void {
  const { at } = decision;
  unaudited.addEntry(JSON.stringify({ type: 'decision', ...decision }), { key, at });
}

function notWritten({ message }: Error): string {
  return `cannot be written (${message})`;
}
