/**
 * When a creation leaves nothing to decide. As it is planned, nothing else is known of the person,
 * and it is all there is to do (`settles`); as it is acknowledged
 * (records/contact/send/acknowledged-change.ts), still nothing is recorded of her, and the answer
 * shows that channel alone, so that nothing came along with it. Everybody else is decided upon once
 * more.
 */
import type { Decision, States } from '../../record-type.ts';
import type { ObservedContact } from './contact-state.ts';

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

export function showsOnly({ channels, left }: ObservedContact, part: string): boolean {
  return !left && channels[part] === 'opt_in' && Object.keys(channels).length === 1;
}
