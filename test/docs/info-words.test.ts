/** The words after a code block's fence decide what a test does with it: none may be misspelt. */
import { expect, test } from 'vitest';
import type { FileText } from '../style/text.ts';
import { codeBlocksOf, placeOf, readPages, type CodeBlock } from '../support/docs/page-blocks.ts';

/** The words that may follow a language; any other language stands alone. */
const words: Readonly<Record<string, RegExp>> = {
  yaml: /^(kubernetes|compose|other)?$/,
  sh: /^(test( exits=\d+)?)?$/,
};

/** Other names of these languages, whose blocks no test would look at. */
const aliases = ['', 'yml', 'bash', 'shell', 'console'];

function unknownInfo(page: FileText): string[] {
  return codeBlocksOf(page)
    .filter((block) => !isKnown(block))
    .map((block) => `${placeOf(block)}  ${[block.language, ...block.words].join(' ')}`);
}

function isKnown({ language, words: given }: CodeBlock): boolean {
  const allowed = words[language] ?? /^$/;
  return allowed.test(given.join(' ')) && !aliases.includes(language);
}

test('the words after a fence are known', () => {
  expect(readPages().flatMap(unknownInfo)).toEqual([]);
});

test.each(['', 'yml', 'sh tests', 'sh test exit=3', 'sh exits=3', 'yaml k8s', 'bash', 'text a'])(
  'an unknown word is reported: %s',
  (info) => {
    const text = ['# Page', '', `\`\`\`${info}`, 'a', '```', ''].join('\n');
    expect(unknownInfo({ path: 'docs/page.md', text })).toEqual([`docs/page.md:3  ${info}`]);
  },
);
