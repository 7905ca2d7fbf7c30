/** The engine holds in worlds in which runs are undone, and people unsubscribe between. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { extent } from '../support/extent.ts';

const seeds = extent(20, 200);

/** What these stories have to meet. */
const met = [
  'undone',
  'our-opt-out-taken-back',
  'what was undone stays so until the CRM states something else',
  'only what a run opted in is taken back',
  'people who unsubscribed from all mail are not opted in',
];

test(`nobody who said no is opted in, in ${seeds} seeds`, { timeout: 3_600_000 }, async () => {
  const main = join(import.meta.dirname, 'main.ts');
  const args = [main, '--undo', '--seeds', `${seeds}`];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 });
  const lines = stdout.split('\n');
  expect(lines.at(-2)).toMatch(new RegExp(`^${seeds} seeds, .*: all is well$`));
  for (const name of met) expect(lines).toContainEqual(expect.stringMatching(`^  ${name} +\\d`));
});
