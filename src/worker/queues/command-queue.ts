/**
 * Commands for the worker that holds a mirror, in Redis (BullMQ): what somebody called beside it,
 * and what came of it. Both are sealed: they may hold addresses, and Redis keeps them in clear.
 * They are gone when the answer is read, and after an hour in any case.
 */
import { QueueEvents, type Job } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { Invalid, Unavailable } from '../../domain/errors.ts';
import { takeJobs } from './job-consumer.ts';
import { commandsOf, prefix } from './queue-names.ts';
import { connectPatiently } from './waiting-connection.ts';
import { connectQuickly } from './fail-fast-connection.ts';

const kept = { age: 3_600 };

export interface CommandQueueOptions {
  /** redis:// or rediss://. */
  url: string;
  mirror: string;
  clock: Clock;
}

export interface HandedOver {
  sealed: string;
  /** Beside whatever runs, or when nothing else does. */
  how: 'beside' | 'alone';
  /** Before everything else that waits. */
  urgent: boolean;
  /** Sealed too, as it comes. */
  tell(sealed: string): void;
  /** The caller waits no more: what has not begun is taken back. */
  signal: AbortSignal;
  /** Asked every few seconds; when it is false, nobody is there to do it. */
  isServed(): Promise<boolean>;
}

/** Of those that stand beside others. */
const atOnce = 4;
const lookMs = 5_000;
/** A worker that takes over has so long to appear. */
const goneAfter = 6;

/** Hands it over, and answers what came of it. Throws Unavailable, and the signal's reason. */
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
    // What an error says may hold more than is sealed.
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
    // In Redis stands what the worker said of it; it did nothing.
    throw new Invalid(error instanceof Error ? error.message : String(error), { cause: error });
  });
  ended.catch(() => undefined);
  const watched = watch(watching);
  try {
    return await Promise.race([ended, watched.gone]);
  } finally {
    watched.end();
    // Of one that is being worked on this is refused: it goes on.
    await job.remove().catch(() => undefined);
  }
}

/** Rejects when the caller waits no more, or nobody is there to do it. */
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
 * Calls `work` with what was handed over, until it is closed: what is to be alone one after the
 * other, of what stands beside it a few at a time. What it tells goes to who called; `elsewhere`:
 * another process is the one to do it.
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
