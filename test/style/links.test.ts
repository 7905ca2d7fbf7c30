/** Links and paths in the documents lead to something that is there. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { layers } from './layers.ts';
import { breaches, readProject, type FileText, type Finding, type Rule } from './text.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const indexes = ['README.md', 'test/support/README.md'];
const link = /\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?\)/g;
const quotedPath = /`((?:src|test|docs|config)\/[^`\s]*)`/g;

const linkRule: Rule = {
  name: 'links',
  mend: 'name the file or heading as it is called now',
  applies: (path) => indexes.includes(path) || /^docs\/.+\.md$/.test(path),
  find(file) {
    const text = file.text.replaceAll(/^```[^]*?^```/gm, (block) => block.replaceAll(/./g, ' '));
    return [...brokenLinks({ ...file, text }), ...missingPaths(text)];
  },
  planted: [
    one('README.md', 'See [the tree](docs/no-such-page.md).'),
    one('docs/page.md', 'See [the contract](src/sources/source.ts).'),
    one('docs/page.md', 'See [the rules](../README.md#no-such-heading).'),
    one('docs/page.md', '# Page\n\nSee [below](#beloww).'),
    one('docs/page.md', 'The contract is `src/sources/no-such-file.ts`.'),
    one('test/support/README.md', '- [clock](no-such-clock.ts)'),
  ],
  harmless: [
    one('README.md', 'See [the contract](src/sources/source.ts) in `src/sources/`.'),
    one('docs/page.md', '# A `b`, c\n\nSee [above](#a-b-c) and [the start](../README.md#try-it).'),
    one('docs/page.md', 'See [elsewhere](https://example.com/no-such-page.md).'),
    one('docs/page.md', '```sh\ncat `src/no-such-file.ts`\n```'),
    one('test/support/README.md', '- [clock](clock.ts)'),
    one('src/engine/run.ts', '// [no link](no-such-page.md)'),
  ],
};

const documents = readProject().filter(({ path }) => linkRule.applies(path));

describe('links and paths in the documents', () => {
  test('exist', () => {
    expect(breaches(linkRule, documents)).toEqual([]);
  });

  test('are read from every document', () => {
    const paths = documents.map(({ path }) => path);
    expect(paths).toEqual(expect.arrayContaining([...indexes, 'docs/architecture.md']));
  });

  test('the architecture page has a line for each folder of src', () => {
    const page = documents.find(({ path }) => path === 'docs/architecture.md')?.text ?? '';
    const [, tree = ''] = page.split(/^```text\n|^```(?=\n\n## Who)/m);
    const folders = tree
      .trim()
      .split('\n')
      .map((line) => line.replace(/ .*/, ''));
    expect(folders.toSorted()).toEqual(layers.flat().toSorted());
  });

  test.each(linkRule.planted)('are reported when broken: $path $text', (file) => {
    expect(breaches(linkRule, [file])).toHaveLength(1);
  });

  test.each(linkRule.harmless)('are accepted: $path $text', (file) => {
    expect(breaches(linkRule, [file])).toEqual([]);
  });
});

/** Links are relative to the file they stand in. */
function brokenLinks({ path, text }: FileText): Finding[] {
  return [...text.matchAll(link)].flatMap(({ index, 0: what, 1: target = '', 2: heading }) => {
    const file = target === '' ? path : join(dirname(path), target);
    const isThere = target === '' || existsSync(join(root, file));
    if (isThere && heading === undefined) return [];
    const whole = target === '' || !isThere ? text : readFileSync(join(root, file), 'utf8');
    return isThere && anchorsOf(whole).includes(heading ?? '') ? [] : [{ offset: index, what }];
  });
}

/** Paths in backticks are relative to the root of the project. */
function missingPaths(text: string): Finding[] {
  return [...text.matchAll(quotedPath)]
    .filter(([, path = '']) => !existsSync(join(root, path)))
    .map(({ index, 0: what }) => ({ offset: index, what }));
}

/** The anchors that GitHub makes of the headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function one(path: string, text: string): FileText {
  return { path, text: `\n${text}\n` };
}
