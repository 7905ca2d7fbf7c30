/** A page is short enough to be read: who looks for an answer finds it within half a minute. */
import { describe, expect, test } from 'vitest';
import { breaches, type FileText, type Rule } from '../style/text.ts';
import { isPage, readPages } from '../support/docs/page-blocks.ts';

const bytesAtMost = { 'README.md': 12_288, others: 15_360 };

const sizeRule: Rule = {
  name: 'size',
  mend: 'move a part to a page of its own',
  applies: isPage,
  find({ path, text }) {
    const most = path === 'README.md' ? bytesAtMost['README.md'] : bytesAtMost.others;
    const bytes = Buffer.byteLength(text);
    return bytes > most ? [{ offset: 0, what: `${bytes} bytes, and at most ${most}` }] : [];
  },
  planted: [
    page('README.md', 12_289),
    page('docs/page.md', 15_361),
    page('docs/decisions/page.md', 15_361),
    { path: 'docs/page.md', text: 'ü'.repeat(7_681) },
  ],
  harmless: [
    page('README.md', 12_288),
    page('docs/page.md', 15_360),
    page('CHANGELOG.md', 100_000),
    page('src/engine/README.md', 100_000),
  ],
};

describe('the size of a page', () => {
  test.each(readPages().map((file) => [file.path, file] as const))('%s', (_path, file) => {
    expect(breaches(sizeRule, [file])).toEqual([]);
  });

  test.each(sizeRule.planted)('is reported when it is too large: $path', (file) => {
    expect(breaches(sizeRule, [file])).toHaveLength(1);
  });

  test.each(sizeRule.harmless)('is accepted: $path', (file) => {
    expect(breaches(sizeRule, [file])).toEqual([]);
  });
});

function page(path: string, bytes: number): FileText {
  return { path, text: 'a'.repeat(bytes) };
}
