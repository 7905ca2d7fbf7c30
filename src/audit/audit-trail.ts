/** The audit log as runs and commands write it. */
import { Busy, type Problem, Unavailable } from '../domain/errors.ts';
import type { Key } from '../domain/record.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
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

type Remembering = Pick<Snapshot, 'unaudited' | 'runs' | 'meta' | 'transaction'>;

/**
 * Moves a part of what the snapshot remembers to the log. Returns true if there may be more, or a
 * note if the log cannot be written: everything then stays in the snapshot.
 */
export function drain({ log }: AuditTrail, snapshot: Remembering): true | Problem | undefined {
  const more = drainSome(snapshot, log);
  return more instanceof Error ? notWritten(more) : more || undefined;
}

/** Signs what was added, and removes what is too old. Returns a note if that is not possible. */
export function closeEntries(
  { log, key, keepMs }: AuditTrail,
  { meta, transaction }: Remembering,
  { at, prunes }: { at: number; prunes: boolean },
): Problem | undefined {
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

/**
 * Remembers a write of an erasure, to be moved to the log, without the person. Call it within a
 * transaction.
 */
export function addErasureWrite(
  { unaudited }: Pick<Snapshot, 'unaudited'>,
  write: Pick<WriteEntry, 'at' | 'op' | 'part' | 'rule' | 'before' | 'outcome'>,
): void {
  const nothing = { status: null, says: null, record: null, statedAt: null, approval: null };
  const more = { ...nothing, request: null, after: null, template: null };
  const entry: WriteEntry = { type: 'write', run: 0, ...more, ...write };
  unaudited.addEntry(JSON.stringify(entry), { key: null, at: write.at });
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

/** Says that the log cannot be written. */
function notWritten({ message }: Error): Problem {
  return {
    code: 'note',
    reason: `the audit log cannot be written (${message}); its entries wait in the snapshot`,
    fix: 'mend that: the next run writes them',
  };
}
