/**
 * Stores erasures that were requested and are not finished. `forget` records each before it begins,
 * with its progress, and removes it in the end. One that a CRM event requests is recorded, too, if
 * a guard holds it. A full run records the erased people who are nevertheless recorded, or present
 * on both sides, because a backup that is put back can bring people back.
 */
import { type Meta, storedFact } from '../../../store/database/meta-table.ts';
import type { Key } from '../../../domain/record.ts';
import type { Purged } from '../../../store/tables/record-purge.ts';
import { type RunContext, supersededKeys } from '../../context/run-context.ts';
import { shortHash } from '../../context/person-identity.ts';
import { inTurns } from '../../context/work-in-parts.ts';
import type { Problem } from '../../../domain/errors.ts';

export interface Unfinished {
  /** A hash that identifies the person wherever no address may appear. */
  hash: string;
  /** Undefined once only the file is to be rewritten, which must then hold no address. */
  key?: string | undefined;
  /** When the erasure was first requested, in milliseconds since the epoch. */
  since: number;
  by: 'forget' | 'run';
  /** The CRM's id of the record if an event asked, perhaps stored nowhere else by then. */
  told?: string | undefined;
  held?: boolean | undefined;
  /** The platform's ids of the contacts that were found, and of those that were deleted. */
  found?: string[] | undefined;
  deleted: string[];
  optedOut: number;
  purged?: Purged | undefined;
}

const stored = storedFact<readonly Unfinished[]>('erasures', 'the unfinished erasures');

export function unfinishedIn({ meta }: { meta: Meta }): readonly Unfinished[] {
  return stored.read(meta) ?? [];
}

/** The erasure as this attempt begins, with all that earlier attempts did. */
export function begun({ meta }: { meta: Meta }, key: Key, since: number): Unfinished {
  const hash = shortHash(meta, key);
  const before = unfinishedIn({ meta }).find((one) => one.hash === hash);
  const now = { hash, key, by: 'forget', held: undefined } as const;
  return { deleted: [], optedOut: 0, since, ...before, ...now };
}

/** Stores the erasure, in place of the person's last one. Call it within a transaction. */
export function keep(snapshot: { meta: Meta }, one: Unfinished): void {
  put(snapshot, [...unfinishedIn(snapshot).filter(({ hash }) => hash !== one.hash), one]);
}

/** Removes the erasure, because it is done or no longer wanted. Call it within a transaction. */
export function end(snapshot: { meta: Meta }, key: Key): void {
  const its = shortHash(snapshot.meta, key);
  put(
    snapshot,
    unfinishedIn(snapshot).filter(({ hash }) => hash !== its),
  );
}

function put({ meta }: { meta: Meta }, all: readonly Unfinished[]): void {
  stored.write(meta, all.length > 0 ? all : undefined);
}

/** Returns the keys of erased people who are nevertheless recorded, or present on both sides. */
export async function findErased(run: RunContext): Promise<Key[]> {
  const { recorded, ranges } = run.snapshot;
  const isErased = run.doNotContact.erased();
  const found: Key[] = [];
  if (!isErased) return found;
  for await (const range of inTurns(run, ranges.ofKeys('contact'))) {
    found.push(...recorded.keysFound(range).filter(isErased));
  }
  return found;
}

/**
 * Stores the erased people that a full run found, in place of those that an earlier run stored; not
 * those whom another run has locked meanwhile. Call it within a transaction.
 */
export function noteUnfinished(run: RunContext, erased: readonly Key[]): void {
  const { snapshot, startedAt } = run;
  const others = new Set(supersededKeys(run));
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

const mostShown = 5;

export function sayUnfinished(all: readonly Unfinished[]): Problem {
  const hashes = all.slice(0, mostShown).map(({ hash }) => `'${hash}'`);
  const more =
    all.length > mostShown ? ` and ${all.length - mostShown} more, which \`status\` counts` : '';
  const many = all.length === 1 ? 'an erasure is' : `${all.length} erasures are`;
  const held = all.filter((one) => one.held).length;
  const again = held > 0 ? ' does it' : ' again';
  const fix = `\`crm-mirror forget\`${again}: ${hashes.join(', ')}${more}`;
  return { code: 'erasure-unfinished', reason: `${many} not finished${sayHeld(held)}`, fix };
}

/** Returns the text about erasures that a guard holds, or '' if there are none. */
export function sayHeld(count: number): string {
  if (count === 0) return '';
  return ` (${count} awaiting approval: the CRM asks for more erasures than guards.deletes lets pass)`;
}
