/**
 * Proves an audit log: that no entry was changed, removed, added or moved since it was written, and
 * that the signed checkpoints fit. What has no checkpoint yet is proven by the chain alone, which
 * somebody who may write the file could compute anew.
 */
import { type AuditLog, type Checkpoint, checkpointText, type Head } from './audit-log.ts';
import { decodeEntry } from './audit-entry.ts';
import { firstHash, hashOf, type StoredEntry } from './hash-chain.ts';
import { isSigned, keyId } from './signing-key.ts';

/** One fault of a log. */
export interface Fault {
  /** The number of the entry, or the first of several. */
  seq: number;
  what: string;
}

/** What a verification found. */
export interface Verification {
  entries: number;
  /** The numbers of the first and the last entry; 0 in an empty log. */
  first: number;
  last: number;
  /** The last entry that a valid checkpoint covers; 0 if none does. */
  signedUpTo: number;
  /** The ids of the keys that signed. */
  keys: string[];
  /** At most 100 faults, by number. */
  faults: Fault[];
}

const mostFaults = 100;

/**
 * Verifies a log. `known` is an end of the chain that is remembered elsewhere: entries that are
 * missing at the end are found by it alone.
 */
export function verifyLog(
  log: Pick<AuditLog, 'id' | 'entries' | 'checkpoints'>,
  known: readonly Head[] = [],
): Verification {
  const faults: Fault[] = [];
  const add = (seq: number, what: string): void => {
    if (faults.length < mostFaults) faults.push({ seq, what });
  };
  const checkpoints = new Map(log.checkpoints().map((one) => [one.seq, one]));
  const remembered = new Map(known.map((one) => [one.seq, one]));
  const keys = new Set<string>();
  const odd: Odd[] = [];
  let start: Head = { seq: 0, hash: firstHash };
  let first: StoredEntry | undefined;
  let before: Head | undefined;
  let entries = 0;
  let signedUpTo = 0;
  for (const row of log.entries()) {
    entries += 1;
    first ??= row;
    if (row.body.startsWith(pruningStart)) start = startAfter(row) ?? start;
    if (before && row.seq !== before.seq + 1) {
      add(before.seq + 1, missing(before.seq + 1, row.seq - 1));
    } else if (before && !hashOf(before.hash, row).equals(row.hash)) odd.push({ row, before });
    const checkpoint = checkpoints.get(row.seq);
    if (checkpoint) {
      const fault = faultOf(log.id, checkpoint, row);
      if (fault === undefined) signedUpTo = row.seq;
      else add(row.seq, fault);
      keys.add(keyId(checkpoint.publicKey));
      checkpoints.delete(row.seq);
    }
    const other = remembered.get(row.seq);
    if (other && !other.hash.equals(row.hash)) add(row.seq, 'not the entry that was written here');
    before = row;
  }
  if (first && first.seq !== start.seq + 1) {
    add(start.seq + 1, missing(start.seq + 1, first.seq - 1));
  } else if (first && !hashOf(start.hash, first).equals(first.hash)) {
    odd.push({ row: first, before: start });
  }
  for (const { row } of odd) add(row.seq, sayOdd(row, odd));
  const last = before?.seq ?? 0;
  const furthest = Math.max(0, ...remembered.keys(), ...checkpoints.keys());
  if (furthest > last) add(last + 1, missing(last + 1, furthest));
  const all = faults.toSorted((one, other) => one.seq - other.seq);
  return { entries, first: first?.seq ?? 0, last, signedUpTo, keys: [...keys], faults: all };
}

/** An entry whose hash does not follow from the entry before it. */
interface Odd {
  row: StoredEntry;
  before: Head;
}

const pruningStart = '["pruning"';

/** Returns the end of the entries that were removed, according to the entry that says so. */
function startAfter({ body }: StoredEntry): Head | undefined {
  const entry = decodeEntry(body);
  if (entry.type !== 'pruning') return undefined;
  return { seq: entry.upTo, hash: Buffer.from(entry.hash, 'hex') };
}

function missing(from: number, to: number): string {
  return from === to
    ? 'this entry is missing'
    : `${to - from + 1} entries are missing, up to ${to}`;
}

function faultOf(log: string, checkpoint: Checkpoint, row: StoredEntry): string | undefined {
  if (!checkpoint.hash.equals(row.hash))
    return 'the entries up to here are not those that were signed';
  const { publicKey, signature } = checkpoint;
  if (isSigned(checkpointText(log, checkpoint), signature, publicKey)) return undefined;
  return 'the signature of the checkpoint is wrong';
}

/** The entries among which the home of a moved one is searched. */
const mostMoved = 50;

/** Says where an entry that does not fit belongs, or that it was changed. */
function sayOdd(row: StoredEntry, odd: readonly Odd[]): string {
  const near = odd.slice(0, mostMoved);
  const hashes = near.flatMap((one) => [one.before.hash, one.row.hash]);
  const home = near.find(
    ({ row: { seq } }) =>
      seq !== row.seq && hashes.some((before) => hashOf(before, { ...row, seq }).equals(row.hash)),
  );
  return home ? `this is entry ${home.row.seq}, in the wrong place` : 'this entry was changed';
}
