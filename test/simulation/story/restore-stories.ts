/**
 * Stories in which a backup is put back, once people and runs have gone on without it. They have
 * seeds of their own, so that the other stories stay as they are.
 */
import fc from 'fast-check';
import { act } from './actions.ts';
import { calm, step, type Step } from './steps.ts';
import { story, type Story } from './story.ts';

const acts = fc.array(
  act.map((one): Step => ({ is: 'act', act: one })),
  { minLength: 1, maxLength: 4, size: 'max' },
);

/** What happens since the backup, and once it is put back. */
const since = fc.tuple(acts, step.calm, acts, step.run, acts, step.calm);

/** A story with a backup at any place, which is put back in the end. */
export const restoreStory: fc.Arbitrary<Story> = fc
  .record({ of: story, at: fc.nat(), since, after: fc.tuple(step.calm, acts, step.run) })
  .map(({ of, at, since: between, after }): Story => {
    const steps = [...of.steps];
    steps.splice(at % (steps.length + 1), 0, calm, { is: 'backup' });
    return { ...of, steps: [...steps, ...between.flat(), { is: 'restore' }, ...after.flat()] };
  });
