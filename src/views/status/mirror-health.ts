/**
 * Tells which parts of a mirror fail now, and whether a worker serves it, from what its process
 * records beside the snapshot; and what only a process notices that serves or shows the mirror:
 * Redis is away or may lose data, or the snapshot cannot be read. From Redis come the next runs.
 */
import type { Config } from '../../config/config.ts';
import { clockFix } from '../../engine/context/platform-knowledge.ts';
import { readHealth, type Outage, type OutagePart, silentMs } from '../../store/health-file.ts';
import { instant } from '../../compose/output/format-values.ts';
import { ago, type Attention } from './attention.ts';
import { explain } from '../../compose/output/failure-report.ts';
import { exitCode } from '../../compose/output/exit-codes.ts';
import { isExpected } from '../../domain/errors.ts';
import type { QueueView } from '../../compose/queues/queue-view.ts';
import type { Tick } from '../../compose/queues/run-schedule.ts';

type ToldHealth = ReturnType<typeof healthOf>;
type ToldOutage = ReturnType<typeof tellOutage>;

/** Reads what the process that serves the mirror has recorded beside its snapshot. */
export function healthOf(snapshot: string, now: number) {
  const { worker, outages } = readHealth(snapshot);
  const isOver = (one: Outage): boolean => one.endedAt !== undefined;
  const all = [...outages.filter((one) => !isOver(one)), ...outages.filter(isOver)];
  const life = worker && now - worker.seenAt > silentMs ? 'silent' : 'alive';
  return {
    /** What fails now, worst first; then what has ended, less than half an hour ago. */
    outages: all.map(tellOutage),
    /** The worker that serves the mirror, or served it last; null if none has. */
    worker: worker && {
      since: instant(worker.since),
      seenAt: instant(worker.endedAt ?? worker.seenAt),
      /** `silent`: no sign of life. `left`: it was stopped, or has given the mirror away. */
      is: worker.endedAt === undefined ? life : ('left' as const),
    },
  };
}

/** Returns the document of an outage. `seenAt`: when the part failed for the last time. */
export function tellOutage({ since, seenAt, endedAt, isAway: _, ...is }: Outage) {
  const ended = endedAt === undefined ? null : instant(endedAt);
  return { ...is, since: instant(since), seenAt: instant(seenAt), endedAt: ended };
}

const byItself = 'nothing, if it ends soon: the next run goes on from there; else ';

/** The attention code of each part, what is said of it, and what to do. */
const outageWords: Readonly<
  Record<OutagePart, { code: Attention['code']; text: string; fix: string }>
> = {
  disk: {
    code: 'disk_full',
    text: 'the disk of the snapshot is full, so nothing can be recorded and no run begins',
    fix: 'free some space there',
  },
  redis: {
    code: 'redis_away',
    text: 'Redis is away: no run of the schedule starts, and no event is accepted',
    fix: 'start Redis again, or correct `redis` in the configuration; the worker then goes on by itself',
  },
  key: {
    code: 'key_refused',
    text: 'the platform refuses the API key, so nothing is sent, no opt-out either',
    fix: 'write a valid key where platform.apiKey is read from; the next run reads it',
  },
  platform: {
    code: 'platform_away',
    text: 'the platform does not answer, so nothing is sent, no opt-out either',
    fix: `${byItself}see whether platform.url is right and can be reached from this machine`,
  },
  contacts: {
    code: 'source_away',
    text: 'the contacts of the CRM cannot be read, so no new opt-out is known',
    fix: `${byItself}see \`crm-mirror check\``,
  },
  templates: {
    code: 'templates_away',
    text: 'the templates of the CRM cannot be read',
    fix: `${byItself}see \`crm-mirror check\``,
  },
  schedule: {
    code: 'stale',
    text: 'runs are overdue, and the worker has not been given them',
    fix:
      'see the log of the worker; if it says nothing, delete the keys crm-mirror:runs-NAME:* and ' +
      'crm-mirror:sentinel-NAME:* of this mirror in Redis: its worker stores the schedule again',
  },
  clock: { code: 'clock_differs', text: 'the clocks differ', fix: clockFix },
};

/** Returns the lines for the outages that go on. `at` is the time of the status. */
export function outageLines(outages: readonly ToldOutage[], at: string): Attention[] {
  return outages
    .filter(({ endedAt }) => endedAt === null)
    .map(({ part, since, reason, fix }) => {
      const { code, text, fix: usual } = outageWords[part];
      return {
        code,
        text: `${text}, since ${since} (${ago(since, at)}): ${reason}`,
        fix: fix === '' ? usual : fix,
        since,
      };
    });
}

/** Returns whether runs failed because of an outage, even one that is over, at this time. */
export function isExplained(outages: readonly ToldOutage[], failedAt: string): boolean {
  const at = Date.parse(failedAt);
  return outages.some(({ part, since, endedAt }) => {
    if (part === 'schedule') return false;
    const end = endedAt === null ? Number.POSITIVE_INFINITY : Date.parse(endedAt) + slackMs;
    return at >= Date.parse(since) - slackMs && at <= end;
  });
}

/** A run ends some time after what made it fail. */
const slackMs = 60_000;

/** Returns the line about Redis; `why` says that it is away. */
export function redisAway(why: string, since: string | null): Attention {
  const text = `${why}: no run of the schedule starts, and no event is accepted`;
  return { since, code: 'redis_away', text, fix: outageWords.redis.fix };
}

/** Returns the line about a Redis that drops keys when its memory is full. */
export function redisEvicts(policy: string): Attention {
  return {
    since: null,
    code: 'redis_evicts',
    text:
      `Redis throws away what waits in it when its memory is full (maxmemory-policy ${policy}): ` +
      'runs of the schedule and events can be lost',
    fix: 'set maxmemory-policy noeviction, or give the worker a Redis of its own',
  };
}

/** Undefined if the error is a bug, or another process has the snapshot locked now. */
export function unreadable(error: unknown): Attention | undefined {
  const { problem, code, text } = explain(error);
  const isBug = !isExpected(error) && text.includes('this is a bug');
  if (isBug || code === exitCode('busy')) return undefined;
  const { reason, fix = 'look at the file, its disk and its permissions' } = problem;
  const what = `the snapshot cannot be read, so nothing is known of this mirror: ${reason}`;
  return { code: 'snapshot_unreadable', text: what, fix, since: null };
}

export interface Due {
  run: Tick;
  at: string;
}

/** The next runs, soonest first, as Redis has them. */
export interface NextRuns {
  due: readonly Due[];
  /** Why they are not known; undefined if they are. */
  unknown: string | undefined;
}

/** Returns the next runs; none if no worker serves the mirror, because nobody begins them. */
export async function readNextRuns(
  { due }: { due: QueueView['due'] },
  { worker }: ToldHealth,
): Promise<NextRuns> {
  if (worker?.is !== 'alive') return { due: [], unknown: undefined };
  try {
    const found = await due();
    const next = found.map(({ tick, at }) => ({ run: tick, at: instant(at) }));
    return { due: next, unknown: undefined };
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { due: [], unknown: error.message };
  }
}

/** Returns the next runs, and what is wrong with the Redis of the configuration. */
export async function askRedis(
  { redis: url, mirror }: Config,
  served: ToldHealth,
): Promise<NextRuns & { faults: Attention[] }> {
  if (url === undefined) return { due: [], unknown: undefined, faults: [] };
  // Loading the module takes as long as everything else together.
  const { viewQueues } = await import('../../compose/queues/queue-view.ts');
  const view = viewQueues(mirror, { url });
  try {
    const next = await readNextRuns(view, served);
    const evicted = await view.evictsBy().catch(() => undefined);
    return { ...next, faults: evicted === undefined ? [] : [redisEvicts(evicted)] };
  } finally {
    view.close();
  }
}
