/** What can be wrong with the snapshot, the export and the key, from the command line. */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import {
  createWorld,
  csvOf,
  launch,
  type Ended,
  type World,
} from '../support/engine/engine-world.ts';

const ann = 'ann@example.com';
const bob = 'bob@example.com';

async function arranged(kinds: ('contact' | 'template')[] = ['contact']) {
  const world = await createWorld({ kinds });
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'yes', product: 'no' },
  ]);
  const file = world.config();
  const journal = join(world.folder, 'cli/snapshot.sqlite');
  return { ...world, file, journal };
}

async function sync(file: string, ...flags: string[]): Promise<Ended & { document: Document }> {
  const ended = await launch(['sync', '-c', file, '--json', ...flags]).ended;
  expect(ended.signal).toBeNull();
  // No stack trace, no address, and either nothing or one document.
  expect(ended.stderr).not.toMatch(/this is a bug|\n\s+at /);
  expect(ended.stderr + ended.stdout).not.toContain('@example.com');
  return { ...ended, document: ended.stdout === '' ? {} : JSON.parse(ended.stdout) };
}

interface Document {
  status?: string;
  reasons?: string[];
  contacts?: Record<string, number>;
  problems?: { class: string; reason: string }[];
}

describe('a snapshot', () => {
  test('from a newer version is refused before anything is read', async () => {
    const world = await arranged();
    expect((await sync(world.file)).code).toBe(0);
    const db = new Database(world.journal);
    db.pragma('user_version = 999');
    db.close();
    const asked = world.server.arrived.length;
    const ended = await sync(world.file);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('newer version');
    expect(world.server.arrived).toHaveLength(asked);
  });

  test('is rebuilt after it was lost: everybody is adopted, nobody enrolled again', async () => {
    const world = await arranged();
    expect((await sync(world.file)).code).toBe(0);
    rmSync(join(world.folder, 'cli'), { recursive: true });
    world.writes();
    const ended = await sync(world.file);
    expect(ended).toMatchObject({ code: 0, document: { status: 'done' } });
    expect(world.writes()).toEqual([]);
    expect(existsSync(world.journal)).toBe(true);
  });
});

describe('a platform', () => {
  test('with web pages for answers fails the run, and the address is doubted', async () => {
    const world = await arranged(['contact', 'template']);
    const headers = { 'content-type': 'text/html' };
    world.server.fail(() => true, { is: 'answer', status: 200, body: '<html>Hi</html>', headers });
    const ended = await sync(world.file);
    expect(ended).toMatchObject({ code: 1, document: { status: 'failed' } });
    expect(ended.document.reasons?.join()).toContain('platform.url');
    expect(world.writes()).toEqual([]);
    expect(world.server.arrived.length).toBeLessThanOrEqual(8);
  });

  test('with a refused key fails the run, and the key is named but not shown', async () => {
    const world = await arranged();
    const ended = await sync(world.config({ key: 'key_live_wrong' }));
    expect(ended).toMatchObject({ code: 1, document: { status: 'failed' } });
    expect(ended.document.reasons?.join()).toContain('platform.apiKey');
    expect(ended.stderr + ended.stdout).not.toContain('key_live_wrong');
    expect(world.writes()).toEqual([]);
  });
});

describe('an export', () => {
  test('is required: nothing is written without it', async () => {
    const world = await arranged();
    rmSync(join(world.folder, 'people.csv'));
    const ended = await sync(world.file);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('people.csv');
    expect(world.writes()).toEqual([]);
  });

  test('without rows is accepted in a first run, and fails once people are recorded', async () => {
    const world = await arranged();
    world.people([]);
    expect(await sync(world.file)).toMatchObject({ code: 0, document: { status: 'done' } });
    world.people([{ email: ann, news: 'yes' }]);
    expect((await sync(world.file)).code).toBe(0);
    world.people([]);
    world.writes();
    const ended = await sync(world.file);
    expect(ended).toMatchObject({ code: 1, document: { status: 'failed' } });
    expect(world.writes()).toEqual([]);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
  });

  test.each([
    ['a ragged row', 'id-x,x@example.com,yes\n'],
    ['a NUL byte', 'id-x,x@example.com,yes,\u0000,\n'],
    ['no last line break', 'id-x,x@example.com,yes,,'],
  ])('with %s is not certified, so only opt-outs are sent', async (_, row) => {
    const world = await arranged();
    expect((await sync(world.file)).code).toBe(0);
    const rows = csvOf([
      { email: ann, news: 'no' },
      { email: bob, news: 'yes', product: 'yes' },
      { email: 'cid@example.com', news: 'yes' },
    ]);
    world.csv(rows + row);
    world.writes();
    const ended = await sync(world.file);
    expect(ended).toMatchObject({ code: 1, document: { status: 'failed' } });
    expect(ended.document).toMatchObject({ certificate: { source: false } });
    expect(world.writes().map(({ body }) => body.subscription)).toEqual(['opt_out']);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
    expect(world.shown('cid@example.com')).toBeUndefined();
    world.csv(rows);
    expect((await sync(world.file)).code).toBe(0);
    expect(world.shown('cid@example.com')).toEqual({ ch_news: 'opt_in' });
  });

  test('with an unreadable consent exits with 4 once, 0 then, and 4 with --strict', async () => {
    const world = await arranged();
    world.people([
      { email: ann, news: 'perhaps' },
      { email: bob, news: 'yes' },
    ]);
    const first = await sync(world.file);
    expect(first).toMatchObject({ code: 4, document: { contacts: { invalid: 1 } } });
    expect(first.document.problems).toMatchObject([{ class: 'invalid' }]);
    expect(world.shown(ann)).toBeUndefined();
    expect(world.shown(bob)).toEqual({ ch_news: 'opt_in' });
    expect((await sync(world.file)).code).toBe(0);
    expect((await sync(world.file, '--strict')).code).toBe(4);
  });

  test('with a record that the platform refuses exits with 4 once, 0 then, and 4 with --strict', async () => {
    const world = await arranged();
    const play = world.server.fail(({ body }) => body.email === ann, { is: 'answer', status: 422 });
    expect((await sync(world.file)).code).toBe(4);
    expect((await sync(world.file)).code).toBe(0);
    expect((await sync(world.file, '--strict')).code).toBe(4);
    expect(play.hits).toBe(1);
  });
});

describe('--json', () => {
  test.each([
    ['a missing export', (world: World) => rmSync(join(world.folder, 'people.csv'))],
    ['a snapshot that is a folder', (world: World) => spoil(world)],
  ])('prints one document on stdout, also with %s', async (_, break_) => {
    const world = await arranged();
    break_(world);
    const ended = await launch(['sync', '-c', world.file, '--json']).ended;
    expect(JSON.parse(ended.stdout || 'null')).toMatchObject({ status: 'failed' });
  });

  function spoil(world: World): void {
    mkdirSync(join(world.folder, 'cli/snapshot.sqlite'), { recursive: true });
  }
});
