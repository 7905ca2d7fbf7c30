import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';
import { extent } from '../support/extent.ts';

const { mistakes, remove } = makeFolder();
afterAll(remove);

/** Whatever a file holds: it is valid, or every line of the complaint says where, what and how. */
const wellFormed = /^mirror\.yaml:\d+:\d+ {2}.+ {2}→ .+$/;
function judge(content: string | Uint8Array): void {
  for (const line of mistakes(content, { A: 'a', B: '' }) ?? []) expect(line).toMatch(wellFormed);
}

const words = 'mirror platform contacts channels source type policy url csv 1 true .nan'.split(' ');
const marks = '{ } [ ] # \' " ~ | > % *a << \\x ${A} ${B} ${C:-x} $${ ${ __proto__ \ufdd0 \0'.split(
  ' ',
);
const breaks = [': ', ':\n', '\n', '\n  ', '\n    ', '- ', '? ', ', ', '\t', '---\n', '&a '];
const oddities = ['!!str ', '!!set ', '!x ', '%YAML 1.1\n'];
const scrap = fc.constantFrom(...words, ...marks, ...breaks, ...oddities);
const yamlish = fc.array(scrap, { maxLength: 40 }).map((scraps) => scraps.join(''));

describe('the loader reports or accepts, and never throws', () => {
  it('scraps of YAML', () => {
    fc.assert(fc.property(yamlish, judge), { numRuns: extent(200, 2000) });
  });

  it('broken copies of a valid file', () => {
    const file = minimal('policy: { missing: respect }\nkeep: 1d');
    const cut = fc.tuple(fc.nat(file.length), fc.nat(12), yamlish);
    const edit = ([at, gone, scraps]: [number, number, string]) =>
      judge(file.slice(0, at) + scraps + file.slice(at + gone));
    fc.assert(fc.property(cut, edit), { numRuns: extent(100, 1000) });
  });

  it('values of any shape under the known keys', () => {
    const key = fc.constantFrom('mirror', 'platform', 'contacts', 'templates', 'policy', 'keep');
    const json = fc.jsonValue({ maxDepth: 1 });
    const section = fc.dictionary(
      fc.constantFrom('source', 'channels', 'url', 'apiKey', 'type', 'id', 'missing'),
      fc.oneof(json, fc.array(fc.dictionary(fc.constantFrom('id', 'x'), json), { maxLength: 3 })),
    );
    const value = fc.dictionary(key, fc.oneof(json, section));
    fc.assert(
      fc.property(value, (file) => judge(JSON.stringify(file))),
      { numRuns: extent(40, 150) },
    );
  });

  it('arbitrary bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), judge), { numRuns: extent(100, 500) });
  });

  it.each(['[', '{a: ', '- ', '? ', '"', '&a '])('%j nested without end', (opener) => {
    judge(opener.repeat(20_000));
  });
});
