/** The engine holds in worlds with a canary, in which the mapping changes between runs. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { extent } from '../support/extent.ts';

const seeds = extent(15, 60);

test(`nothing waits for ever, in ${seeds} seeds`, { timeout: 3_600_000 }, async () => {
  const main = join(import.meta.dirname, 'main.ts');
  const args = [main, '--canary', '--seeds', `${seeds}`];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 });
  const lines = stdout.split('\n');
  expect(lines.at(-2)).toMatch(new RegExp(`^${seeds} seeds, .*: all is well$`));
  expect(lines).toContainEqual(expect.stringMatching(/^  somebody waits for a canary +\d/));
});
