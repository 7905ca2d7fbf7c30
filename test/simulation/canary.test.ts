/** The engine holds in worlds with a canary, in which the mapping changes between runs. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { extent } from '../support/extent.ts';
import { brokenCanaries } from './broken-engines.ts';
import { ruleOf } from './checks/rules.ts';
import { simulate } from './simulate.ts';
import { storyOfKind } from './story/story-kinds.ts';

const seeds = extent(15, 60);

test(`nothing waits for ever, in ${seeds} seeds`, { timeout: 3_600_000 }, async () => {
  const main = join(import.meta.dirname, 'main.ts');
  const args = [main, '--canary', '--seeds', `${seeds}`];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 });
  const lines = stdout.split('\n');
  expect(lines.at(-2)).toMatch(new RegExp(`^${seeds} seeds, .*: all is well$`));
  expect(lines).toContainEqual(expect.stringMatching(/^  somebody waits for a canary +\d/));
});

/** What the checks about canaries find. */
const found = [
  'many changes of an occasion begin with the slice of a canary',
  'nobody outside the slice is changed while a canary is open',
];

describe('an engine without the rule', () => {
  test.each(brokenCanaries)('"$rule" fails by seed $foundBy or soon after', async (one) => {
    const { breaks, foundBy } = one;
    for (let seed = foundBy; seed < 20 + 2 * foundBy; seed += 1) {
      const story = storyOfKind('canary', seed);
      const { wrong } = await simulate(story, { broken: breaks });
      if (!wrong) continue;
      expect(found).toContain(ruleOf(wrong));
      // It is the broken rule that was found, and nothing else.
      expect((await simulate(story)).wrong).toBeUndefined();
      return;
    }
    throw new Error('nothing was found');
  });
});
