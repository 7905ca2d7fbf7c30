/** Records the progress of an erasure in the snapshot, step by step. */
import type { Deed } from '../../records/capabilities.ts';
import { acked, type RecordType } from '../../records/record-type.ts';
import { Busy, Unavailable } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import type { Purged } from '../../store/tables/record-purge.ts';
import { invalidateCursor } from '../finish/source-cursor.ts';
import { eraseFromLog, erasureWrite } from '../../store/audit/audit-trail.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import type { Mirror } from '../context/mirror-context.ts';
import { begun, end, keep, type Unfinished } from './pending/unfinished-erasures.ts';

/** The record of one erasure; see `accountOf`. */
export type ErasureAccount = ReturnType<typeof accountOf>;

/**
 * Records that the erasure has begun, and returns its record: `done` returns what has been done so
 * far, and each of the other functions records one more step.
 */
export function accountOf(mirror: Mirror, key: Key, { since, by }: { since: number; by: string }) {
  const { snapshot, clock } = mirror;
  const { transaction, recorded, purge } = snapshot;
  const noteWrite = erasureWritesIn(mirror);
  let now = begun(snapshot, key, since);
  const note = (next: Unfinished, also?: () => void): void => {
    transaction(() => {
      also?.();
      keep(snapshot, next);
    });
    now = next;
  };
  /** Records the opt-out as ours, in case the erasure stops here. */
  const optedOut = (type: RecordType, { id, channel }: Deed & { is: 'opted out' }): void => {
    const row = recorded.get(type.name, key);
    if (!row) return;
    const about = { kind: type.name, key, part: channel, target: id, body: '{}', phase: 0 };
    const ack = { ...acked({ id }), at: clock.now(), latest: latestNow(mirror) };
    const after = type.acknowledge(row, { ...about, op: 'opt_out' }, ack);
    if (after) recorded.put(after);
  };
  note(now);
  return {
    done: (): Unfinished => now,
    looked: () => note({ ...now, found: now.found ?? [] }),
    tell: (type: RecordType, deed: Deed) =>
      note(withDeed(now, deed), () => {
        if (deed.is === 'opted out') optedOut(type, deed);
        if (deed.is !== 'found') noteWrite(deed);
      }),
    /**
     * Drops the person's key in the audit log, deletes the person from the request log, then from
     * the snapshot's tables and file, and ends the erasure. If a log cannot be written, throws
     * before the snapshot is changed; if another process reads the snapshot, throws Busy and stores
     * the person's key again.
     */
    purge(type: RecordType, ids: readonly string[]): void {
      const row = recorded.get(type.name, key);
      const known = row ? (type.capabilities.personRead?.idsOf(row) ?? []) : [];
      const contacts = [...new Set([...known, ...(now.found ?? []), ...now.deleted])];
      eraseFromAudit(mirror, type, { key, by });
      mirror.requestLog?.forget({ address: key, contacts });
      transaction(() => {
        now = withPurged(now, purge.rows(type.name, key, ids));
        keep(snapshot, { ...now, key: undefined, told: undefined });
        // It is no longer known who else had this address, so the source has to be read completely.
        invalidateCursor(snapshot, type);
      });
      try {
        purge.scrub();
      } catch (error) {
        if (error instanceof Busy) note(now);
        throw error;
      }
      transaction(() => end(snapshot, key));
    },
  };
}

/** Drops the person's key in the audit log. Throws Unavailable or Busy if that is not possible. */
function eraseFromAudit(
  mirror: Mirror,
  type: RecordType,
  { key, by }: { key: Key; by: string },
): void {
  const { audit, auditFault, snapshot, clock } = mirror;
  noteOpen(mirror, type, key);
  if (auditFault !== undefined) {
    const reason = `the audit log cannot be opened (${auditFault}), so it still has the key`;
    throw new Unavailable(reason, { fix: 'mend that, and forget them again', acted: 'no' });
  }
  if (audit) eraseFromLog(audit, snapshot, { key, at: clock.now(), by });
}

/**
 * Remembers for the audit log the changes that an earlier process sent: their outcome is never
 * found out, because the person's rows are deleted.
 */
function noteOpen({ snapshot, clock }: Mirror, { name }: RecordType, key: Key): void {
  const { journal, unaudited, transaction } = snapshot;
  const open = journal.open(name).filter((one) => one.key === key && one.state === 'sent');
  if (open.length === 0) return;
  const at = clock.now();
  const unknown = { at, outcome: 'unknown', status: undefined, request: undefined };
  transaction(() => open.forEach(({ seq }) => unaudited.addOutcome(seq, unknown)));
}

/**
 * Returns a function that remembers a write on the platform for the audit log: before it is sent as
 * one without an answer, because the process may die, and then what became of it.
 */
function erasureWritesIn({ snapshot: { unaudited }, clock }: Mirror): (deed: Deed) => void {
  const open = new Map<string, number>();
  return (deed) => {
    const channel = 'channel' in deed ? deed.channel : undefined;
    const name = JSON.stringify([deed.id, channel]);
    const isOptOut = channel !== undefined;
    const at = clock.now();
    const write = {
      at,
      op: isOptOut ? 'opt_out' : 'delete',
      part: channel ?? '',
      rule: 'forgotten',
      before: isOptOut ? 'opt_in' : 'present',
    } as const;
    if (deed.is === 'sending') {
      const entry = erasureWrite({ ...write, outcome: 'unknown' });
      open.set(name, unaudited.addEntry(entry, { key: null, at }));
      return;
    }
    const id = open.get(name);
    open.delete(name);
    const isDone = deed.is !== 'refused';
    const entry = isDone ? erasureWrite({ ...write, outcome: 'acked' }) : null;
    if (id !== undefined) unaudited.replaceEntry(id, entry);
  };
}

/** Adds a step; each contact is counted once. */
function withDeed(one: Unfinished, deed: Deed): Unfinished {
  if (deed.is === 'sending' || deed.is === 'refused') return one;
  if (deed.is === 'opted out') return { ...one, optedOut: one.optedOut + 1 };
  return { ...one, [deed.is]: [...new Set([...(one[deed.is] ?? []), deed.id])] };
}

/** Adds the rows deleted now to those of earlier attempts. */
function withPurged(one: Unfinished, more: Purged): Unfinished {
  const before = one.purged;
  const sum = (of: keyof Purged): number => (before?.[of] ?? 0) + more[of];
  return {
    ...one,
    purged: {
      recorded: sum('recorded'),
      origins: sum('origins'),
      problems: sum('problems'),
      changes: sum('changes'),
      absences: sum('absences'),
      held: sum('held'),
      returned: sum('returned'),
    },
  };
}
