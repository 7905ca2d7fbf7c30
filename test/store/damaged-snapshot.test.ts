/** A snapshot that is damaged: a run sets it aside and begins anew, nobody else touches it. */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { setAside } from '../../src/store/damage-check.ts';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
import { launch } from '../support/engine/engine-world.ts';
import { playsAll } from '../support/extent.ts';
import { scratchFolder } from '../support/waiting.ts';

const zoe = 'zoe@example.com';

/** Ann left the newsletter on the platform, and was seen to; Bob is in it. */
async function recorded(): Promise<Mirrored> {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  world.emulator.dashboard.leave(ann, 'ch_news');
  expect((await world.call('sync')).code).toBe(0);
  world.people([
    { email: ann, news: 'yes' },
    { email: zoe, news: 'yes' },
  ]);
  world.writes();
  return world;
}

const damages = {
  'no database at all': (bytes: Buffer) => bytes.fill('x'),
  // The first page holds the header and the schema.
  'of broken tables': (bytes: Buffer) => bytes.fill('x', 4096),
  'cut off in the middle': (bytes: Buffer) => bytes.subarray(0, 3 * 4096 + 100),
};

function damage(world: Mirrored, how: keyof typeof damages): Buffer {
  const bytes = Buffer.from(damages[how](readFileSync(world.path)));
  writeFileSync(world.path, bytes);
  return bytes;
}

const asideIn = ({ folder }: Mirrored): string[] =>
  readdirSync(`${folder}/cli`).filter((name) => name.includes('.broken-'));

const fastly = ({ file }: Mirrored): string[] => ['sync', '--fast', '-c', file];

function edit({ path }: Mirrored, sql: string): void {
  const db = new Database(path);
  db.exec(sql);
  db.close();
}

describe.each(['no database at all', 'of broken tables', 'cut off in the middle'] as const)(
  '%s',
  (how) => {
    test('is set aside by a run, which reports it once and begins like a first run', async () => {
      const world = await recorded();
      const bytes = damage(world, how);
      const { code, signal, stderr } = await launch(fastly(world)).ended;
      expect({ code, signal }).toEqual({ code: 0, signal: null });
      const said = stderr.split('\n').filter((line) => line.startsWith('crm-mirror:'));
      expect(said).toEqual([expect.stringMatching(/damaged and is set aside as .*\.broken-\d.*→/)]);
      const [aside = ''] = asideIn(world);
      expect(readFileSync(`${world.folder}/cli/${aside}`)).toEqual(bytes);
      // The unsubscribed person stays out, Bob is left alone, and nobody is enrolled twice.
      expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
      expect(world.shown(bob)).toEqual({ ch_news: 'opt_in' });
      expect(world.writes().map(({ body }) => body)).toEqual([
        { email: zoe, subscription: 'opt_in' },
      ]);
      const { json } = await world.call('runs', '--json');
      expect(json.runs).toMatchObject([
        { mode: 'full', status: 'done', reasons: [expect.stringContaining(aside)] },
      ]);
      expect(await world.call('sync', '--json')).toMatchObject({ code: 0, json: { reasons: [] } });
      expect(world.writes()).toEqual([]);
      expect(asideIn(world)).toHaveLength(1);
      const { json: status } = await world.call('status', '--json');
      const text = expect.stringContaining(aside);
      expect(status).toMatchObject({ ok: false, attention: [{ code: 'snapshot_replaced', text }] });
    });
  },
);

test.each(['restored', 'moved away'])('is named by `status` until it is %s', async (how) => {
  const world = await recorded();
  // The name of a damaged snapshot has the time to the second.
  edit(world, 'update run set started_at = started_at - 60000, ended_at = ended_at - 60000');
  const backup = join(world.folder, 'backup');
  expect((await world.call('backup', backup)).code).toBe(0);
  damage(world, 'of broken tables');
  expect((await world.call('sync')).code).toBe(0);
  const codes = async () => {
    const { attention } = (await world.call('status', '--json')).json;
    return attention.map(({ code }: { code: string }) => code);
  };
  expect(await codes()).toEqual(['snapshot_replaced']);
  // It stands over later runs.
  expect((await world.call('sync')).code).toBe(0);
  expect(await codes()).toEqual(['snapshot_replaced']);
  if (how === 'moved away') {
    for (const name of asideIn(world)) rmSync(`${world.folder}/cli/${name}`);
  } else {
    for (const end of ['', '-wal', '-shm']) rmSync(`${world.path}${end}`, { force: true });
    copyFileSync(backup, world.path);
    expect(await codes()).toEqual(['restored']);
    expect((await world.call('sync')).code).toBe(0);
  }
  expect(await codes()).toEqual([]);
});

test('setting aside keeps what was set aside in the same second', () => {
  const folder = scratchFolder();
  const path = join(folder, 'a.sqlite');
  const asides = ['first', 'second', 'third'].map((text) => {
    writeFileSync(path, text);
    writeFileSync(`${path}-wal`, text);
    return setAside(path, 0);
  });
  const texts = asides.flatMap((aside) =>
    [aside, `${aside}-wal`].map((file) => `${readFileSync(file)}`),
  );
  expect(texts).toEqual(['first', 'first', 'second', 'second', 'third', 'third']);
});

describe('a damaged snapshot is set aside by no other command', () => {
  test('plan, status, runs, retry, pause, rebind', async () => {
    const world = await recorded();
    damage(world, 'no database at all');
    for (const command of ['plan', 'status', 'runs', 'retry', 'pause', 'rebind']) {
      const { code, err } = await world.call(command);
      expect({ command, code, err }).toEqual({
        command,
        code: 2,
        err: expect.stringMatching(/^crm-mirror: [^\n]*this snapshot is damaged[^\n]*→[^\n]*$/),
      });
    }
    expect(asideIn(world)).toEqual([]);
    expect(world.server.arrived.filter(({ method }) => method !== 'GET')).toHaveLength(2);
  });

  test('a run that does not get the lease', async () => {
    const world = await recorded();
    damage(world, 'no database at all');
    const lease = takeLease(world.path);
    expect((await world.call('sync')).code).toBe(75);
    lease.release();
    expect(asideIn(world)).toEqual([]);
  });

  test.runIf(playsAll)(
    'a newer version, and a file that another process has locked, do not count as damaged',
    async () => {
      const world = await recorded();
      const other = new Database(world.path);
      other.exec('begin exclusive');
      expect((await world.call('sync')).code).toBe(75);
      other.close();
      edit(world, 'pragma user_version = 999');
      expect((await world.call('sync')).code).toBe(2);
      expect(asideIn(world)).toEqual([]);
    },
  );
});

describe('a file that nothing shows to be a snapshot is never set aside', () => {
  test.each([
    ['a text', () => 'id,email\n1,ann@example.com\n'],
    [
      'a damaged database of another program',
      (path: string) => {
        const db = new Database(path);
        db.exec('create table people (name); insert into people values (zeroblob(9000))');
        db.close();
        return readFileSync(path).fill('x', 100);
      },
    ],
  ])('%s', async (_, make) => {
    const world = await mirrored();
    mkdirSync(dirname(world.path), { recursive: true });
    const bytes = make(world.path);
    writeFileSync(world.path, bytes);
    for (const command of ['sync', 'plan', 'status']) {
      const { code, err } = await world.call(command);
      const says = /this is no snapshot.*→ write another path into snapshot/;
      expect({ command, code, err }).toEqual({
        command,
        code: 2,
        err: expect.stringMatching(says),
      });
    }
    expect(readFileSync(world.path)).toEqual(Buffer.from(bytes));
    expect(asideIn(world)).toEqual([]);
  });
});

describe('a damaged page that no query reads', () => {
  /** `unused`: a table that no run looks at, so that only a check finds it broken. */
  async function hidden(table = 'unused'): Promise<Mirrored> {
    const world = await recorded();
    edit(
      world,
      `create table unused (text); insert into unused values (hex(randomblob(9000)));
       pragma journal_mode = delete;`,
    );
    const db = new Database(world.path);
    const root = db
      .prepare<[string], { page: number }>('select rootpage page from sqlite_master where name = ?')
      .get(table);
    db.close();
    const bytes = readFileSync(world.path);
    const at = ((root?.page ?? 0) - 1) * 4096;
    writeFileSync(world.path, bytes.fill('x', at, at + 4096));
    return world;
  }

  test('is looked for once a day, and found', async () => {
    const world = await hidden();
    expect((await world.call('sync')).code).toBe(0);
    expect(asideIn(world)).toEqual([]);
    edit(world, "update meta set value = value - 86400000 where name = 'checked-at'");
    const planned = await world.call('plan');
    expect(planned).toMatchObject({ code: 2, err: expect.stringContaining('damaged') });
    expect((await world.call('sync')).code).toBe(0);
    expect(asideIn(world)).toHaveLength(1);
  });

  test('is found after a run that crashed before its end', async () => {
    const world = await hidden();
    edit(world, 'update run set ended_at = null');
    expect((await world.call('sync')).code).toBe(0);
    expect(asideIn(world)).toHaveLength(1);
  });

  test('leaves a paused mirror paused', async () => {
    const world = await hidden();
    await world.call('pause');
    edit(world, 'update run set ended_at = null');
    expect((await world.call('sync')).code).toBe(75);
    expect(asideIn(world)).toEqual([]);
  });

  test('ends the run that meets it, and the next one sets the snapshot aside', async () => {
    const world = await hidden('change');
    const { code, err } = await world.call('sync');
    expect(code).toBe(1);
    expect(err).toMatch(/damaged and is set aside as .*→ run again/);
    expect(asideIn(world)).toHaveLength(1);
    expect((await world.call('sync')).code).toBe(0);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
    expect(asideIn(world)).toHaveLength(1);
  });
});
