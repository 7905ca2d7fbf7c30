/** An export that is no file here: piped in, or behind an address. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createWorld, csvOf } from '../support/engine/engine-world.ts';

const people = csvOf([
  { email: 'ann@example.com', news: 'yes' },
  { email: 'bob@example.com', news: 'no' },
]);

async function mirroredFrom(path: string) {
  const world = await createWorld({ kinds: ['contact'] });
  const file = world.config({
    contacts: {
      source: { type: 'csv', path },
      id: 'id',
      email: 'email',
      channels: [{ id: 'ch_news', subscription: 'news' }],
    },
  });
  return { ...world, file };
}

/** As a shell pipes it. */
async function piped(argv: readonly string[], input: string | Buffer) {
  const bin = join(import.meta.dirname, '../../bin/crm-mirror.mjs');
  const child = spawn(process.execPath, [bin, ...argv], { stdio: ['pipe', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => void (said += chunk.toString()));
  child.stdin.end(input);
  const code = await new Promise((resolve) => child.on('close', resolve));
  return { code, said };
}

test('standard input is mirrored, compressed or not, and ends like any other run', async () => {
  const { file, shown, writes } = await mirroredFrom('-');
  const checked = await piped(['check', '-c', file], people);
  expect(checked.said).toContain('2 records, 0 of them invalid');
  expect(await piped(['sync', '-c', file], people)).toMatchObject({ code: 0 });
  expect(shown('ann@example.com')).toMatchObject({ ch_news: 'opt_in' });
  writes();
  const left = gzipSync(people.replace('yes', 'no'));
  expect(await piped(['sync', '--fast', '-c', file], left)).toMatchObject({ code: 0 });
  expect(shown('ann@example.com')).toMatchObject({ ch_news: 'opt_out' });
  expect(writes()).toHaveLength(1);
});
