/**
 * The engine holds in simulated worlds that nobody has seen before: each commit draws its own. What
 * stories have to meet, fixed ones meet: a draw may miss any of it.
 */
import { expect, test } from 'vitest';
import { playsAll, seedBase as from } from '../support/extent.ts';
import { playSeeds } from './launch.ts';

const plain = playsAll ? 1_000 : 80;

test(`${plain} stories from seed ${from} on`, async () => {
  const lines = await playSeeds('', { seeds: plain, from });
  if (!playsAll) return;
  expect(lines.filter((line) => / new: .*\s*$/.test(line))).toEqual([]);
  // Of everything there is to reach, a thousand seeds may miss a few things.
  expect(lines.filter((line) => / never\s*$/.test(line)).length).toBeLessThan(8);
  // All rows of the truth table, rules, acts, perils, faults, quirks and settings.
  expect(lines.filter((line) => /^ {2}\S.* \d+ +\d+$/.test(line)).length).toBeGreaterThan(180);
});

const undone = playsAll ? 200 : 27;
const canaries = playsAll ? 100 : 14;
const restored = playsAll ? 200 : 10;

test.each([
  [`${undone} stories with undo`, '--undo', undone],
  [`${canaries} stories with a canary, in which nothing waits for ever,`, '--canary', canaries],
  [`${restored} stories with a restored backup`, '--restore', restored],
] as const)(`%s from seed ${from} on`, async (_, kind, seeds) => {
  const lines = await playSeeds(kind, { seeds, from });
  expect(lines.at(-2)).toMatch(new RegExp(`^${seeds} seeds, `));
});

test('stories with undo and with a canary meet what they are drawn for', async () => {
  const undo = await playSeeds('--undo', { seeds: 3, from: 24 });
  const canary = await playSeeds('--canary', { seeds: 1, from: 3 });
  const met = [
    'undone',
    'our-opt-out-taken-back',
    'what was undone stays so until the CRM states something else',
    'only what a run opted in is taken back',
    'people who unsubscribed from all mail are not opted in',
    'somebody waits for a canary',
  ];
  for (const name of met) {
    expect([...undo, ...canary]).toContainEqual(expect.stringMatching(`^  ${name} +\\d`));
  }
});
