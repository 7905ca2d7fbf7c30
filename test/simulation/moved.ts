/** People whose address changed in the CRM: what may, and what must become of the old one. */
import { addressesOf, keyIn, wishFor, type Reading } from './crm.ts';
import type { Memories } from './memory.ts';
import type { Witness } from './witness.ts';

interface Known {
  witness: Witness;
  memories: Memories;
}

/**
 * Whether a whole reading has another address by now for whom it once had under this one, and that
 * one is on the platform, or wants no mail of the channel either: by any of its records, for the
 * strictest wins.
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
    const isForbidden = wishFor(reading, next, channel) === 'opt_out';
    return isForbidden || witness.present(next).length > 0;
  });
}

/** Former addresses of ours that nobody in the CRM has any more. */
export function leftBehind(reading: Reading, key: string, { memories }: Known): string[] {
  const addresses = addressesOf(reading);
  const met = memories.former(key, reading).filter(({ isMet }) => isMet);
  const left = met.filter((former) => !addresses.has(former.key));
  return left.map((former) => former.key).filter((one) => memories.of(one)?.owned === true);
}
