/** How the demo prints: headings, paragraphs, and lines folded for a narrow terminal. */
import type { Shell } from '../cli/compose/process-shell.ts';

const width = 96;

/** The demo's output. */
export interface DemoPage {
  title(text: string): void;
  /** Prints paragraphs, folded. */
  say(...paragraphs: string[]): void;
  /** Prints a command as somebody would type it. */
  command(text: string): void;
  /** Prints lines as they are. Folds a sentence that is too long, indented; never a table row. */
  lines(lines: readonly string[]): void;
  /** Prints a subject, and below it what is said of it. */
  item(subject: string, text: string): void;
}

/** Creates the demo's output. */
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

/** Folds a text between words. */
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
