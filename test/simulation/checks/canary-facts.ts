/** What anybody could know of a canary who saw the CRM, the platform and the policy. */
import { canaryBounds } from '../../../src/domain/guards/canary.ts';
import { wishesIn } from '../world/crm.ts';
import type { Guard, Noted, SliceSoFar } from './canary-steps.ts';
import type { Known, Outing } from './checker-state.ts';

/** Returns how many records the policy puts into a slice, at most. */
export function mostIn(
  guard: Guard,
  { people }: Pick<Outing, 'people'>,
  { story: { canary }, witness }: Pick<Known, 'story' | 'witness'>,
): number {
  if (!canary) return Infinity;
  const wanted = wishesIn(people).filter(({ wish }) => wish === 'opt_in');
  const planned = {
    opt_in: new Set(wanted.map(({ key }) => key)).size,
    delete: witness.people().length,
    template: witness.letters().length,
  }[guard];
  const least = guard === 'template' ? 1 : canary.floor;
  return Math.max(least, Math.ceil((planned * canary.percent) / 100), 1);
}

/**
 * Whether the slice is out of bounds for certain when the run begins: people of it were refused,
 * had unsubscribed, or were gone, and nothing of ours has reached them since.
 */
export function isOutOfBounds(
  { slice, most }: SliceSoFar,
  { startedAt }: Pick<Outing, 'startedAt'>,
  { story: { canary }, witness }: Pick<Known, 'story' | 'witness'>,
): boolean {
  if (!canary) return false;
  const found = {
    unsubscribed: new Set<string>(),
    refused: new Set<string>(),
    drift: new Set<string>(),
  };
  const isLast = (one: Noted, at: number): boolean =>
    !slice
      .slice(at + 1)
      .some(({ keys, part }) => part === one.part && keys.some((key) => one.keys.includes(key)));
  for (const one of slice.filter(isLast)) {
    const [key = ''] = one.keys;
    const bound =
      one.is === 'refused'
        ? 'refused'
        : one.op === 'opt_in' && one.is === 'done' && shownOf(one, startedAt, witness);
    if (bound) found[bound].add(key);
  }
  return canaryBounds.some(
    (bound) => found[bound].size * 100 > canary.bounds[bound] * Math.max(most, slice.length),
  );
}

/** What is wrong, for certain, with somebody who was opted in; undefined if nothing is. */
function shownOf(
  { id, part }: Noted,
  at: number,
  witness: Known['witness'],
): 'unsubscribed' | 'drift' | undefined {
  const person = witness.people().find((one) => one.id === id);
  const others = witness.present(person?.key ?? '').filter((one) => one !== person);
  if (!person || person.former || others.length > 0) return undefined;
  const { left, gone } = person;
  if (gone) return gone.by === 'others' && gone.at < at ? 'drift' : undefined;
  const state = person.channels.get(part);
  const isOut = state?.is === 'opt_out' && state.by === 'others' && state.at < at;
  return isOut || (left && left.at < at) ? 'unsubscribed' : undefined;
}

/** Whether both are about the same person or template. */
export function isSame(one: Noted, other: Noted): boolean {
  const isNamed = one.id !== undefined && one.id === other.id;
  return isNamed || one.keys.some((key) => other.keys.includes(key));
}

/** Counts the people or templates. */
export function countOf(all: readonly Noted[]): number {
  return all.filter((one, at) => !all.slice(0, at).some((other) => isSame(one, other))).length;
}
