/**
 * Erasures that are asked for and not done. `forget` notes each before it begins, with what it has
 * done so far, and takes it off once nothing is left. One that an event of the CRM asks for stands
 * here too where a guard holds it, until `forget` is called. A full run notes whoever is recorded,
 * or on both sides, against an erasure of the ledger: a snapshot that was put back brings her
 * along.
 */
import { z } from 'zod';
import type { RecordType } from '../../records/record-type.ts';
import type { Key } from '../../domain/record.ts';
import type { Purged } from '../../snapshot/tables/record-purge.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { RunContext } from '../../engine/context/run-context.ts';
import { shortHash } from '../../engine/context/display-name.ts';
import { supersededKeys } from '../../engine/context/superseded-records.ts';
import { forEachRange } from '../../engine/context/for-each-range.ts';

const name = 'erasures';

const purged = z.object({
  recorded: z.number(),
  origins: z.number(),
  problems: z.number(),
  changes: z.number(),
  absences: z.number(),
  held: z.number(),
  returned: z.number().default(0),
}) satisfies z.ZodType<Purged>;

const unfinished = z.object({
  /** What the person is called where no address may stand. */
  hash: z.string(),
  /** Undefined once only the file has to be written anew: then no address may stand in it. */
  key: z.string().optional(),
  /** Milliseconds since the epoch. */
  since: z.number(),
  by: z.enum(['forget', 'run']),
  /** The CRM's id of the record, where an event asks for it: by then nothing else may know it. */
  told: z.string().optional(),
  /** A guard keeps it from being done. */
  held: z.boolean().optional(),
  /** The platform's ids of the contacts that were found, and of those that were deleted. */
  found: z.array(z.string()).optional(),
  deleted: z.array(z.string()),
  optedOut: z.number(),
  purged: purged.optional(),
});

export type Unfinished = z.infer<typeof unfinished>;

export function unfinishedIn({ meta }: Pick<Snapshot, 'meta'>): Unfinished[] {
  const kept = meta.get(name);
  return kept === undefined ? [] : z.array(unfinished).parse(JSON.parse(kept));
}

/** What an erasure begins with: all that those before it have done of it. */
export function begun({ meta }: Pick<Snapshot, 'meta'>, key: Key, since: number): Unfinished {
  const hash = shortHash(meta, key);
  const before = unfinishedIn({ meta }).find((one) => one.hash === hash);
  const now = { hash, key, by: 'forget', held: undefined } as const;
  return { deleted: [], optedOut: 0, since, ...before, ...now };
}

/** The transaction is the caller's. */
export function keep(snapshot: Pick<Snapshot, 'meta'>, one: Unfinished): void {
  put(snapshot, [...unfinishedIn(snapshot).filter(({ hash }) => hash !== one.hash), one]);
}

/** It is done, or not wanted any more; the transaction is the caller's. */
export function end(snapshot: Pick<Snapshot, 'meta'>, key: Key): void {
  const its = shortHash(snapshot.meta, key);
  put(
    snapshot,
    unfinishedIn(snapshot).filter(({ hash }) => hash !== its),
  );
}

function put({ meta }: Pick<Snapshot, 'meta'>, all: readonly Unfinished[]): void {
  if (all.length > 0) meta.set(name, JSON.stringify(all));
  else if (meta.get(name) !== undefined) meta.drop(name);
}

/** Who was erased, and is there all the same: recorded, or in both readings. */
export async function findErased(run: RunContext, { name: of }: RecordType): Promise<Key[]> {
  const { recorded, ranges } = run.snapshot;
  const isErased = run.doNotContact.erased();
  const found: Key[] = [];
  if (!isErased) return found;
  await forEachRange(run, ranges.ofKeys(of), (range) => {
    found.push(...recorded.keysFound(of, range).filter(isErased));
  });
  return found;
}

/**
 * After a full run, in place of what one found before; but for whom another run was at meanwhile:
 * she was erased since this one read of her. The transaction is the caller's.
 */
export function noteUnfinished(run: RunContext, type: RecordType, erased: readonly Key[]): void {
  const { snapshot, startedAt } = run;
  const others = new Set(supersededKeys(run, type));
  const found = erased.filter((key) => !others.has(key));
  const known = unfinishedIn(snapshot);
  const kept = known.filter(({ by }) => by === 'forget');
  const all = new Map(kept.map((one) => [one.hash, one]));
  for (const key of found) {
    const hash = shortHash(snapshot.meta, key);
    const since = known.find((one) => one.hash === hash)?.since ?? startedAt;
    const one: Unfinished = { hash, key, since, by: 'run', deleted: [], optedOut: 0 };
    if (!all.has(hash)) all.set(hash, one);
  }
  put(snapshot, [...all.values()]);
}
