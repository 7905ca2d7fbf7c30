/** Tells the canaries of a run to people and programs. */
import type { Problem } from '../../domain/errors.ts';
import { askedClasses } from '../../domain/guards/plan-rule.ts';
import type { RunState } from '../context/run-state.ts';
import { type ToldCanary, tellCanary, waitingWords } from '../report/canary-text.ts';

/** Returns the canaries of a run as its summary shows them; undefined without `policy.canary`. */
export function canariesOf({ run, review }: RunState): ToldCanary[] | undefined {
  const { canary: policy } = run;
  if (!policy) return undefined;
  return askedClasses.flatMap((guard) => {
    const canary = review.canaries?.classes[guard];
    return canary ? [tellCanary(guard, canary, policy)] : [];
  });
}

/** States what waits for canaries, until when, and what to run next. */
export function sayCanaries(state: RunState): Problem[] {
  const { deferred } = state.run.snapshot.guarded;
  return (canariesOf(state) ?? []).flatMap((told): Problem[] => {
    const waiting = deferred.count(told.class, 'canary');
    return waiting === 0 ? [] : [{ code: 'note', ...waitingWords(told.class, waiting, told) }];
  });
}
