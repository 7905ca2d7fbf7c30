/** Standard input as a file: read once, kept without a name, the same as often as it is wanted. */
import { readdir } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { csvSource } from '../../src/sources/csv/csv-source.ts';
import { standardInput } from '../../src/sources/shared/files/file-origin.ts';
import { rows } from '../support/sources/http-crm.ts';
import { errorOf, readAll, scratch, virtualClock } from '../support/sources/source-reading.ts';

const folder = await scratch();

function piped(stream: Readable & { isTTY?: boolean }) {
  const input = standardInput(() => stream);
  return csvSource({ type: 'csv', path: '-' }, { clock: virtualClock(), random: () => 1, input });
}
const given = (...texts: (string | Buffer)[]) =>
  Readable.from(texts.map((text) => Buffer.from(text)));

describe('standard input', () => {
  test('is read once, and can be used repeatedly', async () => {
    const source = piped(given(rows(2), '3,x,\n'));
    const first = await readAll(source, ['id']);
    const second = await readAll(source, ['id']);
    for (const { values, certificate } of [first, second]) {
      expect(values.map(({ id }) => id)).toEqual(['1', '2', '3']);
      expect(certificate).toEqual(first.certificate);
    }
    expect(first.certificate.complete).toBe(true);
    expect(source.still?.(first.certificate.reading)).toBe(true);
  });

  test('is the same reading when it is the same to the last byte', async () => {
    const readings = [];
    for (const text of [rows(2), rows(2), rows(3)]) {
      readings.push((await readAll(piped(given(text)))).certificate.reading);
    }
    expect(readings[0]).toBe(readings[1]);
    expect(readings[2]).not.toBe(readings[1]);
    expect(piped(given('')).still?.(readings[0] ?? '')).toBe(false);
  });

  test('leaves no file with a name', async () => {
    vi.stubEnv('TMPDIR', folder);
    onTestFinished(() => void vi.unstubAllEnvs());
    const source = piped(given(rows(2)));
    const signal = new AbortController().signal;
    for await (const batch of source.read({ fields: [], signal })) {
      expect(batch).toHaveLength(2);
      expect(await readdir(folder)).toEqual([]);
    }
    expect.assertions(2);
  });

  test('is not waited for when it is a terminal', async () => {
    const error = await errorOf(readAll(piped(Object.assign(given(''), { isTTY: true }))));
    expect([error.name, error.message]).toEqual([
      'Invalid',
      'standard input is a terminal → pipe the export into it, or name a file',
    ]);
  });

  test('is left at once when asked to stop', async () => {
    const stop = new AbortController();
    const reason = new Error('stop');
    const stream = new Readable({ read: () => stop.abort(reason) });
    await expect(readAll(piped(stream), [], stop.signal)).rejects.toBe(reason);
    expect(stream.destroyed).toBe(true);
  });
});
