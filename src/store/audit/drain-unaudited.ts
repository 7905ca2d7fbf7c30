/**
 * Moves to the audit log what the snapshot remembers for it: outcomes of changes, and decisions.
 *
 *   the process dies before the log has them      the next run moves them
 *   it dies before the snapshot has dropped them  the log tells that it has them already
 *   the log cannot be written                     they stay in the snapshot, and the run says so
 */
import { z } from 'zod';
import { isExpected } from '../../domain/errors.ts';
import type { UnauditedRow } from '../tables/unaudited.ts';
import type { Snapshot } from '../snapshot.ts';
import { type Meta, metaValue } from '../database/meta-table.ts';
import { readEntry, type RunEntry, writeOutcome } from './audit-entry.ts';
import type { Appended, AuditLog, Head } from './audit-log.ts';

/** The number of rows that are moved before other tasks need a turn. */
const atOnce = 500;

type Draining = Pick<Snapshot, 'unaudited' | 'runs' | 'meta' | 'transaction'>;

/**
 * Moves the oldest rows. Returns whether there may be more, or the error for which the log cannot
 * be written. Throws the errors of the snapshot.
 */
export function drainSome(snapshot: Draining, log: AuditLog): boolean | Error {
  const rows = snapshot.unaudited.next(atOnce);
  const last = rows.at(-1);
  if (!last) return false;
  const fault = faultOf(() => {
    const reached = new Map(rows.map(({ writer, id }) => [writer, id]));
    const fresh = rows.filter(({ writer, id }) => id > log.reached(writer));
    const all = appendedOf(snapshot, log, fresh);
    log.append(
      all,
      [...reached].map(([writer, id]) => ({ writer, id })),
    );
  });
  if (fault) return fault;
  snapshot.transaction(() => {
    snapshot.unaudited.drop(last.id);
    rememberHead(snapshot.meta, log);
  });
  return rows.length === atOnce;
}

/** Does the work. Returns the error of the log's file, if there is one; rethrows others. */
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

const headName = 'audit-head';
const headSchema = z.object({ log: z.string(), seq: z.number(), hash: z.string() });

/** Returns the end of the log that the snapshot knows. A later end that was cut is found by it. */
export function knownHead(meta: Meta): (Head & { log: string }) | undefined {
  const known = metaValue(meta, headName, headSchema);
  return known && { ...known, hash: Buffer.from(known.hash, 'hex') };
}

/**
 * Adds an entry that says so if the snapshot knows a later end, or another log: entries are lost.
 * Returns it in words.
 */
export function noteGap(
  log: AuditLog,
  known: ReturnType<typeof knownHead>,
  at: number,
): string | undefined {
  if (!known || (known.log === log.id && known.seq <= log.head().seq)) return undefined;
  const { seq } = log.head();
  log.append([{ entry: { type: 'gap', at, log: known.log, upTo: known.seq } }]);
  return (
    `the audit log ends at entry ${seq}, and the snapshot knows entry ${known.seq} of the log ` +
    `${known.log}: entries are lost, and an entry says so`
  );
}

/** Remembers the end of the log. Call it within a transaction. */
export function rememberHead(meta: Meta, log: AuditLog): void {
  const { seq, hash } = log.head();
  meta.set(headName, JSON.stringify({ log: log.id, seq, hash: hash.toString('hex') }));
}

function appendedOf(snapshot: Draining, log: AuditLog, rows: readonly UnauditedRow[]): Appended[] {
  const named = new Set<string>();
  return rows.flatMap((row): Appended[] => {
    if (row.entry !== null) {
      return [{ entry: readEntry(JSON.parse(row.entry)), person: row.key ?? undefined }];
    }
    const write = writtenOf(row);
    // The change was purged together with its person.
    if (!write) return [];
    const { run = '' } = write;
    if (named.has(run) || log.knowsRun(run)) return [write];
    named.add(run);
    const begun = runOf(snapshot, run);
    return begun ? [{ entry: begun }, write] : [write];
  });
}

/** The reason of a change (ChangeReason). Changes of earlier versions have none. */
const reasonSchema = z.object({
  rule: z.string(),
  says: z.string().optional(),
  statedAt: z.number().optional(),
  before: z.string(),
  after: z.string().optional(),
  records: z.string().optional(),
});
const unknownReason = { rule: 'unknown', before: 'unknown' };

function writtenOf({ at, run, op, key, outcome, ...row }: UnauditedRow): Appended | undefined {
  if (run === null || op === null || key === null || outcome === null) return undefined;
  const { why, part, status, request, approved } = row;
  const reason: unknown = why === null ? unknownReason : JSON.parse(why);
  const { rule, before, says, statedAt, after, records } = reasonSchema.parse(reason);
  const isContact = row.kind === 'contact';
  return {
    entry: {
      type: 'write',
      at,
      run: 0,
      op,
      part: part ?? '',
      rule,
      outcome: writeOutcome.parse(outcome),
      before,
      status,
      says: says ?? null,
      record: isContact ? null : (records ?? null),
      statedAt: statedAt ?? null,
      approval: approved,
      request,
      after: after ?? null,
      template: isContact ? null : key,
    },
    person: isContact ? key : undefined,
    records,
    run,
  };
}

const askedSchema = z.object({
  by: z.string(),
  name: z.string().nullable(),
  mapping: z.string().nullable(),
  undoes: z.string().nullable().default(null),
});

function runOf({ runs }: Draining, id: string): RunEntry | undefined {
  const known = runs.get(id);
  if (!known) return undefined;
  const { mode, startedAt: at, asked } = known;
  const unknown = { by: 'unknown', name: null, mapping: null, undoes: null };
  const told = asked === null ? unknown : askedSchema.parse(JSON.parse(asked));
  return { type: 'run', at, id, mode, ...told };
}
