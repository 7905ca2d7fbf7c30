/**
 * Proves an audit log: that no entry was changed, removed, added or moved since it was written, and
 * that the signed checkpoints fit. What has no checkpoint yet is proven by the chain alone, which
 * somebody who may write the file could compute anew.
 */
import { createPublicKey } from 'node:crypto';
import { Invalid } from '../../domain/errors.ts';
import { type AuditLog, type Checkpoint, checkpointText, type Head } from './audit-log.ts';
import { entryIn } from './audit-entry.ts';
import { firstHash, hashOf, type StoredEntry } from './hash-chain.ts';
import { isSignedDecision } from './signed-decision.ts';
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
  /** The last entry that is proven: signed, and with nothing wrong before it; 0 if none is. */
  provenUpTo: number;
  /** The number and the hash of the last entry, `SEQ:HASH`; null in an empty log. */
  head: string | null;
  /** The ids of the keys that signed. */
  keys: string[];
  /** At most 100 faults, by number. */
  faults: Fault[];
}

const mostFaults = 100;

/** What a verification compares a log with. */
interface Compared {
  /** An end of the chain that is remembered elsewhere: only by it is a cut end found. */
  known?: (Head & { log?: string }) | undefined;
  /** An end that somebody keeps where nobody can change it together with the log. */
  kept?: Head | undefined;
  /** The public keys, in PEM form, that may have signed; any key if there are none. */
  trusted?: readonly string[];
  /** What comes before the first entry, if earlier ones are left out. */
  start?: Head | undefined;
}

/** Verifies a log. */
export function verifyLog(
  log: Pick<AuditLog, 'id' | 'entries' | 'checkpoints'>,
  { known, kept, trusted = [], start: given }: Compared = {},
): Verification {
  const faults: Fault[] = [];
  const add = (seq: number, what: string): void => {
    if (faults.length < mostFaults) faults.push({ seq, what });
  };
  sayOther(log.id, known?.log ?? log.id, add);
  const signed = signaturesOf(log, { trusted, add });
  const chain = chainOf(add);
  const ends = [known, kept].filter((end) => end !== undefined);
  let start = given ?? { seq: 0, hash: firstHash };
  let first: StoredEntry | undefined;
  let before: Head | undefined;
  let entries = 0;
  for (const row of log.entries()) {
    entries += 1;
    first ??= row;
    start = given ?? startAfter(row) ?? start;
    sayGap(row, add);
    saySignature(row, add);
    if (before) chain.follow(row, before);
    signed.check(row);
    if (ends.some((end) => isOther(row, end))) chain.replaced(row);
    before = row;
  }
  if (first) chain.follow(first, start);
  const last = before ?? { seq: 0, hash: firstHash };
  sayCut(last.seq, Math.max(...ends.map(({ seq }) => seq), ...signed.left(), 0), add);
  if (kept) sayEarlier(start, kept, add);
  const proven = signed.found(chain.brokenAt());
  const all = faults.toSorted((one, other) => one.seq - other.seq);
  const { seq } = last;
  const head = seq === 0 ? null : `${seq}:${last.hash.toString('hex')}`;
  return { entries, first: first?.seq ?? 0, last: seq, head, ...proven, faults: all };
}

/** Returns what checks that each entry follows from the one before it. */
function chainOf(add: Judging['add']) {
  const odd: Odd[] = [];
  let broken = Number.MAX_SAFE_INTEGER;
  const breakAt = (seq: number): void => void (broken = Math.min(broken, seq));
  return {
    follow(row: StoredEntry, after: Head): void {
      const fits = row.seq === after.seq + 1;
      if (fits && hashOf(after.hash, row).equals(row.hash)) return;
      breakAt(after.seq + 1);
      if (fits) odd.push({ row, before: after });
      else add(after.seq + 1, missing(after.seq + 1, row.seq - 1));
    },
    /** Reports an entry that is not the one that is known from elsewhere. */
    replaced({ seq }: Head): void {
      add(seq, 'not the entry that was written here');
      breakAt(seq);
    },
    /** Reports the entries that do not fit. Returns the first that does not follow. */
    brokenAt(): number {
      for (const { row } of odd) add(row.seq, sayOdd(row, odd));
      return broken;
    },
  };
}

/** Returns whether an entry has another hash than the one that is known of it. */
function isOther(row: Head, known: Head): boolean {
  return known.seq === row.seq && !known.hash.equals(row.hash);
}

/** Reports a kept end that comes before the first entry, and so does not prove the entries. */
function sayEarlier(start: Head, kept: Head, add: Judging['add']): void {
  if (kept.seq > start.seq || start.seq === 0) return;
  if (isOther(start, kept)) add(kept.seq, 'not the entry that was written here');
  if (kept.seq < start.seq) {
    add(kept.seq, 'the entry of --head is not here, so it proves nothing: give a later one');
  }
}

/** Reports a log that took the place of the one that the snapshot knows. */
function sayOther(log: string, known: string, add: Judging['add']): void {
  if (known === log) return;
  add(1, `this is another log (${log}) than the one that the snapshot knows (${known})`);
}

/** Reports entries that are missing at the end. */
function sayCut(last: number, furthest: number, add: Judging['add']): void {
  if (furthest > last) add(last + 1, missing(last + 1, furthest));
}

interface Judging {
  trusted: readonly string[];
  add(seq: number, what: string): void;
}

/** Returns what checks the signed checkpoints, entry by entry. */
function signaturesOf(log: Pick<AuditLog, 'id' | 'checkpoints'>, { trusted, add }: Judging) {
  const accepted = new Set(trusted.map(keyIdOf));
  const left = new Map(log.checkpoints().map((one) => [one.seq, one]));
  const keys = new Set<string>();
  const valid: number[] = [];
  return {
    check(row: StoredEntry): void {
      const checkpoint = left.get(row.seq);
      if (!checkpoint) return;
      const fault = faultOf(log.id, checkpoint, row) ?? strangerOf(checkpoint, accepted);
      if (fault === undefined) valid.push(row.seq);
      else add(row.seq, fault);
      keys.add(keyId(checkpoint.publicKey));
      left.delete(row.seq);
    },
    /** Returns the numbers of signed entries that were not found. */
    left: () => left.keys(),
    /** `broken` is the first entry that does not follow from the one before it. */
    found: (broken: number) => ({
      signedUpTo: valid.at(-1) ?? 0,
      provenUpTo: valid.findLast((seq) => seq < broken) ?? 0,
      keys: [...keys],
    }),
  };
}

/** An entry whose hash does not follow from the entry before it. */
interface Odd {
  row: StoredEntry;
  before: Head;
}

const pruningStart = '["pruning"';

const gapStart = '["gap"';

const decisionStart = '["decision"';

/** Reports a decision whose signature does not fit what was signed. */
function saySignature({ seq, body }: StoredEntry, add: Judging['add']): void {
  if (!body.startsWith(decisionStart)) return;
  const entry = entryIn(body);
  if (entry?.type !== 'decision' || isSignedDecision(entry) !== false) return;
  add(seq, 'the signature of this approval does not fit what was signed');
}

/** Reports that entries before this one are lost, if it says so. */
function sayGap({ seq, body }: StoredEntry, add: Judging['add']): void {
  if (!body.startsWith(gapStart)) return;
  const entry = entryIn(body);
  const known = entry?.type === 'gap' ? entry : undefined;
  const which = known && `: the snapshot knew the log ${known.log} up to ${known.upTo}`;
  add(seq, `entries before this one are lost${which ?? ''}`);
}

/** Returns the end of the entries that were removed, according to the entry that says so. */
function startAfter({ body }: StoredEntry): Head | undefined {
  if (!body.startsWith(pruningStart)) return undefined;
  const entry = entryIn(body);
  if (entry?.type !== 'pruning') return undefined;
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

function strangerOf({ publicKey }: Checkpoint, accepted: ReadonlySet<string>): string | undefined {
  const id = keyId(publicKey);
  if (accepted.size === 0 || accepted.has(id)) return undefined;
  return `signed with the key ${id}, which is none of the given ones`;
}

/** Returns the id of a key in PEM form. Throws Invalid if it is none. */
export function keyIdOf(pem: string): string {
  try {
    return keyId(createPublicKey(pem).export({ type: 'spki', format: 'pem' }).toString());
  } catch {
    throw new Invalid('--public-key: the file contains no public key (PEM)', {
      fix: 'export it with `openssl pkey -in KEYFILE -pubout`',
    });
  }
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
