/**
 * The entries of the audit log, and the text in which they are stored and hashed.
 *
 *   run       a run began: when, in which mode, and who or what asked for it
 *   write     a change was sent to the platform, and what became of it
 *   decision  a person decided something: an approval, a refusal, a settlement …
 *   erasure   the key of one person was dropped: the proof stays, the person is gone
 *   key       a signing key took over from the one before
 *   gap       earlier entries are lost: the snapshot knew a log that had more
 *   pruning   older entries were removed; the chain goes on from the hash of the last of them
 *
 * A stored entry is a JSON array of its fields in the order of its schema, so that it takes few
 * bytes. A new field is only ever appended, and is optional. A person is never part of the text:
 * the row has a column with the person's mark (audit-log.ts).
 */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { ops } from '../../domain/change.ts';
import { Invalid } from '../../domain/errors.ts';
import { writeOutcomes } from '../tables/unaudited.ts';

/** A time in whole milliseconds since the epoch; a program's own clock may tell parts of them. */
const at = z.number().transform(Math.round);
const text = z.string();
const optional = z.string().nullable();

const run = z.object({
  type: z.literal('run'),
  at,
  id: text,
  mode: text,
  /** What asked for the run: schedule, event, command or program. */
  by: text,
  name: optional,
  /** The fingerprint of how the CRM is read and mapped. */
  mapping: optional,
  undoes: optional.default(null),
});

const write = z.object({
  type: z.literal('write'),
  at,
  /** The number of the entry of the run; 0 for a command about one person. */
  run: z.number().int(),
  op: z.enum(ops),
  /** The channel of a contact; '' for the whole record. */
  part: text,
  rule: text,
  outcome: z.enum(writeOutcomes),
  /** What the platform showed before the change: a subscription, `none`, or a fingerprint. */
  before: text,
  /** The status of the platform's answer; null if there was none. */
  status: z.number().int().nullable(),
  /** What the CRM stated: opt_in, opt_out, gone, deleted. */
  says: optional,
  /** The fingerprint of the CRM records, keyed with the person's key. */
  record: optional,
  /** When the person stated their will, according to the CRM. */
  statedAt: at.nullable(),
  /** The hash of the plan whose approval released the change, or why it needed none. */
  approval: optional,
  /** The platform's id of the request. */
  request: optional,
  /** The fingerprint of what the platform shows since, if the operation does not tell. */
  after: optional,
  /** The name of a template; null for a contact. */
  template: optional,
});

const decision = z.object({
  type: z.literal('decision'),
  at,
  /** What was decided, named by its command: approve, reject, resolve, allow, forget … */
  what: text,
  name: text,
  reason: optional,
  /** What the decision is about: a plan, a channel, a choice. */
  about: optional,
  /** Where it can be looked up. */
  evidence: optional,
  /** The user and the host that gave the command, whatever `name` says; null if not known. */
  as: optional.default(null),
  /** The text that an approver has signed, and the public key of the approver (base64, SPKI). */
  statement: optional.default(null),
  signer: optional.default(null),
  /** The plan of which a part was decided; null if `about` is the plan. */
  plan: optional.default(null),
  /** What was decided about: records by operation and channel. */
  changes: z
    .array(z.object({ op: text, part: text, n: z.number().int() }))
    .nullable()
    .default(null),
});

const erasure = z.object({ type: z.literal('erasure'), at, by: text });

const key = z.object({ type: z.literal('key'), at, id: text, publicKey: text });

const gap = z.object({
  type: z.literal('gap'),
  at,
  /** The id of the log that the snapshot knew, and the number of its last entry. */
  log: text,
  upTo: z.number().int(),
});

const pruning = z.object({
  type: z.literal('pruning'),
  at,
  /** The number and the hash of the last entry that was removed, in hexadecimal digits. */
  upTo: z.number().int(),
  hash: text,
});

const entries = [run, write, decision, erasure, key, gap, pruning] as const;
const entry = z.discriminatedUnion('type', entries);

export type AuditEntry = z.infer<typeof entry>;
export type RunEntry = z.infer<typeof run>;
export type DecisionEntry = z.infer<typeof decision>;
export type WriteEntry = z.infer<typeof write>;

/** The most frequent tag is short. */
const tagOf = (type: AuditEntry['type']): string => (type === 'write' ? 'w' : type);

/** The fields of each type, by the tag under which it is stored. */
const tags = new Map(
  entries.map(({ shape }) => {
    const type = shape.type.value;
    return [tagOf(type), { type, names: Object.keys(shape) }];
  }),
);

/** The SQL of a field of the entry in a column `body`. */
export function fieldSql(type: AuditEntry['type'], field: string): string {
  const place = tags.get(tagOf(type))?.names.indexOf(field) ?? -1;
  if (place < 0) throw new Error(`${type} has no field ${field}`);
  return `body ->> ${place}`;
}

/** The text that is stored and hashed. It ends before the trailing nulls. */
export function encodeEntry(entry: AuditEntry): string {
  const tag = tagOf(entry.type);
  const byName: Record<string, unknown> = { ...entry };
  const values = (tags.get(tag)?.names ?? []).map((name) => byName[name] ?? null);
  const stated = values.slice(1, values.findLastIndex((value) => value !== null) + 1);
  return JSON.stringify([tag, ...stated]);
}

const row = z.tuple([z.string()], z.unknown());

/** Reads an entry that the snapshot remembers as an object. Throws for anything else. */
export function readEntry(value: unknown): AuditEntry {
  return entry.parse(value);
}

/** Throws Invalid if the text is none. */
export function decodeEntry(body: string): AuditEntry {
  const found = entryIn(body);
  if (found) return found;
  throw new Invalid('an entry of the audit log cannot be read: it was changed', {
    fix: '`crm-mirror audit verify` names it; restore the log from a backup',
  });
}

/** Undefined if the text is none. */
export function entryIn(body: string): AuditEntry | undefined {
  try {
    const [tag, ...stated] = row.parse(JSON.parse(body));
    const { type, names = [] } = tags.get(tag) ?? {};
    const values = [type, ...stated];
    return entry.parse(Object.fromEntries(names.map((name, at) => [name, values[at] ?? null])));
  } catch {
    return undefined;
  }
}

/** What the hash of an entry covers. */
interface HashedEntry {
  /** The number of the entry; they follow each other without a gap. */
  seq: number;
  /** The person's mark, 16 bytes; null if the entry concerns nobody. */
  person: Buffer | null;
  /** The text of the entry, as `encodeEntry` returns it. */
  body: string;
}

export interface StoredEntry extends HashedEntry {
  /** 32 bytes. */
  hash: Buffer;
}

/** The hash before the first entry. */
export const firstHash = Buffer.alloc(32);

const nobody = Buffer.alloc(16);

/**
 * The chain of the audit log: the hash covers the number of the entry, its person, its text and the
 * hash before. So an entry cannot be changed, removed or moved without changing the hash of every
 * later one, and a signed checkpoint fixes all entries up to its own.
 */
export function hashOf(before: Buffer, { seq, person, body }: HashedEntry): Buffer {
  const about = person ?? nobody;
  return hash('sha256', Buffer.concat([before, about, Buffer.from(`${seq}\n${body}`)]), 'buffer');
}
