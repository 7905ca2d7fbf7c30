import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { lineOf, renderLine, styled, wrapped } from '../../../src/compose/output/text-style.ts';
import { styledTable } from '../../../src/views/render/text.ts';

const escape = '\u001b';

test('a styled line has colours only where they are wanted', () => {
  const line = lineOf('  ', styled('green', '+'), ' ann');
  expect(renderLine(line, true)).toBe(`  ${escape}[32m+${escape}[39m ann`);
  expect(renderLine(line, false)).toBe('  + ann');
});

test('a value that holds control characters cannot add a colour of its own', () => {
  const value = `a${escape}[8mb`;
  for (const line of [value, styled('red', value), lineOf(value)]) {
    expect(renderLine(line, false)).toBe(String.raw`a\u001b[8mb`);
    expect(renderLine(line, true)).not.toContain(`${escape}[8m`);
  }
  const [row = ''] = styledTable([[value, 'c']]);
  expect(renderLine(row, false)).toBe(String.raw`a\u001b[8mb  c`);
});

test('a table aligns columns by the width that people see', () => {
  const plain = styledTable([
    ['', 'CRM', 'to do'],
    ['東京', '10', ''],
    ['b', '5', 'all'],
  ]);
  expect(plain.map((line) => renderLine(line, false))).toEqual([
    '      CRM  to do',
    '東京  10',
    'b     5    all',
  ]);
  const rows = [
    [styled('green', '+'), '5', 'x'],
    ['-', '1,000', styled('dim', 'y')],
  ];
  const lines = styledTable(rows, { indent: 2, right: [1] });
  expect(lines.map((line) => renderLine(line, false))).toEqual(['  +      5  x', '  -  1,000  y']);
  expect(lines.map((line) => renderLine(line, true)).join('')).toContain(`${escape}[32m+`);
});

test('a line that is broken keeps the spaces between its words, and what stands in backticks', () => {
  const line = 'ok   the memory, kept by `crm-mirror backup a.sqlite` each night';
  expect(wrapped(line, { width: 34 }).map((one) => renderLine(one, false))).toEqual([
    'ok   the memory, kept by',
    '  `crm-mirror backup a.sqlite`',
    '  each night',
  ]);
});

test('colours are taken from the stream and the environment', () => {
  const program =
    'import("./src/compose/output/text-style.ts").then(({ takesColors }) => ' +
    'process.stdout.write(String(takesColors(process.stdout))))';
  const coloured = (env: Record<string, string>): string =>
    spawnSync(process.execPath, ['-e', program], { env, encoding: 'utf8' }).stdout;
  expect(coloured({ TERM: 'xterm' })).toBe('false');
  expect(coloured({ TERM: 'xterm', FORCE_COLOR: '1' })).toBe('true');
  expect(coloured({ TERM: 'xterm', FORCE_COLOR: '1', NO_COLOR: '1' })).not.toBe('');
});
