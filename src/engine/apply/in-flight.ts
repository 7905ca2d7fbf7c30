/**
 * Tracks the records that have a request in flight, and their entries in the do-not-contact list.
 * No other run touches such a record until the outcome is recorded, so the list is queried once for
 * each request.
 */
import type { RecordType } from '../../records/record-type.ts';
import type { Entry } from '../../domain/do-not-contact.ts';
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { ApplyContext, InFlightRecord } from './apply-context.ts';
import type { RunContext } from '../context/run-context.ts';
import { identityWith } from '../context/person-identity.ts';
import type { Change } from '../../domain/change.ts';

/** Call before sending. Returns false if another run has locked the person: do not send. */
export function beginInFlight({ run, type, inFlight: entered }: ApplyContext, key: Key): boolean {
  const about = ask(run, type, key);
  if (type.capabilities.personRead && !run.locks.beginInFlight(run.id, key, about.ids))
    return false;
  entered.set(key, about);
  return true;
}

/** Call when the outcome is recorded. */
export function endInFlight({ run, inFlight: entered }: ApplyContext, key: Key): void {
  entered.delete(key);
  run.locks.endInFlight(run.id, key);
}

/**
 * Returns the identity as it was when the request began, or the current one if no request is in
 * flight.
 */
export function identityInFlight(
  { run, type, inFlight: entered }: ApplyContext,
  key: Key,
): InFlightRecord {
  return entered.get(key) ?? ask(run, type, key);
}

function ask(run: RunContext, type: RecordType, key: Key): InFlightRecord {
  const ids = run.snapshot.staging.idsOf(type.name, key);
  const who = identityWith(run, type, { key, ids });
  let entries: readonly Entry[] | undefined;
  return { ids, who, entries: () => (entries ??= run.doNotContact.concerning(who)) };
}

/** Returns whether the do-not-contact list forbids a change that is about to be sent. */
export function isForbidden(applying: ApplyContext, change: Change): boolean {
  const { doNotContact } = applying.type.capabilities;
  return doNotContact?.forbids(change, identityInFlight(applying, change.key).entries()) ?? false;
}

/** Adds a person to the do-not-contact list, if required, before their contact is deleted. */
export function rememberDeleted(applying: ApplyContext, { key }: Change): void {
  const { run, type } = applying;
  const row = run.snapshot.recorded.get(type.name, key);
  const adds = (row && type.capabilities.doNotContact?.memories(row)) ?? [];
  if (adds.length === 0) return;
  run.doNotContact.write(
    [{ ...identityInFlight(applying, key).who, adds, ends: [] }],
    run.clock.now(),
  );
}

/** Updates the list after an acknowledged change; `after` is the resulting recorded row. */
export function rememberAcknowledged(
  applying: ApplyContext,
  change: Change,
  after: RecordedRow | undefined,
): void {
  const { run, type } = applying;
  const { doNotContact } = type.capabilities;
  if (!doNotContact) return;
  const { who, entries } = identityInFlight(applying, change.key);
  const news = doNotContact.learn(change, after, entries());
  if (news.adds.length + news.ends.length > 0) {
    run.doNotContact.write([{ ...who, ...news }], run.clock.now());
  }
}
