/** What a rehearsal foretells is what happens, in simulated worlds. */
import { expect, test } from 'vitest';
import { playsAll, seedBase } from '../support/extent.ts';
import { simulate } from './simulate.ts';
import { storyOf } from './story/story.ts';
import { rehearseAndRun } from './world/rehearsal.ts';

const seeds = playsAll ? 200 : 15;
/** What a platform without quirks may do to any request. */
const rough = ['500=0.1', 'reset-after=0.1', 'timeout-after=0.05', '429=0.05'];

/** Whether there was a rehearsal: where a plan already fails, there is none. */
async function compared(seed: number, faults: readonly string[]): Promise<boolean> {
  let isCompared = false;
  const { wrong } = await simulate(storyOf(seed), {
    async ends(ground) {
      const both = await rehearseAndRun(ground, { seed, faults });
      if (!both) return;
      isCompared = true;
      expect(both.foretold, `seed ${seed}`).toEqual(both.real);
    },
  });
  if (wrong) throw new Error(`seed ${seed} fails`, { cause: wrong });
  return isCompared;
}

test(`a run ends as its rehearsal, in ${seeds} stories from seed ${seedBase} on`, async () => {
  let n = 0;
  for (let seed = seedBase; seed < seedBase + seeds; seed += 1) {
    const { quirks } = storyOf(seed);
    if (await compared(seed, quirks.length === 0 ? rough : [])) n += 1;
  }
  expect(n).toBeGreaterThan(0.8 * seeds);
});
