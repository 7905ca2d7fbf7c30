/** What fails is said in every place, and is one message for each receiver. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { drawn } from '../support/extent.ts';

const bench = join(import.meta.dirname, '../../bench/bench.ts');

test.each(drawn(['platform', 'export', 'redis', 'key', 'clock', 'worker'], 1))(
  '%s: every place says it and its end, and each receiver hears of each once',
  async (name) => {
    const child = spawn(process.execPath, [bench, 'failures', name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = (await text(child.stdout)).trim().split('\n');
    expect(lines[0]).toMatch(new RegExp(`^${name}: said after s: .*status \\d+`));
    expect(lines.join('\n')).not.toContain('NEVER');
    const each = name === 'worker' ? 0 : 2;
    const counts = Array.from({ length: 5 }, () => each).join(', ');
    expect(lines.at(-1)).toBe(`  messages of the receivers: ${counts}`);
  },
  300_000,
);
