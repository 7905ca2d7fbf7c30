/** An erasure that was cut short: it is remembered, told, and ended by the next `forget`. */
import { copyFileSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Fault } from '../support/engine/platform-server.ts';
import { launch } from '../support/engine/engine-world.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
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

const bytesOf = ({ folder }: Mirrored): string => {
  const at = join(folder, 'cli');
  return readdirSync(at)
    .map((name) => readFileSync(join(at, name), 'latin1'))
    .join('\n');
};

/** The codes of what somebody should see to. */
const attention = async (world: Mirrored): Promise<string[]> => {
  const { json } = await world.call('status', '--json');
  return json.attention.map(({ code }: { code: string }) => code);
};

const optOuts = async (world: Mirrored): Promise<unknown[]> =>
  (await world.call('optouts', '--json')).json.optOuts;

/** It is told until the next one has done it. */
async function told(world: Mirrored, besides: string[] = []): Promise<void> {
  expect(await attention(world)).toEqual([...besides, 'erasure_unfinished']);
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
  expect(bytesOf(world)).not.toContain(ann);
  expect(await attention(world)).toEqual([]);
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

  test('does not take its own opt-out for the word of a person without a record', async () => {
    const world = await mirrored();
    world.emulator.seed.contact({ email: ann, channels: { ch_news: 'opt_in' } });
    const { undo } = forbidDeletes(world);
    expect((await world.call('forget', ann, '--yes')).code).toBe(1);
    undo();
    await world.call('sync');
    expect(await optOuts(world)).toEqual([]);
    await told(world);
  });

  test('is ended by `allow`, and its opt-out is taken back', async () => {
    const world = await synced();
    const { undo } = forbidDeletes(world);
    await world.call('forget', ann, '--yes');
    undo();
    expect((await world.call('sync')).code).toBe(4);
    await world.call('allow', ann, '--reason', 'asked');
    expect(await attention(world)).toEqual([]);
    expect((await world.call('sync')).code).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });

  test('continues its counts from where it stopped', async () => {
    const world = await synced();
    const { undo } = forbidDeletes(world);
    const first = await world.call('forget', ann, '--yes', '--json');
    expect(first.json).toMatchObject({ found: 1, optedOut: 1, deleted: 0 });
    undo();
    const second = await world.call('forget', ann, '--yes', '--json');
    expect(second.json).toMatchObject({
      found: 1,
      optedOut: 1,
      deleted: 1,
      entry: first.json.entry,
    });
    const third = await world.call('forget', ann, '--yes', '--json');
    expect(third.json).toMatchObject({ found: 0, optedOut: 0, deleted: 0 });
  });
});

test('an unfinished forget continues with a restored snapshot, and the run reports it', async () => {
  const world = await synced();
  const copy = join(world.folder, 'copy.sqlite');
  await world.call('backup', copy);
  await world.call('forget', ann, '--yes');
  for (const end of ['', '-wal', '-shm']) rmSync(world.path + end, { force: true });
  copyFileSync(copy, world.path);
  expect((await world.call('sync')).code).toBe(4);
  await told(world);
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

test('an unfinished forget on another platform is refused before anything is written', async () => {
  const world = await synced();
  const elsewhere = await mirrored();
  world.config({ url: elsewhere.server.url });
  const { code, json } = await world.call('forget', ann, '--yes', '--json');
  expect({ code, json }).toEqual({
    code: 2,
    json: { error: expect.stringContaining('platform.url'), code: 2 },
  });
  world.config();
  expect((await world.call('explain', ann, '--json')).json.ledger).toEqual([]);
  expect(await attention(world)).toEqual([]);
});

test('a forget killed before the file was rewritten lacks only the address', async () => {
  const world = await synced();
  const [hash, since] = ['#0123456789ab', Date.now()];
  const db = new Database(world.path);
  const left = JSON.stringify([{ hash, since, by: 'forget', deleted: [], optedOut: 0 }]);
  db.prepare("insert into meta values ('erasures', ?)").run(left);
  db.close();
  expect(await attention(world)).toEqual(['erasure_unfinished']);
  const { code, err } = await world.seen('forget', hash, '--yes');
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('give it to `forget`') });
});

test.runIf(playsAll)(
  'a forget beside a reader of the file certifies at once what was done, and again later',
  async () => {
    const world = await synced();
    const reader = new Database(world.path, { readonly: true });
    onTestFinished(() => void reader.close());
    reader.exec('begin');
    reader.prepare('select count(*) from recorded').get();
    const done = { found: 1, optedOut: 1, deleted: 1, verified: true, purged: { recorded: 1 } };
    const first = await world.call('forget', ann, '--yes', '--json');
    expect(first).toMatchObject({ code: 75, json: { ...done, scrubbed: false } });
    expect(await attention(world)).toEqual(['erasure_unfinished']);
    reader.exec('commit');
    world.people([{ email: bob, news: 'yes', product: 'no' }]);
    const again = await world.seen('forget', first.json.person, '--yes', '--json');
    expect(again).toMatchObject({ code: 0, json: { ...done, scrubbed: true } });
    expect(bytesOf(world)).not.toContain(ann);
  },
);
