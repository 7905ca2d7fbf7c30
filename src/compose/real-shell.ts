/** Gives commands access to the real process: its streams, its environment and its signals. */
import { isatty } from 'node:tty';
import { exitCode } from './output/exit-codes.ts';
import { takesColors } from './output/text-style.ts';
import type { Shell } from './process-shell.ts';
import { stopSignals } from './stop-signals.ts';

/** Returns the shell of the real process; one `stop` stands for all signals. */
export function realShell(env: Shell['env']): Shell {
  const { stop, abort } = stopSignals();
  // If the reader has stopped, or the disk behind the stream is full, the run itself must continue.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code !== 'EPIPE') process.once('exit', () => (process.exitCode ||= exitCode('failed')));
    });
  }
  const interactive = isatty(process.stderr.fd);
  let drawn = false;
  const clear = (): void => {
    if (drawn) process.stderr.write('\r\u001b[K');
    drawn = false;
  };
  return {
    env,
    print: (line: string) => {
      clear();
      process.stdout.write(`${line}\n`);
    },
    note: (line) => {
      clear();
      process.stderr.write(`${line}\n`);
    },
    progress: (line, shorter = []) => {
      if (!interactive) {
        // Another process that runs this command shows the line (separate-process.ts).
        if (process.connected) process.send?.({ progress: line }, undefined, {}, () => undefined);
        return;
      }
      process.stderr.write(`\r\u001b[K${fitting([line, ...shorter], process.stderr.columns)}`);
      drawn = true;
    },
    terminal: isatty(process.stdout.fd),
    // A terminal may state 0 columns.
    width: process.stdout.columns || undefined,
    canAsk: isatty(process.stdin.fd) && isatty(process.stdout.fd),
    colored: takesColors(process.stdout),
    interactive,
    stop,
    abort,
  };
}

/** Returns the first form that fits, or else the last one, cut. A terminal may state 0 columns. */
function fitting(forms: readonly string[], columns: number | undefined): string {
  const room = (columns || 80) - 1;
  return (forms.find((form) => form.length <= room) ?? forms.at(-1) ?? '').slice(0, room);
}
