/**
 * Proves an audit log: that no entry was changed, removed, added or moved since it was written, and
 * that the signed checkpoints fit. What has no checkpoint yet is proven by the chain alone, which
 * somebody who may write the file could compute anew. A decision may also be signed by the key that
 * it names.
 */
import { createPublicKey } from 'node:crypto';
import { Invalid } from '../../domain/errors.ts';
import { type AuditLog, checkpointText, type Head } from './audit-log.ts';
import { entryIn, firstHash, hashOf, type StoredEntry } from './audit-entry.ts';
import { isSigned, keyId } from './memory-key.ts';
import { isSignedBy } from '../../domain/values/ed25519-key.ts';

export interface LogFault {
  /** The number of the entry, or the first of several. */
  seq: number;
  what: string;
}

export interface Verification {
  entries: number;
  /** 0 in an empty log. */
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
  faults: LogFault[];
}

const mostFaults = 100;

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

/** The log to verify: its entries in order, and its signed checkpoints. */
interface Verified {
  id: string;
  entries: AuditLog['entries'];
  checkpoints: AuditLog['checkpoints'];
}

export function verifyLog(
  log: Verified,
  { known, kept, trusted = [], start: given }: Compared = {},
): Verification {
  const faults: LogFault[] = [];
  const add = (seq: number, what: string): void => {
    if (faults.length < mostFaults) faults.push({ seq, what });
  };
  if (known?.log !== undefined && known.log !== log.id) {
    add(1, `this is another log (${log.id}) than the one that the snapshot knows (${known.log})`);
  }
  const signed = checkSignatures(log, trusted, add);
  const chain = checkChain(add);
  const ends = [known, kept].filter((end) => end !== undefined);
  let start = given ?? { seq: 0, hash: firstHash };
  let first: StoredEntry | undefined;
  let before: Head | undefined;
  let entries = 0;
  for (const row of log.entries()) {
    entries += 1;
    first ??= row;
    // The entries that tell something about the log itself.
    const isSpecial = specialStarts.some((start) => row.body.startsWith(start));
    const special = isSpecial ? entryIn(row.body) : undefined;
    if (special?.type === 'pruning') {
      start = given ?? { seq: special.upTo, hash: Buffer.from(special.hash, 'hex') };
    }
    if (
      special?.type === 'decision' &&
      isSignedDecision(special.statement, special.signer, special.evidence) === false
    ) {
      add(row.seq, 'the signature of this approval does not fit what was signed');
    }
    if (row.body.startsWith(gapStart)) {
      const known = special?.type === 'gap' ? special : undefined;
      const which = known && `: the snapshot knew the log ${known.log} up to ${known.upTo}`;
      add(row.seq, `entries before this one are lost${which ?? ''}`);
      // The end was not cut, so it was written anew.
      if (known?.log === log.id && known.upTo < row.seq) chain.replaced(known.upTo);
    }
    if (before) chain.follow(row, before);
    signed.check(row);
    if (ends.some((end) => isOther(row, end))) chain.replaced(row.seq);
    before = row;
  }
  if (first) chain.follow(first, start);
  const last = before ?? { seq: 0, hash: firstHash };
  const furthest = Math.max(...ends.map(({ seq }) => seq), ...signed.left(), 0);
  if (furthest > last.seq) add(last.seq + 1, missing(last.seq + 1, furthest));
  // A kept end that comes before the first entry does not prove the entries.
  if (kept && start.seq > 0 && kept.seq <= start.seq) {
    if (isOther(start, kept)) add(kept.seq, 'not the entry that was written here');
    if (kept.seq < start.seq) {
      add(kept.seq, 'the entry of --head is not here, so it proves nothing: give a later one');
    }
  }
  const proven = signed.found(chain.brokenAt());
  const all = faults.toSorted((one, other) => one.seq - other.seq);
  const { seq } = last;
  const head = seq === 0 ? null : `${seq}:${last.hash.toString('hex')}`;
  return { entries, first: first?.seq ?? 0, last: seq, head, ...proven, faults: all };
}

/** `row` does not follow from the hash before it. */
interface Odd {
  row: StoredEntry;
  before: Head;
}

function checkChain(add: Add) {
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
    replaced(seq: number): void {
      add(seq, 'not the entry that was written here');
      breakAt(seq);
    },
    /** Reports the entries that do not fit. Returns the first that does not follow. */
    brokenAt(): number {
      for (const { row } of odd) add(row.seq, describeOdd(row, odd));
      return broken;
    },
  };
}

function isOther(row: Head, known: Head): boolean {
  return known.seq === row.seq && !known.hash.equals(row.hash);
}

type Add = (seq: number, what: string) => void;

function checkSignatures(log: Verified, trusted: readonly string[], add: Add) {
  const accepted = new Set(trusted.map(keyIdOf));
  const left = new Map(log.checkpoints().map((one) => [one.seq, one]));
  const keys = new Set<string>();
  const valid: number[] = [];
  return {
    check(row: StoredEntry): void {
      const checkpoint = left.get(row.seq);
      if (!checkpoint) return;
      const { publicKey, signature } = checkpoint;
      const key = keyId(publicKey);
      if (!checkpoint.hash.equals(row.hash)) {
        add(row.seq, 'the entries up to here are not those that were signed');
      } else if (!isSigned(checkpointText(log.id, checkpoint), signature, publicKey)) {
        add(row.seq, 'the signature of the checkpoint is wrong');
      } else if (accepted.size > 0 && !accepted.has(key)) {
        add(row.seq, `signed with the key ${key}, which is none of the given ones`);
      } else valid.push(row.seq);
      keys.add(key);
      left.delete(row.seq);
    },
    left: () => left.keys(),
    /** `broken` is the first entry that does not follow from the one before it. */
    found: (broken: number) => ({
      signedUpTo: valid.at(-1) ?? 0,
      provenUpTo: valid.findLast((seq) => seq < broken) ?? 0,
      keys: [...keys],
    }),
  };
}

const gapStart = '["gap"';
const specialStarts = ['["pruning"', '["decision"', gapStart];

function missing(from: number, to: number): string {
  return from === to
    ? 'this entry is missing'
    : `${to - from + 1} entries are missing, up to ${to}`;
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

const mostMoved = 50;

/** Says where an entry that does not fit belongs, or that it was changed. */
function describeOdd(row: StoredEntry, odd: readonly Odd[]): string {
  const near = odd.slice(0, mostMoved);
  const hashes = near.flatMap((one) => [one.before.hash, one.row.hash]);
  const home = near.find(
    ({ row: { seq } }) =>
      seq !== row.seq && hashes.some((before) => hashOf(before, { ...row, seq }).equals(row.hash)),
  );
  return home ? `this is entry ${home.row.seq}, in the wrong place` : 'this entry was changed';
}

const signatureForm = /^ed25519 ([\w+/=]+)$/;

/** Whether a decision is signed by the key that it names; undefined if nobody has signed it. */
export function isSignedDecision(
  statement: string | null,
  signer: string | null,
  evidence: string | null,
): boolean | undefined {
  if (statement === null || signer === null) return undefined;
  const [, signature = ''] = signatureForm.exec(evidence ?? '') ?? [];
  return isSignedBy(signer, statement, signature);
}
