import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { makeFolder } from '../support/config/config-folder.ts';
import { extent } from '../support/extent.ts';

const { mistakes, remove } = makeFolder();
afterAll(remove);

/** Whatever a file holds: it is valid, or every line of the complaint says where, what and how. */
const wellFormed = /^mirror\.yaml:\d+:\d+ {2}.+ {2}→ .+$/;
function judge(content: string | Uint8Array): void {
  for (const line of mistakes(content, { A: 'a', B: '' }) ?? []) expect(line).toMatch(wellFormed);
}

describe('the loader reports or accepts, and never throws', () => {
  it('arbitrary bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), judge), { numRuns: extent(100, 500) });
  });

  it.each(['[', '{a: ', '- ', '? ', '"', '&a '])('%j nested without end', (opener) => {
    judge(opener.repeat(20_000));
  });
});
