/** Settles a conflict as an operator decided (`resolve`). */
import { Invalid } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { addDecision } from '../../store/audit/audit-trail.ts';
import { bindDoNotContactList } from '../context/do-not-contact-binding.ts';
import type { Mirror, MirrorPart } from '../context/mirror-context.ts';
import { identityOf } from '../context/person-identity.ts';
import { createPersonLocks } from '../context/person-locks.ts';
import { examine } from '../examine-person.ts';
import { invalidateCursor } from '../finish/source-cursor.ts';
import type { Deadlines, Settled, SettlementAsked } from '../../records/capabilities.ts';

/** The person, and how the conflict is to be settled. */
export interface Settling extends Omit<SettlementAsked, 'settlement'> {
  part: MirrorPart;
  key: Key;
  by: string;
  /** The user and the host that gave the command. */
  caller: string;
  reason: string;
  evidence: string;
}

/**
 * Reads both sides, and records the settlement if it is allowed. Sends nothing. Returns its time,
 * in milliseconds since the epoch. Throws Invalid if it is refused, and the errors of the readings.
 */
export async function settleConflict(
  mirror: Mirror,
  settling: Settling,
  { signal: stop, abort }: Deadlines,
): Promise<number> {
  const { part, key, channel, as, by, caller, reason, evidence } = settling;
  const { type } = part;
  bindDoNotContactList(mirror);
  // The examination is no run of this process, so it counts in locks of its own.
  const reader = { ...mirror, locks: createPersonLocks() };
  const options = { key, offline: false, stop, abort, progress: () => undefined };
  const found = await examine(reader, options);
  if (found?.source instanceof Error) throw found.source;
  if (found?.unread instanceof Error) throw found.unread;
  if (!found?.source.complete) {
    throw new Invalid('the CRM was not read completely, so nothing is resolved', {
      fix: '`crm-mirror check` tells why',
    });
  }
  const at = mirror.clock.now();
  const settlement = { at, by, reason, evidence };
  const settled: Settled = type.settle?.(found.states, {
    channel,
    as,
    settlement,
  }) ?? { refused: { reason: `a ${type.name} has no channels`, fix: 'name a person' } };
  if ('refused' in settled) {
    const { reason: why, fix } = settled.refused;
    throw new Invalid(why, { fix });
  }
  const { adds, ends, frees = [], row } = settled;
  if (adds.length + ends.length + frees.length > 0) {
    mirror.doNotContact.write([{ ...identityOf(mirror, type, key), adds, ends, frees }], at);
  }
  mirror.snapshot.transaction(() => {
    if (row) mirror.snapshot.recorded.put(row);
    const about = `${channel}: ${as}`;
    const decision = { at, what: 'resolve', name: by, reason, about, evidence, as: caller };
    addDecision(mirror.snapshot, decision, key);
    // The person's record may not be among the changes that an incremental reading returns.
    invalidateCursor(mirror.snapshot, type);
  });
  return at;
}
