/**
 * Serves one mirror of a worker: its schedule, its events, the commands passed to it, and its
 * status.
 */
import { lanesAtOnce, type MirrorSettings, createMirrorLock } from './open-mirror.ts';
import { sealErasure, createMirrorHost } from './mirror-host.ts';
import { randomBytes } from 'node:crypto';
import type { Clock } from '../domain/clock.ts';
import { Interrupted, Invalid, isExpected, Unavailable } from '../domain/errors.ts';
import { systemClock } from '../http/system-clock.ts';
import { recordOutages } from '../store/health-file.ts';
import { openLockStore } from '../compose/queues/lock-store.ts';
import { serveCommands } from '../compose/queues/command-queue.ts';
import { openEventQueue, deliveryLogOf } from '../compose/queues/event-queue.ts';
import { viewQueues, openRunQueue } from '../compose/queues/run-queue.ts';
import { dueIn, tickWords } from '../config/schema/cron-pattern.ts';
import type { Connections } from '../compose/queues/shared-connections.ts';
import { sealIn } from '../compose/queues/payload-encryption.ts';
import type { Shell } from '../compose/process-shell.ts';
import { instant } from '../compose/output/format-values.ts';
import {
  type Attention,
  attentionOf,
  outageLines,
  unreadable,
  worstFirst,
} from '../views/status/attention.ts';
import { readCurrentStatus, tellOutage } from '../views/status/status-document.ts';
import type { Webhook } from './server/webhooks.ts';
import type { Workable } from './mirror-folder.ts';
import { follow, keepSchedule, unfollow, watchOverdue } from './mirror-schedule.ts';
import { doHanded } from './remote-commands.ts';
import { createProbe, type Probe, pulse } from './mirror-pulse.ts';

/** After this time without Redis, people are told of it. */
const awayMs = 20_000;

/** The settings of `serve` in addition to the configuration. */
export interface ServeOptions extends MirrorSettings {
  /** Whether to take the mirror even if this is not the newest snapshot. */
  acceptLost: boolean;
  connections: Connections;
  probe?: Probe | undefined;
  /** The clock by which problems are looked for; by default that of this machine. */
  clock?: Clock;
}

export type Served = ReturnType<typeof serve>;

/** Prints errors, and rejects `failed` if one cannot be fixed while running. */
export function serve(config: Workable, outer: Shell, options: ServeOptions) {
  const { mirror, contacts, schedule } = config;
  const { acceptLost, turns, connections, clock = systemClock } = options;
  const { node } = connections;
  const place = { mirror, clock: systemClock, connections };
  const quick = connections.quick();
  const over = new AbortController();
  const failed = Promise.withResolvers<never>();
  const outages = recordOutages(config.snapshot, clock.now);
  const shell = { ...outer, stop: AbortSignal.any([outer.stop, over.signal]), outages };
  const queue = openRunQueue(place);
  const redis = keepSchedule(queue, config, shell, { connections, clock });
  const failing = () =>
    host.isOurs() ? outageLines(outages.outages().map(tellOutage), instant(systemClock.now())) : [];
  const faults = (): Attention[] => worstFirst([...redis.faults(0), ...failing()]);
  const own = openLockStore(quick, mirror, node.name);
  const lock = createMirrorLock(own, {
    mirror,
    path: config.snapshot,
    acceptLost,
    clock: systemClock,
    random: randomBytes,
  });
  const host = createMirrorHost({
    ...options,
    config,
    shell,
    lock,
    clock,
    node,
    outages,
    faults: () => [...redis.faults(awayMs), ...failing()],
  });
  const hook = contacts?.webhook;
  const sign = (id: string): string => {
    const seal = sealIn(config, randomBytes);
    if (seal) return sealErasure(seal, id, systemClock.now());
    const reason = 'without the key of the memory, no erasure is accepted';
    throw new Unavailable(`${config.memory.keyFile}: ${reason}`, { acted: 'no' });
  };
  const events = hook && openEventQueue(place, sign);
  const unlisten = connections.listen(() => {
    redis.changed();
    // Redis may have lost its data while it was away.
    const isBack = connections.away() === undefined;
    if (isBack && (!turns || host.isHere())) follow(queue, config).catch(failed.reject);
  });
  const isHalted = (): boolean => {
    try {
      const { paused, running } = readCurrentStatus(config);
      return paused !== null || running !== null;
    } catch {
      // The snapshot cannot be read, so no run is made.
      return false;
    }
  };
  const overdue = watchOverdue(schedule, outages, clock.now, isHalted);
  let handed: { close(): Promise<void> } | undefined;
  let isLeaving = false;
  const isEnding = (): boolean => shell.stop.aborted || isLeaving;

  const rest = async (): Promise<void> => {
    await queue.rest();
    await handed?.close();
    await events?.rest();
  };
  /** Waits until this worker has locked the mirror, then takes its jobs until it has it no more. */
  const begin = async (): Promise<void> => {
    // Of several workers, only the one that has the mirror writes the schedule.
    if (!turns) await follow(queue, config);
    await node.begun;
    const isOurs = (): boolean => !isLeaving && host.isHere();
    let kept: Promise<void> | undefined;
    const due = dueIn(schedule).map(({ tick }) => tickWords(tick));
    if (events) due.push('events');
    for (;;) {
      await host.claim();
      if (isEnding()) return;
      // The worker that had the mirror before may have removed the schedule as it left.
      await follow(queue, config);
      // What is served after `close` is never closed, and keeps the process alive.
      if (isEnding()) return;
      shell.note(`crm-mirror: ${mirror}: worker serves ${due.join(', ')}`);
      queue.serve(overdue.watched(host.run));
      events?.serve(host.record, { concurrency: lanesAtOnce, failed: failed.reject });
      handed = serveCommands(place, async (taken) => {
        const seal = sealIn(config, randomBytes);
        if (!seal) throw new Invalid(`${config.memory.keyFile}: the key of the memory is gone`);
        return doHanded({ config, shell, host, seal, now: systemClock.now }, taken);
      });
      kept ??= redis.keep(isOurs, overdue.isLate);
      await host.stay();
      if (isEnding()) return;
      await rest();
    }
  };
  const close = async (reopens = false): Promise<void> => {
    isLeaving = true;
    host.rest();
    unlisten();
    failed.promise.catch(() => undefined);
    await Promise.all([queue.close(), handed?.close(), events?.close()]);
    // Who hears that it is left can open the snapshot.
    await host.close();
    outages.leave(reopens);
    await own.leave().catch(() => undefined);
    quick.close();
    view.close();
  };

  const { probe = createProbe(systemClock) } = options;
  const looks = { isHere: host.isOurs, away: redis.away, lookForOverdue: overdue.look };
  void pulse({ config, outages, clock, probe, ...looks }, shell.stop);
  const view = viewQueues(mirror, { quick: connections.quick() });
  // The key is there since the first run.
  const seal = () => sealIn(config, randomBytes);
  const deliveries = deliveryLogOf(quick.redis, { mirror, clock: systemClock, seal });
  const webhook: Webhook | undefined = hook && events && { ...hook, events, deliveries };
  begin().catch(failed.reject);
  return {
    config,
    mirror,
    /** Rejects if the mirror can never be served. */
    failed: failed.promise,
    webhook,
    queues: view.queues,
    isHere: host.isHere,
    isTold: (): boolean => turns === undefined || host.isHere(),
    away: redis.away,
    faults,
    standing: async () => {
      try {
        const status = readCurrentStatus(config);
        return { ...status, attention: attentionOf(status, faults()) };
      } catch (error) {
        const fault = isExpected(error) ? undefined : unreadable(error);
        throw fault ? new Invalid(fault.text, { fix: fault.fix, cause: error }) : error;
      }
    },
    limits: host.limits,
    depths: view.depths,
    due: view.due,
    lagMs: async () => events?.lagMs(),
    /**
     * Ends the service when what is in progress has ended; with its schedule if `isGone` then, and
     * not for long if it `reopens`.
     */
    async leave(isGone: () => boolean, reopens: () => boolean): Promise<void> {
      isLeaving = true;
      host.rest();
      await rest();
      if (isGone() && host.isHere()) await unfollow(queue, config, outer);
      over.abort(new Interrupted('SIGTERM'));
      await close(reopens());
    },
    /** Ends the service. Waits for work in progress, which the worker's `stop` interrupts. */
    close: async () => close(),
  };
}
