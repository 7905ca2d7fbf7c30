/**
 * The entries of the audit log, and the text in which they are stored and hashed.
 *
 *   run       a run began: when, in which mode, and who or what asked for it
 *   write     a change was sent to the platform, and what became of it
 *   decision  a person decided something: an approval, a refusal, a settlement …
 *   erasure   the key of one person was dropped: the proof stays, the person is gone
 *   key       a signing key took over from the one before
 *   pruning   older entries were removed; the chain goes on from the hash of the last of them
 *
 * A stored entry is a JSON array of its fields in the order of its schema, so that it takes few
 * bytes. A new field is only ever appended, and is optional. A person is never part of the text:
 * the row has a column with the person's mark (person-marks.ts).
 */
import { z } from 'zod';
import { ops } from '../domain/change.ts';

/** A time in milliseconds since the epoch. */
const at = z.number().int();
const text = z.string();
const optional = z.string().nullable();

const run = z.object({
  type: z.literal('run'),
  at,
  run: text,
  mode: text,
  /** What asked for the run: schedule, event, command or startup. */
  by: text,
  /** The name of the person who gave the command; null if no person did. */
  name: optional,
  /** The fingerprint of the configured mapping. */
  mapping: text,
  version: text,
});

const write = z.object({
  type: z.literal('write'),
  at,
  /** The number of the entry of the run. */
  run: z.number().int(),
  kind: z.enum(['contact', 'template']),
  op: z.enum(ops),
  /** The channel of a contact; '' for the whole record. */
  part: text,
  /** The rule or gate that asked for the change. */
  rule: text,
  /** The word of the CRM that the rule followed; null if it may be personal data. */
  value: optional,
  /** The fingerprint of the CRM record, keyed with the person's key. */
  record: optional,
  /** When the person stated their will, according to the CRM. */
  statedAt: at.nullable(),
  /** What the platform showed before the change, and what it shows since. */
  before: text,
  after: text,
  /** What became of it. After `unknown`, a second entry follows when the outcome is known. */
  outcome: z.enum(['acked', 'rejected', 'unknown']),
  /** The status of the platform's answer; null if there was none. */
  status: z.number().int().nullable(),
  /** The platform's id of the request. */
  request: optional,
  /** The hash of the plan whose approval released the change. */
  approval: optional,
});

const decision = z.object({
  type: z.literal('decision'),
  at,
  /** What was decided, named by its command: approve, reject, resolve, allow, forget … */
  what: text,
  name: text,
  reason: text,
  evidence: optional,
  /** The plan or the channel that the decision is about. */
  about: optional,
});

const erasure = z.object({ type: z.literal('erasure'), at, reason: text });

const key = z.object({ type: z.literal('key'), at, id: text, publicKey: text });

const pruning = z.object({
  type: z.literal('pruning'),
  at,
  /** The number and the hash of the last entry that was removed, in hexadecimal digits. */
  upTo: z.number().int(),
  hash: text,
});

const schemas = { run, write, decision, erasure, key, pruning };
const entry = z.discriminatedUnion('type', [run, write, decision, erasure, key, pruning]);

/** One entry, without its place in the chain and without the person. */
export type AuditEntry = z.infer<typeof entry>;
/** The entry of a change that was sent. */
export type WriteEntry = z.infer<typeof write>;

const namesByType = new Map(
  Object.entries(schemas).map(([type, { shape }]) => [type, Object.keys(shape)]),
);

/** Returns the text of an entry, which is stored and hashed. It ends before the trailing nulls. */
export function encodeEntry(entry: AuditEntry): string {
  const byName: Record<string, unknown> = { ...entry };
  const values = (namesByType.get(entry.type) ?? []).map((name) => byName[name] ?? null);
  return JSON.stringify(values.slice(0, values.findLastIndex((value) => value !== null) + 1));
}

const row = z.tuple([z.string()], z.unknown());

/** Returns the entry of a stored text. Throws if the text is none. */
export function decodeEntry(body: string): AuditEntry {
  const values = row.parse(JSON.parse(body));
  const names = namesByType.get(values[0]) ?? [];
  return entry.parse(Object.fromEntries(names.map((name, place) => [name, values[place] ?? null])));
}
