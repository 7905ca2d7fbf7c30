/** When many changes need a canary, as anybody could know who saw the mappings and the runs. */
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import type { Noted } from './canary-steps.ts';
import type { Outing } from './checker-state.ts';

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
