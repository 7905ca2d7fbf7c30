/**
 * Records for which something is under way. Until what came of it is written nobody else is at
 * them, so what names them, and what the ledger says of them, is asked once for each request.
 */
import type { RecordType } from '../../records/record-type.ts';
import type { Entry } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import type { Applying, Underway } from './apply-context.ts';
import type { RunContext } from '../context/run-context.ts';
import { identityWith } from '../context/do-not-contact-identity.ts';

/** Before anything leaves for a record; false: another run took it, and nothing may. */
export function beginInFlight({ run, type, entered }: Applying, key: Key): boolean {
  const about = ask(run, type, key);
  if (type.read && !run.locks.enter(run.id, key, about.ids)) return false;
  entered.set(key, about);
  return true;
}

/** Once what came of it is written. */
export function endInFlight({ run, entered }: Applying, key: Key): void {
  entered.delete(key);
  run.locks.leave(run.id, key);
}

/** What was asked when it was entered; else now. */
export function identityInFlight({ run, type, entered }: Applying, key: Key): Underway {
  return entered.get(key) ?? ask(run, type, key);
}

function ask(run: RunContext, type: RecordType, key: Key): Underway {
  const ids = run.snapshot.staging.idsOf(type.name, key);
  const who = identityWith(run, type, { key, ids });
  let entries: readonly Entry[] | undefined;
  return { ids, who, entries: () => (entries ??= run.doNotContact.concerning(who)) };
}
