/**
 * Stories in which runs are undone, and people unsubscribe between. They have seeds of their own,
 * so that the other stories stay as they are.
 */
import fc from 'fast-check';
import { who, type Act } from './actions.ts';
import { pick } from './random-draws.ts';
import { approval, step, type RunStep, type Step } from './steps.ts';
import { story, type Story } from './story.ts';

/** What speaks against an opt-in, or for another one, while a run is being undone. */
const between: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof<fc.Arbitrary<Act>[]>(
    fc.record({
      in: fc.constant('platform' as const),
      who,
      does: pick([
        'leaves the newsletter',
        'leaves the product mail',
        'unsubscribes from everything',
        'is blocked',
        'is deleted',
        'comes back to all mail',
        'signs up for the newsletter',
        'is given another address',
      ]),
    }),
    fc.record({
      in: fc.constant('crm' as const),
      who,
      does: pick([
        'wants the newsletter',
        'forbids the newsletter',
        'says nothing of the newsletter',
        'states a new will',
        'is removed',
        'moves to a new address',
      ]),
    }),
  ),
  { maxLength: 3 },
);

const undo = fc
  .record({
    of: fc.oneof({ weight: 3, arbitrary: step.calm }, { weight: 1, arbitrary: step.run }),
    undoes: pick([0, 0, 0, 1, 2]),
  })
  .map(({ of, undoes }): RunStep => {
    const plain = { mode: 'full', plans: false, only: undefined, chosen: undefined } as const;
    return { ...of, ...plain, undoes };
  });

/** Acts, an undo, what a guard held of it, and perhaps a run after it. */
const scene = fc
  .record({ acts: between, undo, approves: fc.boolean(), next: fc.option(step.calm, { freq: 1 }) })
  .map(({ acts, undo: one, approves, next }): Step[] => [
    ...acts.map((act): Step => ({ is: 'act', act })),
    one,
    ...(approves ? [approval, one] : []),
    ...(next ? [next] : []),
  ]);

/** Somebody whom the next run is likely to opt in. */
const arrival = who.map((one): Step[] =>
  (['is new', 'is flagged no longer', 'wants mail again', 'wants the newsletter'] as const).map(
    (does) => ({ is: 'act', act: { in: 'crm', who: one, does } }),
  ),
);

/** A story with some undos at any places, and with two in a row in the end. */
export const undoStory: fc.Arbitrary<Story> = fc
  .record({
    of: story,
    places: fc.array(fc.record({ at: fc.nat(), scene }), { maxLength: 2 }),
    arrivals: fc.array(arrival, { minLength: 2, maxLength: 5, size: 'max' }),
    last: fc.tuple(step.calm, scene, scene),
  })
  .map(({ of, places, arrivals, last: [run, ...scenes] }): Story => {
    const steps = [...of.steps];
    for (const one of places) steps.splice(one.at % (steps.length + 1), 0, ...one.scene);
    return { ...of, steps: [...steps, ...arrivals.flat(), run, ...scenes.flat()] };
  });
