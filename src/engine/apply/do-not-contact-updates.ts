/** What a change means for the ledger, and what the ledger says of it. */
import type { Change } from '../../domain/change.ts';
import type { RecordedRow } from '../../domain/record.ts';
import type { Applying } from './apply-context.ts';
import { identityInFlight } from './in-flight.ts';

/** Whether the ledger forbids a change that is about to leave. */
export function isForbidden(applying: Applying, change: Change): boolean {
  const { doNotContact } = applying.type;
  return doNotContact?.forbids(change, identityInFlight(applying, change.key).entries()) ?? false;
}

/** Whom a delete is about the ledger knows before it leaves. */
export function keepBefore(applying: Applying, { key }: Change): void {
  const { run, type } = applying;
  const row = run.snapshot.recorded.get(type.name, key);
  const adds = row && type.doNotContact ? type.doNotContact.memories(row) : [];
  if (adds.length === 0) return;
  run.doNotContact.write(
    [{ ...identityInFlight(applying, key).who, adds, ends: [] }],
    run.clock.now(),
  );
}

/** What an acknowledged change means for the ledger; `after` is the row that follows from it. */
export function learnOf(applying: Applying, change: Change, after: RecordedRow | undefined): void {
  const { run, type } = applying;
  if (!type.doNotContact) return;
  const { who, entries } = identityInFlight(applying, change.key);
  const news = type.doNotContact.learn(change, after, entries());
  if (news.adds.length + news.ends.length > 0) {
    run.doNotContact.write([{ ...who, ...news }], run.clock.now());
  }
}
