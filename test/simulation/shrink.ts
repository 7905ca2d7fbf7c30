/** From a story that fails to the shortest that still does, by the same rule. */
import fc from 'fast-check';
import { ruleOf } from './rules.ts';
import { simulate, type Telling } from './simulate.ts';
import { story, type Story } from './story.ts';

const patience = 120_000;

/** The first story of the seed, shrunk as long as it fails alike, for two minutes at most. */
export async function shrink(
  seed: number,
  { broken }: Pick<Telling, 'broken'> = {},
): Promise<Story | undefined> {
  let shortest: Story | undefined;
  let rule: string | undefined;
  await fc.check(
    fc.asyncProperty(fc.noBias(story), async (one) => {
      const { wrong } = await simulate(one, { broken });
      if (!wrong) return true;
      rule ??= ruleOf(wrong);
      if (ruleOf(wrong) !== rule) return true;
      shortest = one;
      return false;
    }),
    { seed, numRuns: 1, plugins: [fc.interruptAfterTimeLimit(patience)] },
  );
  return shortest;
}
