/** The engine holds in simulated worlds; and the simulation itself is what it says it is. */
import { describe, expect, test } from 'vitest';
import { endAsRecorded, staysFixed } from './recorded-stories.ts';
import { regressions } from './story/regressions.ts';
import { compared, simulate } from './simulate.ts';
import { calm } from './story/steps.ts';
import { storyOf, type Story } from './story/story.ts';
import { nobody, told } from './story/told-stories.ts';
import { drawn, sampled } from '../support/extent.ts';

async function heard(story: Story): Promise<string[]> {
  const lines: string[] = [];
  await simulate(story, { log: (line) => void lines.push(line) });
  return lines;
}

test('the first 10 seeds hold, and end as they always did', async () => endAsRecorded(10));

describe('a regression stays fixed:', () => {
  // `npm run test:ci` plays all of them (regressions.long.test.ts).
  test.each(drawn(regressions, 5))('$found', staysFixed);
});

test('looks that expire while forty people wait are repeated once each', async () => {
  const newcomer: Story['people'][number] = { ...nobody, crm: 'once', wishes: ['yes', ''] };
  const story = told(
    Array.from({ length: 40 }, () => newcomer),
    [calm],
    {
      // A look counts for a quarter of an hour, so for two of them.
      limit: 'contacts.enrol=1/400',
    },
  );
  const lines = await heard(story);
  // A look at an address with other letters searches for each spelling; the first one counts.
  const looks = lines.filter((line) => /search=[\w%.-]+/.test(line) && !/%C[3C]/.test(line));
  expect(lines.filter((line) => line.includes('opt_in → 201'))).toHaveLength(40);
  expect(looks.length).toBeGreaterThan(30);
  // People at the gate when a slice ends are looked at once more. All at once it would be 242.
  expect(looks.length).toBeLessThanOrEqual(45);
});

test('a fast run does the same, whether it compares people in memory or in the tables', async () => {
  for (const seed of sampled([7100001, 7100003, 7100008, 7100010], 2)) {
    const ended = async (inMemory: boolean) => {
      const lines: string[] = [];
      const { state, stored, wrong } = await simulate(storyOf(seed), {
        log: (line) => void lines.push(line),
        broken: (mirror) => compared(mirror, inMemory),
      });
      return { lines, state, stored, wrong };
    };
    expect(await ended(true)).toEqual(await ended(false));
  }
});

describe('a seed', () => {
  test('gives the same story each time, to the last request', async () => {
    for (const seed of sampled([1, 22, 98], 3)) {
      const first = await heard(storyOf(seed));
      expect(first.join('\n')).toContain('contacts.list');
      expect(await heard(storyOf(seed))).toEqual(first);
    }
  });
});
