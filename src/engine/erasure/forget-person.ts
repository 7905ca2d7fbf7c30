/**
 * Forgets one person on request: first in the do-not-contact list, then on the platform, then in
 * the snapshot. If anything interrupts this, the list already protects the person, the remaining
 * work is recorded, and `forget` can be called again.
 */
import type { Deadlines, Deed } from '../../records/capabilities.ts';
import type { RecordType } from '../../records/record-type.ts';
import { type ExpectedError, Invalid, isExpected } from '../../domain/errors.ts';
import { all, type RememberedOptOut } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import { accountOf, type ErasureAccount } from './erasure-progress.ts';
import { proveOwn } from '../account/account-proof.ts';
import { bindDoNotContactList } from '../context/do-not-contact-binding.ts';
import type { Mirror, MirrorPart } from '../context/mirror-context.ts';
import { type CrmReading, readNames } from './source-identities.ts';
import { identityOf } from '../context/person-identity.ts';
import type { Unfinished } from './pending/unfinished-erasures.ts';

/** The person to forget. */
export interface Person {
  part: MirrorPart;
  key: Key;
  /**
   * All ids that the CRM has for the address, if each was requested individually. In that case the
   * CRM is not read.
   */
  ids?: readonly string[];
  /** Who asks for it, for the audit log. */
  by: string;
}

/** The result of all attempts since the first. Times are in milliseconds since the epoch. */
export interface Certificate {
  at: number;
  /**
   * The list entry that prevents the person from being added again; `since` is when the erasure was
   * first requested.
   */
  entry: { ledger: string; seq: number; since: number };
  /** The steps done on the platform and in the snapshot. */
  done: Pick<Unfinished, 'found' | 'optedOut' | 'deleted' | 'purged'>;
  /** Whether the platform was checked again and certainly has nothing about the person. */
  verified: boolean;
  /** Whether the snapshot's file no longer contains anything of the deleted rows. */
  scrubbed: boolean;
  /** Whether every id that the CRM has for the address is in the list. */
  crm: CrmReading;
  /**
   * Other addresses that the same CRM records, or the same contact, have or had. They were left
   * unchanged.
   */
  also: Key[];
  /** The reason why the erasure is incomplete; undefined if it is complete. */
  failure: ExpectedError | undefined;
}

/**
 * Forgets the person and returns what was done; every expected failure, including an interruption,
 * is part of the result. Throws Invalid, before anything is written, if the snapshot belongs to
 * another platform. Rethrows unexpected errors.
 */
export async function forget(
  mirror: Mirror,
  { part, key, ids, by }: Person,
  leave: Deadlines,
): Promise<Certificate> {
  // On another platform, not finding the person would prove nothing.
  const unproven = await failureOf(async () => void (await proveOwn(mirror, leave.signal)));
  if (unproven instanceof Invalid) throw unproven;
  bindDoNotContactList(mirror);
  const at = mirror.clock.now();
  const whoNow = (): Who => (ids ? { key, ids: [...ids] } : identityOf(mirror, part.type, key));
  const entry = enter(mirror, whoNow(), at);
  const account = accountOf(mirror, key, { since: entry.since, by });
  const certificate: Certificate = {
    at,
    entry,
    done: account.done(),
    verified: false,
    scrubbed: false,
    crm: { read: false, certified: false, why: 'not asked' },
    also: alsoOf(mirror, part.type, key),
    failure: undefined,
  };
  const failure = await failureOf(async () => {
    certificate.crm = ids ? asked : await readNames(mirror, part, leave);
    const who = whoNow();
    certificate.entry = enter(mirror, who, at);
    certificate.also = alsoOf(mirror, part.type, key);
    if (unproven) throw unproven;
    certificate.verified = await erase(mirror, { type: part.type, key, account }, leave);
    account.purge(part.type, who.ids);
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
function alsoOf({ snapshot, doNotContact }: Mirror, { name }: RecordType, key: Key): Key[] {
  const isErased = doNotContact.erased() ?? (() => false);
  return snapshot.recorded.namesakes(name, key).filter((other) => !isErased(other));
}

/**
 * Returns the expected error that `work` throws, if any. Rethrows file system errors and unexpected
 * errors.
 */
async function failureOf(work: () => Promise<void>): Promise<ExpectedError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!isExpected(error)) throw error;
    return error;
  }
}

interface Erasure {
  type: RecordType;
  key: Key;
  account: ErasureAccount;
}

async function erase(
  { snapshot, clock, timeoutMs }: Mirror,
  { type, key, account }: Erasure,
  leave: Deadlines,
): Promise<boolean> {
  const isOpen = snapshot.journal.open(type.name).some((change) => change.key === key);
  // A request that an earlier process sent may still arrive.
  if (isOpen) await clock.sleep(timeoutMs, leave.signal);
  const recorded = snapshot.recorded.get(type.name, key);
  const known = account.done().found ?? [];
  const tell = (deed: Deed): void => account.tell(type, deed);
  const isCertain =
    (await type.capabilities.erasure?.erase({ key, recorded, known, tell }, leave)) ?? true;
  account.looked();
  return isCertain;
}

type Who = ReturnType<typeof identityOf>;

/**
 * Writes the erasure to the list, unless it is already there. A repeated request keeps the time of
 * the first.
 */
function enter({ doNotContact }: Mirror, who: Who, at: number): Certificate['entry'] {
  const standing = () =>
    doNotContact
      .concerning(who)
      .find(({ cause, through }) => cause === 'erasure' && through === 'address');
  const before = standing();
  const erasure: RememberedOptOut = {
    part: all,
    cause: 'erasure',
    contact: null,
    after: null,
    by: at,
  };
  if (!before?.bears) doNotContact.write([{ ...who, adds: [before ?? erasure], ends: [] }], at);
  const { seq = 0, by = at } = standing() ?? {};
  return { ledger: doNotContact.id, seq, since: by };
}
