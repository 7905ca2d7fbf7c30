/**
 * What settings keep from being done: contacts.protect, and policy.optIns: off. Opt-outs that the
 * CRM states are never stopped here.
 */
import type { Key } from '../../../domain/record.ts';
import type { Stop } from '../../record-type.ts';
import { beyond } from './consent-conflicts.ts';
import type { ConsentPolicy, Verdict } from './consent-rules.ts';
import type { DesiredContactRow } from '../observe/contact-rows.ts';
import type { RecordedContact } from '../observe/contact-state.ts';

interface Asked {
  key: Key;
  /** Every CRM record of the address. */
  desired: readonly DesiredContactRow[];
  recorded: RecordedContact | undefined;
  /** The addresses that contacts.protect names. */
  protects: ReadonlySet<Key>;
}

/** Whether contacts.protect names the person: by address, or by a condition on a CRM record. */
export function isProtected({ key, desired, recorded, protects }: Asked): boolean {
  return protects.has(key) || isProtectedByRecord(desired, recorded) === true;
}

/**
 * Whether a condition of contacts.protect holds for a CRM record of the person. The last result
 * counts while no record gives one: the person has left the CRM, or a record is invalid.
 */
export function isProtectedByRecord(
  desired: readonly DesiredContactRow[],
  recorded: RecordedContact | undefined,
): true | undefined {
  const says = desired.some(({ value }) => value.protected === true);
  const isUnknown = desired.length === 0 || desired.some(({ invalid }) => invalid);
  return says || (isUnknown && recorded?.protected === true) || undefined;
}

/** Which setting stops a verdict; undefined: none does. */
export function stopOf(
  { row, do: verdict }: Verdict,
  { isProtected, optIns }: { isProtected: boolean } & Pick<ConsentPolicy, 'optIns'>,
): Stop | undefined {
  const brings = verdict === 'create' || verdict === 'opt_in';
  const isStated = row === 6 || row === 7;
  if (isProtected && (brings || verdict === 'delete' || (verdict === 'opt_out' && !isStated)))
    return 'protect';
  return brings && optIns === 'off' ? 'optIns' : undefined;
}

/** What becomes of a verdict that a setting stops. */
export function stopped(stop: Stop): Verdict {
  return { row: stop === 'protect' ? beyond.protected : beyond.optInsOff, do: 'nothing' };
}
