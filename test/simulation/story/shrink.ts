/** From a story that fails to the shortest that still does, by the same rule. */
import fc from 'fast-check';
import { ruleOf } from '../checks/rules.ts';
import { simulate, type Telling } from '../simulate.ts';
import { story, type Story } from './story.ts';

const patience = 120_000;

/** The first story of the seed, shrunk as long as it fails alike, for two minutes at most. */
export async function shrink(
  seed: number,
  { broken }: Pick<Telling, 'broken'> = {},
  stories: fc.Arbitrary<Story> = story,
): Promise<Story | undefined> {
  const until = performance.now() + patience;
  let shortest: Story | undefined;
  let rule: string | undefined;
  async function fails(one: Story): Promise<boolean> {
    const { wrong } = await simulate(one, { broken });
    if (!wrong) return false;
    rule ??= ruleOf(wrong);
    if (ruleOf(wrong) !== rule) return false;
    shortest = one;
    return true;
  }
  await fc.check(
    fc.asyncProperty(fc.noBias(stories), async (one) => !(await fails(one))),
    { seed, numRuns: 1, plugins: [fc.interruptAfterTimeLimit(patience)] },
  );
  // A plot is drawn, and shrunk, as a whole.
  for (let at = 0; shortest && at < shortest.steps.length && performance.now() < until; at += 1) {
    if (await fails({ ...shortest, steps: shortest.steps.toSpliced(at, 1) })) at -= 1;
  }
  return shortest;
}
