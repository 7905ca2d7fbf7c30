/** What anybody could know of a canary who saw the CRM, the platform and the policy. */
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { wishesIn } from '../world/crm.ts';
import type { Noted, SliceSoFar } from './canary-checks.ts';
import type { Known, Outing } from './checker-state.ts';

/** Returns how many records the policy puts into a slice, at most. */
export function mostIn(
  guard: Noted['guard'],
  { people }: Pick<Outing, 'people'>,
  { story: { canary }, witness }: Pick<Known, 'story' | 'witness'>,
): number {
  if (!canary) return Infinity;
  const wanted = wishesIn(people).filter(({ wish }) => wish === 'opt_in');
  const all = {
    opt_in: new Set(wanted.map(({ key }) => key)).size,
    template: witness.letters().length,
  };
  const planned = guard === 'opt_in' || guard === 'template' ? all[guard] : witness.people().length;
  const least = guard === 'template' ? 1 : canary.floor;
  return Math.max(least, Math.ceil((planned * canary.percent) / 100), 1);
}

/**
 * Whether the slice is out of bounds for certain when the run begins: people of it had
 * unsubscribed, or were gone, and nothing of ours has reached them since.
 */
export function isOutOfBounds(
  { slice, most }: SliceSoFar,
  { startedAt }: Pick<Outing, 'startedAt'>,
  { story: { canary }, witness }: Pick<Known, 'story' | 'witness'>,
): boolean {
  if (!canary) return false;
  const found = { unsubscribed: new Set<string>(), drift: new Set<string>() };
  for (const { id, op, part, done } of slice) {
    const person = witness.people().find((one) => one.id === id);
    if (!person || person.former || !done || op !== 'opt_in') continue;
    const { key, left, gone } = person;
    const state = person.channels.get(part);
    const isBefore = (at: number | undefined): boolean => at !== undefined && at < startedAt;
    const isOut = state?.is === 'opt_out' && state.by === 'others' && isBefore(state.at);
    const isAlone = witness.present(key).length === (gone ? 0 : 1);
    if (!isAlone) continue;
    if (gone) {
      if (gone.by === 'others' && isBefore(gone.at)) found.drift.add(key);
    } else if (isBefore(left?.at) || isOut) found.unsubscribed.add(key);
  }
  const of = Math.max(most, new Set(slice.map(({ id }) => id)).size);
  return (['unsubscribed', 'drift'] as const).some(
    (bound) => found[bound].size * 100 > canary.bounds[bound] * of,
  );
}

interface Occasions {
  begins(outing: Outing): void;
  /** Whether more than a few changes of the class need a canary in this run, for certain. */
  is(guard: Noted['guard'], outing: Outing): boolean;
  ended(outing: Outing, summary: Summary | undefined): void;
  lose(): void;
}

/** Less than a mapping is an occasion: that goes by clocks that may jump. */
const occasionMs = 5 * 86_400_000;

/** A first load, as long as nothing has been loaded, and a mapping that is new since then. */
export function createOccasions(): Occasions {
  let mapping: string | undefined;
  let newAt: number | undefined;
  let hasRun = false;
  let isLoaded = false;
  return {
    begins(outing) {
      if (hasRun && outing.mapping !== mapping) newAt = isLoaded ? outing.startedAt : undefined;
      mapping = outing.mapping;
    },
    is(guard, { startedAt }) {
      if (guard === 'template') return true;
      if (!hasRun) return guard === 'opt_in';
      return newAt !== undefined && startedAt - newAt < occasionMs;
    },
    ended({ mode, only, people }, summary) {
      hasRun = true;
      if (!summary || mode !== 'full' || only !== undefined || people.records.length === 0) return;
      const { certificate, reasons, deferred, status } = summary;
      const isWhole = certificate.source === true && certificate.platform === true;
      const isWaiting = Object.values(deferred).some((n) => n > 0);
      if (isWhole && reasons.length === 0 && !isWaiting && status !== 'interrupted')
        isLoaded = true;
    },
    lose() {
      mapping = undefined;
      newAt = undefined;
      hasRun = false;
      isLoaded = false;
    },
  };
}
