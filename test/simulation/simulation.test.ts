/** The engine holds in simulated worlds; and the simulation itself is what it says it is. */
import { describe, expect, test } from 'vitest';
import { launch } from './launch.ts';
import { createProgress } from './progress.ts';
import { endAsRecorded, staysFixed } from './recorded-stories.ts';
import { regressions } from './story/regressions.ts';
import { simulate } from './simulate.ts';
import { calm } from './story/steps.ts';
import { storyOf, type Story } from './story/story.ts';
import { nobody, told } from './story/told-stories.ts';
import { beginning } from './story/story-text.ts';
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

describe('a seed', () => {
  test('gives the same story each time, to the last request', async () => {
    for (const seed of sampled([1, 22, 98], 3)) {
      const first = await heard(storyOf(seed));
      expect(first.join('\n')).toContain('contacts.list');
      expect(await heard(storyOf(seed))).toEqual(first);
    }
  });

  test('is told in plain words, with its requests', async () => {
    const { code, stdout } = await launch(['--seed', '3']);
    expect(code).toBe(0);
    for (const line of [...beginning(storyOf(3)), ...(await heard(storyOf(3)))])
      expect(stdout).toContain(line);
    expect(stdout).toMatch(/All is well\.\n$/);
  });
});

describe('the command', () => {
  test('prints its usage', async () => {
    const { code, stdout } = await launch(['--help']);
    expect(stdout).toContain('npm run simulate -- [--seeds N] [--from S]');
    expect(code).toBe(0);
  });

  const wrong: [string, string][] = [
    ['--seed x', 'is no whole number from 0 on'],
    ['--seed', "Option '--seed <value>' argument missing"],
    ['--seeds=-1', 'is no whole number from 1 on'],
    ['--seeds 0', 'is no whole number from 1 on'],
    ['--seeds 1e3', 'is no whole number from 1 on'],
    ['--seed 1 --seeds 2', 'tells one story'],
    ['--sedes 1', "Unknown option '--sedes'"],
  ];

  test.each(sampled(wrong, 7))('refuses %s', async (line, why) => {
    const { code, stdout, stderr } = await launch(line.split(' '));
    expect(stderr).toContain(why);
    expect(stderr).toMatch(/ → use --seed N, or --seeds N --from S\n$/);
    expect([code, stdout]).toEqual([2, '']);
  });

  test('ends silently when nobody reads its output any more', async () => {
    const { code, stderr } = await launch(['--seed', '3'], (stdout) => stdout.destroy());
    expect([code, stderr]).toEqual([0, '']);
  });

  test('starts no more processes than there are seeds', async () => {
    const { code, stdout } = await launch(['--seeds', '1', '--from', '3']);
    expect(stdout).toMatch(/^1 seeds, /m);
    expect(code).toBe(0);
  });
});

describe('progress', () => {
  function shown(isTTY: boolean): string {
    let text = '';
    let now = 0;
    const terminal = { isTTY, write: (more: string) => void (text += more) };
    const progress = createProgress(terminal, 40, () => now);
    progress.failure();
    for (let seed = 0; seed < 40; seed += 1) {
      now += 25;
      progress.seed();
    }
    progress.clear();
    return text;
  }

  test('is one line on a terminal, now and then', () => {
    const lines = shown(true).split('\r').slice(1);
    expect(lines).toHaveLength(6);
    expect(lines[0]).toContain('8 of 40 seeds, 40 a second, 1 fail');
    expect(lines[4]).toContain('40 of 40 seeds, 40 a second, 1 fail');
    expect(lines[5]).toBe('\u001B[K');
  });

  test('is not written anywhere else', () => {
    expect(shown(false)).toBe('');
  });
});
