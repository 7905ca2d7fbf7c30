/** People whose address changed in the CRM: what may, and what must become of the old one. */
import {
  addressesOf,
  forbids,
  isLiving,
  isUnsound,
  keyIn,
  wishFor,
  type Reading,
} from '../world/crm.ts';
import type { Memories } from './expected-memory.ts';
import { fallbackOf, type Story } from '../story/story.ts';
import type { Witness } from '../world/platform-history.ts';

/** An address, as a run had to know it that acts on what was so since then. */
interface Old {
  key: string;
  since: number;
}

interface Known {
  witness: Witness;
  memories: Memories;
}

/**
 * Tells whether a whole reading has another address now for a record that had this one, and that
 * one is on the platform, or wants no mail of the channel either.
 */
export function mayBeOptedOut(
  reading: Reading,
  { key, channel, since }: Old & { channel: string },
  { witness, memories }: Known,
): boolean {
  if (!reading.certified || addressesOf(reading).has(key)) return false;
  return reading.records.some((record) => {
    const next = keyIn(record);
    if (next === undefined || !memories.everOf(String(record['id'])).has(key)) return false;
    const successors = reading.records.filter((one) => keyIn(one) === next);
    return successors.some((one) => forbids(one, channel)) || wasThere(next, since, witness);
  });
}

/**
 * Tells whether the owner of this address has another one now, whether that is on the platform, and
 * can be read. Undefined: nobody who is there has one, as far as is known.
 */
export function isReplaced(
  reading: Reading,
  { key, since }: Old,
  { witness, memories }: Known,
): boolean | undefined {
  // One existing record is enough for a shared address.
  const moved = newAddresses(reading, key, memories);
  if (moved.length === 0) return undefined;
  const isSound = (next: string): boolean =>
    reading.records.every((record) => keyIn(record) !== next || !isUnsound(record, reading));
  const absent = moved.filter((next) => !isSound(next) || !wasThere(next, since, witness));
  if (absent.length === 0) return true;
  // What the CRM gave that id before anything of the address was recorded nobody remembers.
  const isMet = (next: string): boolean =>
    memories.former(next, reading).some((former) => former.isMet && former.key === key);
  return absent.some(isMet) ? false : undefined;
}

/** The addresses that a whole reading gives the people of an address that it does not name. */
export function newAddresses(reading: Reading, key: string, memories: Known['memories']): string[] {
  if (!reading.certified || addressesOf(reading).has(key)) return [];
  return reading.records
    .filter((record) => memories.everOf(String(record['id'])).has(key))
    .flatMap((record) => keyIn(record) ?? [])
    .filter((next) => isLiving(reading, next));
}

/** Whether somebody of this address is there, or was there since then. */
function wasThere(key: string, since: number, witness: Witness): boolean {
  return witness.people().some(({ key: now, former, gone }) => {
    if (now !== key) return former?.key === key && former.until >= since;
    return !gone || gone.at >= since;
  });
}

/**
 * Former addresses of ours that nobody in the CRM has any more, and that nobody needs in the
 * channel: their owner has another address now, which is done or must not be.
 */
export function leftBehind(
  reading: Reading,
  { key, channel }: { key: string; channel: string },
  known: Known & { story: Story },
): string[] {
  const { memories } = known;
  const addresses = addressesOf(reading);
  const metAs = (next: string): string[] =>
    memories.former(next, reading).flatMap((former) => (former.isMet ? [former.key] : []));
  const left = metAs(key).filter((old) => !addresses.has(old) && memories.of(old)?.owned === true);
  return left.filter((old) => {
    const moved = [...addresses].filter((next) => metAs(next).includes(old));
    const isForbidden = moved.some((next) => wishFor(reading, next, channel) === 'opt_out');
    // A missing record that had the address, too, is waited for.
    const isMissing = (id: string): boolean =>
      reading.records.every((record) => String(record['id']) !== id);
    if (memories.everIdsOf(old).some(isMissing)) return false;
    return isForbidden || moved.every((next) => stands(reading, { key: next, channel }, known));
  });
}

/** Tells whether the person is subscribed under this address as wanted, or has unsubscribed. */
function stands(
  reading: Reading,
  { key, channel }: { key: string; channel: string },
  { witness, memories, story }: Known & { story: Story },
): boolean {
  const records = reading.records.filter((record) => keyIn(record) === key);
  const isGone = records.every((record) => record['deleted'] === 'true');
  const there = witness.present(key);
  if (isGone || there.length === 0) return false;
  if (wishFor(reading, key, channel) !== 'opt_in')
    return !records.some((record) => isUnsound(record, reading));
  const shown = there.map((one) => one.channels.get(channel)?.is ?? fallbackOf(story));
  return shown.includes('opt_in') || memories.of(key)?.outs.has(channel) === true;
}
