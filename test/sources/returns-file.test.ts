/** Who left, as lines of a file: whole ones, each once, whatever cut the last one short. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { csvReturns, ndjsonReturns } from '../../src/sources/shared/files/file-write-back.ts';
import { left, tell, errorOf, scratch } from '../support/sources/source-reading.ts';

const folder = await scratch();
let nth = 0;
const fresh = (): string => join(folder, `${(nth += 1)}.out`);

const by = '2026-01-02T03:04:05.678Z';
const head = 'return,email,crm id,channel,cause,after,by\n';
const row = (id: string): string => `ret_${id},${id}@x.y,${id},ch_news,opt_out,,${by}\n`;

describe('a CSV file', () => {
  const csv = (path: string) => csvReturns({ path });

  test('has its header once, and a line for each opt-out', async () => {
    const path = fresh();
    expect(await tell(csv(path), left('a'))).toEqual([{ is: 'told' }]);
    await tell(csv(path), left('b'), left('c', { channel: '*', cause: 'bounce' }));
    const third = row('c').replace('ch_news,opt_out', '*,bounce');
    expect(readFileSync(path, 'utf8')).toBe(`${head}${row('a')}${row('b')}${third}`);
    // It holds addresses.
    expect(statSync(path).mode & 0o007).toBe(0);
  });

  test('quotes what would break a line, and tells since when', async () => {
    const path = fresh();
    const odd = left('a', { crmId: 'a,"1"', after: Date.UTC(2026, 0, 1) });
    await tell(csv(path), odd);
    expect(readFileSync(path, 'utf8')).toContain(
      `,"a,""1""",ch_news,opt_out,2026-01-01T00:00:00.000Z,`,
    );
    expect(csv(path).arrived?.([odd])).toEqual(new Set(['ret_a']));
  });

  const cuts = Array.from({ length: (head + row('a') + row('é')).length }, (_, cut) => cut);
  test.each(cuts)('cut after %i characters is completed, and repeats nothing', async (cut) => {
    const path = fresh();
    const batch = [left('a'), left('é')];
    const whole = head + row('a') + row('é');
    writeFileSync(path, whole.slice(0, cut));
    const there = csv(path).arrived?.(batch) ?? new Set();
    await tell(csv(path), ...batch.filter(({ id }) => !there.has(id)));
    expect(readFileSync(path, 'utf8')).toBe(whole);
  });

  test('cut within a character is completed by its bytes', async () => {
    const path = fresh();
    const bytes = Buffer.from(head + row('é'));
    writeFileSync(path, bytes.subarray(0, bytes.indexOf('é') + 1));
    await tell(csv(path), left('é'));
    expect(readFileSync(path)).toEqual(bytes);
  });

  test('continues after a foreign line that was cut off', async () => {
    const path = fresh();
    writeFileSync(path, `${head}ret_zz,somebody`);
    await tell(csv(path), left('a'));
    expect(readFileSync(path, 'utf8')).toBe(`${head}ret_zz,somebody\n${row('a')}`);
  });

  test.each([
    'a,b\n1,2\n',
    'a,b',
    'a@x.y,1\n',
    'Ann Example\n',
    'ret_a,a@x.y\n',
    'ret_a,Ann',
    'return,mail,a,b,c,d,e\n',
  ])('with another header is refused, and not quoted: %j', async (text) => {
    const path = fresh();
    writeFileSync(path, text);
    const words = `${path}: its first line is not "${head.trim()}" →`;
    const { name, message } = await errorOf(tell(csv(path), left('a')));
    expect({ name, message }).toMatchObject({
      name: 'Invalid',
      message: expect.stringContaining(words),
    });
    expect(() => csv(path).look()).toThrow(words);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test.each([row('a'), row('a').trim(), row('a').replace(',a,', ',"a,""1""",')])(
    'continues without a header where a reader has removed it with the lines it took: %j',
    async (text) => {
      const path = fresh();
      writeFileSync(path, text);
      expect(csv(path).look()).toBe(`appended to ${path}`);
      await tell(csv(path), left('b'));
      expect(readFileSync(path, 'utf8')).toBe(`${text.trim()}\n${row('b')}`);
    },
  );

  test('may have been saved by another program', async () => {
    const path = fresh();
    writeFileSync(path, `\ufeff${head.replace('\n', '\r\n')}`);
    expect(await tell(csv(path), left('a'))).toEqual([{ is: 'told' }]);
  });

  test('begins anew when it was removed', async () => {
    const path = fresh();
    expect(csv(path).arrived?.([left('a')])).toEqual(new Set());
    expect(existsSync(path)).toBe(false);
  });

  test('knows the opt-outs at its end when it is longer than what is read', async () => {
    const path = fresh();
    writeFileSync(path, head + row('old').repeat(40_000) + row('a'));
    expect(csv(path).arrived?.([left('a'), left('b')])).toEqual(new Set(['ret_a']));
  });
});

describe('a file of JSON lines', () => {
  const ndjson = (path: string) => ndjsonReturns({ path });

  test('has an object for each opt-out', async () => {
    const path = fresh();
    await tell(ndjson(path), left('a'), left('b', { crmId: '', after: 0 }));
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    const rest = { channel: 'ch_news', cause: 'opt_out', by };
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { return: 'ret_a', email: 'a@x.y', crmId: 'a', after: null, ...rest },
      { return: 'ret_b', email: 'b@x.y', crmId: null, after: '1970-01-01T00:00:00.000Z', ...rest },
    ]);
    expect(ndjson(path).arrived?.([left('a'), left('c')])).toEqual(new Set(['ret_a']));
  });

  test('is completed when it was cut off', async () => {
    const path = fresh();
    await tell(ndjson(path), left('a'));
    const whole = readFileSync(path, 'utf8');
    writeFileSync(path, whole.slice(0, 20));
    await tell(ndjson(path), left('a'));
    expect(readFileSync(path, 'utf8')).toBe(whole);
  });
});

describe('a file that cannot be written', () => {
  const csv = (path: string) => csvReturns({ path });

  test.each([
    ['in no folder', () => join(folder, 'none/a.csv'), 'its folder is not there → make it'],
    ['that is a folder', () => folder, 'this is no regular file → name a file'],
    ['below a file', () => join(import.meta.filename, 'a.csv'), 'no folder → correct path'],
  ])('%s', async (_, path, words) => {
    const error = await errorOf(tell(csv(path()), left('a')));
    expect({ name: error.name, message: error.message }).toEqual({
      name: 'Invalid',
      message: expect.stringContaining(words),
    });
    expect(error.message).not.toContain('a@x.y');
    expect(() => csv(path()).look()).toThrow(words);
  });

  test('is reported before any opt-out is written', () => {
    const inner = join(folder, 'inner');
    mkdirSync(inner);
    const path = join(inner, 'a.csv');
    expect(csv(path).look()).toBe(`appended to ${path}`);
    expect(existsSync(path)).toBe(false);
  });
});
