/** Files that are packed, and what may be wrong with one. */
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { csvSource } from '../../src/sources/csv/csv-source.ts';
import { ndjsonSource } from '../../src/sources/ndjson/ndjson-source.ts';
import { lines, rows } from '../support/sources/http-crm.ts';
import {
  errorOf,
  readAll,
  readCsv,
  scratch,
  virtualClock,
  write,
} from '../support/sources/source-reading.ts';

const folder = await scratch();
const path = join(folder, 'people.csv.gz');
const zip = gzipSync(rows(20_000));

describe('a packed file', () => {
  test.each([
    ['is read', zip],
    ['may be of several parts', Buffer.concat([gzipSync(rows(10_000)), gzipSync('10001,a,\n')])],
  ])('%s', async (_, content) => {
    const { values, certificate } = await readCsv(path, content, ['id']);
    expect(values.length).toBeGreaterThan(10_000);
    expect(values[0]).toEqual({ id: '1', email: 'p1@example.com', news: 'no' });
    expect(certificate.complete).toBe(true);
  });

  test('is recognized by its content, and the file stays the one that was read', async () => {
    const plain = join(folder, 'people.ndjson');
    await write(plain, gzipSync(lines(2)));
    const options = { type: 'ndjson' as const, path: plain };
    const source = ndjsonSource(options, { clock: virtualClock(), random: () => 1 });
    const { values, certificate } = await readAll(source, ['id']);
    expect([values.length, certificate.complete]).toEqual([2, true]);
    expect(source.still?.(certificate.reading)).toBe(true);
    await write(plain, gzipSync(lines(1)));
    expect(source.still?.(certificate.reading)).toBe(false);
  });

  const damaged = Buffer.from(zip);
  damaged[zip.length - 6] = (damaged[zip.length - 6] ?? 0) ^ 1;
  test.each<[string, Buffer, string]>([
    ['cut off', zip.subarray(0, -12_000), 'the gzip data is cut off'],
    ['that lacks its last byte', zip.subarray(0, -1), 'the gzip data is cut off'],
    [
      'of which a second part is cut off',
      Buffer.concat([zip, zip.subarray(0, 9)]),
      'the gzip data is cut off',
    ],
    ['whose sum is wrong', damaged, 'the gzip data is damaged'],
    ['with something after it', Buffer.concat([zip, Buffer.from('garbage')]), 'the gzip data'],
    ['with much after it', Buffer.concat([zip, Buffer.alloc(99_999, 'x')]), 'the gzip data'],
  ])('%s gives what could be unpacked, and no certificate', async (_, content, why) => {
    const { values, certificate, broken } = await readCsv(path, content, ['id']);
    expect(values.length).toBeGreaterThan(1000);
    expect(broken).toEqual([]);
    expect(certificate).toMatchObject({ complete: false, why: expect.stringContaining(why) });
  });

  test('has no certificate without the last line break either', async () => {
    const { certificate } = await readCsv(path, gzipSync('id\n1'), ['id']);
    expect(certificate).toMatchObject({ why: expect.stringContaining('no line break') });
  });

  test.each([
    ['that is none', rows(1)],
    ['of no bytes', ''],
  ])('%s is reported as such', async (_, content) => {
    const error = await errorOf(readCsv(path, content, ['id']));
    expect([error.name, error.message]).toEqual([
      'Invalid',
      `${path}: this is no gzip file; pack it again, or rename it`,
    ]);
  });

  test('fails when nothing can be unpacked', async () => {
    expect((await errorOf(readCsv(path, zip.subarray(0, 5), ['id']))).name).toBe('Unavailable');
  });

  test('is read in pieces when it unpacks to very much', async () => {
    await write(path, gzipSync(rows(300_000)));
    const surroundings = { clock: virtualClock(), random: () => 1 };
    const source = csvSource({ type: 'csv', path }, surroundings);
    const signal = new AbortController().signal;
    let count = 0;
    for await (const batch of source.read({ fields: ['id'], signal })) {
      expect(batch.length).toBeLessThanOrEqual(500);
      count += batch.length;
    }
    expect(count).toBe(300_000);
  });
});
