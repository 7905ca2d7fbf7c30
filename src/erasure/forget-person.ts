/**
 * Forgets one person on demand: the ledger first, then the platform, then the snapshot. Whatever
 * stops it on the way, the ledger has it already, what is left is noted, and it can be done again.
 */
import type { Deed, Deadlines } from '../records/erasure-request.ts';
import type { RecordType } from '../records/record-type.ts';
import { Invalid, isExpected, type Expected } from '../domain/errors.ts';
import { all, type RememberedOptOut } from '../domain/do-not-contact.ts';
import type { Key } from '../domain/record.ts';
import { accountOf, type ErasureAccount } from './erasure-progress.ts';
import { proveOwn } from '../engine/account/snapshot-ownership.ts';
import { bindDoNotContactList } from '../engine/context/do-not-contact-binding.ts';
import type { Mirror, MirrorPart } from '../engine/context/mirror-context.ts';
import { readNames, type Reading } from './source-identities.ts';
import { identityOf } from '../engine/context/do-not-contact-identity.ts';
import type { Unfinished } from './pending/unfinished-erasures.ts';

/** Whom to forget. */
export interface Person {
  part: MirrorPart;
  key: Key;
  /** All that the CRM had for the address, if it was asked for each: then it is not read. */
  ids?: readonly string[];
}

/** What all attempts since the first have done of it. Times in milliseconds since the epoch. */
export interface Certificate {
  at: number;
  /** The entry that keeps the person from being brought back; `since` it was first asked for. */
  entry: { ledger: string; seq: number; since: number };
  /** What was done on the platform and in the snapshot. */
  done: Pick<Unfinished, 'found' | 'optedOut' | 'deleted' | 'purged'>;
  /** The platform was looked at again, and shows nothing of the person. */
  verified: boolean;
  /** Nothing is left in the snapshot's file of what was dropped. */
  scrubbed: boolean;
  /** Whether every id that the CRM has for the address stands in the ledger. */
  crm: Reading;
  /** Other addresses that the same CRM records, or contact, had or have: nothing was done there. */
  also: Key[];
  /** Why not all of it was done. */
  failure: Expected | undefined;
}

/**
 * Throws Invalid, before anything is written, where the snapshot belongs to another platform; what
 * else is against it, an interruption too, is in the answer.
 */
export async function forget(
  mirror: Mirror,
  { part, key, ids }: Person,
  leave: Deadlines,
): Promise<Certificate> {
  // Where others answer, that nobody is found proves nothing.
  const unproven = await failureOf(async () => void (await proveOwn(mirror, leave.signal)));
  if (unproven instanceof Invalid) throw unproven;
  bindDoNotContactList(mirror);
  const at = mirror.clock.now();
  const whoNow = (): Who => (ids ? { key, ids: [...ids] } : identityOf(mirror, part.type, key));
  const entry = enter(mirror, whoNow(), at);
  const account = accountOf(mirror, key, entry.since);
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
    await erase(mirror, { type: part.type, key, account }, leave);
    certificate.verified = true;
    account.purge(part.type, who.ids);
    certificate.scrubbed = true;
  });
  return { ...certificate, done: account.done(), failure };
}

const asked: Reading = {
  read: false,
  certified: true,
  why: 'it was asked for each id that is known of the address, and not read for others',
};

/** But for those that were forgotten themselves. */
function alsoOf({ snapshot, doNotContact }: Mirror, { name }: RecordType, key: Key): Key[] {
  const isErased = doNotContact.erased() ?? (() => false);
  return snapshot.recorded.namesakes(name, key).filter((other) => !isErased(other));
}

/** Throws bugs, and what the disk has against it. */
async function failureOf(work: () => Promise<void>): Promise<Expected | undefined> {
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
): Promise<void> {
  const isOpen = snapshot.journal.open(type.name).some((change) => change.key === key);
  // What a process that has ended has sent may still arrive.
  if (isOpen) await clock.sleep(timeoutMs, leave.signal);
  const recorded = snapshot.recorded.get(type.name, key);
  const known = account.done().found ?? [];
  const tell = (deed: Deed): void => account.tell(type, deed);
  await type.erase?.({ key, recorded, known, tell }, leave);
  account.looked();
}

type Who = ReturnType<typeof identityOf>;

/** Asked for again, an erasure stands since the first time. */
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
