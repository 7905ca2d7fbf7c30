/** A short round of `npm run fuzz`: generated inputs find nothing, and would find a fault. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { area } from './area.ts';
import { areaNames } from './finds.ts';
import { areas, play } from './fuzz.ts';

describe('generated inputs', () => {
  test.each(areas.map((area) => [area.name, area] as const))('%s holds', async (_name, area) => {
    const { inputs, finds } = await play(area, { inputs: 70, from: 1 });
    expect(finds).toEqual([]);
    expect(inputs).toBe(70);
  });
});

const planted = area('planted', async () => ({
  inputs: fc.string(),
  async judge(text) {
    if (text.includes('x')) throw new Error('an x');
    if (text.includes('y')) throw new TypeError('a y');
  },
  close: async () => undefined,
}));

test('a failure is found once, as small as possible, and all other inputs are played', async () => {
  const { inputs, finds } = await play(planted, { inputs: 1500, from: 1 });
  expect(inputs).toBe(1500);
  expect(new Set(finds.map(({ input }) => input))).toEqual(new Set(['x', 'y']));
});

test('the same seed gives the same inputs', async () => {
  const drawn = async () => {
    const texts: string[] = [];
    const judge = async (text: string) => void texts.push(text);
    const open = async () => ({ inputs: fc.string(), judge, close: async () => undefined });
    await play(area('drawn', open), { inputs: 150, from: 7 });
    return texts;
  };
  const texts = await drawn();
  expect(texts).toHaveLength(150);
  expect(await drawn()).toEqual(texts);
});

test('the command knows all areas', () => {
  expect(areas.map(({ name }) => name)).toEqual(areaNames);
});

describe('the command', () => {
  test.each<[argv: string[], code: number, said: RegExp]>([
    [['--inputs', '20', '--only', 'csv'], 0, /^csv: 20 inputs, 0 found\nnothing was found\n$/],
    [['--only', 'crm'], 2, /there is no such area → /],
    [['--inputs', 'many'], 2, /is no whole number from 1 on → /],
  ])('exits for %j with %i', async (argv, code, said) => {
    const ended = await run(argv);
    expect(ended.said).toMatch(said);
    expect(ended.code).toBe(code);
  });
});

async function run(argv: string[]) {
  const { promise, resolve } = Promise.withResolvers<{ code: unknown; said: string }>();
  const main = join(import.meta.dirname, 'main.ts');
  execFile(process.execPath, [main, ...argv], (error, stdout, stderr) =>
    resolve({ code: error ? error.code : 0, said: stdout + stderr }),
  );
  return promise;
}
