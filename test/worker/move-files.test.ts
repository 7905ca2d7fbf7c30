/** What an interrupted move leaves, and how it is finished: the table of moves/move-files.ts. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { finishMove, type MoveMark, writeMark } from '../../src/worker/moves/move-files.ts';
import { scratch } from '../support/sources/source-reading.ts';

const own = ['acme.sqlite', 'acme.sqlite-memory', 'acme.sqlite-memory-wal'];
const copies = ['acme.sqlite-moving', 'acme.sqlite-memory-moving.part'];
const renamed = own.map((name) =>
  name === 'acme.sqlite-memory-wal'
    ? 'acme.sqlite-memory.moved-to-web2-wal'
    : `${name}.moved-to-web2`,
);

async function interrupted(mark: Omit<MoveMark, 'to'> | undefined) {
  const folder = await scratch();
  const path = join(folder, 'acme.sqlite');
  const places = {
    snapshot: path,
    memory: { path: `${path}-memory`, keyFile: `${path}-memory-key` },
  };
  for (const name of [...own, ...copies]) writeFileSync(join(folder, name), name);
  if (mark) writeMark(places, { ...mark, to: 'web2' });
  const left = () => readdirSync(folder).filter((name) => !/-lease|-move$/.test(name));
  return { places, path, left };
}

const source = { role: 'source', isPlaced: false } as const;
const target = { role: 'target', isPlaced: false } as const;
const placed = { role: 'target', isPlaced: true } as const;

describe('a move that was interrupted', () => {
  test.each([
    ['at the source, before the mirror was at the target', source, true, own],
    ['at the source, when the mirror was at the target', source, false, renamed],
    ['at the target, while it received', target, false, own],
    ['at the target, while it received, before Redis was emptied', target, undefined, own],
    ['at the target, before the mirror was there', placed, false, ['acme.sqlite-memory-wal']],
    ['at the target, when the mirror was there', placed, true, own],
  ])('%s, is finished', async (_, mark, isHere, expected) => {
    const { places, left } = await interrupted(mark);
    expect(finishMove(places, isHere)).toBe(true);
    expect(left()).toEqual(expected.toSorted());
    expect(finishMove(places, isHere)).toBe(true);
    expect(left()).toEqual(expected.toSorted());
  });

  test.each([
    ['at the source', source],
    ['at the target, when the files were in place', placed],
  ])('%s, changes nothing while Redis does not know where the mirror is', async (_, mark) => {
    const { places, left } = await interrupted(mark);
    expect(finishMove(places, undefined)).toBe(false);
    expect(left()).toEqual([...own, ...copies].toSorted());
    expect(finishMove(places, false)).toBe(true);
  });

  test('is not finished while another process has the mirror', async () => {
    const { places, path, left } = await interrupted(source);
    const lease = takeLease(path);
    expect(finishMove(places, false)).toBe(false);
    lease.release();
    expect(left()).toEqual([...own, ...copies].toSorted());
    expect(finishMove(places, false)).toBe(true);
  });

  test('leaves a mirror alone that was not moved', async () => {
    const { places, left } = await interrupted(undefined);
    expect(finishMove(places, false)).toBe(true);
    expect(left()).toEqual([...own, ...copies].toSorted());
  });
});
