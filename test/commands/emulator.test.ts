/** What the command `emulator` prints at its start. */
import { expect, test } from 'vitest';
import { main } from '../../src/cli.ts';
import { renderLine } from '../../src/compose/output/text-style.ts';

/** Starts an emulator that stops as soon as it runs, and returns its lines. */
async function started(...argv: string[]): Promise<string[]> {
  const out: string[] = [];
  const stop = AbortSignal.abort();
  const code = await main(['emulator', '--port', '0', ...argv], {
    env: {},
    print: (line) => void out.push(renderLine(line, false)),
    note: (line) => expect.unreachable(line),
    progress: () => undefined,
    terminal: false,
    interactive: false,
    stop,
    abort: stop,
  });
  expect(code).toBe(0);
  return out;
}

test.each([
  { argv: [], words: 'about 60 s for each channel under these limits.' },
  {
    argv: ['--limit', 'contacts.enrol=30/60'],
    words:
      'about 37 min for each channel under these limits; ' +
      'start with --limit contacts.enrol=1000/60 to make it shorter.',
  },
  { argv: ['--limit', '*=2000/1'], words: 'a few seconds for each channel under these limits.' },
])('the start tells how long a first load takes: $words', async ({ argv, words }) => {
  expect(await started(...argv)).toContain(`A first load of 1,000 people takes ${words}`);
});

test('--json tells how long a first load takes', async () => {
  const [line = ''] = await started('--json', '--limit', 'contacts.enrol=100/60');
  expect(JSON.parse(line).firstLoad).toEqual({ people: 1000, ms: 11 * 60_000 });
});
