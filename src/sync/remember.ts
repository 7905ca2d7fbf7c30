/** What a run tells the ledger of people, and asks it. */
import type { Kind } from '../kind/kind.ts';
import type { Change } from '../model/change.ts';
import type { News, Who } from '../model/ledger.ts';
import type { Key, RecordedRow } from '../model/record.ts';
import type { Mirror, Run } from './mirror.ts';

export const nothing: News = { adds: [], ends: [] };

/** A record by its name, and by every id the source gives it now, or gave it while it was ours. */
export function whoOf({ snapshot }: Pick<Mirror, 'snapshot'>, { name }: Kind, key: Key): Who {
  const { staging, recorded } = snapshot;
  const ids = new Set([...staging.idsOf(name, key), ...recorded.originsOf(name, key)]);
  return { key, ids: [...ids] };
}

/** Whether the ledger forbids a change that is about to leave. */
export function isForbidden(run: Run, kind: Kind, change: Change): boolean {
  const entries = run.ledger.concerning(whoOf(run, kind, change.key));
  return kind.ledger?.forbids(change, entries) ?? false;
}

/** Whom a delete is about the ledger knows before it leaves. */
export function keepBefore(run: Run, kind: Kind, { key }: Change): void {
  const row = run.snapshot.recorded.get(kind.name, key);
  const adds = row && kind.ledger ? kind.ledger.memories(row) : [];
  if (adds.length === 0) return;
  run.ledger.write([{ ...whoOf(run, kind, key), adds, ends: [] }], run.clock.now());
}

/** What an acknowledged change means for the ledger; `after` is the row that follows from it. */
export function learnOf(
  run: Run,
  kind: Kind,
  { change, after }: { change: Change; after: RecordedRow | undefined },
): void {
  if (!kind.ledger) return;
  const who = whoOf(run, kind, change.key);
  const news = kind.ledger.learn(change, after, run.ledger.concerning(who));
  if (news.adds.length + news.ends.length > 0) {
    run.ledger.write([{ ...who, ...news }], run.clock.now());
  }
}
