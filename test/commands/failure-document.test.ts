/** With --json one document, whatever goes wrong. */
import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ann, mirrored, type Said } from '../support/commands/mirrored-contacts.ts';

const failures: [code: number, ...argv: string[]][] = [
  [2, 'explain', 'nobody'],
  [2, 'approve', 'aaaaaaaaaaaaaaaa'],
  [2, 'forget', 'nobody'],
  [2, 'allow', 'nobody', '--reason', 'asked'],
  [2, 'allow', ann],
  [2, 'optouts', '--since', 'yesterday'],
  [2, 'runs', '20260806T030000Z-1a2b'],
  [2, 'runs', '--last', 'x'],
  [2, 'backup'],
  [2, 'rebind', '--key', 'x'],
  [2, 'status', '--bogus'],
  [2, 'sync', '--bogus'],
  [2, 'nothing'],
];

/** All that a reader of stdout sees. */
function documentOf({ out }: Said): unknown {
  return JSON.parse(out);
}

describe('a failure with --json', () => {
  test.each(failures)(
    'prints the error and the exit code alone on stdout: %i %s %s %s',
    async (code, ...argv) => {
      const world = await mirrored();
      await world.call('sync');
      const said = await world.call(...argv, '--json');
      expect(said.code).toBe(code);
      expect(documentOf(said)).toEqual({ error: expect.stringMatching(/^[^\n]+$/), code });
      expect(said.err).not.toBe('');
    },
  );

  test('is printed for an unreadable configuration', async () => {
    const world = await mirrored();
    rmSync(world.file);
    for (const command of ['status', 'explain', 'rebind', 'forget']) {
      const more = command === 'explain' || command === 'forget' ? [ann] : [];
      const said = await world.call(command, ...more, '--json');
      expect(documentOf(said)).toEqual({ error: expect.stringContaining(world.file), code: 2 });
    }
  });

  test('is replaced by the command’s own document where there is one', async () => {
    const world = await mirrored();
    const said = await world.call('one', 'nobody', '--json');
    expect(said).toMatchObject({ code: 2, json: { status: 'failed' } });
    expect(documentOf(said)).toHaveProperty('reasons');
  });

  test('leaves stdout empty without --json; --help is no failure', async () => {
    const world = await mirrored();
    expect(await world.call('runs', 'x')).toMatchObject({ code: 2, out: '' });
    const help = await world.call('runs', '--help', '--json');
    expect(help).toMatchObject({ code: 0, out: expect.stringContaining('Usage') });
  });
});
