/** What a CRM or a file name says cannot steer the terminal of the person who reads it. */
import { describe, expect, test } from 'vitest';
import { visibleLine, visibleLines } from '../../src/compose/output/text-style.ts';
import { ann, calling, mirrored } from '../support/commands/mirrored-contacts.ts';

const escape = '\u001b[2J';
const id = `7${escape}`;

async function left() {
  const world = await mirrored();
  world.csv(`id,email,news,product,lost\n"${id}",${ann},yes,,\n=1+1,bob@example.com,yes,,\n`);
  await world.call('sync');
  world.emulator.dashboard.leave(ann, 'ch_news');
  world.emulator.dashboard.leave('bob@example.com', 'ch_news');
  await world.call('sync');
  return world;
}

test('control characters and marks of direction are shown as their codes', () => {
  expect(visibleLine(`a${escape}b\n\tc\u009b\u202e`)).toBe(
    String.raw`a\u001b[2Jb\u000a\u0009c\u009b\u202e`,
  );
  expect(visibleLine('Zoë, 東京 👩‍💻')).toBe('Zoë, 東京 👩‍💻');
  expect(visibleLines('{\n"a": "\u009b"}')).toBe('{\n"a": "\\u009b"}');
});

describe('a CRM id with an escape sequence', () => {
  test('is shown as its code by `explain`', async () => {
    const { seen } = await left();
    const { out } = await seen('explain', ann);
    expect(out).toContain(String.raw`7\u001b[2J`);
    expect(out).not.toContain('\u001b');
  });

  test('is kept in the CSV of `optouts`, except on a terminal', async () => {
    const { call, seen } = await left();
    expect((await call('optouts')).out).toContain(`,${id},`);
    expect((await seen('optouts')).out).not.toContain('\u001b');
  });

  test('stays the same text in JSON', async () => {
    const { call, seen } = await left();
    for (const { json } of [await call('optouts', '--json'), await seen('optouts', '--json')])
      expect(json.optOuts[0].crmIds).toEqual([id]);
  });
});

test('`optouts --spreadsheet` writes text that looks like a formula as text', async () => {
  const { call } = await left();
  expect((await call('optouts')).out).toContain('bob@example.com,=1+1,');
  expect((await call('optouts', '--spreadsheet')).out).toContain("bob@example.com,'=1+1,");
});

test('a message is broken between words in a terminal, and not in a pipe', async () => {
  const argv = ['runs', '-c', 'a-folder-that-is-not-there/mirror.yaml'];
  const { err } = await calling(argv);
  const shown = await calling(argv, { width: 60 });
  expect(err).not.toContain('\n');
  expect(shown.err).toContain('\n');
  expect(shown.err.replaceAll(/\s+/g, ' ')).toBe(err.replaceAll(/\s+/g, ' '));
});
