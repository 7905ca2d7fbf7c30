/**
 * The interfaces between cli.ts, the commands and their process; the real process; and a command
 * line in a process of its own, for work that would keep this one busy.
 */
import type { Platform } from '../platform/platform.ts';
import type { OpenLink } from '../http/rate-limit/shared/redis-connection.ts';
import type { OutageRecord } from '../store/health-file.ts';
import type { CalledWith, LogLevel, OptionRows } from './command-options.ts';
import { type Line, takesColors } from './output/text-style.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { isatty } from 'node:tty';
import { exitCode } from './output/failure-report.ts';
import { once } from 'node:events';
import { Interrupted } from '../domain/errors.ts';
import { hostname, userInfo } from 'node:os';
import { z } from 'zod';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

/** A command's access to its process. cli.ts creates the real one; tests create others. */
export interface Shell {
  /** The environment variables, for ${NAME} in the configuration. */
  env: Record<string, string | undefined>;
  print(line: Line): void;
  /** Prints one line for people to stderr. */
  note(line: string): void;
  /** Redraws a line on stderr, in the first form that fits; or tells a process that listens. */
  progress(line: string, shorter?: readonly string[]): void;
  /** Whether stdout is a terminal, so that addresses may be shown. */
  terminal: boolean;
  /** How many columns the terminal has; undefined if stdout is none. */
  width?: number | undefined;
  colored?: boolean;
  /** The least important level that is logged; the default depends on the terminal. */
  logLevel?: LogLevel;
  quiet?: boolean;
  /** Whether stdin and stdout are terminals, so that questions can be asked. */
  canAsk?: boolean;
  interactive: boolean;
  /** Aborted when the process is asked to stop; the reason is Interrupted. */
  stop: AbortSignal;
  /** Abandons work in flight: aborted 8 s after `stop`, or at the second request to stop. */
  abort: AbortSignal;
  operator?: string;
  /** The command line that is running, and what it does. */
  argv?: readonly string[];
  form?: CommandForm;
  /** Runs another command line in this process and returns its exit code. */
  call?(argv: readonly string[], shell: Shell): Promise<number>;
  /** Returns what a command line does that consists of words and `--option=value`. */
  formOf?(argv: readonly string[]): CommandForm;
  /** Runs a command that another process has passed on, or refuses it; `run` needs the mirror. */
  admit?(form: CommandForm, run: (own: Partial<Shell>) => Promise<number>): Promise<number>;
  /** Returns the mirror if this process already has it open. */
  held?(): Assembled;
  /** Records what is out of order in the mirror that this process serves. */
  outages?: OutageRecord;
  /** Opens the connection to Redis for rate limits, if the mirrors of the process share one. */
  openLink?: OpenLink;
}

/**
 * What a command does, and how it works while a worker has the mirror:
 *
 *   reads    changes nothing in the mirror, the CRM or the platform
 *   steers   decides what later runs may do; works while the mirror is paused
 *   person   decides about people, or acts on one
 *   run      runs the mirror
 *
 *   here     the process that is given the command runs it, beside the worker
 *   beside   the worker runs it, in parallel with a run
 *   alone    the worker runs it when no run is in progress
 */
export interface CommandForm {
  effect: 'reads' | 'steers' | 'person' | 'run';
  where: 'here' | 'beside' | 'alone';
  /** Whether a worker begins it before all other commands that wait. */
  isUrgent?: boolean;
}

/** `run` returns the exit code (docs/commands.md), and throws the errors of domain/errors.ts. */
export interface CommandModule {
  options: OptionRows;
  /** What the help says after the options; the lines of a paragraph are joined. */
  help?: string;
  run(called: CalledWith, shell: Shell): Promise<number>;
}

export interface Assembled {
  mirror: Mirror;
  platform: Platform;
  /** Builds the same mirror again, for a run in parallel. It must be closed before this one. */
  sibling(): Assembled;
  close(failure?: unknown): Promise<void>;
}

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
        // Another process that runs this command shows the line (runSeparately).
        if (process.connected) process.send?.({ progress: line }, undefined, {}, () => undefined);
        return;
      }
      // The first form that fits, or else the last one, cut. A terminal may state 0 columns.
      const forms = [line, ...shorter];
      const room = (process.stderr.columns || 80) - 1;
      process.stderr.write(
        `\r\u001b[K${(forms.find((form) => form.length <= room) ?? forms.at(-1) ?? '').slice(0, room)}`,
      );
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

/** How long after the first signal work in flight is abandoned. */
const patienceMs = 8_000;
const sameSignalMs = 1_000;
const twinMs = 250;
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * The first signal stops; another one more than a second later aborts, because process groups and
 * launchers send the same signal twice. A closed terminal (SIGHUP) stops also under `nohup`: Node
 * restores the default of an ignored signal when it starts.
 */
export function stopSignals(): { stop: AbortSignal; abort: AbortSignal } {
  const stop = new AbortController();
  const abort = new AbortController();
  let since = 0;
  process.channel?.unref();
  process.on('disconnect', () => process.emit('SIGTERM', 'SIGTERM'));
  for (const signal of signals) {
    process.on(signal, () => {
      const reason = new Interrupted(signal === 'SIGHUP' ? 'SIGTERM' : signal);
      if (!stop.signal.aborted) {
        since = performance.now();
        setTimeout(() => abort.abort(reason), patienceMs).unref();
        // The process has to outlive the second copy of the signal.
        setTimeout(() => undefined, twinMs);
        stop.abort(reason);
      } else if (performance.now() - since > sameSignalMs) abort.abort(reason);
    });
  }
  return { stop: stop.signal, abort: abort.signal };
}

/** Keeps the process alive until it is asked to stop. */
export async function stopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  // While Redis is away, nothing else keeps a worker alive.
  const alive = setInterval(() => undefined, 60_000);
  await once(stop, 'abort');
  clearInterval(alive);
}

/** Returns who gave the command: the user and the host, such as `anna on mail-1`. */
export function operatorName({ operator }: { operator?: string } = {}): string {
  if (operator !== undefined) return operator;
  try {
    return `${userInfo().username} on ${hostname()}`;
  } catch {
    // The user of a container may have no name.
    return `user ${process.getuid?.() ?? 'unknown'} on ${hostname()}`;
  }
}

const program = fileURLToPath(new URL('../../bin/crm-mirror.mjs', import.meta.url));

const mostChars = 1024 * 1024;

export interface CommandAnswer {
  code: number;
  out: string;
  err: string;
}

/** A progress line, as the process sends it. */
const drawn = z.object({ progress: z.string() });

/**
 * The exit code is 1 if the process has none. One that prints more than a megabyte is stopped, and
 * it stops by itself if this one dies. `heard` receives each progress line and each note.
 */
export async function runSeparately(
  argv: readonly string[],
  { env, stop }: { env: Shell['env']; stop: AbortSignal },
  heard: (line: string) => void = () => undefined,
): Promise<CommandAnswer> {
  const child = spawn(process.execPath, [program, ...argv], {
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error('both streams are pipes');
  const end = (): void => void child.kill();
  stop.addEventListener('abort', end);
  if (stop.aborted) end();
  child.on('message', (message) => {
    const { data } = drawn.safeParse(message);
    if (data) heard(data.progress);
  });
  createInterface(stderr).on('line', heard);
  try {
    const [out, err, code] = await Promise.all([
      textOf(stdout, end),
      textOf(stderr, end),
      once(child, 'close').then(([status]) => (typeof status === 'number' ? status : 1)),
    ]);
    return { code, out, err };
  } catch (error) {
    // The system could not start the process.
    if (!(error instanceof Error)) throw error;
    return { code: 1, out: '', err: error.message };
  } finally {
    stop.removeEventListener('abort', end);
  }
}

/** Returns what a stream holds; one that is too long is cut, and `end` is called. */
async function textOf(stream: Readable, end: () => void): Promise<string> {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    if (text.length + chunk.length > mostChars) end();
    else text += chunk;
  });
  await once(stream, 'end');
  return text.trimEnd();
}
