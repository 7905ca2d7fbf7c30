/**
 * Stories with a canary, in which the mapping changes between runs. They have seeds of their own,
 * so that the other stories stay as they are.
 */
import fc from 'fast-check';
import { pick } from './random-draws.ts';
import { step, type Step } from './steps.ts';
import { story, type Story } from './story.ts';

const remap: Step = { is: 'remap' };

/** A story with few people in each slice, and with some new mappings at any places. */
export const canaryStory: fc.Arbitrary<Story> = fc
  .record({
    of: story,
    floor: pick([1, 1, 2]),
    percent: pick([1, 20, 60]),
    waitMinutes: pick([1, 30, 600]),
    bound: pick([100, 100, 100, 0]),
    places: fc.array(fc.record({ at: fc.nat(), run: step.calm }), { maxLength: 3 }),
  })
  .map(({ of, places, waitMinutes, bound, ...sizes }): Story => {
    const steps = [...of.steps];
    for (const { at, run } of places) steps.splice(at % (steps.length + 1), 0, remap, run);
    const bounds = { unsubscribed: bound, refused: bound, drift: bound };
    const canary = { ...sizes, waitMs: waitMinutes * 60_000, bounds };
    // Of one template, nothing can wait.
    return { ...of, letters: of.letters.slice(0, 1), steps, canary };
  });
