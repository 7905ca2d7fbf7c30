/**
 * Hosts one mirror in a worker: what is done in it, and when it is claimed, kept, given away and
 * claimed again. open-mirror.ts opens it. A failure at startup ends the worker. A later failure
 * ends a run and is printed.
 *
 *   another process has the lease     stands by: printed once, claimed soon after release
 *   another worker has the mirror     the same; a mirror that is lost to another is closed
 *   paused                            printed once, and nothing runs
 *   the input cannot be used          printed with every run
 *   a run failed                      the summary states the reason; the mirror is reopened
 *                                     with the current configuration, and the run is repeated
 *                                     after 1, 2, 5 and then every 15 minutes (mirror-schedule.ts)
 *   no full run has ended yet         the run that is due first is a full one, and an event
 *                                     has it made at once
 *   the file of the API key changed   the mirror is reopened with it before the next run
 *   a bug, or a damaged file          printed; everything is closed, and the next tick reopens it
 *
 * Runs about all people are sequential. Events, commands about one person, and the sentinel run in
 * parallel with them. In a worker of a folder, scheduled runs of all mirrors share a few slots
 * (worker-capacity.ts), for which nothing else waits.
 *
 * Redis vouches for no erasure on its way: the server that took the event of the CRM seals the id
 * of the record, and the worker acts on nothing else.
 */
import { readFileSync } from 'node:fs';
import pLimit, { type LimitFunction } from 'p-limit';
import { Busy, Interrupted, isExpected, Invalid } from '../domain/errors.ts';
import type { Config } from '../config/config.ts';
import { retrySchedules } from '../domain/retry-schedules.ts';
import { systemClock } from '../http/system-clock.ts';
import { isUnloaded } from '../engine/context/run-context.ts';
import { watch } from '../engine/watch/unsubscribe-watch.ts';
import type { Heard, Worked } from '../compose/queues/event-queue.ts';
import type { Tick } from '../config/schema/cron-pattern.ts';
import type { Assembled } from '../compose/process-shell.ts';
import { explain, isDiskFull } from '../compose/output/failure-report.ts';
import { copiedAt } from '../store/database/meta-table.ts';
import { alertsIn } from '../views/status/run-history.ts';
import { followRun } from '../compose/run-progress.ts';
import { createLog, type Log } from '../app/run/run-log.ts';
import { runNow } from '../app/run/run-command.ts';
import {
  createOpenMirror,
  type HostOptions,
  isPassing,
  type Opened,
  type OpenMirror,
} from './open-mirror.ts';
import { createNotifier, type Notifier } from './notifications/notifier.ts';
import type { DueWork, RunSlots } from './worker-capacity.ts';
import { createRunRetries, type RunRetries } from './mirror-schedule.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { eraseTold } from '../engine/erasure/privacy-deletions.ts';
import { type Order, type Seal, sealIn } from '../compose/queues/payload-encryption.ts';

type RunTick = Exclude<Tick, 'sentinel'>;

/** What has become of a tick; `elsewhere`: it is offered again, here or to another process. */
type Ran = 'over' | 'elsewhere';

export type MirrorHost = ReturnType<typeof createMirrorHost>;

/** The parts of a mirror's host. */
interface Host extends HostOptions {
  mirror: OpenMirror;
  log: Log;
  /** Runs about all people, and what else must run alone, one after the other. */
  alone: LimitFunction;
  notifier: Notifier | undefined;
  retries: RunRetries;
}

/** Creates the host of a mirror. Nothing is opened yet. */
export function createMirrorHost(options: HostOptions) {
  const { config, shell, clock, capacity } = options;
  const mirror = createOpenMirror(options);
  const retries = createRunRetries(clock, async (tick) => {
    // The worker that has the mirror now makes its own runs.
    if (mirror.owner() === 'another') return 'over';
    return run(tick, clock.now());
  });
  const log = createLog(shell, config.mirror);
  const { noticed } = log;
  const reporting = { noticed, reporter: mirror.owner, random: Math.random };
  const notifier = createNotifier(config, { ...options, ...reporting });
  const host: Host = { ...options, mirror, log, alone: pLimit(1), notifier, retries };
  const { alone } = host;
  notifier?.watch();
  const resting = new AbortController();
  const run = async (tick: Tick, dueMs: number): Promise<Ran> => {
    const place = { dueMs, stop: AbortSignal.any([mirror.shell().stop, resting.signal]) };
    if (tick === 'sentinel') return inSlot(capacity?.checks, place, () => look(host));
    return alone(() => inSlot(capacity?.runs, place, () => runTick(host, tick)));
  };
  return {
    /** Waits until this worker has locked the mirror, or is to stop. Throws as `assemble` does. */
    async claim(): Promise<void> {
      await claim(host);
      // If the last run failed, the process that was to repeat it has ended.
      const { runs } = mirror.opened()?.mirror.snapshot ?? {};
      for (const mode of ['full', 'fast'] as const) {
        if (mirror.config().schedule?.patterns[mode] === undefined) continue;
        if (runs?.newest(1, { mode })[0]?.status === 'failed') retries.failed(mode);
      }
    },
    /** Resolves when the mirror is lost to another worker, or the worker is asked to stop. */
    stay: async (): Promise<void> => stay(host),
    /** Runs what was due at `dueMs`. Never throws; `elsewhere`: it cannot run here now. */
    run,
    /**
     * Updates the person with this id in the source. If the CRM has erased the record, as the
     * signature of the server that took the event proves, forgets every person who had the id.
     * Never throws.
     */
    async record(id: string, heard: Heard, signature: string): Promise<Worked> {
      const place = { dueMs: clock.now(), stop: mirror.shell().stop };
      return inSlot(capacity?.events, place, () => workOn(host, { id, heard, signature }));
    },
    /** Does work beside other work, or alone, until the mirror is lost. Throws Busy. */
    async hold<T>(
      how: 'beside' | 'alone',
      work: (held: Assembled, stop: AbortSignal) => Promise<T>,
    ): Promise<T> {
      const held = async (opened: Assembled): Promise<T> => work(opened, mirror.shell().stop);
      if (how === 'beside') return mirror.use(async ({ lanes }) => lanes.sibling(held));
      return alone(() => mirror.use((opened) => held({ ...opened, close: async () => undefined })));
    },
    /** Begins no more runs. Those that wait for a slot end as `elsewhere`. */
    rest(): void {
      resting.abort();
      retries.close();
    },
    /** Returns whether this worker has locked the mirror, so that no other one has it. */
    isHere: mirror.isLocked,
    /** Returns whether this worker has the mirror, or had it last and opens it again. */
    isOurs: (): boolean => mirror.owner() === 'this',
    /** Opens everything anew with the current configuration once nothing runs. */
    reopen: async (): Promise<void> => alone(mirror.reopen),
    limits: mirror.limits,
    async close(): Promise<void> {
      retries.close();
      await notifier?.close();
      await mirror.close();
    },
  };
}

async function inSlot<T>(
  slots: RunSlots | undefined,
  place: DueWork,
  work: () => Promise<T>,
): Promise<T | 'elsewhere'> {
  return slots ? ((await slots.run(place, work)) ?? 'elsewhere') : work();
}

async function runTick(host: Host, tick: RunTick): Promise<Ran> {
  const { mirror, log, outages, retries } = host;
  if (host.shell.stop.aborted) return 'elsewhere';
  if (hasNewKey(mirror.config())) await mirror.reopen();
  const ran = await mirror.attempt(
    async ({ mirror: opened }): Promise<Ran> => {
      const config = mirror.config();
      const isFirst = tick !== 'full' && isUnloaded(opened);
      const options = isFirst ? { ...optionsOf('full'), because: [] } : optionsOf(tick);
      const { mode, writes } = options;
      const about = { config, mode, writes, isForAll: true, outlets: { say: log.going } };
      const { progress, foresees, ...followed } = followRun(mirror.shell(), opened, about);
      const summary = await runNow(opened, followed.shell, {
        ...options,
        progress,
        foresees,
      }).finally(followed.close);
      const { status } = summary;
      log.ended(summary, 'run');
      for (const alert of alertsIn(opened.snapshot, config)) {
        if (alert.run === summary.run) log.alerted(alert);
      }
      host.ended(summary);
      mirror.complaints.reset();
      outages.works('disk');
      if (status === 'failed') await mirror.reopen();
      else if (summary.mode === 'full' && summary.only === null) mirror.dropNotes();
      if (status === 'failed') retries.failed(tick);
      else if (status !== 'interrupted') retries.wentWell(tick);
      return 'over';
    },
    async (error): Promise<Ran> => {
      if (isDiskFull(error)) outages.failed('disk', explain(error).problem, 'surely');
      if (!(error instanceof Busy || error instanceof Interrupted)) retries.failed(tick);
      if (!isExpected(error)) await mirror.close(error);
      else if (!(error instanceof Busy)) await mirror.reopen();
      return 'over';
    },
  );
  if (ran === 'over') host.notifier?.ran();
  return ran;
}

function hasNewKey({ platform: { apiKeyFile, apiKey } }: Config): boolean {
  if (apiKeyFile === undefined) return false;
  try {
    return !['', apiKey].includes(readFileSync(apiKeyFile, 'utf8').trim());
  } catch {
    // It cannot be read, or is being written.
    return false;
  }
}

/** Runs the sentinel. If it fails, reopens everything, unless a run is in progress. */
async function look({ mirror, log, alone }: Host): Promise<Ran> {
  return mirror.attempt(
    async ({ mirror: opened, lanes }): Promise<Ran> => {
      const { stop, abort } = mirror.shell();
      const restored = copiedAt(opened.snapshot.meta) !== undefined;
      log.saw(await lanes.run((own) => watch(own, { stop, abort, restored })));
      mirror.complaints.reset();
      return 'over';
    },
    async (error): Promise<Ran> => {
      const isOver = error instanceof Interrupted || error instanceof Busy;
      if (!isOver && alone.activeCount === 0) await alone(mirror.reopen);
      return 'over';
    },
  );
}

function optionsOf(tick: RunTick) {
  return {
    writes: true,
    by: { by: 'schedule' },
    mode: tick === 'fast' ? 'fast' : 'full',
    because: ['schedule'],
    only: tick === 'templates' ? 'templates' : undefined,
  } as const;
}

async function claim({ shell, mirror, turns, config, capacity }: Host): Promise<void> {
  const claimed = async (): Promise<void> => mirror.use(async () => undefined);
  while (!shell.stop.aborted) {
    if (turns) {
      if (turns.isOthers(config.mirror)) mirror.standBy();
      await turns.turn(config.mirror, shell.stop);
      if (shell.stop.aborted) return;
    }
    try {
      await (capacity ? capacity.claims(claimed) : claimed());
      return;
    } catch (error) {
      if (!isPassing(error)) throw error;
      mirror.complaints.print(error);
      await systemClock.sleep(retrySchedules.lease.firstMs, shell.stop).catch(() => undefined);
    }
  }
}

/** Checks the lock when it is in doubt, until the mirror is lost, and closed, or `stop`. */
async function stay({ shell, lock, mirror, alone, node }: Host): Promise<void> {
  const reason = 'another worker has become the home of this mirror';
  const lost = new Busy(reason, { fix: 'this one leaves it' });
  while (!shell.stop.aborted) {
    const doubts = node.doubts();
    const keeping = mirror.isLocked() ? lock.keep() : Promise.resolve(true);
    const failure = await keeping.then(
      (isKept) => (isKept ? undefined : lost),
      (error: unknown) => error,
    );
    if (failure !== undefined && !shell.stop.aborted) return mirror.lose(failure, alone);
    await node.doubted(doubts, shell.stop);
  }
}

interface RecordEvent {
  id: string;
  heard: Heard;
  signature: string;
}

/** Does what an event about a record asks for. Never throws. */
async function workOn(host: Host, event: RecordEvent): Promise<Worked> {
  const { mirror, retries } = host;
  if (mirror.isComing()) return 'elsewhere';
  return mirror.attempt(
    async (opened): Promise<Worked> => {
      // If no full run has ended yet, the first run of the schedule is made at once: it is a full
      // one, and loads everybody at a time, while events would load one person after the other.
      const { full, fast } = mirror.config().schedule?.patterns ?? {};
      const isScheduled = full !== undefined || fast !== undefined;
      if (isScheduled && isUnloaded(opened.mirror)) retries.begin('fast');
      return event.heard === 'erased' ? erase(host, event, opened) : record(host, event.id, opened);
    },
    () => 'again',
  );
}

async function record(host: Host, id: string, { lanes }: Opened): Promise<Worked> {
  const by = { by: 'event' } as const;
  const progress = () => undefined;
  const options = { writes: true, progress, by, mode: { record: id }, only: 'contacts' } as const;
  const inner = host.mirror.shell();
  const summary = await lanes.run((mirror) => runNow(mirror, inner, options));
  const { status, contacts, reasonCodes } = summary;
  // A run for one event that changed nothing is not logged.
  if (status !== 'done' || Object.values(contacts.applied).some((n) => n > 0)) {
    host.log.ended(summary, 'event');
    host.ended(summary);
  }
  if (status === 'interrupted') return 'again';
  // An opt-in that waits for the end of the quarantine is left to the next run about all people.
  const isOver = status !== 'failed' || reasonCodes.every((code) => code === 'quarantined');
  return isOver ? 'done' : 'again';
}

/** The remainder of the event is handled as a change, and so is an event that is not signed. */
async function erase(host: Host, event: RecordEvent, opened: Opened): Promise<Worked> {
  const { id } = event;
  const { stop: signal, abort } = host.mirror.shell();
  const config = host.mirror.config();
  const seal = sealIn(config);
  if (!seal) throw new Invalid(`${config.memory.keyFile}: the key of the memory is gone`);
  const { rest, people } = await opened.lanes.sibling(async ({ mirror }) => {
    const { snapshot, clock } = mirror;
    const order = openErasure(seal, event, { snapshot, now: clock.now() });
    if (!order) return { rest: 'event', people: [] };
    const erased = await eraseTold(mirror, id, { signal, abort });
    if (erased.rest !== 'again') {
      const { number, expiresAt } = order;
      snapshot.transaction(() => snapshot.usedNumbers.use(number, expiresAt, clock.now()));
    }
    return erased;
  });
  for (const one of people) {
    host.log.erased(one);
    if (one.is === 'failed') host.mirror.complaints.print(one.told.failure);
    if (one.is === 'held') host.notifier?.ran();
  }
  if (rest === 'event') return record(host, id, opened);
  return rest === 'again' ? 'again' : 'done';
}

/** Returns the signature of the server that took an erasure from the CRM. */
export function sealErasure(seal: Seal, id: string, now: number): string {
  return seal.closeOrder(textOf(id), 'event', now).sealed;
}

/** Returns the order, unless no server of this mirror signed it, it expired, or was carried out. */
export function openErasure(
  seal: Seal,
  { id, signature }: { id: string; signature: string },
  { snapshot, now }: { snapshot: Snapshot; now: number },
): Order | undefined {
  try {
    const order = seal.openOrder(signature, 'event', now);
    if (order.text === textOf(id) && !snapshot.usedNumbers.has(order.number)) return order;
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
  }
  return undefined;
}

function textOf(id: string): string {
  return JSON.stringify({ erased: id });
}
