/**
 * Forgets one person on request: first in the do-not-contact list, then on the platform, then in
 * the snapshot. After an interruption the list protects the person, and `forget` goes on.
 */
import { type Deadlines, acked } from '../../records/change-outcome.ts';
import type { Deed } from '../../records/contact/contacts.ts';
import { idsOf } from '../../records/contact/consent/renamed-contact.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import { acknowledge } from '../../records/contact/send/acknowledged-change.ts';
import {
  type ExpectedError,
  failureOf,
  Invalid,
  isExpected,
  Busy,
  Interrupted,
  renderProblem,
} from '../../domain/errors.ts';
import { all, type Identity, type RememberedOptOut } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import { proveOwn } from '../account/account-binding.ts';
import { bindDoNotContactList } from '../context/do-not-contact-binding.ts';
import type { Mirror, MirrorContacts } from '../context/mirror-context.ts';
import { identityOf } from '../context/person-identity.ts';
import { type Unfinished, begun, end, keep } from './pending/unfinished-erasures.ts';
import { invalidateCursor } from '../finish/source-cursor.ts';
import { erasureWrite, forgetInMemory } from '../../store/memory/audit-trail.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import { readSource } from '../read/source-read.ts';
import { inRun } from '../begin-run.ts';

/** The result of all attempts since the first. Times are in milliseconds since the epoch. */
export interface Certificate {
  at: number;
  /** The list entry that bars the person; `since` is when the erasure was first requested. */
  entry: { ledger: string; seq: number; since: number };
  done: Pick<Unfinished, 'found' | 'optedOut' | 'deleted' | 'purged'>;
  /** Whether the platform was checked again and certainly has nothing about the person. */
  verified: boolean;
  /** Whether the snapshot's file no longer contains anything of the deleted rows. */
  scrubbed: boolean;
  /** Whether every id that the CRM has for the address is in the list. */
  crm: CrmReading;
  /** Other addresses of the same CRM records, or the same contact. They were left unchanged. */
  also: Key[];
  /** Why the erasure is incomplete, if so. */
  failure: ExpectedError | undefined;
}

/**
 * Forgets the person and returns what was done; every expected failure, including an interruption,
 * is part of the result. `ids`: all ids that the CRM has for the address, if each was requested
 * individually; in that case the CRM is not read. `by`: who asks for it, for the audit log. Throws
 * Invalid, before anything is written, if the snapshot belongs to another platform. Rethrows
 * unexpected errors.
 */
export async function forget(
  mirror: Mirror,
  {
    contacts,
    key,
    ids,
    by,
  }: { contacts: MirrorContacts; key: Key; ids?: readonly string[]; by: string },
  leave: Deadlines,
): Promise<Certificate> {
  const { snapshot, clock, timeoutMs } = mirror;
  // On another platform, not finding the person would prove nothing.
  const unproven = await failureOf(async () => void (await proveOwn(mirror, leave.signal)));
  if (unproven instanceof Invalid) throw unproven;
  bindDoNotContactList(mirror);
  const at = clock.now();
  const whoNow = (): Identity => (ids ? { key, ids: [...ids] } : identityOf(mirror, key));
  const entry = enter(mirror, whoNow(), at);
  const account = accountOf(mirror, key, { since: entry.since, by });
  const certificate: Certificate = {
    at,
    entry,
    done: account.done(),
    verified: false,
    scrubbed: false,
    crm: { read: false, certified: false, why: 'not asked' },
    also: alsoOf(mirror, key),
    failure: undefined,
  };
  const failure = await failureOf(async () => {
    certificate.crm = ids ? asked : await readNames(mirror, contacts, leave);
    const who = whoNow();
    certificate.entry = enter(mirror, who, at);
    certificate.also = alsoOf(mirror, key);
    if (unproven) throw unproven;
    const isOpen = snapshot.journal.open('contact').some((change) => change.key === key);
    // A request that an earlier process sent may still arrive.
    if (isOpen) await clock.sleep(timeoutMs, leave.signal);
    const recorded = snapshot.recorded.get('contact', key);
    const known = account.done().found ?? [];
    const tell = (deed: Deed): void => account.tell(deed);
    certificate.verified = await contacts.erase({ key, recorded, known, tell }, leave);
    account.looked();
    account.purge(who.ids);
    certificate.scrubbed = true;
  });
  return { ...certificate, done: account.done(), failure };
}

const asked: CrmReading = {
  read: false,
  certified: true,
  why: 'it was asked for each id that is known of the address, and not read for others',
};

/** Returns the person's other addresses, except those that were themselves forgotten. */
function alsoOf({ snapshot, doNotContact }: Mirror, key: Key): Key[] {
  const isErased = doNotContact.erased() ?? (() => false);
  return snapshot.recorded.namesakes({ kind: 'contact', key }).filter((other) => !isErased(other));
}

/** A repeated request keeps the time of the first. */
function enter({ doNotContact }: Mirror, who: Identity, at: number): Certificate['entry'] {
  const standing = () =>
    doNotContact
      .concerning(who)
      .find(({ cause, through }) => cause === 'erasure' && through === 'address');
  const before = standing();
  const none = { contact: null, after: null };
  const erasure: RememberedOptOut = { part: all, cause: 'erasure', ...none, by: at };
  if (!before?.bears) doNotContact.write([{ ...who, adds: [before ?? erasure], ends: [] }], at);
  const { seq = 0, by = at } = standing() ?? {};
  return { ledger: doNotContact.id, seq, since: by };
}

/** Records that the erasure has begun, and returns what records each further step. */
function accountOf(mirror: Mirror, key: Key, { since, by }: { since: number; by: string }) {
  const { snapshot, clock } = mirror;
  const { transaction, recorded, purge, journal, unaudited } = snapshot;
  const noteWrite = erasureWritesIn(mirror);
  let now = begun(snapshot, key, since);
  const note = (next: Unfinished, also?: () => void): void => {
    transaction(() => {
      also?.();
      keep(snapshot, next);
    });
    now = next;
  };
  /** Records the opt-out as ours, in case the erasure stops here. */
  const optedOut = ({ id, channel }: Deed & { is: 'opted out' }): void => {
    const row = recorded.get('contact', key);
    if (!row) return;
    const about = {
      kind: 'contact',
      key,
      part: channel,
      target: id,
      body: '{}',
      phase: 0,
    } as const;
    const ack = { ...acked({ id }), at: clock.now(), latest: latestNow(mirror) };
    const after = acknowledge(row, { ...about, op: 'opt_out' }, ack);
    if (after) recorded.put(after);
  };
  note(now);
  return {
    done: (): Unfinished => now,
    looked: () => note({ ...now, found: now.found ?? [] }),
    tell(deed: Deed): void {
      let next = now;
      if (deed.is === 'opted out') next = { ...now, optedOut: now.optedOut + 1 };
      else if (deed.is !== 'sending' && deed.is !== 'refused') {
        // Each contact is counted once.
        next = { ...now, [deed.is]: [...new Set([...(now[deed.is] ?? []), deed.id])] };
      }
      note(next, () => {
        if (deed.is === 'opted out') optedOut(deed);
        if (deed.is !== 'found') noteWrite(deed);
      });
    },
    /**
     * Deletes the person from the memory, then from the snapshot's tables and file, and ends the
     * erasure. If the memory cannot be written, throws before the snapshot is changed; if another
     * process reads the snapshot, throws Busy and stores the person's key again.
     */
    purge(ids: readonly string[]): void {
      const row = recorded.get('contact', key);
      const known = row ? idsOf(decodeContact.recorded(row)) : [];
      const contacts = [...new Set([...known, ...(now.found ?? []), ...now.deleted])];
      // For the audit log: the outcome of changes that an earlier process sent is never found out,
      // because the person's rows are deleted.
      const open = journal.open('contact').filter((one) => one.key === key && one.state === 'sent');
      const unknown = { outcome: 'unknown', status: undefined, request: undefined } as const;
      const at = clock.now();
      if (open.length > 0)
        transaction(() => open.forEach(({ seq }) => unaudited.addOutcome(seq, { at, ...unknown })));
      mirror.requestLog?.flush();
      forgetInMemory(mirror, { key, contacts }, { at: clock.now(), by });
      transaction(() => {
        // The rows deleted now are added to those of earlier attempts.
        const purged = purge.rows('contact', key, ids, now.purged);
        now = { ...now, purged };
        keep(snapshot, { ...now, key: undefined, told: undefined });
        // It is no longer known who else had this address, so the source has to be read completely.
        invalidateCursor(snapshot);
      });
      try {
        purge.scrub();
      } catch (error) {
        if (error instanceof Busy) note(now);
        throw error;
      }
      transaction(() => end(snapshot, key));
    },
  };
}

/**
 * Remembers a write on the platform for the audit log: before it is sent as one without an answer,
 * because the process may die, and then what became of it.
 */
function erasureWritesIn({ snapshot: { unaudited }, clock }: Mirror): (deed: Deed) => void {
  const open = new Map<string, number>();
  return (deed) => {
    const channel = 'channel' in deed ? deed.channel : undefined;
    const name = JSON.stringify([deed.id, channel]);
    const isOptOut = channel !== undefined;
    const at = clock.now();
    const write = {
      at,
      op: isOptOut ? 'opt_out' : 'delete',
      part: channel ?? '',
      rule: 'forgotten',
      before: isOptOut ? 'opt_in' : 'present',
    } as const;
    if (deed.is === 'sending') {
      const entry = erasureWrite({ ...write, outcome: 'unknown' });
      open.set(name, unaudited.addEntry({ entry, key: null, at }));
      return;
    }
    const id = open.get(name);
    open.delete(name);
    const isDone = deed.is !== 'refused';
    if (id === undefined) return;
    if (isDone) unaudited.replaceEntry(erasureWrite({ ...write, outcome: 'acked' }), id);
    else unaudited.dropEntry(id);
  };
}

/** If the source was not read, or is not certified, ids may be missing. */
export interface CrmReading {
  read: boolean;
  certified: boolean;
  why: string | null;
}

/** Reads the source so that `identityOf` knows all ids of a person. Throws Interrupted. */
export async function readNames(
  mirror: Mirror,
  contacts: MirrorContacts,
  { signal: stop, abort }: Deadlines,
): Promise<CrmReading> {
  const how = { mode: 'fast', writes: false, only: 'contacts', stop, abort } as const;
  try {
    return await inRun(mirror, { ...how, progress: () => undefined }, async ({ run }) => {
      const read = await readSource(run, contacts);
      const why = read.complete ? null : renderProblem({ reason: read.why, fix: read.fix });
      return { read: true, certified: read.complete, why };
    });
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return { read: false, certified: false, why: error.message };
  }
}
