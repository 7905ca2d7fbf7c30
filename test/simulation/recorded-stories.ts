/** Stories whose end is known: the first seeds, and what the simulation has found. */
import { expect } from 'vitest';
import { launch } from './launch.ts';
import { simulate } from './simulate.ts';
import type { Regression } from './story/told-stories.ts';

/** Plays the first seeds, and compares the platforms in the end with the recorded ones. */
export async function endAsRecorded(seeds: number): Promise<void> {
  const { code, stdout } = await launch(['--seeds', `${seeds}`]);
  const lines = stdout.split('\n');
  expect(lines.at(-2)).toMatch(new RegExp(`^${seeds} seeds, .*: all is well$`));
  expect(code).toBe(0);
  const end = lines.find((line) => line.startsWith('The platforms in the end: '));
  await expect(`${end}\n`).toMatchFileSnapshot(`../golden/files/simulation-${seeds}.txt`);
}

/** Plays the stories of a regression; throws what goes wrong. */
export async function staysFixed({ stories }: Regression): Promise<void> {
  for (const story of stories) {
    const { wrong } = await simulate(story);
    if (wrong) throw new Error(JSON.stringify(story), { cause: wrong });
  }
}
