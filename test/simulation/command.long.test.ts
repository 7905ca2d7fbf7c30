/** `npm run simulate` as a process, and what it shows. */
import { describe, expect, test } from 'vitest';
import { launch } from './launch.ts';
import { createProgress } from './progress.ts';
import { simulate } from './simulate.ts';
import { storyOf } from './story/story.ts';
import { beginning } from './story/story-text.ts';
import { sampled } from '../support/extent.ts';

test('a seed is told in plain words, with its requests', async () => {
  const { code, stdout } = await launch(['--seed', '3']);
  expect(code).toBe(0);
  const told = beginning(storyOf(3));
  await simulate(storyOf(3), { log: (line) => void told.push(line) });
  for (const line of told) expect(stdout).toContain(line);
  expect(stdout).toMatch(/All is well\.\n$/);
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
