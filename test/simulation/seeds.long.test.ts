/** The engine holds in simulated worlds that nobody has seen before: each commit draws its own. */
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

/** What the stories in which runs are undone have to meet. */
const met = [
  'undone',
  'our-opt-out-taken-back',
  'what was undone stays so until the CRM states something else',
  'only what a run opted in is taken back',
  'people who unsubscribed from all mail are not opted in',
];
const undone = playsAll ? 200 : 30;

test(`${undone} stories with undo from seed ${from} on`, async () => {
  const lines = await playSeeds('--undo', { seeds: undone, from });
  for (const name of met) expect(lines).toContainEqual(expect.stringMatching(`^  ${name} +\\d`));
});

const canaries = playsAll ? 100 : 15;

test(`${canaries} stories with a canary from seed ${from} on: nothing waits for ever`, async () => {
  const lines = await playSeeds('--canary', { seeds: canaries, from });
  expect(lines).toContainEqual(expect.stringMatching(/^ {2}somebody waits for a canary +\d/));
});

const restored = playsAll ? 200 : 10;

test(`${restored} stories with a restored backup from seed ${from} on`, async () => {
  const lines = await playSeeds('--restore', { seeds: restored, from });
  expect(lines.at(-2)).toMatch(new RegExp(`^${restored} seeds, `));
});
