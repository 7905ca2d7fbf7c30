/** With --json one document, whatever goes wrong. */
import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ann, mirrored, type Said } from '../support/commands/mirrored-contacts.ts';

const failures: [says: string, ...argv: string[]][] = [
  ['nobody', 'explain', 'nobody'],
  ['nothing awaits approval', 'approve', 'aaaaaaaaaaaaaaaa'],
  ['names nobody', 'forget', '', '--yes'],
  ['names nobody', 'forget', 'ann', '--yes'],
  ['give the address', 'forget', '#9cc428f416d4', '--yes'],
  ['nobody', 'allow', 'nobody', '--reason', 'asked'],
  ['--reason', 'allow', ann],
  ['--reason', 'allow', ann, '--reason', ' '],
  ['leave it out', 'allow', ann, '--reason', `it was ${ann}`],
  ['leave it out', 'pause', '--reason', `it was ${ann}`],
  ['at most 200', 'pause', '--reason', 'x'.repeat(201)],
  ['leave it out', 'resume', '--reason', `for ${ann}`],
  ['leave it out', 'retry', '--reason', `for ${ann}`],
  ['names nobody → give', 'retry', ''],
  ['names nobody → give', 'retry', '#9cc4'],
  ['names nobody → give', 'retry', '#9CC428F416D4'],
  ['write a time', 'optouts', '--since', 'yesterday'],
  ['write a time', 'optouts', '--since', '2026-03-01T12:00:00'],
  ['write a time', 'optouts', '--since', '2026-02-30'],
  ['no run', 'runs', '20260806T030000Z-1a2b'],
  ['--limit x: write a number from 1 on', 'runs', '--limit', 'x'],
  ['--limit 0: write a number from 1 on', 'runs', '--limit=0'],
  ['--limit 1.5: write a number from 1 on', 'runs', '--limit=1.5'],
  ['there is no such route', 'audit', 'requests', '--route', 'contacts.enroll'],
  ['write a time with its zone', 'audit', 'requests', '--since', 'yesterday'],
  ['give an address, or a hash', 'audit', 'requests', '--person', 'ann'],
  ['write a number from 1 on', 'audit', 'requests', '--limit', '0'],
  ['this time is yet to come', 'explain', ann, '--as-of', '2999-01-01'],
  ['--as-of x: write', 'explain', ann, '--as-of', 'x'],
  ['names no receiver of notifications → add notices: { to: [ … ] }', 'notify', 'test'],
  ['file', 'backup'],
  ['--key', 'rebind', '--key', 'x'],
  ['--bogus', 'status', '--bogus'],
  ['--bogus', 'sync', '--bogus'],
  ['nothing', 'nothing'],
];

/** All that a reader of stdout sees. */
function documentOf({ out }: Said): unknown {
  return JSON.parse(out);
}

describe('a failure with --json', () => {
  test('prints the error and the exit code alone on stdout', async () => {
    const world = await mirrored();
    await world.call('sync');
    for (const [says, ...argv] of failures) {
      const said = await world.call(...argv, '--json');
      const error = expect.stringMatching(/^[^\n]+$/);
      expect([argv, said.code, documentOf(said)]).toEqual([argv, 2, { error, code: 2 }]);
      expect([argv, said.err]).toEqual([argv, expect.stringContaining(says)]);
    }
    expect(world.writes()).toHaveLength(2);
  });

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
    const said = await world.call('sync', '--person', 'nobody', '--json');
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
