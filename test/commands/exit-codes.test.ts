import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { exitCodes } from '../../src/cli/output/exit-codes.ts';

test('the README lists the exit codes with their meanings', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const listed = [...readme.matchAll(/^\| (\d+(?:, \d+)*) +\| (.*?) +\|$/gm)];
  const codes = listed.flatMap(([, all = '', means]) =>
    all.split(', ').map((code) => ({ code: Number(code), means })),
  );
  const byCode = Object.values(exitCodes).toSorted((a, b) => a.code - b.code);
  expect(codes.slice(0, byCode.length)).toEqual(byCode);
});
