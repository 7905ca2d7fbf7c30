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
import pLimit from 'p-limit';
import { Busy, Interrupted, isExpected, Invalid } from '../domain/errors.ts';
import type { RouteLimit } from '../domain/route-limit.ts';
import { retrySchedules } from '../domain/retry-schedules.ts';
import { systemClock } from '../http/system-clock.ts';
import { isUnloaded } from '../engine/context/run-context.ts';
import { watch } from '../engine/watch/unsubscribe-watch.ts';
import type { Heard, Worked } from '../compose/queues/event-queue.ts';
import type { Tick } from '../config/schema/cron-pattern.ts';
import type { Assembled } from '../compose/process-shell.ts';
import { explain, isDiskFull } from '../compose/output/failure-report.ts';
import { refusePaused } from '../compose/mirror-files.ts';
import { copiedAt } from '../store/database/meta-table.ts';
import { alertsIn } from '../views/status/run-history.ts';
import { followRun } from '../compose/run-progress.ts';
import { createLog } from '../app/run/run-log.ts';
import { runNow } from '../app/run/run-command.ts';
import {
  close,
  comeAgain,
  complaintsOf,
  type HomeOptions,
  isLocked,
  isPassing,
  shellOf,
  type State,
  use,
  type Opened,
} from './open-mirror.ts';
import { createNotifier } from './notifications/notifier.ts';
import type { DueWork, RunSlots } from './worker-capacity.ts';
import { createRunRetries } from './mirror-schedule.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { eraseTold } from '../engine/erasure/privacy-deletions.ts';
import { type Order, type Seal, sealIn } from '../compose/queues/payload-encryption.ts';

type RunTick = Exclude<Tick, 'sentinel'>;

/** What has become of a tick; `elsewhere`: it is offered again, here or to another process. */
type Ran = 'over' | 'elsewhere';

export type Home = ReturnType<typeof createMirrorHost>;

/** Creates the host of a mirror. Nothing is opened yet. */
export function createMirrorHost(options: HomeOptions) {
  const { config, shell, clock, capacity, faults, outages, causes } = options;
  const retries = createRunRetries(clock, async (tick) => {
    // The worker that has the mirror now makes its own runs.
    if (state.owner === 'another') return 'over';
    return run(tick, clock.now());
  });
  const log = createLog(shell, config.mirror);
  const reporter = () => state.owner;
  const told = { shell, noticed: log.noticed, clock, faults, outages, causes, reporter };
  const state: State = {
    ...options,
    retries,
    opened: undefined,
    coming: undefined,
    closing: undefined,
    users: 0,
    woken: () => undefined,
    known: { limits: {}, notes: [] },
    left: new AbortController(),
    complain: complaintsOf(config.mirror, shell),
    log,
    alone: pLimit(1),
    owner: 'unknown',
    notifier: createNotifier(config, { ...told, random: Math.random }),
  };
  state.notifier?.watch();
  const resting = new AbortController();
  const run = async (tick: Tick, dueMs: number): Promise<Ran> => {
    const stop = AbortSignal.any([shell.stop, state.left.signal, resting.signal]);
    const place = { dueMs, stop };
    if (tick === 'sentinel') return inSlot(capacity?.checks, place, () => look(state));
    return state.alone(() => inSlot(capacity?.runs, place, () => runTick(state, tick)));
  };
  return {
    /** Waits until this worker has locked the mirror, or is to stop. Throws as `assemble` does. */
    async taken(): Promise<void> {
      await taken(state);
      // If the last run failed, the process that was to repeat it has ended.
      const { runs } = state.opened?.mirror.snapshot ?? {};
      for (const mode of ['full', 'fast'] as const) {
        if (state.config.schedule?.patterns[mode] === undefined) continue;
        if (runs?.newest(1, { mode })[0]?.status === 'failed') retries.failed(mode);
      }
    },
    /** Resolves when the mirror is lost to another worker, or the worker is asked to stop. */
    stay: async (): Promise<void> => stay(state),
    /** Runs what was due at `dueMs`. Never throws; `elsewhere`: it cannot run here now. */
    run,
    /**
     * Updates the person with this id in the source. If the CRM has erased the record, as the
     * signature of the server that took the event proves, forgets every person who had the id.
     * Never throws.
     */
    async record(id: string, heard: Heard, signature: string): Promise<Worked> {
      const stop = AbortSignal.any([shell.stop, state.left.signal]);
      const place = { dueMs: clock.now(), stop };
      return inSlot(capacity?.events, place, () => workOn(state, { id, heard, signature }));
    },
    /** Does work beside other work, or alone, until the mirror is lost. Throws Busy. */
    async hold<T>(
      how: 'beside' | 'alone',
      work: (held: Assembled, stop: AbortSignal) => Promise<T>,
    ): Promise<T> {
      const held = async (opened: Assembled): Promise<T> => work(opened, shellOf(state).stop);
      if (how === 'beside') return use(state, async ({ lanes }) => lanes.sibling(held));
      return state.alone(() =>
        use(state, (opened) => held({ ...opened, close: async () => undefined })),
      );
    },
    /** Begins no more runs. Those that wait for a slot end as `elsewhere`. */
    rest(): void {
      resting.abort();
      retries.close();
    },
    /** Returns whether this worker has locked the mirror, so that no other one has it. */
    isHere: (): boolean => isLocked(state),
    /** Returns whether this worker has the mirror, or had it last and opens it again. */
    isOurs: (): boolean => state.owner === 'this',
    /** Opens everything anew with the current configuration once nothing runs. */
    again: async (): Promise<void> => state.alone(() => comeAgain(state)),
    limits: (): Record<string, RouteLimit> => state.opened?.mirror.limits() ?? state.known.limits,
    async close(): Promise<void> {
      retries.close();
      await state.notifier?.close();
      await close(state);
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

async function runTick(state: State, tick: RunTick): Promise<Ran> {
  if (state.shell.stop.aborted) return 'elsewhere';
  let isOpen = false;
  try {
    await takeNewKey(state);
    const status = await use(state, async (opened) => {
      isOpen = true;
      const { mirror } = opened;
      refusePaused(mirror.snapshot.meta, state.config);
      const { config } = state;
      const isFirst = tick !== 'full' && isUnloaded(mirror);
      const options = isFirst ? { ...optionsOf('full'), because: [] } : optionsOf(tick);
      const { mode, writes } = options;
      const outlets = { say: state.log.going };
      const about = { config, mode, writes, isForAll: true, outlets };
      const followed = followRun(shellOf(state), mirror, about);
      const { progress, foresees } = followed;
      const summary = await runNow(mirror, followed.shell, {
        ...options,
        progress,
        foresees,
      }).finally(followed.close);
      state.log.ended(summary, 'run');
      for (const alert of alertsIn(mirror.snapshot, config)) {
        if (alert.run === summary.run) state.log.alerted(alert);
      }
      state.ended(summary);
      state.complain.no();
      state.outages.works('disk');
      if (summary.status === 'failed') await comeAgain(state);
      // The notes about the opening remain valid until a run has read everything.
      else if (state.opened && summary.mode === 'full' && summary.only === null) {
        state.opened = { ...state.opened, mirror: { ...mirror, notes: [] } };
      }
      return summary.status;
    });
    if (status === 'failed') state.retries.failed(tick);
    else if (status !== 'interrupted') state.retries.wentWell(tick);
  } catch (error) {
    state.complain.of(error);
    if (isDiskFull(error)) state.outages.failed('disk', explain(error).problem, 'surely');
    if (!isOpen && isPassing(error)) return 'elsewhere';
    if (!(error instanceof Busy || error instanceof Interrupted)) state.retries.failed(tick);
    if (!isExpected(error)) await close(state, error);
    else if (!(error instanceof Busy)) await comeAgain(state);
  }
  state.notifier?.ran();
  return 'over';
}

async function takeNewKey(state: State): Promise<void> {
  const { apiKeyFile, apiKey } = state.config.platform;
  if (apiKeyFile === undefined) return;
  let found = '';
  try {
    found = readFileSync(apiKeyFile, 'utf8').trim();
  } catch {
    // It cannot be read, or is being written.
  }
  if (found !== '' && found !== apiKey) await comeAgain(state);
}

/** Runs the sentinel. If it fails, reopens everything, unless a run is in progress. */
async function look(state: State): Promise<Ran> {
  const { shell, complain, alone } = state;
  if (shell.stop.aborted) return 'elsewhere';
  let isOpen = false;
  try {
    await use(state, async (opened) => {
      isOpen = true;
      const { meta } = opened.mirror.snapshot;
      refusePaused(meta, state.config);
      const { stop, abort } = shellOf(state);
      const restored = copiedAt(meta) !== undefined;
      state.log.saw(await opened.lanes.run((own) => watch(own, { stop, abort, restored })));
      complain.no();
    });
  } catch (error) {
    if (error instanceof Interrupted) return 'over';
    complain.of(error);
    if (!isOpen && isPassing(error)) return 'elsewhere';
    if (!(error instanceof Busy) && alone.activeCount === 0) await alone(() => comeAgain(state));
  }
  return 'over';
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

async function taken(state: State): Promise<void> {
  const { shell, complain, turns, config, capacity } = state;
  const claimed = async (): Promise<void> => use(state, async () => undefined);
  while (!shell.stop.aborted) {
    if (turns) {
      if (turns.isOthers(config.mirror)) state.owner = 'another';
      await turns.turn(config.mirror, shell.stop);
      if (shell.stop.aborted) return;
    }
    try {
      await (capacity ? capacity.claims(claimed) : claimed());
      return;
    } catch (error) {
      if (!isPassing(error)) throw error;
      complain.of(error);
      await systemClock.sleep(retrySchedules.lease.firstMs, shell.stop).catch(() => undefined);
    }
  }
}

/** Checks the lock when it is in doubt, until the mirror is lost, and closed, or `stop`. */
async function stay(state: State): Promise<void> {
  const { shell, lock, complain, alone, node } = state;
  for (;;) {
    const doubts = node.doubts();
    const failure = isLocked(state) ? await failureOf(lock) : undefined;
    if (failure !== undefined && !shell.stop.aborted) {
      complain.of(failure);
      state.owner = 'another';
      state.left.abort(new Interrupted('SIGTERM'));
      await alone(() => close(state, failure));
      state.left = new AbortController();
      return;
    }
    await node.doubted(doubts, shell.stop);
    if (shell.stop.aborted) return;
  }
}

async function failureOf(lock: State['lock']): Promise<unknown> {
  try {
    if (await lock.keep()) return undefined;
    const another = 'another worker has become the home of this mirror';
    return new Busy(another, { fix: 'this one leaves it' });
  } catch (error) {
    return error;
  }
}

interface Told {
  id: string;
  heard: Heard;
  signature: string;
}

/** Does what an event about a record asks for. Never throws. */
async function workOn(state: State, told: Told): Promise<Worked> {
  const { shell, config, complain } = state;
  if (shell.stop.aborted || (state.coming && !isLocked(state))) return 'elsewhere';
  let isOpen = false;
  try {
    return await use(state, async (opened) => {
      isOpen = true;
      refusePaused(opened.mirror.snapshot.meta, config);
      // If no full run has ended yet, the first run of the schedule is made at once: it is a full
      // one, and loads everybody at a time, while events would load one person after the other.
      const { full, fast } = config.schedule?.patterns ?? {};
      const isScheduled = full !== undefined || fast !== undefined;
      if (isScheduled && isUnloaded(opened.mirror)) state.retries.begin('fast');
      return told.heard === 'erased' ? erase(state, told, opened) : record(state, told.id, opened);
    });
  } catch (error) {
    if (error instanceof Interrupted) return 'again';
    complain.of(error);
    return isOpen || !isPassing(error) ? 'again' : 'elsewhere';
  }
}

async function record(state: State, id: string, { lanes }: Opened): Promise<Worked> {
  const by = { by: 'event' } as const;
  const progress = () => undefined;
  const options = { writes: true, progress, by, mode: { record: id }, only: 'contacts' } as const;
  const inner = shellOf(state);
  const summary = await lanes.run((mirror) => runNow(mirror, inner, options));
  const { status, contacts, reasonCodes } = summary;
  // A run for one event that changed nothing is not logged.
  if (status !== 'done' || Object.values(contacts.applied).some((n) => n > 0)) {
    state.log.ended(summary, 'event');
    state.ended(summary);
  }
  if (status === 'interrupted') return 'again';
  // An opt-in that waits for the end of the quarantine is left to the next run about all people.
  const isOver = status !== 'failed' || reasonCodes.every((code) => code === 'quarantined');
  return isOver ? 'done' : 'again';
}

/** The remainder of the event is handled as a change, and so is an event that is not signed. */
async function erase(state: State, told: Told, opened: Opened): Promise<Worked> {
  const { id } = told;
  const { stop: signal, abort } = shellOf(state);
  const seal = sealIn(state.config);
  if (!seal) throw new Invalid(`${state.config.memory.keyFile}: the key of the memory is gone`);
  const { rest, people } = await opened.lanes.sibling(async ({ mirror }) => {
    const { snapshot, clock } = mirror;
    const order = openErasure(seal, told, { snapshot, now: clock.now() });
    if (!order) return { rest: 'event', people: [] };
    const erased = await eraseTold(mirror, id, { signal, abort });
    if (erased.rest !== 'again') {
      const { number, expiresAt } = order;
      snapshot.transaction(() => snapshot.usedNumbers.use(number, expiresAt, clock.now()));
    }
    return erased;
  });
  for (const one of people) {
    state.log.erased(one);
    if (one.is === 'failed') state.complain.of(one.told.failure);
    if (one.is === 'held') state.notifier?.ran();
  }
  if (rest === 'event') return record(state, id, opened);
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
