import { afterAll, describe, expect, it } from 'vitest';
import { unsupported } from '../../src/config/unsupported.ts';
import { makeFolder, minimal } from './folder.ts';

const { mistakes, remove } = makeFolder();
afterAll(remove);

/** Of each row of the table: what asks for it, and the one line it is answered with. */
const rows: Record<string, [content: string, line: string][]> = {
  'schedule.sentinel': [
    [
      minimal('schedule: { sentinel: "* * * * *" }'),
      '6:13  schedule.sentinel  the sentinel is ~  → remove it',
    ],
  ],
};

describe('what this version does not do', () => {
  const cases = Object.entries(rows).flatMap(([path, found]) =>
    found.map(([content, line]) => ({ path, content, line })),
  );

  it.each(cases)('$path is refused, with one line: $line', ({ content, line }) => {
    const text = line.replace('~', 'not supported by this version');
    expect(mistakes(content)).toEqual([`mirror.yaml:${text}`]);
  });

  it('is refused without exception', () => {
    expect(Object.keys(rows)).toEqual(unsupported.map(({ path }) => path.join('.')));
  });

  it('may be named as long as nothing is asked for', () => {
    expect(mistakes(minimal('schedule:'))).toBeUndefined();
    expect(mistakes(minimal('schedule: { full: "0 3 * * *", sentinel: ~ }'))).toBeUndefined();
  });
});
