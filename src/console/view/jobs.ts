/**
 * Keeps the work that operators have begun in the console and that may take long: what it was asked
 * for, how far it is, and its answer. A subject, such as a rehearsal or the undoing of one run, has
 * one job at a time. Nothing is stored: when the process ends, its jobs are forgotten.
 */
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { explain } from '../../compose/output/failure-report.ts';
import type { CommandAnswer } from '../../compose/process-shell.ts';
import { isRunDocument, type RunDocument } from '../../views/run/run-document.ts';

/** What is done: a rehearsal, the plan of an undo, the undo itself, or a verification. */
export type JobKind = 'rehearse' | 'undo-plan' | 'undo' | 'verify';

/** The subject of rehearsals. */
export const rehearsalSubject = 'rehearsal';

/** Returns the subject of a run that is undone. */
export function undoSubject(run: string): string {
  return `undo ${run}`;
}

/** Work that an operator has begun. */
export interface Job {
  kind: JobKind;
  /** What it is about: `rehearsal`, or `undo` and the id of a run. */
  subject: string;
  by: string;
  argv: readonly string[];
  /** In milliseconds since the epoch. */
  startedAt: number;
  endedAt: number | undefined;
  /** The last progress line; empty at first. */
  progress: string;
  /** Undefined while it runs. */
  answer: CommandAnswer | undefined;
  /** The job of the same subject from which this one follows. */
  before: Job | undefined;
  /** Asks it to stop; undefined if it cannot be stopped here. */
  stop: (() => void) | undefined;
}

interface NewJob {
  kind: JobKind;
  subject: string;
  by: string;
  argv: readonly string[];
  before?: Job | undefined;
  isStoppable: boolean;
  work(heard: (line: string) => void, stop: AbortSignal): Promise<CommandAnswer>;
}

const mostKept = 20;

/** The jobs of one mirror. */
export type Jobs = ReturnType<typeof createJobs>;

/** Creates the jobs of a mirror. */
export function createJobs(clock: Clock) {
  const jobs = new Map<string, Job>();
  const forgetOldest = (): void => {
    const ended = [...jobs.values()].filter(({ answer }) => answer);
    for (const { subject } of ended.slice(0, -mostKept)) jobs.delete(subject);
  };
  return {
    /** Returns the job of a subject that runs, or else the last one. */
    get: (subject: string): Job | undefined => jobs.get(subject),
    /** Returns the jobs, the oldest first. */
    all: (): readonly Job[] => [...jobs.values()],
    /**
     * Begins a job in the place of the last one of its subject, and returns a promise that is
     * resolved when it ends, and never rejected. Returns undefined if that one still runs.
     */
    begin({ work, isStoppable, before, ...asked }: NewJob): Promise<Job> | undefined {
      const last = jobs.get(asked.subject);
      if (last && !last.answer) return undefined;
      const stop = new AbortController();
      const job: Job = {
        ...asked,
        before,
        startedAt: clock.now(),
        endedAt: undefined,
        progress: '',
        answer: undefined,
        stop: isStoppable ? () => stop.abort() : undefined,
      };
      // The newest is the last one in the map.
      jobs.delete(asked.subject);
      jobs.set(asked.subject, job);
      forgetOldest();
      const end = (answer: CommandAnswer): Job => {
        job.endedAt = clock.now();
        job.answer = answer;
        return job;
      };
      const heard = (line: string): void => void (job.progress = line);
      return work(heard, stop.signal).then(end, (error: unknown) => {
        const { code, text } = explain(error);
        return end({ code, out: '', err: text });
      });
    },
  };
}

/** What stands there instead if a command has failed. */
const refused = z
  .object({ reasons: z.array(z.string()) })
  .transform(({ reasons }) => reasons)
  .or(z.object({ error: z.string() }).transform(({ error }) => error.split('\n')));

/** Returns the document, or the lines that say why it is another one, or none. */
export function documentIn<T>(
  { code, out, err }: CommandAnswer,
  isRight: (value: unknown) => value is T,
): T | string[] {
  let document: unknown;
  try {
    document = JSON.parse(out);
  } catch {
    // The command has printed no document.
  }
  if (isRight(document)) return document;
  const reasons = refused.safeParse(document).data ?? [];
  if (reasons.length > 0) return reasons;
  const lines = err.split('\n').map((line) => line.replace(/^crm-mirror: /, ''));
  const said = lines.filter((line) => line !== '');
  return said.length > 0 ? said : [`The command ended with the exit code ${code}.`];
}

/** Returns the document of the run, or the lines that say why there was none. */
export function runIn(answer: CommandAnswer): RunDocument | string[] {
  const found = documentIn(answer, isRunDocument);
  if (Array.isArray(found) || found.run !== '') return found;
  return found.reasons.length > 0 ? found.reasons : ['nothing was sent'];
}
