/** The command line in a pseudo-terminal: what it shows, and what a person types. */
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { spawn } from '@lydell/node-pty';
import { onTestFinished } from 'vitest';

const program = join(import.meta.dirname, '../../../bin/crm-mirror.mjs');
const patienceMs = 120_000;

export const keys = {
  enter: '\r',
  down: '\u001b[B',

  backspace: '\u007f',
  interrupt: '\u0003',
};

export interface TerminalSession {
  /** Resolves once the text is shown, after whatever was waited for before. */
  seen(text: string): Promise<void>;
  /** Waits for the text, then types. */
  answer(text: string, ...typed: string[]): Promise<void>;
  /** Everything that was shown, without colours and movements of the cursor. */
  shown(): string;
  /** Resolves with the exit code. */
  ended: Promise<number>;
}

interface Terminal {
  cwd: string;
  columns?: number;
  env?: Record<string, string>;
}

/** Starts the command line. It is ended with the test. */
export function inTerminal(
  argv: readonly string[],
  { cwd, columns = 100, env = {} }: Terminal,
): TerminalSession {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [program, ...argv], {
    cwd,
    cols: columns,
    rows: 40,
    env: { PATH, HOME, TERM: 'xterm-256color', ...env },
  });
  let raw = '';
  let from = 0;
  let look = (): void => undefined;
  const ended = new Promise<number>((resolve) => {
    child.onExit(({ exitCode, signal }) => resolve(signal ? 128 + signal : exitCode));
  });
  child.onData((data) => {
    raw += data;
    look();
  });
  const shown = () => stripVTControlCharacters(raw);
  onTestFinished(() => child.kill('SIGKILL'));
  async function seen(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        reject(new Error(`"${text}" is not shown; the end of what is:\n${shown().slice(-2_000)}`));
      }, patienceMs);
      look = () => {
        const at = shown().indexOf(text, from);
        if (at < 0) return;
        from = at + text.length;
        look = () => undefined;
        clearTimeout(late);
        resolve();
      };
      look();
    });
  }
  return {
    seen,
    async answer(text, ...typed) {
      await seen(text);
      for (const one of typed) child.write(one);
    },
    shown,
    ended,
  };
}
