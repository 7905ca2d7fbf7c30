/** An entry of the audit log as commands show it: with its run, and with who approved it. */
import {
  type AuditEntry,
  decodeEntry,
  type DecisionEntry,
  readEntry,
  type RunEntry,
  type StoredEntry,
} from '../../store/audit/audit-entry.ts';
import type { AuditLog } from '../../store/audit/audit-log.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { instant, instantOrNull } from '../../compose/output/format-values.ts';

/** An entry in words that need nothing else; times are in UTC. */
export interface EntryDocument {
  seq: number;
  at: string;
  type: AuditEntry['type'];
  /** The person's mark in this log, which is no hash of the address; null for nobody. */
  person: string | null;
  /** What asked for the run of a write, and who gave the command. */
  run?: { id: string; mode: string; by: string; name: string | null } | null | undefined;
  /** The decisions that approved the plan of a write, oldest first. */
  approvedBy?: { at: string; name: string; reason: string | null; as: string | null }[];
  /** What the platform shows since a write, if it is known. */
  after?: string | null;
  /** The other fields of the entry. */
  [field: string]: unknown;
}

/**
 * Returns the newest decisions that are not in the log yet, the newest first, because a run moves
 * them there. They have no number (`seq` is 0), and do not name the person's mark.
 */
export function pendingDecisions({ unaudited }: Snapshot, count: number): EntryDocument[] {
  return unaudited.newestEntries(count).flatMap((text): EntryDocument[] => {
    const entry = readEntry(JSON.parse(text));
    if (entry.type !== 'decision') return [];
    return [{ ...ownFields(entry), seq: 0, type: entry.type, person: null }];
  });
}

/** The entries that others are completed with. */
export interface Sources {
  /** Returns the entry of a run by its number. */
  run(seq: number): RunEntry | undefined;
  /** Returns the decisions that approved a plan or a part, oldest first. */
  approvals(plan: string): DecisionEntry[];
}

/** Returns a function that completes entries of a log. */
export function documentsOf(log: AuditLog): (row: StoredEntry) => EntryDocument {
  const runs = new Map<number, RunEntry | undefined>();
  let approvals: ReturnType<typeof approvalsByPlan> | undefined;
  const sources: Sources = {
    run(seq) {
      if (!runs.has(seq)) {
        const [row] = seq > 0 ? log.entries(seq - 1) : [];
        const entry = row?.seq === seq ? decodeEntry(row.body) : undefined;
        runs.set(seq, entry?.type === 'run' ? entry : undefined);
      }
      return runs.get(seq);
    },
    approvals(plan) {
      approvals ??= approvalsByPlan(log.decisions().map(({ body }) => decodeEntry(body)));
      return approvals.get(plan) ?? [];
    },
  };
  return (row) => {
    const entry = decodeEntry(row.body);
    const { type, at } = entry;
    const person = row.person?.toString('hex') ?? null;
    const told = { seq: row.seq, at: instant(at), type, person };
    return { ...ownFields(entry), ...told, ...derivedFields(entry, sources) };
  };
}

/** Returns the fields that follow from other entries, too. */
export function derivedFields(
  entry: AuditEntry,
  { run, approvals }: Sources,
): Pick<EntryDocument, 'after' | 'run' | 'approvedBy'> {
  if (entry.type !== 'write') return {};
  const begun = run(entry.run);
  const isDone = entry.outcome === 'acked' || entry.outcome === 'found';
  const decided = entry.approval ? approvals(entry.approval) : [];
  return {
    after: isDone ? (entry.after ?? shown[entry.op] ?? null) : null,
    run: begun ? { id: begun.id, mode: begun.mode, by: begun.by, name: begun.name } : null,
    approvedBy: decided
      .filter((one) => one.at <= entry.at)
      .map(({ at, name, reason, as }) => ({ at: instant(at), name, reason, as })),
  };
}

/** Returns the approvals among these entries, by the plan or the part that they are about. */
export function approvalsByPlan(entries: readonly AuditEntry[]): Map<string, DecisionEntry[]> {
  const approvals = entries.flatMap((entry) =>
    entry.type === 'decision' && entry.what === 'approve' ? [entry] : [],
  );
  return Map.groupBy(approvals, ({ about }) => about ?? '');
}

/** Returns the fields that follow from the text of an entry alone; times are in UTC. */
export function ownFields(entry: AuditEntry): {
  type: AuditEntry['type'];
  at: string;
  [field: string]: unknown;
} {
  const at = instant(entry.at);
  if (entry.type !== 'write') return { ...entry, at };
  const { run: _run, after: _after, ...own } = entry;
  return { ...own, at, statedAt: instantOrNull(entry.statedAt) };
}

/**
 * Adds to each opt-in the number of an earlier opt-out of the same channel for which the CRM stated
 * the same time (`sameStatedAt`). The entries are those of one person, the oldest first.
 */
export function withSameTimes(entries: readonly EntryDocument[]): EntryDocument[] {
  const outs = new Map<string, number>();
  return entries.map((entry) => {
    const { says, statedAt, part, seq } = entry;
    if (typeof statedAt !== 'string') return entry;
    const what = JSON.stringify([part, statedAt]);
    if (says === 'opt_out') outs.set(what, seq);
    const sameStatedAt = says === 'opt_in' ? outs.get(what) : undefined;
    return sameStatedAt === undefined ? entry : { ...entry, sameStatedAt };
  });
}

const shown: Readonly<Record<string, string>> = {
  create: 'opt_in',
  opt_in: 'opt_in',
  opt_out: 'opt_out',
  delete: 'none',
};
