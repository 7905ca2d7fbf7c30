/** Sections in a terminal and in a browser. */
import { expect, test } from 'vitest';
import { renderLine } from '../../../src/compose/output/text-style.ts';
import { sectionLines } from '../../../src/views/render/text.ts';
import { html, sectionsHtml } from '../../../src/views/render/html.ts';
import type { Section } from '../../../src/views/sections.ts';

const sections: Section[] = [
  {
    title: 'world',
    aside: 'since today',
    facts: [
      ['write-back', 'not configured; `crm-mirror optouts -c mirror.yaml` lists the opt-outs'],
    ],
    lines: [{ sign: '!', text: 'refused: create ann', notes: ['the platform answered 422'] }],
    isList: true,
  },
  {
    table: {
      columns: ['Run', { title: 'Took', holds: 'numbers' }, 'Changes'],
      rows: [
        ['run-1', '0.1 s', 'none'],
        { id: 'run-2', cells: ['run-2', '12.1 s', '2 created'], notes: ['asked for by anna'] },
      ],
    },
  },
];

const printed = (width?: number): string[] =>
  sectionLines(sections, { width }).map((line) => renderLine(line, false));

test('a terminal aligns tables, and puts notes below their line or row', () => {
  expect(printed()).toEqual([
    'world  since today',
    '  write-back  not configured; `crm-mirror optouts -c mirror.yaml` lists the opt-outs',
    '  ! refused: create ann',
    '      the platform answered 422',
    '',
    '  Run      Took  Changes',
    '  run-1   0.1 s  none',
    '  run-2  12.1 s  2 created',
    '      asked for by anna',
  ]);
});

test('a narrow terminal breaks lines between words, and none within a command', () => {
  expect(printed(60).slice(0, 4)).toEqual([
    'world  since today',
    '  write-back  not configured;',
    '                `crm-mirror optouts -c mirror.yaml` lists',
    '                the opt-outs',
  ]);
});

test('a narrow terminal leaves out columns in their order, and says which', () => {
  const columns = ['Run', 'Started', { title: 'Requests', holds: 'numbers' } as const, 'Changes'];
  const rows = [['20260101T103005-a1', '2026-01-01T10:30:05Z', '1,234', '2 created, 14 opted in']];
  const table = { columns, rows, leavesOut: ['Started', 'Requests'] };
  const titles = (width?: number) => {
    const lines = sectionLines([{ table }], { width }).map((line) => renderLine(line, false));
    expect(lines.every((line) => line.length <= (width ?? Infinity))).toBe(true);
    return [lines[0]?.split(/ {2,}/), lines.slice(2)];
  };
  expect(titles()).toEqual([['Run', 'Started', 'Requests', 'Changes'], []]);
  expect(titles(80)).toEqual([['Run', 'Started', 'Requests', 'Changes'], []]);
  expect(titles(60)).toEqual([['Run', 'Requests', 'Changes'], ['Too narrow for: Started']]);
  expect(titles(45)).toEqual([['Run', 'Changes'], ['Too narrow for: Started, Requests']]);
});

test('a browser shows signs as the style of a list, and the forms of a row in its last cell', async () => {
  const forms = (id: string) => html`<button>Undo ${id}</button>`;
  const text = String(await sectionsHtml(sections, { forms })).replaceAll(/\s+/g, ' ');
  expect(text).toContain('<ul class="diff">');
  expect(text).toContain('<li class="refused">');
  expect(text).toMatch(/2 created.*asked for by anna.*<button>Undo run-2<\/button>/);
  expect(text).not.toContain('Undo run-1');
});
