/**
 * Passes commands through Redis (BullMQ) to the worker that has a mirror, encrypted, because they
 * may contain addresses. They are deleted once the outcome has been read, and after an hour at the
 * latest.
 */
import { type Job, type Queue, QueueEvents } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { Busy, Invalid, Unavailable } from '../../domain/errors.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';
import { queueName, prefix, connectPatiently, connectQuickly } from './redis-connections.ts';
import type { QueuePlace } from './shared-connections.ts';
import { takeJobs } from './take-jobs.ts';

const kept = { age: 3_600 };
const queues = { alone: 'commands', beside: 'errands' } as const;

export interface HandedOver {
  sealed: string;
  /** Encrypts it again, valid for longer. Called while the caller waits. */
  renew(): string;
  how: 'beside' | 'alone';
  urgent: boolean;
  /** Called with each encrypted progress message as it arrives. */
  tell(sealed: string): void;
  /** Aborted when the caller stops waiting. A command that has not started is then withdrawn. */
  signal: AbortSignal;
  /** Checked every few seconds. If it stays false, no worker is available. */
  isServed(): Promise<boolean>;
}

const atOnce = 4;
const lookMs = 5_000;
/** After this many checks, the command is stored anew. */
const renewEach = 6;
/** After this many checks without a worker, no worker is expected to take over. */
const goneAfter = 6;
const notBegun: readonly string[] = ['waiting', 'prioritized', 'delayed'];

/**
 * Returns undefined if no worker is left and none had taken the command, which is withdrawn then.
 * Throws Busy if the worker that took it is gone, Unavailable, Invalid with the worker's message,
 * and the signal's reason.
 */
export async function handOver(
  { url, mirror, clock }: { url: string; mirror: string; clock: Clock },
  handed: HandedOver,
): Promise<string | undefined> {
  const name = queueName(queues[handed.how], mirror);
  const quick = connectQuickly(url);
  const queue = quick.queue<string, string>(name);
  const patient = connectPatiently(url);
  const events = new QueueEvents(name, { connection: patient.redis, prefix });
  events.on('error', () => undefined);
  try {
    const priority = handed.urgent ? 1 : 2;
    // An error's stack may contain more than the encrypted parts.
    const opts = { priority, removeOnComplete: kept, removeOnFail: kept, stackTraceLimit: 0 };
    const job = await quick.ask(async () => {
      await events.waitUntilReady();
      return queue.add('command', handed.sealed, opts);
    });
    events.on('progress', ({ jobId, data }) => {
      if (jobId === job.id && typeof data === 'string') handed.tell(data);
    });
    const over = new AbortController();
    const signal = AbortSignal.any([handed.signal, over.signal]);
    const withdraw = async (): Promise<boolean> => {
      if (!notBegun.includes(await job.getState())) return false;
      await job.remove();
      return true;
    };
    const watch = async (): Promise<undefined> => {
      for (let missed = 0, looks = 1; missed < goneAfter; looks += 1) {
        await clock.sleep(lookMs, signal);
        if (looks % renewEach === 0) await job.updateData(handed.renew()).catch(() => undefined);
        missed = (await handed.isServed().catch(() => true)) ? 0 : missed + 1;
      }
      // Redis refuses to remove what a worker takes in this moment.
      if (await withdraw().catch(() => false)) return undefined;
      throw new Busy('the worker that had this mirror is gone, and may have begun this command', {
        fix: 'run it again',
      });
    };
    const gone = watch();
    gone.catch(() => undefined);
    const ended = endOf(job.id ?? '', { queue, events }, { clock, signal });
    ended.catch(() => undefined);
    try {
      return await Promise.race([ended, gone]);
    } finally {
      over.abort();
      // Redis refuses to remove a job that is being processed; that job continues.
      await job.remove().catch(() => undefined);
    }
  } finally {
    await events.close().catch(() => undefined);
    patient.close();
    quick.close();
  }
}

/**
 * BullMQ's `waitUntilFinished` asks only once whether the job has ended already; if Redis does not
 * answer then, the error has nobody to handle it. This asks again.
 */
async function endOf(
  id: string,
  { queue, events }: { queue: Queue<string, string>; events: QueueEvents },
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<string> {
  return new Promise((resolve, reject) => {
    // Redis holds the worker's message; the worker has done nothing.
    const failed = (reason: string): void => reject(new Invalid(reason));
    events.on('completed', ({ jobId, returnvalue }) => {
      if (jobId === id) resolve(String(returnvalue));
    });
    events.on('failed', ({ jobId, failedReason }) => {
      if (jobId === id) failed(failedReason);
    });
    const ask = async (): Promise<void> => {
      while (!signal.aborted) {
        try {
          const job = await queue.getJob(id);
          if (!job) reject(new Unavailable('Redis has lost the command', { acted: 'maybe' }));
          else if (job.finishedOn === undefined) return;
          else if (job.failedReason) failed(job.failedReason);
          else resolve(job.returnvalue);
          return;
        } catch {
          await clock.sleep(retrySchedules.redis.firstMs, signal).catch(() => undefined);
        }
      }
    };
    void ask();
  });
}

export interface TakenCommand {
  sealed: string;
  /** Returns it as its caller has sealed it last. Throws Unavailable while Redis is away. */
  latest(): Promise<string>;
  /** Sends an encrypted progress message to the caller. */
  tell(sealed: string): void;
}

/**
 * Commands that must run alone run one after the other, the others a few at a time. `elsewhere`
 * means that another process has to run the command.
 */
export function serveCommands(
  { mirror, clock, connections }: QueuePlace,
  work: (taken: TakenCommand) => Promise<string>,
): { close(): Promise<void> } {
  const over = new AbortController();
  const serve = (how: 'beside' | 'alone', concurrency: number) => {
    /** What was begun in the last hour: Redis offers a job again whose end it has not heard. */
    const begun = new Map<string, Promise<string>>();
    const begin = async (job: Job<string>): Promise<string> =>
      work({
        sealed: job.data,
        async latest() {
          const { ask, queue, close } = connections.quick();
          const read = async () => queue<string>(job.queueName).getJob(job.id ?? '');
          const found = await ask(read).finally(close);
          return found?.data ?? job.data;
        },
        tell: (line) => void job.updateProgress(line).catch(() => undefined),
      });
    return takeJobs<string>(queueName(queues[how], mirror), {
      connections,
      clock,
      concurrency,
      async work(job) {
        const id = job.id ?? '';
        const outcome = begun.get(id) ?? begin(job);
        begun.set(id, outcome);
        const forget = () => void begun.delete(id);
        const isOver = (await outcome.catch(() => 'elsewhere')) !== 'elsewhere';
        if (isOver) clock.sleep(kept.age * 1_000, over.signal).then(forget, forget);
        else forget();
        return outcome;
      },
    });
  };
  const served = [serve('alone', 1), serve('beside', atOnce)];
  return {
    async close() {
      await Promise.all(served.map(async (one) => one.close()));
      over.abort();
    },
  };
}
