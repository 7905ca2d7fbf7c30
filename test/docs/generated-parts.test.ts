/** What the pages say about the code is what the code says: `npm run docs` writes it. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { readPages } from '../support/docs/page-blocks.ts';
import { partsIn, withParts } from '../support/docs/generated-parts.ts';
import { overview } from '../../src/cli.ts';
import { allParts, helpFile } from '../support/docs/write-docs.ts';

const parts = await allParts();
const pages = readPages();

describe('the generated parts', () => {
  test.each(pages.map((page) => [page.path, page] as const))(
    'of %s are current',
    async (_, page) => {
      expect(page.text).toBe(await withParts(page, parts));
    },
  );

  test('each stand in one page', () => {
    const used = pages.flatMap(partsIn);
    expect(used.toSorted()).toEqual(Object.keys(parts).toSorted());
  });
});

test('the help that the program prints at once is current', async () => {
  expect(readFileSync(helpFile, 'utf8')).toBe(overview());
});

describe('a page', () => {
  const written = async (...lines: string[]) =>
    withParts({ path: 'docs/page.md', text: lines.join('\n') }, { codes: 'the codes' });

  test('gets the part between its marks, and keeps the rest', async () => {
    const text = await written(
      '# Page',
      '',
      '<!-- generated: codes -->',
      'old',
      '<!-- end -->',
      '',
    );
    expect(text).toBe(
      ['# Page', '', '<!-- generated: codes -->', '', 'the codes', '', '<!-- end -->', ''].join(
        '\n',
      ),
    );
    expect(await written(text)).toBe(text);
  });

  test('may begin with an empty part', async () => {
    const text = await written('<!-- generated: codes -->', '<!-- end -->');
    expect(text).toContain('the codes');
  });

  test('is refused for a part that nobody generates', async () => {
    const marks = ['<!-- generated: cods -->', '<!-- end -->'];
    await expect(written(...marks)).rejects.toThrow('docs/page.md: no part is called cods');
  });

  test('is refused for a part without an end', async () => {
    const unended = written('<!-- generated: codes -->', 'text');
    await expect(unended).rejects.toThrow('docs/page.md: a part has no end');
  });
});
