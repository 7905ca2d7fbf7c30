/**
 * When a creation leaves nothing to decide: of somebody of whom nothing is known yet it is all
 * there is to do, and its answer shows that channel alone, so that nothing came along with it.
 * Everybody else is decided upon once more when a creation is acknowledged.
 */
import type { Decision, States } from '../kind.ts';
import type { ObservedContact } from './record.ts';

/**
 * What the source says of her (a fingerprint), where what is planned will settle that, if nothing
 * is recorded of her by then either.
 */
export function settledBy(
  states: States,
  { changes: [change, ...others], problems }: Pick<Decision, 'changes' | 'problems'>,
): string | undefined {
  const { desired, entries, former, parked, certified, restored, lost } = states;
  const [row, twin] = desired;
  const isAlone = change?.op === 'create' && others.length + problems.length === 0;
  const isNew = entries.length + former.length + parked.length === 0;
  const isSure = certified && !restored && lost.size === 0;
  return isAlone && isNew && isSure && !twin && !row?.invalid ? row?.fingerprint : undefined;
}

export function showsOnly({ channels, left }: ObservedContact, part: string): boolean {
  return !left && channels[part] === 'opt_in' && Object.keys(channels).length === 1;
}
