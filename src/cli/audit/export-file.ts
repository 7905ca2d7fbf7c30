/** Verifies an export of the audit log in JSON lines, without the log and the snapshot. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { entryIn } from '../../audit/audit-entry.ts';
import type { Checkpoint } from '../../audit/audit-log.ts';
import type { StoredEntry } from '../../audit/hash-chain.ts';
import { type Fault, type Verification, verifyLog } from '../../audit/verify-log.ts';
import { Invalid } from '../../domain/errors.ts';
import { ownFields } from './entry-document.ts';

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

/** What the verification of a file found, and the log that its signatures name. */
export type VerifiedFile = Verification & { log: string | null };

/** Verifies the file. `trusted` are the public keys that may have signed. Throws Invalid. */
export function verifyExport(path: string, trusted: readonly string[]): VerifiedFile {
  const checkpoints: Checkpoint[] = [];
  const others: Fault[] = [];
  const logs = new Set<string>();
  let first: ExportedLine | undefined;
  for (const { line, fields } of linesIn(path)) {
    first ??= line;
    if (line.checkpoint) {
      logs.add(line.checkpoint.log);
      checkpoints.push(checkpointOf(line, line.checkpoint));
    }
    if (!isAsText(line.text, fields)) others.push({ seq: line.seq, what: besideText });
  }
  const [id = ''] = logs;
  const entries = function* (): Generator<StoredEntry> {
    for (const { line } of linesIn(path)) yield storedOf(line);
  };
  const { previousHash, seq = 1 } = first ?? {};
  const start = previousHash && { seq: seq - 1, hash: Buffer.from(previousHash, 'hex') };
  const log = { id, entries, checkpoints: () => checkpoints };
  const found = verifyLog(log, { trusted, start: start || undefined });
  if (found.signedUpTo === 0) others.push({ seq, what: unsigned });
  return { log: id || null, ...found, faults: [...found.faults, ...others].slice(0, mostFaults) };
}

const mostFaults = 100;
const besideText = 'the fields beside the text do not say what the text says';
const unsigned = 'no valid signature is in the file, so anybody may have written it';

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

/** Returns whether the fields that people read say what the hashed text says. */
function isAsText(text: string, fields: unknown): boolean {
  const entry = entryIn(text);
  if (!entry) return false;
  const shown = z.record(z.string(), z.unknown()).parse(fields);
  return Object.entries(ownFields(entry)).every(([name, value]) => shown[name] === value);
}
