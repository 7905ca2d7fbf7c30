import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ndjsonSource } from '../../src/sources/ndjson/ndjson-source.ts';
import {
  errorOf,
  readAll,
  scratch,
  virtualClock,
  write,
  WRITTEN,
} from '../support/sources/source-reading.ts';

const folder = await scratch();
const path = join(folder, 'people.ndjson');
const open = () =>
  ndjsonSource({ type: 'ndjson', path }, { clock: virtualClock(), random: () => 1 });

async function read(content: string | Buffer, fields: readonly string[] = ['id']) {
  await write(path, content);
  return readAll(open(), fields);
}

describe('records', () => {
  test('are the lines, whatever ends them; blank ones are skipped', async () => {
    const { values, certificate } = await read('\ufeff{"id":1}\r\n\n  \n{"id":2,"a":{"b":[3]}}\n');
    expect(values).toEqual([{ id: 1 }, { id: 2, a: { b: [3] } }]);
    expect(certificate).toEqual({ complete: true, reading: `40-${WRITTEN}` });
  });

  test('may cross the chunks of a file, and so may characters', async () => {
    const name = 'é😀'.repeat(500);
    const lines = Array.from({ length: 200 }, (_, id) => JSON.stringify({ id, name }));
    const { values, batches, certificate } = await read(`${lines.join('\n')}\n`);
    expect(values).toEqual(lines.map((line) => JSON.parse(line)));
    expect(batches.length).toBeGreaterThan(5);
    expect(certificate.complete).toBe(true);
  });

  test('have an empty value where they lack a field', async () => {
    const { values } = await read('{"id":1,"a":{"b":"x"}}\n{"id":2}\n', ['id', 'a.b']);
    expect(values).toEqual([
      { id: 1, a: { b: 'x' } },
      { id: 2, 'a.b': null },
    ]);
  });

  test('may be none', async () => {
    expect(await read('')).toMatchObject({ values: [], certificate: { complete: true } });
  });
});

describe('an unreadable line', () => {
  test.each([
    ['is cut', '{"id":2,"name":"x', 'is no JSON', 'write one whole JSON object a line'],
    ['holds two', '{"id":2}{"id":3}', 'is no JSON', 'write one whole JSON object a line'],
    ['is a list', '[{"id":2}]', 'begins a JSON array', expect.stringContaining("jq -c '.[]'")],
    ['begins a list', '[', 'begins a JSON array', expect.stringContaining("jq -c '.[]'")],
    ['begins an object', '{', 'is no JSON', expect.stringContaining('jq -c .')],
    ['holds NaN', '{"id":2,"x":NaN}', 'is no JSON', 'write null in place of NaN'],
    ['holds Infinity', '{"x":[ -Infinity]}', 'is no JSON', 'write null in place of Infinity'],
    ['is a text', '"ann@x.y"', 'is no JSON object', 'give a JSON object for each record'],
    [
      'holds a NUL',
      '{"id":"2\\u0000"}',
      'holds a NUL character',
      'remove the NUL character from it',
    ],
    [
      'is too long',
      `{"id":"${'x'.repeat(5e6)}"}`,
      'is longer than 4 MiB',
      'write one record a line',
    ],
  ])('is broken when it %s, and only spoils the certificate', async (_, line, reason, fix) => {
    const { values, broken, certificate } = await read(`{"id":1}\n${line}\n{"id":4}\n`);
    expect(values).toEqual([{ id: 1 }, { id: 4 }]);
    expect(broken).toEqual([{ where: 'line 2', broken: reason, fix }]);
    expect(certificate).toMatchObject({
      complete: false,
      why: '1 row cannot be read, the first at line 2',
    });
  });
});

describe('the certificate', () => {
  test('is not given without a last line break', async () => {
    const { values, certificate } = await read('{"id":1}\n{"id":2}');
    expect(values).toHaveLength(2);
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringContaining('the last line has no line break'),
      fix: expect.stringContaining('set finalNewline: optional in the source'),
    });
  });

  test.each([
    ['{"id":1}\n{"id":2}', true],
    ['{"id":1}\n{"id":2', false],
  ])('is given to %j with finalNewline: optional: %s', async (text, complete) => {
    await write(path, text);
    const options = { type: 'ndjson', path, finalNewline: 'optional' } as const;
    const source = ndjsonSource(options, { clock: virtualClock(), random: () => 1 });
    expect((await readAll(source, ['id'])).certificate.complete).toBe(complete);
  });
});

describe('a file that cannot be read at all', () => {
  test.each([
    ['UTF-16', Buffer.from('{"id":1}\n', 'utf16le'), 'the text is UTF-16; save the file as UTF-8'],
    [
      'Latin-1',
      Buffer.from('{"id":"é"}\n', 'latin1'),
      'the text is not UTF-8; save the file as UTF-8',
    ],
    [
      'without a field',
      '{"ID":1,"a":{"b":2}}\n',
      'no record has "id"; fields of the first one: "ID", "a.b"; correct the configuration or the CRM',
    ],
  ])('%s', async (_, content, line) => {
    const error = await errorOf(read(content));
    expect(error).toMatchObject({ name: 'Invalid', message: `${path}: ${line}` });
  });
});
