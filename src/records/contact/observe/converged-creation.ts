/**
 * Detects creations after which nothing is left to decide; in all other cases a new decision about
 * the person is made. When the change is planned, nothing else may be known about the person
 * (`settles`). When it is acknowledged (records/contact/send/acknowledged-change.ts), nothing else
 * may be recorded, and the response must show only the created channel (`showsOnly`).
 */
import type { Decision, States } from '../../record-type.ts';
import type { ObservedContact } from './contact-state.ts';

/** Returns whether a creation is the only change, and nothing else is known about the person. */
export function settles(
  states: States,
  { changes: [change, ...others], problems }: Pick<Decision, 'changes' | 'problems'>,
): boolean {
  const { desired, entries, former, parked, certified, restored, lost } = states;
  const [row, twin] = desired;
  const isAlone = change?.op === 'create' && others.length + problems.length === 0;
  const isNew = entries.length + former.length + parked.length === 0;
  const isSure = certified && !restored && lost.size === 0;
  const isPlain = row !== undefined && !row.invalid && !twin;
  return isAlone && isNew && isSure && isPlain;
}

/** Returns whether the contact is subscribed to this channel and shows no other. */
export function showsOnly({ channels, left }: ObservedContact, part: string): boolean {
  return !left && channels[part] === 'opt_in' && Object.keys(channels).length === 1;
}
