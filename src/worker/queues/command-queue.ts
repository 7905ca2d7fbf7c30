/**
 * Hands commands over to the worker that holds a mirror, in Redis (BullMQ), and brings back their
 * outcome. Both are encrypted, because they may hold addresses and Redis stores plain text. They
 * are deleted when the answer is read, and after an hour in any case.
 */
import { type Job, QueueEvents } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { Invalid, Unavailable } from '../../domain/errors.ts';
import { takeJobs } from './job-consumer.ts';
import { commandsOf, prefix } from './queue-names.ts';
import { connectPatiently, connectQuickly } from './redis-connections.ts';

/** In seconds. */
const kept = { age: 3_600 };

/** A Redis and a mirror. */
export interface CommandQueueOptions {
  /** redis:// or rediss://. */
  url: string;
  mirror: string;
  clock: Clock;
}

/** A command to hand over. */
export interface HandedOver {
  /** The command, encrypted. */
  sealed: string;
  /** Beside whatever runs, or alone. */
  how: 'beside' | 'alone';
  /** Whether it goes before all others that wait. */
  urgent: boolean;
  /** Called with each piece of progress, encrypted, as it comes. */
  tell(sealed: string): void;
  /** Aborted when the caller stops waiting: a command that has not begun is taken back. */
  signal: AbortSignal;
  /** Asked every few seconds; if it stays false, no worker is there. */
  isServed(): Promise<boolean>;
}

/** The most commands at a time that run beside others. */
const atOnce = 4;
/** How often `isServed` is asked. */
const lookMs = 5_000;
/** After so many answers without a worker none is expected to take over. */
const goneAfter = 6;

/**
 * Hands a command over and returns its outcome, encrypted. Throws Unavailable, Invalid with the
 * worker's message, and the signal's reason.
 */
export async function handOver(
  { url, mirror, clock }: CommandQueueOptions,
  handed: HandedOver,
): Promise<string> {
  const name = commandsOf(mirror, handed.how);
  const quick = connectQuickly(url);
  const queue = quick.queue<string, string>(name);
  const patient = connectPatiently(url);
  const events = new QueueEvents(name, { connection: patient.redis, prefix });
  events.on('error', () => undefined);
  try {
    const priority = handed.urgent ? 1 : 2;
    // An error's stack may hold more than what is encrypted.
    const opts = { priority, removeOnComplete: kept, removeOnFail: kept, stackTraceLimit: 0 };
    const job = await quick.ask(async () => {
      await events.waitUntilReady();
      return queue.add('command', handed.sealed, opts);
    });
    return await answerOf(job, events, { ...handed, clock });
  } finally {
    await events.close().catch(() => undefined);
    patient.close();
    quick.close();
  }
}

async function answerOf(
  job: Job<string, string>,
  events: QueueEvents,
  { tell, ...watching }: HandedOver & { clock: Clock },
): Promise<string> {
  events.on('progress', ({ jobId, data }) => {
    if (jobId === job.id && typeof data === 'string') tell(data);
  });
  const ended = job.waitUntilFinished(events).catch((error: unknown) => {
    // Redis holds the worker's message: the worker did nothing.
    throw new Invalid(error instanceof Error ? error.message : String(error), { cause: error });
  });
  ended.catch(() => undefined);
  const watched = watch(watching);
  try {
    return await Promise.race([ended, watched.gone]);
  } finally {
    watched.end();
    // Redis refuses this for a job that is worked on: that job goes on.
    await job.remove().catch(() => undefined);
  }
}

/** Returns a promise that rejects when the caller stops waiting or no worker is left. */
function watch({
  clock,
  signal,
  isServed,
}: { clock: Clock } & Pick<HandedOver, 'signal' | 'isServed'>) {
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const look = async (): Promise<never> => {
    for (let missed = 0; missed < goneAfter;) {
      await clock.sleep(lookMs, stop);
      missed = (await isServed().catch(() => true)) ? 0 : missed + 1;
    }
    throw new Unavailable('the worker that holds this mirror is gone, and no other took it over', {
      acted: 'maybe',
    });
  };
  const gone = look();
  gone.catch(() => undefined);
  return { gone, end: () => over.abort() };
}

/**
 * Calls `work` with each command that is handed over, until it is closed: those that have to be
 * alone one after the other, the others a few at a time. What `work` tells goes to the caller;
 * `elsewhere` means that another process has to do it.
 */
export function serveCommands(
  { url, mirror, clock }: CommandQueueOptions,
  work: (sealed: string, tell: (sealed: string) => void) => Promise<string>,
): { close(): Promise<void> } {
  const serve = (how: 'beside' | 'alone', concurrency: number) =>
    takeJobs<string>(commandsOf(mirror, how), {
      connection: connectPatiently(url),
      clock,
      concurrency,
      work: async (job) =>
        work(job.data, (line) => void job.updateProgress(line).catch(() => undefined)),
    });
  const served = [serve('alone', 1), serve('beside', atOnce)];
  return { close: async () => void (await Promise.all(served.map(async (one) => one.close()))) };
}
