/**
 * Tells whether the audit log is as it was written: an export in JSON lines, which is verified
 * without the log and the snapshot, and the log beside the snapshot.
 */
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import {
  type AuditEntry,
  entryIn,
  type RunEntry,
  type StoredEntry,
} from '../../store/memory/audit-entry.ts';
import type { Checkpoint, Head } from '../../store/memory/audit-log.ts';
import { type LogFault, type Verification, verifyLog } from '../../store/memory/verify-log.ts';
import { Invalid, renderProblem } from '../../domain/errors.ts';
import { approvalsByPlan, derivedFields, ownFields, type Sources } from './entry-document.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { present, type Section, type Text } from '../sections.ts';
import { knownHead, lacksKnownEnd, storedFault } from '../../store/memory/audit-trail.ts';
import type { Config } from '../../config/config.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Memory } from '../../store/memory/memory.ts';
import { exitCode } from '../../compose/output/failure-report.ts';

const digest = z.string().regex(/^[0-9a-f]{64}$/);

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

/**
 * Verifies the file. `trusted` are the public keys that may have signed; `kept` is an end of the
 * log that is known from elsewhere. `log` is null if no signature names one; `unchecked` is the
 * number of entries whose run or approvals come from entries that the file lacks. Throws Invalid.
 */
export function verifyExport(
  path: string,
  { trusted, kept }: { trusted: readonly string[]; kept?: Head | undefined },
): Verification & { log: string | null; unchecked: number } {
  // The verification of each line needs these of the others.
  const checkpoints: Checkpoint[] = [];
  const logs = new Set<string>();
  const runs = new Map<number, RunEntry>();
  const decisions: AuditEntry[] = [];
  let first: ExportedLine | undefined;
  for (const { line } of linesIn(path)) {
    first ??= line;
    if (line.checkpoint) {
      const { log, at, publicKey, signature } = line.checkpoint;
      logs.add(log);
      const signed = { seq: line.seq, hash: Buffer.from(line.hash, 'hex'), at };
      checkpoints.push({ ...signed, publicKey, signature: Buffer.from(signature, 'base64') });
    }
    const isWrite = line.text.startsWith('["w"');
    const entry = isWrite ? undefined : entryIn(line.text);
    if (entry?.type === 'run') runs.set(line.seq, entry);
    if (entry?.type === 'decision') decisions.push(entry);
  }
  const approvals = approvalsByPlan(decisions);
  const sources: Sources = {
    run: (seq) => runs.get(seq),
    approvals: (plan) => approvals.get(plan) ?? [],
  };
  const [id = null] = logs;
  const { previousHash, seq: from = 1 } = first ?? {};
  const others: LogFault[] = [];
  let unchecked = 0;
  const entries = function* (): Generator<StoredEntry> {
    for (const { line, fields } of linesIn(path)) {
      const { seq, text } = line;
      const { wrong, isChecked } = judge(text, fields, sources, from);
      if (wrong.length > 0) others.push({ seq, what: `${besideText}: ${wrong.join(', ')}` });
      if (!isChecked) unchecked += 1;
      const person = line.person === null ? null : Buffer.from(line.person, 'hex');
      yield { seq, person, body: text, hash: Buffer.from(line.hash, 'hex') };
    }
  };
  const start = previousHash && { seq: from - 1, hash: Buffer.from(previousHash, 'hex') };
  const log = { id: id ?? '', entries, checkpoints: () => checkpoints };
  const found = verifyLog(log, { trusted, kept, start: start || undefined });
  if (found.signedUpTo === 0) others.push({ seq: from, what: unsigned });
  const faults = [...found.faults, ...others].toSorted((one, other) => one.seq - other.seq);
  return { log: id, ...found, unchecked, faults: faults.slice(0, mostFaults) };
}

const mostFaults = 100;
const besideText = 'the fields beside the text do not say what the text and the other entries say';
const unsigned = 'no valid signature is in the file, so anybody may have written it';

/** Yields each line, its covered parts apart. The file is read at once, but parsed by the line. */
function* linesIn(path: string): Generator<{ line: ExportedLine; fields: unknown }> {
  const bytes = readFileSync(path);
  let number = 0;
  for (let from = 0, to = 0; from < bytes.length; from = to + 1) {
    const end = bytes.indexOf('\n', from);
    to = end < 0 ? bytes.length : end;
    number += 1;
    const fields = tryParseJson(bytes.toString('utf8', from, to));
    const { data: line } = exportedLine.safeParse(fields);
    if (!line) {
      throw new Invalid(`${path}: line ${number} is no entry of an export in JSON lines`, {
        fix: 'export it anew (`crm-mirror audit export`); the CSV cannot be verified',
      });
    }
    yield { line, fields };
  }
}

/** Returns the value of a text; undefined if it is no JSON. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
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
  sources: Sources,
  from: number,
): { wrong: string[]; isChecked: boolean } {
  const entry = entryIn(text);
  if (!entry) return { wrong: ['type'], isChecked: true };
  const shown = anyFields.parse(fields);
  const expected: Record<string, unknown> = derivedFields(entry, sources);
  const own = Object.entries(ownFields(entry)).filter(
    ([name, value]) => !isSame(shown[name], value),
  );
  // The fields of a write that come, or may come, from entries before the file's first.
  const open: string[] = [];
  if (entry.type === 'write' && from > 1) {
    const { run, approval } = entry;
    if (run > 0 && run < from) open.push('run');
    const known = anyList.parse(expected['approvedBy']);
    const told = anyList.parse(shown['approvedBy']);
    const last = known.length === 0 ? [] : told.slice(-known.length);
    const mayBe = isSame(last, known) && (known.length === 0 || told.length > known.length);
    if (approval !== null && /^[0-9a-f]{16}$/.test(approval) && mayBe) open.push('approvedBy');
  }
  const derived = derivedNames.filter(
    (name) => !open.includes(name) && !isSame(shown[name], expected[name]),
  );
  return { wrong: [...own.map(([name]) => name), ...derived], isChecked: open.length === 0 };
}

/** A field that is null may be left out. */
function isSame(shown: unknown, expected: unknown): boolean {
  return isDeepStrictEqual(shown ?? null, expected ?? null);
}

/** Returns whether what a process of this program has printed is the result of a verification. */
export function isVerified(value: unknown): value is Verified {
  return typeof value === 'object' && value !== null && 'provenUpTo' in value;
}

/** `awaiting`: how many entries the snapshot still has for the log; nothing of them is proven. */
type Verified = Verification & { awaiting?: number };

/** Returns the verdict, and what it is based on. `what` names what was verified. */
export function verificationSection(what: string, found: Verified, whole = 'whole') {
  const { faults, entries, first, last, keys, signedUpTo, provenUpTo, awaiting = 0 } = found;
  const rest = counted(last - signedUpTo, 'entry', 'entries');
  let signed =
    signedUpTo === last
      ? 'all of it'
      : `up to entry ${signedUpTo}; the ${rest} after it by the chain alone`;
  if (signedUpTo === 0) signed = 'nothing yet: the end of a run signs';
  else if (faults.length > 0) {
    signed =
      provenUpTo === 0
        ? 'signed, but no entry is proven'
        : `signed; entries ${first} to ${provenUpTo} are proven`;
  }
  const range = entries === 0 ? '' : `, ${first} to ${last}`;
  const left = awaiting === 0 ? '' : ` ${awaitingWords(awaiting)}.`;
  const verdict =
    faults.length === 0 ? `✓ ${what} is ${whole}` : `✗ ${what} is not as it was written`;
  const facts: [name: string, value: Text][] = [
    ['signed', signed],
    ...keys.map((key): [string, Text] => ['key', key]),
    ...faults.map(({ seq, what: fault }): [string, Text] => [
      `entry ${seq}`,
      { tone: 'bad', text: fault },
    ]),
  ];
  return { title: `${verdict}: ${counted(entries, 'entry', 'entries')}${range}.${left}`, facts };
}

/** Says how many entries are in the snapshot alone: 236 entries await being written by a run */
export function awaitingWords(n: number): string {
  const entries = counted(n, 'entry', 'entries');
  return `${entries} ${n === 1 ? 'awaits' : 'await'} being written by the next run`;
}

/** Returns the same of an export. `kept` is an end that is known from elsewhere. */
export function exportSection(
  file: string,
  found: ReturnType<typeof verifyExport>,
  kept: Head | undefined,
): Section {
  const { last, unchecked } = found;
  const isKept = kept !== undefined && kept.seq === last;
  const end = isKept
    ? `entry ${last} is the one that --head names; the file does not tell what follows it`
    : `the file does not tell what follows entry ${last}, or whether it was cut there`;
  const said = counted(unchecked, 'entry', 'entries');
  const lacking = `for ${said}, run or approvedBy cannot be checked: the file lacks what they repeat`;
  const { title, facts } = verificationSection(`The export ${file}`, found, 'as it was written');
  return {
    title,
    facts: present(...facts, last > 0 && ['end', end], unchecked > 0 && ['note', lacking]),
  };
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

/** Returns what is wrong with the log, or null; `audit verify` checks the rest. */
export function auditFault({ log }: Memory, { meta }: Snapshot): string | null {
  const known = knownHead(meta);
  const { seq } = log.head();
  if (known && lacksKnownEnd(log, known)) {
    const last = `the snapshot knows ${known.seq > seq ? '' : 'another '}entry ${withCommas(known.seq)}`;
    return `entries are missing: it ends at entry ${withCommas(seq)}, and ${last}`;
  }
  return storedFault(meta) ?? null;
}

/** Says that the log is lost. Throws Invalid if the snapshot knows of none. */
export function withoutLog(
  { memory: { path } }: Config,
  snapshot: Snapshot | undefined,
  note: (line: string) => void,
): number {
  const known = snapshot && knownHead(snapshot.meta);
  if (!known) {
    throw new Invalid(`${path}: there is no audit log yet`, {
      fix: 'the first run that writes makes it; if there was one, restore it',
    });
  }
  const last = withCommas(known.seq);
  note(`crm-mirror: ${path}: the audit log is lost: the snapshot knows entry ${last}`);
  return exitCode('failed');
}
