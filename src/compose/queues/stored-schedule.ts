/**
 * Stores the entries of a schedule in Redis (BullMQ's job schedulers), and finds what Redis has
 * lost of them. An entry consists of several keys, and each of them can be evicted or removed by
 * hand: without one of them BullMQ makes no run of it any more.
 */
import type { Queue, QueueOptions } from 'bullmq';
import { dueAfter } from '../../config/schema/cron-pattern.ts';
import type { Clock } from '../../domain/clock.ts';
import { type Tick, ticks } from './run-schedule.ts';

/** How many ended jobs BullMQ keeps for its statistics; the history is in the snapshot. */
const kept = { count: 100 };

/** Returns the settings by which BullMQ computes when an entry is due: as everything else here. */
export function dueSettings(clock: Clock): NonNullable<QueueOptions['settings']> {
  return {
    repeatStrategy: (after, { pattern = '', tz = 'UTC' }) =>
      dueAfter(pattern, tz, Math.max(after, clock.now())),
  };
}

export interface StoredEntries {
  wanted: readonly { tick: Tick; pattern: string }[];
  timezone: string;
  now: number;
}

/**
 * Replaces the entries of a queue with these. Returns those that were not stored like this, or of
 * which a part was lost.
 */
export async function storeEntries(
  queue: Queue,
  { wanted, timezone: tz, now }: StoredEntries,
): Promise<Tick[]> {
  await queue.setGlobalConcurrency(1);
  const mended: Tick[] = [];
  const stored = await queue.getJobSchedulers();
  for (const { tick, pattern } of wanted) {
    const known = stored.find(({ key }) => key === tick);
    const isSame = known?.pattern === pattern && known.tz === tz;
    if (isSame && (await isPending(queue, jobOf(tick, known.next)))) continue;
    // BullMQ refuses an id that is there, so what may remain of the entry goes first. What cannot
    // be removed belongs to an entry that another caller has stored meanwhile, and is replaced.
    await queue.removeJobScheduler(tick);
    for (const at of new Set([known?.next, dueAfter(pattern, tz, now)])) {
      await queue.remove(jobOf(tick, at)).catch(() => undefined);
    }
    const opts = { removeOnComplete: kept, removeOnFail: kept };
    await queue.upsertJobScheduler(tick, { pattern, tz }, { name: tick, opts });
    mended.push(tick);
  }
  const names = new Set<string>(wanted.map(({ tick }) => tick));
  for (const { key } of stored) {
    if (!names.has(key)) await queue.removeJobScheduler(key);
  }
  return mended;
}

/** Returns the entries of which Redis has a run, with its time in milliseconds since the epoch. */
export async function readDue(queue: Queue): Promise<{ tick: Tick; at: number }[]> {
  const found: { tick: Tick; at: number }[] = [];
  for (const { key, next } of await queue.getJobSchedulers()) {
    const tick = ticks.find((known) => known === key);
    const isThere = tick && next !== undefined && (await isPending(queue, jobOf(tick, next)));
    if (isThere) found.push({ tick, at: next });
  }
  return found;
}

function jobOf(tick: Tick, at: number | undefined): string {
  return `repeat:${tick}:${at}`;
}

/**
 * Returns whether a run is stored, and in a list from which a worker takes it. It may have been due
 * while no worker had the mirror: storing the entry again would replace it by a later one.
 */
async function isPending(queue: Queue, id: string): Promise<boolean> {
  const [job, state] = await Promise.all([queue.getJob(id), queue.getJobState(id)]);
  return job !== undefined && pendingStates.has(state);
}

const pendingStates = new Set<string>(['delayed', 'waiting', 'active', 'prioritized']);
