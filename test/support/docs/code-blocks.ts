/** Finds the pages of the documentation and the code blocks in them. */
import { readProject, type FileText } from '../../style/text.ts';

/** One fenced code block. */
export interface CodeBlock {
  path: string;
  /** The line of the opening fence, from 1. */
  line: number;
  /** The first word after the fence: yaml, sh, text. */
  language: string;
  /** The words after it: `test`, `exits=3`. */
  words: string[];
  text: string;
}

/** Tells whether a file is a page of the documentation. */
export function isPage(path: string): boolean {
  return /^(README|CONTRIBUTING|SECURITY)\.md$|^docs\/.+\.md$/.test(path);
}

/** Reads every page of the documentation. */
export function readPages(): FileText[] {
  return readProject().filter(({ path }) => isPage(path));
}

/** Returns the code blocks of a page; those inside lists without their indentation. */
export function codeBlocksOf({ path, text }: FileText): CodeBlock[] {
  const fences = /^( *)```(.*)\n([^]*?)^\1``` *$/gm;
  return [...text.matchAll(fences)].map(({ index, 1: indent = '', 2: info = '', 3: body = '' }) => {
    const [language = '', ...words] = info.trim().split(/\s+/);
    return {
      path,
      line: text.slice(0, index).split('\n').length,
      language,
      words,
      text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    };
  });
}

/** Returns `docs/page.md:12`, the place of a block. */
export function placeOf({ path, line }: CodeBlock): string {
  return `${path}:${line}`;
}
