/** The engine holds in simulated worlds; and the simulation itself is what it says it is. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { regressions } from './regressions.ts';
import { simulate } from './simulate.ts';
import { storyOf, type Story } from './story.ts';
import { beginning } from './words.ts';

// Beside other tests on two cores.
vi.setConfig({ testTimeout: 240_000 });

/** As `npm run simulate` runs it. */
function launch(...args: string[]): Promise<{ code: number | null; stdout: string }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), ...args]);
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => void (stdout += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout }));
  });
}

async function heard(story: Story): Promise<string[]> {
  const lines: string[] = [];
  await simulate(story, { log: (line) => void lines.push(line) });
  return lines;
}

test('a thousand seeds', async () => {
  const { code, stdout } = await launch('--seeds', '1000');
  expect(stdout).toMatch(/^1000 seeds, .*: all is well\n$/);
  expect(code).toBe(0);
});

describe('what was found once is found no more', () => {
  test.each(regressions)('$found', async ({ stories }) => {
    for (const story of stories) {
      const { wrong } = await simulate(story);
      if (wrong) throw new Error(JSON.stringify(story), { cause: wrong });
    }
  });
});

describe('a seed', () => {
  test('is the same story each time, to the last request', async () => {
    for (const seed of [1, 22, 98]) {
      const first = await heard(storyOf(seed));
      expect(first.join('\n')).toContain('contacts.list');
      expect(await heard(storyOf(seed))).toEqual(first);
    }
  });

  test('is told in plain words, with its requests beside them', async () => {
    const { code, stdout } = await launch('--seed', '3');
    expect(code).toBe(0);
    for (const line of [...beginning(storyOf(3)), ...(await heard(storyOf(3)))])
      expect(stdout).toContain(line);
    expect(stdout).toMatch(/All is well\.\n$/);
  });

  test.each([
    ['--seed', 'x'],
    ['--seeds', '-1'],
  ])('that is no number is refused: %s %s', async (...args) => {
    expect((await launch(...args)).code).toBe(2);
  });
});
