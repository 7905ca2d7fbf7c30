import { appendFile, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Busy } from '../../src/domain/errors.ts';
import type { CsvOptions } from '../../src/sources/csv/options.ts';
import { csvSource } from '../../src/sources/csv/csv-source.ts';
import { openFiles } from '../support/waiting.ts';
import {
  allOf,
  errorOf,
  readAll,
  readCsv,
  scratch,
  virtualClock,
  write,
  WRITTEN,
} from '../support/sources/source-reading.ts';

const folder = await scratch();
const path = join(folder, 'people.csv');
const open = (clock = virtualClock(), options: Partial<CsvOptions> = {}) =>
  csvSource({ type: 'csv', path, ...options }, { clock, random: () => 1 });
const readText = (text: string | Buffer, fields: readonly string[] = ['id']) =>
  readCsv(path, text, fields);

test('a read reports which share of the file has been read', async () => {
  const rows = Array.from({ length: 30_000 }, (_, at) => `${at},name ${at}`);
  await write(path, `id,name\n${rows.join('\n')}\n`, WRITTEN);
  const shares: number[] = [];
  const progress = (share: number): void => void shares.push(share);
  const { signal } = new AbortController();
  await allOf(open().read({ fields: ['id'], signal, progress }));
  expect(shares.length).toBeGreaterThan(3);
  expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  expect(shares.at(-1)).toBe(1);
});

describe('the certificate', () => {
  test('is given to a header alone, which is empty', async () => {
    const { records, certificate } = await readText('id,name\n');
    expect(records).toEqual([]);
    expect(certificate).toEqual({ complete: true, reading: `8-${WRITTEN}` });
  });

  test('names the reading by size and time', async () => {
    const names = [];
    for (const [text, mtimeMs] of [
      ['id\n1\n', WRITTEN],
      ['id\n2\n', WRITTEN],
      ['id\n11\n', WRITTEN],
      ['id\n1\n', WRITTEN + 1],
    ] as const) {
      await write(path, text, mtimeMs);
      names.push((await readAll(open(), ['id'])).certificate.reading);
    }
    expect(names[1]).toBe(names[0]);
    expect(new Set(names)).toHaveLength(3);
  });

  test.each([
    ['in mid-row', 'id,a,b\n1,x,y\n2,x', 2],
    ['in mid-field, at full width', 'id,a,b\n1,x,y\n2,x,', 1],
    ['after a quoted field', 'id,a\n1,"x"', 1],
    ['in the header', 'id,a', 1],
  ])('is not given to a file that ends %s', async (_, text, faults) => {
    const { certificate } = await readText(text);
    if (certificate.complete) throw new Error('certified');
    expect(certificate.why.split('; ')).toHaveLength(faults);
    expect(certificate.why).toContain('the last line has no line break');
    expect(certificate.fix).toContain('end the file with a line break');
    expect(certificate.fix).toContain('set finalNewline: optional in the source');
  });

  describe('for an export that never ends with a line break (finalNewline: optional)', () => {
    const readOptional = async (text: string) => {
      await write(path, text);
      return readAll(open(virtualClock(), { finalNewline: 'optional' }), ['id']);
    };
    test.each([
      ['id,a,b\n1,x,y\n2,x,y', 2],
      ['id,a,b\n1,x,y\n2,x,', 2],
      ['id,a\n1,"x"', 1],
      ['id,a\n1,x\n', 1],
      ['id,a', 0],
    ])('is given to %j', async (text, rows) => {
      const { values, certificate } = await readOptional(text);
      expect([values.length, certificate.complete]).toEqual([rows, true]);
    });
    test.each([
      ['id,a,b\n1,x,y\n2,x', '1 row cannot be read, the first at line 3'],
      ['id,a,b\n1,x,y\n2', '1 row cannot be read, the first at line 3'],
      ['id,a\n1,"x', 'reading stopped: line 2 opens a quote that is never closed'],
    ])('is not given to %j: its last row has another width than the header', async (text, why) => {
      expect((await readOptional(text)).certificate).toMatchObject({ complete: false, why });
    });
  });

  const manyRows = `id,x\n${'1,abcdefghi\n'.repeat(20_000)}`;
  const readWith = async (meanwhile: () => Promise<void>) => {
    await write(path, manyRows);
    const reading = open().read({ fields: ['id'], signal: new AbortController().signal });
    await reading.next();
    await meanwhile();
    let step = await reading.next();
    while (!step.done) step = await reading.next();
    return step.value;
  };

  test('is given when the file stays unchanged', async () => {
    expect((await readWith(async () => {})).complete).toBe(true);
  });

  test.each([
    ['grows', () => appendFile(path, '2,late\n')],
    ['is touched', () => write(path, manyRows, WRITTEN + 5)],
    ['is removed', () => unlink(path)],
    ['is cut', () => write(path, manyRows.slice(0, 120_005))],
    [
      'is replaced by its equal',
      async () => {
        await write(`${path}.new`, manyRows);
        await rename(`${path}.new`, path);
      },
    ],
  ])('is not given when the file %s', async (_, meanwhile) => {
    expect(await readWith(meanwhile)).toMatchObject({
      complete: false,
      why: expect.stringContaining('the file changed while it was read'),
      fix: expect.stringContaining('read it again'),
    });
  });
});

describe('a recent file', () => {
  const young = (clock: ReturnType<typeof virtualClock>) => readAll(open(clock), ['id']);

  test('is waited for until it is two seconds old', async () => {
    await write(path, 'id\n1\n');
    const clock = virtualClock(WRITTEN + 500);
    const { certificate } = await young(clock);
    expect(clock.slept).toEqual([1_500]);
    expect(certificate.complete).toBe(true);
  });

  test('is read only when its writer has finished', async () => {
    await write(path, 'id\n1\n');
    let writes = 3;
    const clock = virtualClock(WRITTEN, async () => {
      if (writes-- > 0) await write(path, `id\n${'1\n'.repeat(6 - writes)}`, clock.now());
    });
    const { values, certificate } = await young(clock);
    expect(values).toHaveLength(6);
    expect(clock.slept).toEqual([2_000, 2_000, 2_000, 2_000]);
    expect(certificate.complete).toBe(true);
  });

  test('is waited for while it grows without a new time', async () => {
    await write(path, 'id\n1\n');
    let writes = 2;
    const clock = virtualClock(WRITTEN + 500, async () => {
      if (writes-- > 0) await write(path, `id\n${'1\n'.repeat(5 - writes)}`);
    });
    expect((await young(clock)).values).toHaveLength(5);
    expect(clock.slept).toEqual([1_500, 2_000, 2_000]);
  });

  test('is given up after a minute', async () => {
    await write(path, 'id\n1\n');
    const clock = virtualClock(WRITTEN, () => write(path, 'id\n1\n', clock.now()));
    const error = await errorOf(young(clock));
    expect(error).toBeInstanceOf(Busy);
    expect(error.message).toContain(`${path}: the file is still being written`);
    expect(clock.now() - WRITTEN).toBe(60_000);
  });

  test('with a time in the future is read when two looks are equal', async () => {
    await write(path, 'id\n1\n', WRITTEN + 86_400_000);
    const clock = virtualClock(WRITTEN);
    expect((await young(clock)).certificate.complete).toBe(true);
    expect(clock.slept).toEqual([2_000]);
  });

  test('stops waiting when asked to', async () => {
    await write(path, 'id\n1\n');
    const stop = new AbortController();
    const reason = new Error('stop');
    const clock = virtualClock(WRITTEN, () => stop.abort(reason));
    await expect(readAll(open(clock), ['id'], stop.signal)).rejects.toBe(reason);
  });
});

describe('an early end of the reading', () => {
  /** Whether this process holds the file open. */
  const isOpen = () => openFiles(path).includes(path);

  const begin = async (signal: AbortSignal) => {
    await write(path, `id\n${'1\n'.repeat(200_000)}`);
    const reading = open().read({ fields: ['id'], signal });
    expect((await reading.next()).done).toBe(false);
    return reading;
  };

  test.skipIf(process.platform !== 'linux')('with return() closes the file', async () => {
    const reading = await begin(new AbortController().signal);
    expect(isOpen()).toBe(true);
    await reading.return({ complete: true, reading: '' });
    expect(isOpen()).toBe(false);
  });

  test('with a stop takes effect at the next chunk, and closes the file', async () => {
    const stop = new AbortController();
    const reading = await begin(stop.signal);
    const reason = new Error('stop');
    stop.abort(reason);
    const drain = async () => {
      let batches = 0;
      while (!(await reading.next()).done) batches += 1;
      return batches;
    };
    await expect(drain()).rejects.toBe(reason);
    if (process.platform === 'linux') expect(isOpen()).toBe(false);
  });

  test('with a stop before the beginning reads nothing', async () => {
    await write(path, 'id\n1\n');
    const reason = new Error('stop');
    await expect(readAll(open(), ['id'], AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
