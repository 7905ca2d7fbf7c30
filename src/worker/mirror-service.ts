/**
 * Serves one mirror of a worker: its schedule, its events, the commands passed to it, and its
 * status.
 */
import { randomBytes } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Clock } from '../domain/clock.ts';
import { Invalid, isExpected, Unavailable } from '../domain/errors.ts';
import type { Summary } from '../engine/report/run-summary.ts';
import { systemClock } from '../http/system-clock.ts';
import { homeRecord } from './queues/assignment-store.ts';
import { serveCommands } from './queues/command-queue.ts';
import { type EventQueue, openEventQueue } from './queues/event-queue.ts';
import { type QueueView, viewQueues } from './queues/queue-view.ts';
import { type DeliveryLog, deliveryLogOf } from './queues/delivery-log.ts';
import { connectQuickly, type Quick } from './queues/redis-connections.ts';
import { openRunQueue, type RunQueue } from './queues/run-queue.ts';
import { dueIn, tickWords, type Schedule } from './queues/run-schedule.ts';
import { sealOf } from './queues/payload-encryption.ts';
import type { Watched } from '../server/mirror-gauges.ts';
import type { Webhook } from '../server/webhooks.ts';
import { readKey } from '../do-not-contact/list-key.ts';
import { doHanded } from './remote-commands.ts';
import { createMirrorHost, type Home } from './mirror-host.ts';
import { lanesAtOnce } from './person-runs.ts';
import { assignmentIn } from './mirror-assignment.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import type { Attention } from '../cli/status/attention-list.ts';
import { redisAway, unreadable } from '../cli/status/process-faults.ts';
import { readCurrentStatus } from '../cli/status/current-status.ts';

/** A configuration that a worker can serve. */
export interface Workable extends Config {
  readonly redis: string;
  readonly schedule: Schedule;
}

/** A mirror that is being served. */
export interface Served extends Watched {
  /** Rejects if the mirror can never be served. */
  failed: Promise<never>;
  webhook: Webhook | undefined;
  queues: QueueView['queues'];
  /** Returns why Redis cannot be reached for the mirror, or undefined if it can. */
  away(): string | undefined;
  /** Returns what this process notices of Redis that needs attention. */
  faults(): readonly Attention[];
  close(): Promise<void>;
}

/** The settings of `serve` in addition to the configuration. */
export interface ServeOptions {
  /** Whether to take the mirror even if this is not the newest snapshot. */
  acceptLost: boolean;
  /** Called after every run, and after events have been processed. */
  ended(summary: Summary): void;
  /** The clock by which problems are looked for; by default that of this machine. */
  clock?: Clock;
}

/** After this time without Redis, people are told of it. */
const awayMs = 60_000;

/**
 * Starts to serve a mirror. Prints errors, and rejects `failed` if one cannot be fixed while
 * running.
 */
export function serve(config: Workable, shell: Shell, options: ServeOptions): Served {
  const { mirror, redis: url, schedule, contacts } = config;
  const place = { url, mirror, clock: systemClock };
  const failed = Promise.withResolvers<never>();
  const fail = (error: unknown): void => failed.reject(error);
  const quick = connectQuickly(url);
  const own = homeRecord(quick, mirror, randomBytes(8).toString('hex'));
  const { acceptLost, ended, clock = systemClock } = options;
  const assignment = assignmentIn(own, { mirror, acceptLost, clock: systemClock });
  const load = () => loadConfig(config.file, shell.env);
  const hook = contacts?.webhook;
  const events = hook && openEventQueue({ ...place, notice: () => undefined });
  const view = viewQueues(place);
  const redis = watchRedis(mirror, shell, clock);
  const faults = () => redis.faults(awayMs);
  const home = createMirrorHost({ config, shell, assignment, load, ended, clock, faults });
  const queue: RunQueue = openRunQueue({
    ...place,
    notice(lost) {
      redis.say(lost);
      // Redis may have lost its data while it was away.
      if (lost === undefined) follow(queue, config).catch(fail);
    },
  });
  let handed: ReturnType<typeof takeHanded> | undefined;
  const begin = async (): Promise<void> => {
    await follow(queue, config);
    redis.answers();
    await home.taken();
    if (shell.stop.aborted) return;
    shell.note(`crm-mirror: ${mirror}: worker serves ${dueWords(schedule, events)}`);
    queue.serve(home.run);
    events?.serve(home.record, { concurrency: lanesAtOnce, failed: fail });
    handed = takeHanded(config, shell, home);
    await home.stay();
  };
  begin().catch(fail);
  return {
    mirror,
    failed: failed.promise,
    webhook: hook && events && { ...hook, events, deliveries: deliveriesOf(config, quick) },
    queues: view.queues,
    away: redis.away,
    faults: () => redis.faults(0),
    standing: async () => statusOf(config),
    limits: home.limits,
    depths: view.depths,
    lagMs: async () => events?.lagMs(),
    async close() {
      failed.promise.catch(() => undefined);
      await Promise.all([queue.close(), handed?.close(), events?.close()]);
      await own.leave().catch(() => undefined);
      await home.close();
      view.close();
      quick.close();
    },
  };
}

/** Returns the log of deliveries. The key is there since the first run. */
function deliveriesOf({ mirror, ledger }: Workable, { redis }: Quick): DeliveryLog {
  const seal = () => {
    const key = readKey(ledger.keyFile);
    return key === undefined ? undefined : sealOf(key, randomBytes);
  };
  return deliveryLogOf(redis, { mirror, clock: systemClock, seal });
}

/** Returns the status. Throws Invalid if the snapshot cannot be read. */
function statusOf(config: Workable): ReturnType<typeof readCurrentStatus> {
  try {
    return readCurrentStatus(config);
  } catch (error) {
    const fault = isExpected(error) ? undefined : unreadable(error);
    throw fault ? new Invalid(fault.text, { fix: fault.fix, cause: error }) : error;
  }
}

/** Stores this schedule in Redis. Throws Unavailable if Redis refuses it. */
async function follow(queue: RunQueue, { file, schedule }: Workable): Promise<void> {
  try {
    await queue.follow(schedule);
  } catch (error) {
    if (isExpected(error)) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new Unavailable(`${file}: Redis refuses the schedule (${why})`, {
      fix: 'mend its access, then start again',
      acted: 'no',
      cause: error,
    });
  }
}

function dueWords(schedule: Schedule, events: EventQueue | undefined): string {
  const due = dueIn(schedule).map(({ tick }) => tickWords(tick));
  return [...due, ...(events ? ['events'] : [])].join(', ');
}

/** Prints when the connection to Redis is lost, and when it is restored. */
function watchRedis(mirror: string, { note }: Shell, clock: Clock) {
  let why: string | undefined = 'Redis has not answered yet';
  let since = clock.monotonic();
  return {
    away: () => why,
    /** Returns the line about Redis if it has been away for that long. */
    faults: (ms: number): Attention[] =>
      why === undefined || clock.monotonic() - since < ms ? [] : [redisAway(why)],
    answers: () => void (why = undefined),
    say(lost: string | undefined): void {
      if (why === undefined) since = clock.monotonic();
      why = lost === undefined ? undefined : `Redis is away (${lost})`;
      const what =
        why === undefined
          ? 'Redis is there again, the schedule goes on'
          : `${why}; the schedule waits for it`;
      note(`crm-mirror: ${mirror}: ${what}`);
    },
  };
}

/** Executes the commands that callers pass to this worker. */
function takeHanded(
  config: Workable,
  shell: Shell,
  home: Pick<Home, 'hold' | 'again'>,
): { close(): Promise<void> } {
  const { redis: url, mirror, ledger } = config;
  return serveCommands({ url, mirror, clock: systemClock }, async (sealed, tell) => {
    const key = readKey(ledger.keyFile);
    if (key === undefined)
      throw new Invalid(`${ledger.keyFile}: the key of the do-not-contact list is gone`);
    return doHanded({ config, shell, home, seal: sealOf(key, randomBytes) }, sealed, tell);
  });
}
