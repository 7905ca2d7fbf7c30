/** An erasure that was cut short: it is remembered, told, and ended by the next `forget`. */
import { rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { Fault } from '../support/engine/platform-server.ts';
import { launch } from '../support/engine/engine-world.ts';
import {
  ann,
  mirrored,
  type Mirrored,
  storedBytes,
  attentionOf,
} from '../support/commands/mirrored-contacts.ts';
import { playsAll } from '../support/extent.ts';
import { untilHolds } from '../support/waiting.ts';

async function synced(): Promise<Mirrored> {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  world.writes();
  return world;
}

const forbidDeletes = ({ server }: Mirrored) =>
  server.fail(({ method }) => method === 'DELETE', { is: 'answer', status: 403 });

const methodsOf = ({ server }: Mirrored): string[] => server.arrived.map(({ method }) => method);

const optOuts = async (world: Mirrored): Promise<unknown[]> =>
  (await world.call('optouts', '--json')).json.optOuts;

/** It is told until the next one has done it. */
async function told(world: Mirrored, besides: string[] = []): Promise<void> {
  expect(await attentionOf(world)).toEqual([...besides, 'erasure_unfinished']);
  const { json } = await world.call('status', '--json');
  const { fix } = json.attention.at(-1);
  const [hash] = json.erasuresUnfinished.people;
  expect(fix).toContain(`forget\` again for this person: '${hash}'`);
  expect(JSON.stringify(json)).not.toContain('@');
  for (const mode of ['--fast', '--full', '--full']) {
    const run = await world.call('sync', mode, '--json');
    expect({ code: run.code, status: run.json.status }).toEqual({ code: 4, status: 'rejected' });
    expect(run.json.reasons).toEqual([expect.stringContaining(hash)]);
  }
  expect(await optOuts(world)).toEqual([]);
  const again = await world.seen('forget', hash, '--yes', '--json');
  expect(again).toMatchObject({ code: 0, json: { verified: true, scrubbed: true } });
  expect(world.shown(ann)).toBeUndefined();
  expect(storedBytes(world)).not.toContain(ann);
  expect(await attentionOf(world)).toEqual([]);
  expect((await world.call('sync')).code).toBe(0);
}

describe('an unfinished forget', () => {
  test.each<[string, string, Fault, string[]]>([
    ['the platform is away', '', { is: 'cut' }, []],
    ['the key is refused', '', { is: 'answer', status: 401 }, ['key_refused']],
    ['a delete is not allowed', 'DELETE', { is: 'answer', status: 403 }, []],
  ])('is completed: %s', async (_what, which, fault, besides) => {
    const world = await synced();
    const { undo } = world.server.fail(({ method }) => method.startsWith(which), fault);
    const { code, json } = await world.call('forget', ann, '--yes', '--json');
    expect({ code, json }).toMatchObject({ code: 1, json: { verified: false, purged: null } });
    undo();
    await told(world, besides);
  });

  test.runIf(playsAll)(
    'counts its opt-out as ours when it was killed before the delete',
    async () => {
      const world = await synced();
      const { undo } = world.server.fail(({ method }) => method === 'DELETE', { is: 'hang' });
      const process = launch(['forget', ann, '--yes', '-c', world.config({ timeoutMs: 20_000 })]);
      await untilHolds(() => expect(methodsOf(world)).toContain('DELETE'));
      process.child.kill('SIGKILL');
      await process.ended;
      undo();
      world.config();
      expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
      await told(world);
    },
  );

  test.runIf(playsAll)(
    'lists in the certificate what was done when a signal stopped it; exit 143',
    async () => {
      const world = await synced();
      world.server.fail(({ method }) => method === 'DELETE', { is: 'hang' });
      const file = world.config({ timeoutMs: 120_000 });
      const process = launch(['forget', ann, '--yes', '--json', '-c', file]);
      await untilHolds(() => expect(methodsOf(world)).toContain('DELETE'));
      // It waits a while for what is under way, and then gives it up.
      process.child.kill('SIGTERM');
      const { code, stdout } = await process.ended;
      expect(code).toBe(143);
      expect(JSON.parse(stdout)).toMatchObject({
        found: 1,
        optedOut: 1,
        deleted: 0,
        scrubbed: false,
      });
    },
  );

  test('is ended by `allow`, and its opt-out is taken back', async () => {
    const world = await synced();
    const { undo } = forbidDeletes(world);
    await world.call('forget', ann, '--yes');
    undo();
    expect((await world.call('sync')).code).toBe(4);
    await world.call('allow', ann, '--reason', 'asked');
    expect(await attentionOf(world)).toEqual([]);
    expect((await world.call('sync')).code).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });
});

test('an unfinished forget continues without its snapshot when CRM and platform show the person', async () => {
  const world = await synced();
  const { undo } = forbidDeletes(world);
  await world.call('forget', ann, '--yes');
  undo();
  for (const end of ['', '-wal', '-shm']) rmSync(world.path + end, { force: true });
  expect((await world.call('sync')).code).toBe(4);
  await told(world);
});

test('a forget killed before the file was rewritten lacks only the address', async () => {
  const world = await synced();
  const [hash, since] = ['#0123456789ab', Date.now()];
  const db = new Database(world.path);
  const left = JSON.stringify([{ hash, since, by: 'forget', deleted: [], optedOut: 0 }]);
  db.prepare("insert into meta values ('erasures', ?)").run(left);
  db.close();
  expect(await attentionOf(world)).toEqual(['erasure_unfinished']);
  const { code, err } = await world.seen('forget', hash, '--yes');
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('give it to `forget`') });
});
