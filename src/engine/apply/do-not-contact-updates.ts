/** What a change means for the ledger, and what the ledger says of it. */
import type { Change } from '../../domain/change.ts';
import type { RecordedRow } from '../../domain/record.ts';
import type { Applying } from './apply-context.ts';
import { underway } from './in-flight.ts';

/** Whether the ledger forbids a change that is about to leave. */
export function isForbidden(applying: Applying, change: Change): boolean {
  const { ledger } = applying.kind;
  return ledger?.forbids(change, underway(applying, change.key).entries()) ?? false;
}

/** Whom a delete is about the ledger knows before it leaves. */
export function keepBefore(applying: Applying, { key }: Change): void {
  const { run, kind } = applying;
  const row = run.snapshot.recorded.get(kind.name, key);
  const adds = row && kind.ledger ? kind.ledger.memories(row) : [];
  if (adds.length === 0) return;
  run.ledger.write([{ ...underway(applying, key).who, adds, ends: [] }], run.clock.now());
}

/** What an acknowledged change means for the ledger; `after` is the row that follows from it. */
export function learnOf(applying: Applying, change: Change, after: RecordedRow | undefined): void {
  const { run, kind } = applying;
  if (!kind.ledger) return;
  const { who, entries } = underway(applying, change.key);
  const news = kind.ledger.learn(change, after, entries());
  if (news.adds.length + news.ends.length > 0) {
    run.ledger.write([{ ...who, ...news }], run.clock.now());
  }
}
