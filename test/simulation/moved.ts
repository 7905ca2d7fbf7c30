/** People whose address changed in the CRM: what may, and what must become of the old one. */
import { addressesOf, forbids, keyIn, type Reading } from './crm.ts';
import type { Memories } from './memory.ts';
import type { Witness } from './witness.ts';

interface Known {
  witness: Witness;
  memories: Memories;
}

/**
 * Whether a whole reading has another address by now for whom it once had under this one, and that
 * one is on the platform, or wants no mail of the channel either.
 */
export function mayBeOptedOut(
  reading: Reading,
  { key, channel }: { key: string; channel: string },
  { witness, memories }: Known,
): boolean {
  if (!reading.certified || addressesOf(reading).has(key)) return false;
  return reading.records.some((record) => {
    const next = keyIn(record);
    if (next === undefined || !memories.everOf(String(record['id'])).has(key)) return false;
    const hers = reading.records.filter((one) => keyIn(one) === next);
    return hers.some((one) => forbids(one, channel)) || witness.present(next).length > 0;
  });
}

/**
 * Whether whoever had this address has another one by now, and whether that is on the platform.
 * Undefined: nobody who is there has one, as far as is known.
 */
export function isReplaced(
  reading: Reading,
  key: string,
  { witness, memories }: Known,
): boolean | undefined {
  if (!reading.certified || addressesOf(reading).has(key)) return undefined;
  const moved = reading.records
    .filter((record) => memories.everOf(String(record['id'])).has(key))
    .filter((record) => record['deleted'] !== 'true')
    .flatMap((record) => keyIn(record) ?? []);
  if (moved.length === 0) return undefined;
  const absent = moved.filter((next) => witness.present(next).length === 0);
  if (absent.length === 0) return true;
  // What the CRM gave that id before anything of the address was recorded nobody remembers.
  const isMet = (next: string): boolean =>
    memories.former(next, reading).some((former) => former.isMet && former.key === key);
  return absent.some(isMet) ? false : undefined;
}

/** Former addresses of ours that nobody in the CRM has any more. */
export function leftBehind(reading: Reading, key: string, { memories }: Known): string[] {
  const addresses = addressesOf(reading);
  const met = memories.former(key, reading).filter(({ isMet }) => isMet);
  const left = met.filter((former) => !addresses.has(former.key));
  return left.map((former) => former.key).filter((one) => memories.of(one)?.owned === true);
}
