/**
 * Carries out what an operator decides about one person: that the person may come back (`allow`),
 * how a conflict is settled (`resolve`), and that the last look at the person on the platform is
 * forgotten (`retry --read-again`). After a reset, the next run reads the person there again, and
 * decides by the ordinary rules. What protects a person is never forgotten:
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
import type { Deadlines } from '../../records/change-outcome.ts';
import { release, unerased, withoutVanished } from '../../records/contact/consent/decide.ts';
import { memoriesOf } from '../../records/contact/consent/do-not-contact-entries.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import type { SettlementAsked } from '../../records/contact/contacts.ts';
import { all, type Entry } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import { addDecision } from '../../store/memory/audit-trail.ts';
import { invalidateCursor } from '../finish/source-cursor.ts';
import { bindDoNotContactList } from '../context/do-not-contact-binding.ts';
import type { Mirror, MirrorContacts } from '../context/mirror-context.ts';
import { type CrmReading, readNames } from './forget-person.ts';
import { identityOf } from '../context/person-identity.ts';
import { end } from './pending/unfinished-erasures.ts';
import { Invalid, Busy } from '../../domain/errors.ts';
import { examine } from '../examine-person.ts';
import { counted } from '../../domain/values/counted.ts';
import { markReset } from '../observe/observe-platform.ts';

export interface Allowed {
  at: number;
  taken: readonly Entry[];
  /** Entries for other addresses that concerned the person by a CRM id, and no longer do. */
  freed: readonly Entry[];
  /** Whether the recorded row of a vanished contact was dropped. */
  dropped: boolean;
  /** The channels with stated opt-outs of ours, which are released. */
  released: readonly string[];
  /** How the CRM was read. If it was not, entries found only by an id may still concern them. */
  crm: CrmReading;
}

interface Allowing {
  contacts: MirrorContacts;
  key: Key;
  reason: string;
  by: string;
  caller?: string | undefined;
}

/**
 * Ends every entry of the do-not-contact list that concerns the person, drops what would create one
 * again, and releases the opt-outs that we sent because the CRM stated them. Sends nothing. Throws
 * Interrupted, and unexpected errors.
 */
export async function allow(
  mirror: Mirror,
  { contacts, key, reason, by, caller }: Allowing,
  leave: Deadlines,
): Promise<Allowed> {
  bindDoNotContactList(mirror);
  const at = mirror.clock.now();
  const crm = await readNames(mirror, contacts, leave);
  const who = identityOf(mirror, key);
  const entries = mirror.doNotContact.concerning(who);
  const taken = entries.filter(({ through }) => through === 'address');
  const freed = entries.filter(({ through }) => through === 'id');
  const isErased = taken.some(({ cause }) => cause === 'erasure');
  const isOperators = taken.some(({ cause }) => cause === 'operator');
  const { recorded, transaction } = mirror.snapshot;
  // The next run would add a vanished contact to the list again. The list is written after this: if
  // the process dies in between, it still protects the person.
  const dropped = transaction(() => {
    const before = recorded.get('contact', key);
    if (!before || before.id !== undefined) return false;
    const row = decodeContact.recorded(before);
    if (memoriesOf(row).length === 0) return false;
    const next = withoutVanished(row);
    if (next) recorded.put(next);
    else recorded.drop('contact', key);
    return next === undefined;
  });
  const ends = taken.map(({ seq }) => ({ seq, why: `allow: ${reason}` }));
  const frees = freed.map(({ seq }) => seq);
  if (entries.length > 0) mirror.doNotContact.write([{ ...who, adds: [], ends, frees }], at);
  const released = transaction(() => {
    // The audit log names the entries without the person.
    const texts = entries.map((entry) => {
      const scope = entry.part === all ? '' : ` of ${entry.part}`;
      const other = entry.through === 'id' ? ' (of another address, found by the CRM id)' : '';
      return `${entry.cause}${scope}, listed ${new Date(entry.by).toISOString()}${other}`;
    });
    const why = { reason, about: texts.join('; ') || null, evidence: null };
    const decision = { at, what: 'allow', name: by, ...why, as: caller ?? null };
    addDecision(mirror.snapshot, decision, key);
    end(mirror.snapshot, key);
    // The person's record may not be among the changes that an incremental reading returns.
    invalidateCursor(mirror.snapshot);
    const row = recorded.get('contact', key);
    const withdrawn = row && release(decodeContact.recorded(row));
    const left = withdrawn?.row ?? row;
    const next = isErased ? unerased(key, left && decodeContact.recorded(left)) : withdrawn?.row;
    // An operator's opt-out had settled the person, and the next run has to decide anew.
    const undecided = row && isOperators ? { ...row, desired: undefined } : undefined;
    const changed = next ?? undecided;
    if (changed) recorded.put(changed);
    return withdrawn?.parts ?? [];
  });
  return { at, taken, freed, dropped, released, crm };
}

interface Settling {
  channel: string;
  as: SettlementAsked['as'];
  contacts: MirrorContacts;
  key: Key;
  by: string;
  caller: string;
  reason: string;
  evidence: string;
}

/**
 * Reads both sides, and records the settlement if it is allowed. Sends nothing. Returns its time.
 * Throws Invalid if it is refused, and the errors of the readings.
 */
export async function settleConflict(
  mirror: Mirror,
  settling: Settling,
  { signal: stop, abort }: Deadlines,
): Promise<number> {
  const { contacts, key, channel, as, by, caller, reason, evidence } = settling;
  bindDoNotContactList(mirror);
  const options = { key, offline: false, stop, abort, progress: () => undefined };
  const found = await examine(mirror, options);
  if (found?.source instanceof Error) throw found.source;
  if (found?.unread instanceof Error) throw found.unread;
  if (!found?.source.complete) {
    throw new Invalid('the CRM was not read completely, so nothing is resolved', {
      fix: '`crm-mirror check` tells why',
    });
  }
  const at = mirror.clock.now();
  const settlement = { at, by, reason, evidence };
  const settled = contacts.settle(found.states, { channel, as, settlement });
  if ('refused' in settled) {
    const { reason: why, fix } = settled.refused;
    throw new Invalid(why, { fix });
  }
  const { adds, ends, frees = [], row } = settled;
  if (adds.length + ends.length + frees.length > 0) {
    mirror.doNotContact.write([{ ...identityOf(mirror, key), adds, ends, frees }], at);
  }
  mirror.snapshot.transaction(() => {
    if (row) mirror.snapshot.recorded.put(row);
    const about = `${channel}: ${as}`;
    const decision = { at, what: 'resolve', name: by, reason, about, evidence, as: caller };
    addDecision(mirror.snapshot, decision, key);
    // The person's record may not be among the changes that an incremental reading returns.
    invalidateCursor(mirror.snapshot);
  });
  return at;
}

export interface Reset {
  at: number;
  recorded: boolean;
  /** The number of refused changes that the next run tries again. */
  changes: number;
  /** The number of refused reports to the CRM that the next run tries again. */
  reports: number;
}

/** Resets one person, and sends nothing. Throws Busy while a change has no known outcome. */
export function resetRecord(
  { snapshot, clock }: Mirror,
  { key, by, caller, reason }: Record<'key' | 'by' | 'caller' | 'reason', string>,
): Reset {
  const { journal, retryLater, optOutReports, transaction } = snapshot;
  const kind = 'contact';
  return transaction(() => {
    const open = journal.open(kind).filter((change) => change.key === key).length;
    if (open > 0) {
      throw new Busy(`the outcome of ${counted(open, 'change')} of this person is not known yet`, {
        fix: 'reset the person after the next run, which reads it from the platform',
      });
    }
    const recorded = markReset(snapshot, key);
    const changes = retryLater.release({ kind, key });
    const reports = optOutReports.release({ kind, key });
    // The person's record may not be among the changes that an incremental reading returns.
    if (recorded || changes > 0) invalidateCursor(snapshot);
    const at = clock.now();
    const why = { reason, about: null, evidence: null };
    addDecision(snapshot, { at, what: 'read again', name: by, ...why, as: caller }, key);
    return { at, recorded, changes, reports };
  });
}
