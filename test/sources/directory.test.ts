import { mkdir, mkdtemp, rm, symlink, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { Invalid } from '../../src/domain/errors.ts';
import { directorySource } from '../../src/sources/directory/directory-source.ts';
import { directoryOptions } from '../../src/sources/directory/options.ts';
import { errorOf, readAll, scratch, write, WRITTEN } from '../support/sources/source-reading.ts';

const root = await scratch();
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(root, 'templates-'));
});

const put = async (files: Record<string, string | Buffer>) => {
  for (const [where, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, where)), { recursive: true });
    await write(join(folder, where), content);
  }
};
const read = () => readAll(directorySource({ type: 'directory', path: folder }));
const readFiles = async (files: Record<string, string | Buffer>) => {
  await put(files);
  return read();
};

test('unknown options are refused', () => {
  expect(directoryOptions.parse({ type: 'directory', path: '/t' }).path).toBe('/t');
  expect(directoryOptions.safeParse({ type: 'directory', path: '/t', x: 1 }).success).toBe(false);
});

describe('templates', () => {
  test('may be JSON, YAML or a folder, and come sorted by key', async () => {
    const { records, certificate } = await readFiles({
      'welcome.json': '\uFEFF{ "name": "Welcome!", "subject": "Hi", "content": [] }',
      'Zeta.yml': 'subject: Last\n',
      'bye-2.json': '{}',
      'bye.yaml': 'subject: Bye\nstatus: draft\nunknown: 7\n',
      'news/template.yaml': 'subject: News\nname: The news\n',
      'news/content.json': '[{ "type": "text" }]',
      'plain/template.yaml': 'content: []\n',
    });
    expect(records).toEqual([
      { where: 'Zeta.yml', value: { key: 'Zeta', name: 'Zeta', subject: 'Last' } },
      {
        where: 'bye.yaml',
        value: { key: 'bye', name: 'bye', subject: 'Bye', status: 'draft', unknown: 7 },
      },
      { where: 'bye-2.json', value: { key: 'bye-2', name: 'bye-2' } },
      {
        where: 'news',
        value: { key: 'news', name: 'The news', subject: 'News', content: [{ type: 'text' }] },
      },
      { where: 'plain', value: { key: 'plain', name: 'plain', content: [] } },
      {
        where: 'welcome.json',
        value: { key: 'welcome', name: 'Welcome!', subject: 'Hi', content: [] },
      },
    ]);
    expect(certificate.complete).toBe(true);
  });

  test('exclude files that are no templates', async () => {
    const { records, certificate } = await readFiles({
      'README.md': '# templates',
      '.hidden.json': '{',
      '.git/template.yaml': '[',
      'images/logo.png': 'x',
      'notes.txt': '',
      'drafts/old.json': '{',
      'a.json': '{}',
    });
    expect(records).toEqual([{ where: 'a.json', value: { key: 'a', name: 'a' } }]);
    expect(certificate.complete).toBe(true);
  });

  test('may be links, within and beyond the directory', async () => {
    const beyond = await mkdtemp(join(root, 'beyond-'));
    await write(join(beyond, 'x.yaml'), 'subject: X\n');
    await mkdir(join(beyond, 'y'));
    await write(join(beyond, 'y', 'template.yaml'), 'subject: Y\n');
    await put({ 'a.yaml': 'subject: A\n' });
    await symlink('a.yaml', join(folder, 'b.yaml'));
    await symlink(join(beyond, 'x.yaml'), join(folder, 'c.yaml'));
    await symlink(join(beyond, 'y'), join(folder, 'd'));
    const { values, broken } = await read();
    expect(values.map((value) => [value['key'], value['subject']])).toEqual([
      ['a', 'A'],
      ['b', 'A'],
      ['c', 'X'],
      ['d', 'Y'],
    ]);
    expect(broken).toEqual([]);
  });

  test('come in batches', async () => {
    const files = Array.from({ length: 45 }, (_, at) => [`t${100 + at}.json`, '{}'] as const);
    const { batches, values } = await readFiles(Object.fromEntries(files));
    expect(batches.map((batch) => batch.length)).toEqual([20, 20, 5]);
    expect(values.map((value) => value['key'])).toEqual(files.map(([name]) => name.slice(0, 4)));
  });

  test('may have a field called __proto__', async () => {
    const { values } = await readFiles({ 'a.json': '{ "__proto__": { "subject": "x" } }' });
    expect(values[0]?.['subject']).toBeUndefined();
  });
});

/** Nine aliases of nine aliases of …: a few lines that would fill the memory. */
const BOMB = [
  'a0: &a0 x',
  ...Array.from({ length: 9 }, (_, at) => {
    const aliases = Array.from({ length: 9 }, () => `*a${at}`).join(', ');
    return `a${at + 1}: &a${at + 1} [${aliases}]`;
  }),
].join('\n');

describe('broken templates', () => {
  test.each([
    ['a.json', '{\n  "subject": x\n}', 'a.json:2:14', 'JSON is malformed'],
    ['a.json', '{ "a": 1,\r\n  "b": "c }', 'a.json:2:8', 'JSON is malformed'],
    ['a.json', '', 'a.json:1:1', 'JSON is malformed'],
    ['a.yaml', 'subject: a: b\n', 'a.yaml:1:10', 'YAML is malformed'],
    ['a.yaml', 'a: 1\nb: [1,\nc: 2\n', /^a\.yaml:\d+:\d+$/, 'YAML is malformed'],
    ['a.yaml', 'a: 1\na: 2\n', 'a.yaml:2:1', 'duplicate key'],
    ['a.yaml', 'a: 1\n---\nb: 2\n', /^a\.yaml:\d+:\d+$/, 'YAML is malformed'],
    ['a.yaml', 'a: *none\n', /^a\.yaml/, 'alias'],
    ['a.yaml', '['.repeat(20_000), /^a\.yaml:1:\d+$/, 'resource exhaustion'],
    ['a.yaml', BOMB, 'a.yaml', 'alias'],
    ['a.yaml', '- 1\n', 'a.yaml', 'does not hold fields'],
    ['a.yaml', '', 'a.yaml', 'does not hold fields'],
    ['a.json', '[]', 'a.json', 'does not hold fields'],
    ['a.json', 'null', 'a.json', 'does not hold fields'],
    ['a.json', Buffer.from('{ "a": "\xe9" }', 'latin1'), 'a.json', 'not UTF-8'],
    ['a.json', Buffer.from('\uFEFF{}', 'utf16le'), 'a.json', 'not UTF-8'],
    ['a.json', `"${'x'.repeat(16 * 1024 * 1024)}"`, 'a.json', 'above 16 MiB'],
    ['a.json', '{ "key": "b" }', 'a.json', 'states a key'],
    ['a/template.yaml', 'a: [\n', /^a\/template\.yaml:\d+:\d+$/, 'YAML is malformed'],
    ['a/content.json', '[]', 'a', 'no template.yaml'],
  ])('%s %#', async (file, content, where, why) => {
    const { records, broken, certificate } = await readFiles({ [file]: content });
    expect(records).toHaveLength(1);
    expect(broken).toEqual([
      {
        where: typeof where === 'string' ? where : expect.stringMatching(where),
        broken: expect.stringContaining(why),
        fix: expect.stringMatching(/^[^\n]+$/),
      },
    ]);
    expect(certificate).toMatchObject({
      complete: false,
      why: `1 template cannot be read, the first at ${broken[0]?.where}`,
    });
  });

  test('include content.json with its own place, and never beside a stated content', async () => {
    const { broken } = await readFiles({
      'a/template.yaml': 'subject: A\n',
      'a/content.json': '[\n{]',
      'b/template.yaml': 'content: []\n',
      'b/content.json': '[]',
      'c/template.yaml': 'subject: C\n',
      'c/template.yml': 'subject: C\n',
    });
    expect(broken.map(({ where }) => where)).toEqual(['a/content.json:2:2', 'b', 'c']);
  });

  test('do not stop the others', async () => {
    const { values, broken, certificate } = await readFiles({
      'a.json': '{',
      'b.json': '{}',
      'c.yaml': '-',
      'd.yaml': 'subject: D\n',
    });
    expect(values.map((value) => value['key'])).toEqual(['b', 'd']);
    expect(broken.map(({ where }) => where)).toEqual(['a.json:1:2', 'c.yaml']);
    expect(certificate).toMatchObject({
      why: '2 templates cannot be read, the first at a.json:1:2',
    });
  });

  test('include two sources of one key', async () => {
    const { values, broken, certificate } = await readFiles({
      'a.json': '{}',
      'a.yaml': 'subject: A\n',
      'a/template.yaml': 'subject: A\n',
      'b.json': '{}',
    });
    expect(values.map((value) => value['key'])).toEqual(['b']);
    expect(broken.map(({ where, broken: why }) => [where, why])).toEqual([
      ['a', 'the key "a" is also that of a.json, a.yaml'],
      ['a.json', 'the key "a" is also that of a, a.yaml'],
      ['a.yaml', 'the key "a" is also that of a, a.json'],
    ]);
    expect(certificate.complete).toBe(false);
  });

  test('include links that lead nowhere', async () => {
    await put({ 'c/template.yaml': 'subject: C\n' });
    await symlink('none.json', join(folder, 'a.json'));
    await symlink('b', join(folder, 'b'));
    await symlink('none.json', join(folder, 'c', 'content.json'));
    const { values, broken, certificate } = await read();
    expect(values).toEqual([]);
    expect(broken.map(({ where, broken: why }) => [where, why])).toEqual([
      ['a.json', 'the link leads nowhere'],
      ['b', 'the link leads nowhere'],
      ['c/content.json', 'the link leads nowhere'],
    ]);
    expect(certificate.complete).toBe(false);
  });
});

describe('the directory itself', () => {
  test('is missing, or a file', async () => {
    await put({ 'a.json': '{}' });
    for (const [path, message] of [
      [join(folder, 'none'), 'there is no such directory'],
      [join(folder, 'a.json'), 'this is no directory'],
    ] as const) {
      const error = await errorOf(readAll(directorySource({ type: 'directory', path })));
      expect(error).toBeInstanceOf(Invalid);
      expect(error.message).toContain(`${path}: ${message}`);
    }
  });

  test('is empty', async () => {
    const { batches, certificate } = await read();
    expect(batches).toEqual([]);
    expect(certificate).toMatchObject({
      complete: true,
      reading: expect.stringMatching(/^[\da-f]{16}$/),
    });
  });

  test('is left when asked to stop', async () => {
    await put({ 'a.json': '{}' });
    const reason = new Error('stop');
    const reading = readAll(
      directorySource({ type: 'directory', path: folder }),
      [],
      AbortSignal.abort(reason),
    );
    await expect(reading).rejects.toBe(reason);
  });
});

describe('the name of a reading', () => {
  const name = async () => (await read()).certificate.reading;
  const changes: [string, () => Promise<unknown>][] = [
    ['a size', () => put({ 'b.yaml': 'subject: BB\n' })],
    ['a time', () => utimes(join(folder, 'b.yaml'), 1, 1)],
    ['a new template', () => put({ 'c.json': '{}' })],
    ['a removed one', () => rm(join(folder, 'b.yaml'))],
    ['a part of a folder', () => put({ 'd/content.json': '[]' })],
  ];
  const start = { 'a.json': '{}', 'b.yaml': 'subject: B\n', 'd/template.yaml': 'subject: D\n' };

  test('stays while nothing changes, whatever else is in the folder', async () => {
    await put(start);
    const before = await name();
    await put({ ...start, 'README.md': 'x', '.a.json.swp': 'y' });
    await utimes(join(folder, 'a.json'), 1, WRITTEN / 1000);
    expect(await name()).toBe(before);
  });

  test.each(changes)('changes with %s', async (_, change) => {
    await put(start);
    const before = await name();
    await change();
    expect(await name()).not.toBe(before);
  });

  test.each(changes)('is missing when %s changed meanwhile', async (_, change) => {
    await put(start);
    await put(Object.fromEntries(Array.from({ length: 20 }, (__, at) => [`0${at}.json`, '{}'])));
    const reading = directorySource({ type: 'directory', path: folder }).read({
      fields: [],
      signal: new AbortController().signal,
    });
    expect((await reading.next()).done).toBe(false);
    await change();
    let step = await reading.next();
    while (!step.done) step = await reading.next();
    expect(step.value).toMatchObject({
      complete: false,
      why: expect.stringContaining('the directory changed while it was read'),
    });
  });
});
