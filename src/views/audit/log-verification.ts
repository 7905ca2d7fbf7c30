/** Verifies an export of the audit log in JSON lines, without the log and the snapshot. */
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  type AuditEntry,
  entryIn,
  type RunEntry,
  type WriteEntry,
  type StoredEntry,
} from '../../store/audit/audit-entry.ts';
import type { Checkpoint, Head, AuditLog } from '../../store/audit/audit-log.ts';
import { type Fault, type Verification, verifyLog } from '../../store/audit/verify-log.ts';
import { Invalid, renderProblem, Busy } from '../../domain/errors.ts';
import { approvalsByPlan, derivedFields, ownFields, type Sources } from './entry-document.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { type Line, lineOf, styled } from '../../compose/output/text-style.ts';
import { storedFault, faultOf, knownHead } from '../../store/audit/audit-trail.ts';
import type { Config } from '../../config/config.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { auditLogOf } from '../../compose/audit-trail.ts';
import { exitCode } from '../../compose/output/exit-codes.ts';

const digest = z.string().regex(/^[0-9a-f]{64}$/);

/** The parts of a line that the hashes and the signatures cover. */
const exportedLine = z.object({
  seq: z.number().int(),
  person: z.string().nullable(),
  text: z.string(),
  hash: digest,
  previousHash: digest.nullable(),
  checkpoint: z
    .object({ log: z.string(), at: z.number(), publicKey: z.string(), signature: z.string() })
    .nullable(),
});

type ExportedLine = z.infer<typeof exportedLine>;

/** What the verification of a file found. */
interface VerifiedFile extends Verification {
  /** The log that the signatures name; null if there are none. */
  log: string | null;
  /** The number of entries whose run or approvals come from entries that the file lacks. */
  unchecked: number;
}

interface Given {
  /** The public keys that may have signed. */
  trusted: readonly string[];
  /** An end of the log that is known from elsewhere. */
  kept?: Head | undefined;
}

/** Verifies the file. Throws Invalid. */
export function verifyExport(path: string, { trusted, kept }: Given): VerifiedFile {
  const { first, checkpoints, id, sources } = coveredIn(path);
  const { previousHash, seq = 1 } = first ?? {};
  const others: Fault[] = [];
  let unchecked = 0;
  const entries = function* (): Generator<StoredEntry> {
    for (const { line, fields } of linesIn(path)) {
      const { wrong, isChecked } = judge(line.text, fields, { ...sources, from: seq });
      if (wrong.length > 0)
        others.push({ seq: line.seq, what: `${besideText}: ${wrong.join(', ')}` });
      if (!isChecked) unchecked += 1;
      yield storedOf(line);
    }
  };
  const start = previousHash && { seq: seq - 1, hash: Buffer.from(previousHash, 'hex') };
  const log = { id: id ?? '', entries, checkpoints: () => checkpoints };
  const found = verifyLog(log, { trusted, kept, start: start || undefined });
  if (found.signedUpTo === 0) others.push({ seq, what: unsigned });
  const faults = [...found.faults, ...others].toSorted((one, other) => one.seq - other.seq);
  return { log: id ?? null, ...found, unchecked, faults: faults.slice(0, mostFaults) };
}

const mostFaults = 100;
const besideText = 'the fields beside the text do not say what the text and the other entries say';
const unsigned = 'no valid signature is in the file, so anybody may have written it';

/** Returns what the verification of each line needs from the others. */
function coveredIn(path: string) {
  const checkpoints: Checkpoint[] = [];
  const logs = new Set<string>();
  const runs = new Map<number, RunEntry>();
  const decisions: AuditEntry[] = [];
  let first: ExportedLine | undefined;
  for (const { line } of linesIn(path)) {
    first ??= line;
    if (line.checkpoint) {
      logs.add(line.checkpoint.log);
      checkpoints.push(checkpointOf(line, line.checkpoint));
    }
    const entry = isWrite(line.text) ? undefined : entryIn(line.text);
    if (entry?.type === 'run') runs.set(line.seq, entry);
    if (entry?.type === 'decision') decisions.push(entry);
  }
  const approvals = approvalsByPlan(decisions);
  const sources: Sources = {
    run: (seq) => runs.get(seq),
    approvals: (plan) => approvals.get(plan) ?? [],
  };
  const [id] = logs;
  return { first, checkpoints, id, sources };
}

function isWrite(text: string): boolean {
  return text.startsWith('["w"');
}

/** Yields each line, its covered parts apart. The file is read at once, but parsed by the line. */
function* linesIn(path: string): Generator<{ line: ExportedLine; fields: unknown }> {
  const bytes = readFileSync(path);
  let number = 0;
  for (let from = 0, to = 0; from < bytes.length; from = to + 1) {
    const end = bytes.indexOf('\n', from);
    to = end < 0 ? bytes.length : end;
    number += 1;
    const fields = parsed(bytes.toString('utf8', from, to));
    const { data: line } = exportedLine.safeParse(fields);
    if (!line) {
      throw new Invalid(`${path}: line ${number} is no entry of an export in JSON lines`, {
        fix: 'export it anew (`crm-mirror audit export`); the CSV cannot be verified',
      });
    }
    yield { line, fields };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function storedOf({ seq, person, text: body, hash }: ExportedLine): StoredEntry {
  const mark = person === null ? null : Buffer.from(person, 'hex');
  return { seq, person: mark, body, hash: Buffer.from(hash, 'hex') };
}

function checkpointOf(
  { seq, hash }: ExportedLine,
  { at, publicKey, signature }: NonNullable<ExportedLine['checkpoint']>,
): Checkpoint {
  const signed = { seq, hash: Buffer.from(hash, 'hex'), at };
  return { ...signed, publicKey, signature: Buffer.from(signature, 'base64') };
}

const anyFields = z.record(z.string(), z.unknown());
const anyList = z.array(z.unknown()).catch([]);
const derivedNames = ['after', 'run', 'approvedBy'] as const;

/**
 * Compares the fields that people read with the hashed texts. Returns the names of those that say
 * something else, and whether the file, which begins at the entry `from`, has what they come from.
 */
function judge(
  text: string,
  fields: unknown,
  { from, ...sources }: Sources & { from: number },
): { wrong: string[]; isChecked: boolean } {
  const entry = entryIn(text);
  if (!entry) return { wrong: ['type'], isChecked: true };
  const shown = anyFields.parse(fields);
  const expected: Record<string, unknown> = derivedFields(entry, sources);
  const own = Object.entries(ownFields(entry)).filter(
    ([name, value]) => !isSame(shown[name], value),
  );
  const open =
    entry.type === 'write' && from > 1 ? openFields(entry, shown, { from, expected }) : [];
  const derived = derivedNames.filter(
    (name) => !open.includes(name) && !isSame(shown[name], expected[name]),
  );
  return { wrong: [...own.map(([name]) => name), ...derived], isChecked: open.length === 0 };
}

/** A field that is null may be left out: an export of an earlier version lacks the newest ones. */
function isSame(shown: unknown, expected: unknown): boolean {
  return isDeepStrictEqual(shown ?? null, expected ?? null);
}

/** Returns the fields of a write that come, or may come, from entries before the file's first. */
function openFields(
  { run, approval }: WriteEntry,
  shown: Record<string, unknown>,
  { from, expected }: { from: number; expected: Record<string, unknown> },
): string[] {
  const open = run > 0 && run < from ? ['run'] : [];
  if (approval === null || !/^[0-9a-f]{16}$/.test(approval)) return open;
  const own = anyList.parse(expected['approvedBy']);
  const told = anyList.parse(shown['approvedBy']);
  const last = own.length === 0 ? [] : told.slice(-own.length);
  const mayBe = isSame(last, own) && (own.length === 0 || told.length > own.length);
  return mayBe ? [...open, 'approvedBy'] : open;
}

/** Returns the lines for people: the verdict first. `what` names what was verified. */
export function verificationLines(what: string, found: Verification, whole = 'whole'): Line[] {
  const { faults, entries, first, last, keys } = found;
  const range = entries === 0 ? '' : `, ${first} to ${last}`;
  const verdict =
    faults.length === 0
      ? lineOf(styled('green', '✓'), ` ${what} is ${whole}: `)
      : lineOf(styled('red', '✗'), ` ${what} is not as it was written: `);
  return [
    lineOf(verdict, `${counted(entries, 'entry', 'entries')}${range}.`),
    `  signed  ${signedText(found)}`,
    ...keys.map((key) => `  key     ${key}`),
    ...faults.map((one) => lineOf('  ', styled('red', `entry ${one.seq}`), `  ${one.what}`)),
  ];
}

/** Returns the lines for people about an export. `kept` is an end that is known from elsewhere. */
export function exportLines(file: string, found: VerifiedFile, kept: Head | undefined): Line[] {
  const { last, unchecked } = found;
  const isKept = kept !== undefined && kept.seq === last;
  const end = isKept
    ? `entry ${last} is the one that --head names; the file does not tell what follows it`
    : `the file does not tell what follows entry ${last}, or whether it was cut there`;
  const said = counted(unchecked, 'entry', 'entries');
  const lacking = `for ${said}, run or approvedBy cannot be checked: the file lacks what they repeat`;
  return [
    ...verificationLines(`The export ${file}`, found, 'as it was written'),
    ...(last > 0 ? [`  end     ${end}`] : []),
    ...(unchecked > 0 ? [`  note    ${lacking}`] : []),
  ];
}

/** Says that a log is not as it was written; undefined if it is. */
export function alteredText({ faults }: Verification): string | undefined {
  const [first] = faults;
  if (!first) return undefined;
  const rest = faults.length - 1;
  const more = rest > 0 ? `, and ${counted(rest, 'more fault')}` : '';
  return renderProblem({
    reason: `the audit log is not as it was written: entry ${first.seq}: ${first.what}${more}`,
    fix: '`crm-mirror audit verify` names each; do not rely on what the log says',
  });
}

/** Reads `SEQ:HASH`. Throws Invalid for anything else. */
export function headIn(text: string): Head {
  const [, seq, hash = ''] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq !== undefined) return { seq: Number(seq), hash: Buffer.from(hash, 'hex') };
  throw new Invalid(`--head ${text}: this is no number and hash of an entry`, {
    fix: 'give `head` as `audit verify --json` prints it: the number, a colon, 64 hexadecimal digits',
  });
}

function signedText({ faults, first, last, signedUpTo, provenUpTo }: Verification): string {
  if (signedUpTo === 0) return 'nothing yet: the end of a run signs';
  if (faults.length > 0) {
    if (provenUpTo === 0) return 'signed, but no entry is proven';
    return `signed; entries ${first} to ${provenUpTo} are proven`;
  }
  if (signedUpTo === last) return 'all of it';
  return `up to entry ${signedUpTo}; the ${counted(last - signedUpTo, 'entry', 'entries')} after it by the chain alone`;
}

type Place = Pick<Config, 'audit' | 'ledger'>;

/** Returns the file of the log, and what is wrong with it; `audit verify` checks the rest. */
export function auditLogState({
  config,
  snapshot,
}: {
  config: Place;
  snapshot: Pick<Snapshot, 'meta'> | undefined;
}): { file: string; fault: string | null } {
  return { file: config.audit.path, fault: snapshot ? faultIn(config, snapshot) : null };
}

function faultIn(config: Place, { meta }: Pick<Snapshot, 'meta'>): string | null {
  const known = knownHead(meta);
  let log: AuditLog | undefined;
  const fault = faultOf(() => void (log = auditLogOf(config)));
  if (fault) return fault instanceof Busy ? null : fault.message;
  const end = log && { id: log.id, seq: log.head().seq };
  log?.close();
  if (!known) return storedFault(meta) ?? null;
  const last = `the snapshot knows entry ${withCommas(known.seq)}`;
  if (!end) return `it is lost: ${last}`;
  if (end.id === known.log && end.seq >= known.seq) return storedFault(meta) ?? null;
  return `entries are missing: it ends at entry ${withCommas(end.seq)}, and ${last}`;
}

/**
 * Says that the log is lost, and returns the exit code. Throws Invalid if there never was one, as
 * far as the snapshot knows.
 */
export function withoutLog(
  { audit }: Pick<Config, 'audit'>,
  snapshot: Pick<Snapshot, 'meta'> | undefined,
  note: (line: string) => void,
): number {
  const known = snapshot && knownHead(snapshot.meta);
  if (!known) {
    throw new Invalid(`${audit.path}: there is no audit log yet`, {
      fix: 'the first run that writes makes it; if there was one, restore it',
    });
  }
  const last = withCommas(known.seq);
  note(`crm-mirror: ${audit.path}: the audit log is lost: the snapshot knows entry ${last}`);
  return exitCode('failed');
}
