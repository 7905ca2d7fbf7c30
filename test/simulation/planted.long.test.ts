/** A simulation that cannot fail is worth nothing: each broken rule of the engine is found. */
import { describe, expect, test } from 'vitest';
import { broken, brokenCanaries } from './broken-engines.ts';
import { ruleOf } from './checks/rules.ts';
import { shrink } from './story/shrink.ts';
import { simulate } from './simulate.ts';
import { storyOfKind } from './story/story-kinds.ts';
import { storyOf } from './story/story.ts';
import { drawn, playsAll } from '../support/extent.ts';

/** Another draw, or a small change of the engine, may find it later; not much later. */
function* seedsFrom(foundBy: number): Generator<number> {
  for (let seed = foundBy; seed < 20 + 2 * foundBy; seed += 1) yield seed;
}

/** What the checks about canaries find. */
const aboutCanaries = [
  'many changes of an occasion begin with the slice of a canary',
  'nobody outside the slice is changed while a canary is open',
];
const planted = [
  ...broken.map((one) => ({ ...one, kind: 'plain' as const })),
  ...brokenCanaries.map((one) => ({ ...one, kind: 'canary' as const })),
];

describe('an engine without the rule', () => {
  test.each(drawn(planted, 3))(
    '"$rule" fails by $kind seed $foundBy or soon after',
    async (one) => {
      const { breaks, foundBy, kind } = one;
      for (const seed of seedsFrom(foundBy)) {
        const story = storyOfKind(kind, seed);
        const { wrong } = await simulate(story, { broken: breaks });
        if (!wrong) continue;
        expect(wrong.name).toBe('Wrong');
        if (kind === 'canary') expect(aboutCanaries).toContain(ruleOf(wrong));
        // It is the broken rule that was found, and nothing else.
        expect((await simulate(story)).wrong).toBeUndefined();
        return;
      }
      throw new Error('nothing was found');
    },
  );
});

test.runIf(playsAll)('a failing story shrinks to one that a person can follow', async () => {
  const [{ breaks, foundBy } = { breaks: undefined, foundBy: 0 }] = broken;
  for (const seed of seedsFrom(foundBy)) {
    const { wrong } = await simulate(storyOf(seed), { broken: breaks });
    if (!wrong) continue;
    const shortest = await shrink(seed, { broken: breaks });
    if (!shortest) throw new Error('it did not fail when it was shrunk');
    expect(shortest.steps.length).toBeLessThanOrEqual(2);
    expect(shortest.people.length).toBeLessThanOrEqual(3);
    // By the same rule: shrunk across rules it would tell of another mistake.
    const still = await simulate(shortest, { broken: breaks });
    expect(still.wrong && ruleOf(still.wrong)).toBe(ruleOf(wrong));
    return;
  }
  throw new Error('no seed fails');
});
