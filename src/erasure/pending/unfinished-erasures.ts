/**
 * Erasures that were asked for and are not done. `forget` notes each before it begins, together
 * with what is done so far, and removes it when nothing is left. An erasure that an event of the
 * CRM asks for is noted here too if a guard holds it, until `forget` is called. A full run notes
 * everybody who was erased according to the do-not-contact list and is recorded all the same, or is
 * on both sides: a snapshot restored from a backup can bring people back.
 */
import { z } from 'zod';
import type { RecordType } from '../../records/record-type.ts';
import type { Key } from '../../domain/record.ts';
import { metaValue } from '../../snapshot/database/meta-table.ts';
import type { Purged } from '../../snapshot/tables/record-purge.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { type RunContext, supersededKeys } from '../../engine/context/run-context.ts';
import { shortHash } from '../../engine/context/person-identity.ts';
import { forEachRange } from '../../engine/context/work-in-parts.ts';

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
  /** Names the person where no address may stand. */
  hash: z.string(),
  /** Undefined once only the file has to be written anew: it may hold no address then. */
  key: z.string().optional(),
  /** When the erasure was first asked for, in milliseconds since the epoch. */
  since: z.number(),
  by: z.enum(['forget', 'run']),
  /**
   * The CRM's id of the record, if an event asked for the erasure: nothing else may know it by
   * then.
   */
  told: z.string().optional(),
  /** Whether a guard holds the erasure back. */
  held: z.boolean().optional(),
  /**
   * The platform's ids of the contacts that were found; `deleted` holds those that were deleted.
   */
  found: z.array(z.string()).optional(),
  deleted: z.array(z.string()),
  optedOut: z.number(),
  purged: purged.optional(),
});

/** One unfinished erasure. */
export type Unfinished = z.infer<typeof unfinished>;

/** Returns all unfinished erasures. */
export function unfinishedIn({ meta }: Pick<Snapshot, 'meta'>): Unfinished[] {
  return metaValue(meta, name, z.array(unfinished)) ?? [];
}

/** Returns the erasure as it begins now, with everything that earlier attempts have done. */
export function begun({ meta }: Pick<Snapshot, 'meta'>, key: Key, since: number): Unfinished {
  const hash = shortHash(meta, key);
  const before = unfinishedIn({ meta }).find((one) => one.hash === hash);
  const now = { hash, key, by: 'forget', held: undefined } as const;
  return { deleted: [], optedOut: 0, since, ...before, ...now };
}

/**
 * Notes the erasure in place of what was noted of the same person. Call it within a transaction.
 */
export function keep(snapshot: Pick<Snapshot, 'meta'>, one: Unfinished): void {
  put(snapshot, [...unfinishedIn(snapshot).filter(({ hash }) => hash !== one.hash), one]);
}

/** Removes the erasure: it is done, or no longer wanted. Call it within a transaction. */
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

/**
 * Returns the keys of people who were erased and are here all the same: recorded, or read on both
 * sides.
 */
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
 * Notes the erased people that a full run found, in place of those that an earlier run noted.
 * Leaves out people that another run has taken meanwhile, because this run may have read them
 * before they were erased. Call it within a transaction.
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
