/**
 * Forgets the last look at one person on the platform (`state reset`). The next run reads the
 * person there again, and decides by the ordinary rules. What protects a person is never forgotten:
 *
 *   fact                                                       after a reset
 *   opt-ins and opt-outs by channel: who made them, why and    kept: each counts as before
 *     when, and which may be defaults of the platform
 *   the contacts as last shown, renamed ones, and all mail     kept: they tell a new opt-out
 *   created, adopted or noted; ids of platform and CRM         kept: nobody becomes ours, or not
 *   contacts.protect, as the CRM last stated it                kept
 *   what an operator decided (`resolve`, `allow`)              kept
 *   the do-not-contact list: erasures, opt-outs                kept: it is not touched
 *   how long the person is missing from the CRM                kept
 *   what awaits approval, since when; the counts of guards     kept
 *   changes without an outcome                                 kept: the reset is refused
 *   the fingerprint of what the platform last showed           forgotten: read again
 *   the CRM record for which nothing was left to do            forgotten: decided again
 *   refusals by the platform and the CRM, and their delays     released: tried again
 */
import { addDecision } from '../../store/audit/audit-trail.ts';
import { Busy } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Mirror, MirrorPart } from '../context/mirror-context.ts';
import { invalidateCursor } from '../finish/source-cursor.ts';
import { markReset } from '../observe/reset-people.ts';

/** What a reset forgot. */
export interface Reset {
  /** The time of the reset, in milliseconds since the epoch. */
  at: number;
  /** Whether the person is recorded, and is read again. */
  recorded: boolean;
  /** The number of refused changes that the next run tries again. */
  changes: number;
  /** The number of refused reports to the CRM that the next run tries again. */
  reports: number;
}

/** The person to reset, who decided it, and why. */
interface Resetting {
  part: MirrorPart;
  key: Key;
  by: string;
  /** The user and the host that gave the command. */
  caller: string;
  reason: string;
}

/**
 * Resets one person. Sends nothing. Throws Busy while a change of the person has no known outcome,
 * because what the platform shows may then be our own doing.
 */
export function resetRecord(
  { snapshot, clock }: Mirror,
  { part: { type }, key, by, caller, reason }: Resetting,
): Reset {
  const { journal, retryLater, optOutReports, transaction } = snapshot;
  const { name } = type;
  return transaction(() => {
    const open = journal.open(name).filter((change) => change.key === key).length;
    if (open > 0) {
      throw new Busy(`the outcome of ${counted(open, 'change')} of this person is not known yet`, {
        fix: 'reset the person after the next run, which reads it from the platform',
      });
    }
    const recorded = markReset(snapshot, type, key);
    const changes = retryLater.release({ kind: name, key });
    const reports = optOutReports.release(name, key);
    // The person's record may not be among the changes that an incremental reading returns.
    if (recorded || changes > 0) invalidateCursor(snapshot, type);
    const at = clock.now();
    const why = { reason, about: null, evidence: null };
    addDecision(snapshot, { at, what: 'state reset', name: by, ...why, as: caller }, key);
    return { at, recorded, changes, reports };
  });
}
