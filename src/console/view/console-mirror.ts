/**
 * Reads a mirror for the console, and runs commands in it as the command line does. Limits what the
 * users of the console can have this machine do at once.
 */
import pLimit from 'p-limit';
import type { Clock } from '../../domain/clock.ts';
import { Busy, renderProblem } from '../../domain/errors.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import type { Config } from '../../config/config.ts';
import { type Attention, worstFirst } from '../../views/status/attention.ts';
import { readStanding, type Standing } from '../../views/status/mirrors.ts';
import { askRedis, type NextRuns, readNextRuns } from '../../views/status/next-runs.ts';
import type { Platform } from '../../platform/platform.ts';
import { assemble } from '../../compose/assemble-mirror.ts';
import {
  type Assembled,
  type CommandForm,
  type Shell,
  type CommandAnswer,
  runSeparately,
} from '../../compose/process-shell.ts';
import { connect } from '../../compose/platform-connection.ts';
import { createJobs, type Jobs } from './jobs.ts';
import { exitCode } from '../../compose/output/failure-report.ts';
import { renderLine } from '../../compose/output/text-style.ts';
import type { QueueView } from '../../compose/queues/run-queue.ts';
import { see, type Seen } from '../../views/lookup/seen-mirror.ts';
import type { User } from '../access/access-rules.ts';

/** A mirror that the console shows. */
export interface ConsoleMirror {
  config: Config;
  /** Reads with the snapshot open, which is undefined if there is none yet. */
  read<T>(user: { seesAddresses: boolean }, read: (seen: Seen) => T | Promise<T>): Promise<T>;
  /**
   * Returns the status. It is read again once it is older than ten times the time that it took:
   * many pages, or a page that is updated each second, cost a tenth of a processor at most, also if
   * it cannot be read. After a command of the console, it is read again.
   */
  status(): Standing;
  /** Returns the status, and what Redis has of the schedule. */
  statusAndNext(): Promise<PageStatusAndNext>;
  /** Returns the rate limits that this process observes; none if it sends no requests. */
  limits(): Readonly<Record<string, RouteLimit>>;
  effectOf(argv: readonly string[]): CommandForm['effect'];
  /**
   * Runs a command line without its configuration in the name of the user. If a worker has the
   * mirror, that worker runs it.
   */
  run(user: User, argv: readonly string[]): Promise<CommandResult>;
  /** Works with the mirror opened as commands open it that ask the CRM and write nothing. */
  assembled<T>(work: (opened: Assembled, shell: Shell) => Promise<T>): Promise<T>;
  /** Asks the platform, within its rate limits. */
  ask<T>(question: (platform: Platform, signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Runs a slow command line that only reads, in a process of its own. `heard`: its progress. */
  runApart(
    argv: readonly string[],
    heard?: (line: string) => void,
    stop?: AbortSignal,
  ): Promise<CommandResult>;
  jobs: Jobs;
}

/** What a command has answered. */
export interface CommandResult extends CommandAnswer {
  /** What it printed: results first, then notes. */
  lines: string[];
}

/** Keeps the last status, or why it could not be read, for a time that follows from its cost. */
function keptStatus(config: Config, { clock, faults = () => [] }: ConsoleMirrorOptions) {
  let last: { status(): Standing; until: number } | undefined;
  const keep = (beganMs: number, status: () => Standing, mostMs = Number.POSITIVE_INFINITY) => {
    const endedMs = clock.monotonic();
    last = { status, until: endedMs + Math.min(mostMs, ageAtMost * (endedMs - beganMs)) };
    return last;
  };
  const readNow = (beganMs: number) => {
    try {
      const status = readStanding(config, patienceMs);
      return keep(beganMs, () => status);
    } catch (error) {
      const fail = (): never => {
        throw error;
      };
      return keep(beganMs, fail, mostFaultMs);
    }
  };
  return {
    forget: () => void (last = undefined),
    read(): Standing {
      const nowMs = clock.monotonic();
      const { status } = last && nowMs < last.until ? last : readNow(nowMs);
      const known = status();
      return { ...known, attention: worstFirst([...faults(), ...known.attention]) };
    },
  };
}

/** How old the status may be, in the times that it took. */
const ageAtMost = 10;
/** How old it may be at most if it could not be read, in milliseconds. */
const mostFaultMs = 2_000;

/** How long, in milliseconds, this thread, which also answers the CRM, waits for a locked file. */
const patienceMs = 200;

interface ConsoleMirrorOptions {
  clock: Clock;
  /** Returns what only this process notices; nothing by default. */
  faults?(): readonly Attention[];
  /** The queues of the mirror if this process has them open. */
  queues?: { due: QueueView['due'] };
}

/** Creates the access to a mirror. */
export function consoleMirror(
  config: Config,
  shell: Shell,
  options: ConsoleMirrorOptions,
): ConsoleMirror {
  const { held: _, ...outer } = shell;
  const memory = { ...config.memory, timeoutMs: patienceMs };
  const patient: Config = { ...config, memory };
  const kept = keptStatus(patient, options);
  const effectOf = (argv: readonly string[]) => shell.formOf?.(argv).effect ?? 'run';
  return {
    config,
    limits: () => ({}),
    status: kept.read,
    async statusAndNext() {
      const seen = kept.read();
      const { queues } = options;
      const next = queues
        ? readNextRuns(queues, seen.status.worker)
        : askRedis(config, seen.status.worker);
      return { ...seen, next: await next };
    },
    async read({ seesAddresses }, read) {
      const seen = see(patient, seesAddresses, patienceMs);
      try {
        return await read(seen);
      } finally {
        seen.snapshot?.close();
      }
    },
    effectOf,
    async run(user, argv) {
      // What a run prints is shown on a page, and a log is none.
      const silent = effectOf(argv) === 'run' ? ['--log-level=silent'] : [];
      const result = await runAs(user, shell, [...argv, ...silent, '-c', config.file]);
      kept.forget();
      // If another process seems to hold the mirror and this worker has a fault, the holder is this
      // worker itself, which gets commands through Redis.
      const [fault] = options.faults?.() ?? [];
      const { code } = result;
      if (!fault || code !== exitCode('busy')) return result;
      if (readStanding(config, patienceMs).status.paused !== null) return result;
      const why = renderProblem({ reason: fault.text, fix: fault.fix });
      const line = `The worker was not given this command. ${why}`;
      return { code, out: '', err: line, lines: [line] };
    },
    async assembled(work) {
      const opened = await assemble(config, outer, { writes: false });
      try {
        return await work(opened, outer);
      } finally {
        await opened.close();
      }
    },
    async ask(question) {
      const platform = connect(config, shell);
      try {
        return await question(platform, shell.stop);
      } finally {
        await platform.close();
      }
    },
    async runApart(argv, heard, own) {
      const stop = own ? AbortSignal.any([shell.stop, own]) : shell.stop;
      const called = [...argv, '-c', config.file];
      const answer = await runSeparately(called, { env: shell.env, stop }, heard);
      return { ...answer, lines: [answer.out, answer.err].filter((text) => text !== '') };
    },
    jobs: createJobs(options.clock),
  };
}

/** Returns the name under which decisions of a user are kept, without the @ of an address. */
export function operatorName({ name }: User): string {
  return `${name.replaceAll('@', ' at ')} (console)`;
}

async function runAs(user: User, shell: Shell, argv: readonly string[]): Promise<CommandResult> {
  const { held: _, ...outer } = shell;
  const lines: string[] = [];
  const notes: string[] = [];
  const inner: Shell = {
    ...outer,
    // A document is for this console, and not for a terminal.
    terminal: user.seesAddresses && !argv.includes('--json'),
    colored: false,
    interactive: false,
    canAsk: false,
    operator: operatorName(user),
    // The command line has made plain texts safe already; a document has several lines.
    print: (line) => lines.push(typeof line === 'string' ? line : renderLine(line, false)),
    note: (line) => notes.push(line),
    progress: () => undefined,
  };
  const code = (await shell.call?.(argv, inner)) ?? 2;
  const said = notes.map((note) => note.replace(/^crm-mirror: /, ''));
  return { code, out: lines.join('\n'), err: notes.join('\n'), lines: [...lines, ...said] };
}

/** The status of a mirror with its next runs. */
export type PageStatusAndNext = Standing & { next: NextRuns };

/** How many processes, and how many questions to the CRM or the platform, go on at once. */
const processesAtOnce = 2;
const questionsAtOnce = 4;
/** How many more wait for one of them to end. */
const waitingAtMost = 4;

/** Limits the expensive work of all mirrors together. Too much of it throws Busy. */
export function limitMirrors(
  mirrors: () => readonly ConsoleMirror[],
): () => readonly ConsoleMirror[] {
  const processes = limitWork(processesAtOnce);
  // A job may take hours, and keeps no short work waiting.
  const jobs = limitWork(processesAtOnce);
  const questions = limitWork(questionsAtOnce);
  const limit = (mirror: ConsoleMirror): ConsoleMirror => ({
    ...mirror,
    async runApart(argv, heard, stop) {
      const work = heard ? jobs : processes;
      return work(() => mirror.runApart(argv, heard, stop));
    },
    assembled: (work) => questions(() => mirror.assembled(work)),
    ask: (question) => questions(() => mirror.ask(question)),
  });
  // A mirror keeps its limited form, so that what is stored for it is found again.
  const known = new WeakMap<ConsoleMirror, ConsoleMirror>();
  const limited = (mirror: ConsoleMirror): ConsoleMirror => {
    const one = known.get(mirror) ?? limit(mirror);
    known.set(mirror, one);
    return one;
  };
  return () => mirrors().map(limited);
}

/** Returns a function that does so much work at once, and throws Busy if too much waits. */
export function limitWork(atOnce: number): <T>(work: () => Promise<T>) => Promise<T> {
  const limit = pLimit(atOnce);
  return async (work) => {
    if (limit.activeCount + limit.pendingCount < atOnce + waitingAtMost) return limit(work);
    throw new Busy('many users ask this console for much at the same time');
  };
}
