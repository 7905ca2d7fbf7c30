/** Links, pictures and paths in the documents lead to something that is there. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { layers } from './layers.ts';
import { breaches, matches, readProject, type FileText, type Finding, type Rule } from './text.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const indexes = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'AGENTS.md',
  'SECURITY.md',
  'test/support/README.md',
];
const inText = /\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?(?: +"[^"]*")?\)/g;
const inTag =
  /<(?:img|source|a)\b[^>]*?\b(?:src|srcset|href)="(?![a-z]+:)([^"\s#]*)(?:#([^"\s]*))?"/g;
const atTheEnd = /^\[[^\]]+\]: +(?![a-z]+:)([^\s#]*)(?:#(\S*))?/gm;
const bareImage = /!\[\s*\]\([^)]*\)|<img\b(?![^>]*\balt="[^"]+")[^>]*>/g;
const quotedPath = /`((?:src|test|docs|config)\/[^`\s]*)`/g;

const linkRule: Rule = {
  name: 'links',
  mend: 'name the file or heading as it is called now',
  applies: (path) => indexes.includes(path) || /^docs\/.+\.md$/.test(path),
  find(file) {
    const text = proseOf(file.text);
    const images = matches(bareImage, text).map(({ offset, what }) => {
      return { offset, what: `${what} has no text for those who cannot see it` };
    });
    return [...brokenLinks({ ...file, text }), ...missingPaths(text), ...images];
  },
  planted: [
    one('README.md', 'See [the tree](docs/no-such-page.md).'),
    one('docs/page.md', 'See [the contract](src/sources/source.ts).'),
    one('docs/page.md', 'See [the rules](../README.md#no-such-heading).'),
    one('docs/page.md', '# Page\n\nSee [below](#beloww).'),
    one('docs/page.md', 'The contract is `src/sources/no-such-file.ts`.'),
    one('docs/decisions/page.md', 'See [the tree](architecture.md).'),
    one('docs/page.md', '# Page\n\n```sh\n# Run it\n```\n\nSee [below](#run-it).'),
    one('docs/page.md', 'See [the tree](no-such-page.md "the tree").'),
    one('docs/page.md', 'See [the tree][1].\n\n[1]: no-such-page.md'),
    one('docs/page.md', '![The pipeline](pictures/no-such-picture.svg)'),
    one('docs/page.md', '![](../README.md)'),
    one('README.md', '<img src="docs/pictures/no-such-picture.svg" alt="The pipeline">'),
    one('README.md', '<source srcset="docs/no-such-picture.svg" media="(min-width: 1px)">'),
    one('README.md', '<img src="README.md">'),
    one('CHANGELOG.md', 'See [the page](docs/no-such-page.md).'),
    one('CONTRIBUTING.md', 'See [the page](docs/no-such-page.md).'),
    one('SECURITY.md', 'See [the page](docs/no-such-page.md).'),
    one('test/support/README.md', '- [clock](no-such-clock.ts)'),
  ],
  harmless: [
    one('README.md', 'See [the contract](src/sources/source.ts) in `src/sources/`.'),
    one('docs/page.md', '# A `b`, c\n\nSee [above](#a-b-c) and [the start](../README.md#try-it).'),
    one('docs/page.md', 'See [elsewhere](https://example.com/no-such-page.md).'),
    one('docs/decisions/page.md', 'See [the tree](../architecture.md "the tree").'),
    one('docs/page.md', '![The page about consent](consent.md)'),
    one('README.md', '<a href="docs/consent.md"><img src="LICENSE" alt="The licence"></a>'),
    one('docs/page.md', '```sh\ncat `src/no-such-file.ts`\n```'),
    one('test/support/README.md', '- [redis](redis.ts)'),
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
    expect(paths.filter((path) => path.startsWith('docs/'))).toEqual(pagesUnderDocs());
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

/** Returns a text in which code blocks are blank. */
function proseOf(text: string): string {
  return text.replaceAll(/^( *)```[^]*?^\1```/gm, (block) => block.replaceAll(/./g, ' '));
}

/** Links are relative to the file they stand in. */
function brokenLinks({ path, text }: FileText): Finding[] {
  const links = [inText, inTag, atTheEnd].flatMap((form) => [...text.matchAll(form)]);
  return links.flatMap(({ index, 0: what, 1: target = '', 2: heading }) => {
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
  return [...proseOf(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function pagesUnderDocs(): string[] {
  return readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => `docs/${path}`)
    .toSorted();
}

function one(path: string, text: string): FileText {
  return { path, text: `\n${text}\n` };
}
