/**
 * Stories with a canary, in which the mapping changes between runs. They have seeds of their own,
 * so that the other stories stay as they are.
 */
import fc from 'fast-check';
import { who } from './actions.ts';
import { pick } from './random-draws.ts';
import { step, type Step } from './steps.ts';
import { story, type Story } from './story.ts';

const remap: Step = { is: 'remap' };

/** Somebody whom the next run is likely to opt in. */
const arrival = who.map((one): Step[] =>
  (['is new', 'is flagged no longer', 'wants mail again', 'wants the newsletter'] as const).map(
    (does) => ({ is: 'act', act: { in: 'crm', who: one, does } }),
  ),
);

/** Some arrive, the mapping changes, and runs follow, one of them in which anything may happen. */
const scene = fc
  .record({
    arrivals: fc.array(arrival, { minLength: 4, maxLength: 7, size: 'max' }),
    first: step.calm,
    pause: step.pause,
    next: step.run,
  })
  .map(({ arrivals, first, pause, next }): Step[] => [
    ...arrivals.flat(),
    remap,
    first,
    pause,
    next,
  ]);

/** A story of several people with few of them in a slice, and with new mappings at any places. */
export const canaryStory: fc.Arbitrary<Story> = fc
  .record({
    of: story,
    others: story,
    floor: pick([1, 1, 2]),
    percent: pick([1, 20, 60]),
    waitMinutes: pick([1, 30, 600]),
    bound: pick([100, 100, 100, 0]),
    places: fc.array(fc.record({ at: fc.nat(), scene }), { minLength: 1, maxLength: 3 }),
  })
  .map(({ of, others, places, waitMinutes, bound, ...sizes }): Story => {
    const steps = [...of.steps];
    for (const one of places) steps.splice(one.at % (steps.length + 1), 0, ...one.scene);
    const bounds = { unsubscribed: bound, refused: bound, drift: bound };
    const canary = { ...sizes, waitMs: waitMinutes * 60_000, bounds };
    const people = [...of.people, ...others.people].slice(0, 7);
    // Of one template, nothing can wait.
    return { ...of, people, letters: of.letters.slice(0, 1), steps, canary };
  });
