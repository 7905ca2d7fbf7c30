/** `contacts.map` from the command line: it is loaded without a build, or said to be wrong. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { assemble } from '../../src/compose/assemble-mirror.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { serve } from '../support/http/test-server.ts';
import { calling, silentShell } from '../support/commands/mirrored-contacts.ts';
import { createWorld, csvOf, launch, type Lines } from '../support/engine/engine-world.ts';
import { playsAll } from '../support/extent.ts';

const rename = `
interface Person { news: string }
export const reads: string[] = ['news'];
export default function map(record: Record<string, unknown> & Person): object {
  if (record.news === 'boom') throw new Error(String(record['email']));
  return { ...record, wants: record.news === 'ja' ? 'yes' : 'no' } satisfies object;
}
`;

async function mirroredByMap(text: string | undefined, name = 'map.ts', source: object = {}) {
  const world = await createWorld({ kinds: ['contact'] });
  const map = join(world.folder, name);
  mkdirSync(dirname(map), { recursive: true });
  if (text !== undefined) writeFileSync(map, text);
  const people = join(world.folder, 'exported.csv');
  const write = (...news: string[]) => {
    const rows = news.map((word, at) => ({ email: `p${at}@example.com`, news: word }));
    writeFileSync(people, csvOf(rows));
  };
  write('ja', 'nein');
  const lines: Lines = {
    contacts: {
      source: { type: 'csv', path: people, ...source },
      map,
      id: 'id',
      email: 'email',
      channels: [{ id: 'ch_news', subscription: 'wants' }],
    },
  };
  const file = world.config(lines);
  const call = async (...argv: string[]) => calling([...argv, '-c', file]);
  /** In a process of its own: a map is loaded once in each. */
  const launched = async (...argv: string[]) => launch([...argv, '-c', file]).ended;
  return { ...world, map, file, write, call, launched };
}

describe('a map in TypeScript', () => {
  test('is used to mirror, check and explain; a record on which it throws is not removed', async () => {
    const { call, shown, write } = await mirroredByMap(rename);
    expect((await call('check')).out).toContain('2 records, 0 of them invalid');
    expect((await call('sync')).code).toBe(0);
    expect(shown('p0@example.com')).toMatchObject({ ch_news: 'opt_in' });
    expect((await call('explain', 'p1@example.com')).out).toContain('opt-out wanted');

    write('boom', 'nein', 'ja');
    const { code, said } = await call('sync');
    expect(code).toBe(1);
    expect(said).toContain('1 record cannot be read, the first at line 2');
    expect(said).not.toContain('p0@');
    expect(shown('p0@example.com')).toMatchObject({ ch_news: 'opt_in' });
    expect(shown('p2@example.com')).toBeUndefined();
  });

  test.runIf(playsAll)('makes the next run read everything again when it has changed', async () => {
    const asked: string[] = [];
    const url = await serve(({ url: path = '' }, response) => {
      asked.push(path.replace(/\?.*/, ''));
      const items = path.startsWith('/new') ? [] : [{ id: 1, email: 'a@example.com', news: 'ja' }];
      response.end(JSON.stringify(items));
    });
    const http = { type: 'http', path: undefined, url, one: `${url}/{id}` };
    const changes = { url: `${url}/new?since={since}` };
    const { launched, map } = await mirroredByMap(rename, 'map.ts', { ...http, changes });
    await launched('sync');
    const fast = async () => {
      asked.length = 0;
      await launched('sync', '--fast');
      return [...asked];
    };
    expect(await fast()).toEqual(['/new']);
    writeFileSync(map, `${rename}// changed`);
    expect(await fast()).toEqual(['/']);
  });
});

describe('an unusable map stops everything before it begins', () => {
  const wrong: [string, string, string | undefined, RegExp][] = [
    ['no file', 'map.ts', undefined, /map\.ts: contacts\.map cannot be read \(ENOENT\) → correct/],
    ['no default', 'map.mjs', 'export const a = 1;', /map\.mjs: has no default export that is a/],
    ['no function', 'map.mjs', 'export default 7;', /map\.mjs: has no default export that is a/],
    [
      'odd reads',
      'map.mjs',
      'export const reads = 7; export default () => ({});',
      /reads is no list/,
    ],
    [
      'no syntax',
      'map.ts',
      'export default function map( {',
      /map\.ts.*: cannot be loaded \(.+\) → try/,
    ],
    [
      'an enum',
      'map.ts',
      'enum A { b }\nexport default () => ({});',
      /map\.ts.*: cannot be loaded/,
    ],
    [
      'an error',
      'map.mjs',
      'throw new Error("ann@example.com");',
      /map\.mjs.*: cannot be loaded \(Error\)/,
    ],
    ['await', 'map.mjs', 'await 1; export default () => ({});', /map\.mjs: waits \(await\)/],
    ['a package', 'node_modules/a/map.ts', rename, /TypeScript is not run under node_modules/],
  ];

  test.each(wrong)('%s', async (_, name, text, words) => {
    const { call, writes } = await mirroredByMap(text, name);
    const { code, err } = await call('sync');
    expect(err).toMatch(words);
    expect(err).not.toContain('ann@');
    expect([code, err.split('\n').length, writes()]).toEqual([2, 1, []]);
  });

  test('for HubSpot, when it does not list the properties it reads', async () => {
    const hubspot = { type: 'hubspot', token: 't', path: undefined };
    const { call } = await mirroredByMap('export default (a) => a;', 'map.mjs', hubspot);
    const { code, err } = await call('check');
    expect(code).toBe(2);
    expect(err).toContain('hubspot gives none unasked → export const reads');
  });

  test('and a process that goes on opens the mirror once the map is there', async () => {
    const { map, file } = await mirroredByMap(undefined);
    const { signal } = new AbortController();
    const shell = { ...silentShell, stop: signal, abort: signal };
    const open = async () => assemble(loadConfig(file, {}), shell, { writes: true });
    await expect(open()).rejects.toThrow('contacts.map cannot be read');
    writeFileSync(map, rename);
    const { mirror, close } = await open();
    expect(mirror).toHaveProperty('contacts.source');
    await close();
  });
});

test('the example can be read', () => {
  const config = loadConfig('config/map.yaml', { PLATFORM_API_KEY: 'k' });
  expect(config.contacts?.map).toMatch(/config\/map\.ts$/);
});
