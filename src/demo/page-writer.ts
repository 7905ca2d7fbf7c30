/** How the demo writes: headings, paragraphs, lines folded for a narrow terminal. */
import type { Shell } from '../cli/compose/process-shell.ts';

const width = 96;

export interface DemoPage {
  title(text: string): void;
  /** Paragraphs. */
  say(...paragraphs: string[]): void;
  /** A command as one would type it. */
  command(text: string): void;
  /** Lines as they are; a sentence that is too long goes on below, indented. A table stays one. */
  lines(lines: readonly string[]): void;
  /** What is said of one subject. */
  item(subject: string, text: string): void;
}

export function createPage({ print }: Pick<Shell, 'print'>): DemoPage {
  const put = (text: string, indent: { first: string; rest: string }): void => {
    for (const line of fold(text, indent)) print(line);
  };
  return {
    title(text) {
      print('');
      print(text);
      print('='.repeat(text.length));
    },
    say(...paragraphs) {
      for (const text of paragraphs) {
        print('');
        put(text, { first: '', rest: '' });
      }
    },
    command(text) {
      print('');
      print(`$ ${text}`);
    },
    lines(lines) {
      for (const line of lines) {
        const indent = /^ */.exec(line)?.[0] ?? '';
        const isTable = /\S {2,}\S/.test(line);
        if (line.length <= width || isTable) print(line);
        else put(line.trim(), { first: indent, rest: `${indent}    ` });
      }
    },
    item(subject, text) {
      print(`  ${subject}`);
      put(text, { first: '      ', rest: '      ' });
    },
  };
}

/** Breaks a text between words. */
function fold(text: string, { first, rest }: { first: string; rest: string }): string[] {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(' ')) {
    const empty = line === first || line === rest;
    if (!empty && line.length + 1 + word.length > width) {
      lines.push(line);
      line = rest + word;
    } else line += empty ? word : ` ${word}`;
  }
  return [...lines, line];
}
