/**
 * Opens and closes a mirror, and locks it for this worker in Redis (compose/queues/lock-store.ts).
 * A worker with `-c` has it open as long as it has the lock. In a worker of a folder, which has a
 * `capacity`, the lock and the open mirror are two things: open are the snapshot with its lease,
 * the memory, and all connections, of which runs about one person have a few of their own.
 *
 *   the mirror is         what happens                       result
 *   not locked            its turn comes                     opened and locked
 *   locked, open          it has had nothing to do for       closed; the lock stays
 *                         seconds
 *                         a run failed                       closed, the configuration is reread
 *   locked, closed        a run, event, check or command     opened, and locked anew, because the
 *                                                            snapshot may have changed meanwhile:
 *     while it was closed, a command wrote it                its generation becomes the latest
 *     a backup was put back                                  the same
 *     an older or another snapshot was put there             refused; tried again with each job
 *     a command has it open now                              Busy: the lock stays; the job is
 *     Redis does not answer                                  offered again a second later
 *   locked                Redis was emptied                  stored again, as it was last opened
 *                         Redis is away                      nothing: what runs goes on, and no job
 *                                                            comes from Redis
 *                         another worker has locked it       what runs is interrupted; closed; it
 *                                                            waits for its turn
 *   any                   the worker leaves it               closed, and then released in Redis
 *
 * While it is closed, the heartbeat of the process keeps the lock (queues/node-heartbeat.ts).
 * Nobody else claims it, although its lease is free.
 */
import type { SharedCauses } from './notifications/notifier.ts';
import pLimit from 'p-limit';
import type { Clock } from '../domain/clock.ts';
import { Busy, Interrupted, Unavailable, isExpected } from '../domain/errors.ts';
import type { RouteLimit } from '../domain/route-limit.ts';
import type { Config } from '../config/config.ts';
import type { OutageRecord } from '../store/health-file.ts';
import { refusePaused } from '../compose/mirror-files.ts';
import type { Summary } from '../engine/report/run-summary.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import type { Assembled, Shell } from '../compose/process-shell.ts';
import { assemble } from '../compose/assemble-mirror.ts';
import type { FleetMember } from '../compose/fleet/fleet-member.ts';
import { type NodeHeartbeat, aliveMs } from '../compose/queues/node-heartbeat.ts';
import { explain } from '../compose/output/failure-report.ts';
import type { Attention } from '../views/status/attention.ts';
import type { Capacity } from './worker-capacity.ts';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { missingSnapshots } from '../compose/fleet/fleet.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { LockStore } from '../compose/queues/lock-store.ts';
import { copiedAt } from '../store/database/meta-table.ts';

/** What a worker gives each mirror that it serves. */
export interface MirrorSettings {
  /** Called after every run, and after events have been processed. */
  ended(summary: Summary): void;
  /** Tells when the mirror has to be claimed; undefined: as soon as it can be. */
  turns?: FleetMember | undefined;
  /** What the mirrors of the worker share; with it, a mirror that has nothing to do is closed. */
  capacity?: Capacity | undefined;
  /** Reads the configuration again, because after a failure the API key may have changed. */
  load(): Config;
  causes?: SharedCauses | undefined;
}

/** The parts and settings with which a worker serves a mirror. */
export interface HostOptions extends MirrorSettings {
  config: Config;
  shell: Shell;
  lock: MirrorLock;
  node: Pick<NodeHeartbeat, 'doubts' | 'doubted'>;
  clock: Clock;
  faults(): readonly Attention[];
  outages: OutageRecord;
}

export interface Opened extends Assembled {
  lanes: Lanes;
}

export type OpenMirror = ReturnType<typeof createOpenMirror>;

/**
 * Does nothing. A closed mirror keeps this function: one that is created where the mirror is known
 * would keep the mirror in memory.
 */
const asleep = (): void => undefined;

/** Creates the mirror, which is closed at first. */
export function createOpenMirror(options: HostOptions) {
  const { shell, lock, capacity, load } = options;
  let { config } = options;
  let opened: Opened | undefined;
  /** Pending while the mirror is being claimed. Until then, it is not used. */
  let coming: Promise<Opened> | undefined;
  /** Pending while the mirror is being closed. Until then, it cannot be opened again. */
  let closing: Promise<void> | undefined;
  let users = 0;
  let wake = asleep;
  /** What stays known of it while it is closed: the rate limits, and notes for the next run. */
  let known: { limits: Record<string, RouteLimit>; notes: readonly string[] } = {
    limits: {},
    notes: [],
  };
  /** Aborted when the mirror is lost to another worker, then replaced. */
  let left = new AbortController();
  /** Who has the mirror, as far as this worker knows. It stays so while Redis is away. */
  let owner: 'this' | 'another' | 'unknown' = 'unknown';
  const complaints = createComplaints(config.mirror, shell);

  const shut = (failure?: unknown): void => {
    wake();
    wake = asleep;
    if (!opened) return;
    const { lanes, mirror, close: end } = opened;
    opened = undefined;
    known = { limits: mirror.limits(), notes: mirror.notes };
    closing = lanes
      .close()
      .then(async () => end(failure))
      .finally(() => (closing = undefined));
  };
  const close = async (failure?: unknown): Promise<void> => {
    await coming?.catch(() => undefined);
    shut(failure);
    await closing;
  };
  const claim = async (): Promise<Opened> => {
    await closing?.catch(() => undefined);
    const isOwn = capacity !== undefined && owner === 'this';
    let found: Assembled | undefined;
    try {
      if (!isOwn) await lock.check();
      found = await assemble(config, shell, { writes: true, whilePaused: capacity !== undefined });
      await lock.claim(found.mirror.snapshot);
    } catch (error) {
      // A command that has the snapshot open ends, and this worker still has the lock.
      if (error instanceof Busy && (found || !isOwn)) owner = 'another';
      await found?.close();
      throw error;
    }
    const notes = [...new Set([...known.notes, ...found.mirror.notes])];
    owner = 'this';
    return (opened = { ...found, mirror: { ...found.mirror, notes }, lanes: createLanes(found) });
  };
  const come = async (): Promise<Opened> => {
    if (opened) return opened;
    coming ??= claim().finally(() => (coming = undefined));
    return coming;
  };
  /**
   * Does the work in the open mirror, which stays open until it has ended. Opens it first if
   * necessary: throws Busy if another worker has locked it, or another process has it open,
   * Unavailable while Redis cannot tell, and the errors of `assemble`.
   */
  const use = async <T>(work: (opened: Opened) => Promise<T>): Promise<T> => {
    users += 1;
    wake();
    try {
      return await work(await come());
    } finally {
      users -= 1;
      const used = opened;
      if (capacity && used && users === 0) {
        wake();
        wake = capacity.idle(() => {
          if (opened !== used || users > 0) return;
          shut();
          closing?.catch(complaints.print);
        });
      }
    }
  };
  const isLocked = (): boolean =>
    opened !== undefined || (capacity !== undefined && owner === 'this');
  return {
    use,
    close,
    complaints,
    isLocked,
    config: () => config,
    opened: () => opened,
    owner: () => owner,
    /** Returns whether it is being claimed, and may turn out to be another worker's. */
    isComing: () => coming !== undefined && !isLocked(),
    limits: () => opened?.mirror.limits() ?? known.limits,
    /** Returns the worker's shell with a `stop` that is also aborted if the mirror is lost. */
    shell: (): Shell => ({ ...shell, stop: AbortSignal.any([shell.stop, left.signal]) }),
    /**
     * Does the work in the open mirror, unless it is paused. Prints why it cannot or fails, other
     * than by an interruption. `elsewhere`: it cannot be opened here now.
     */
    async attempt<T>(
      work: (opened: Opened) => Promise<T>,
      failed: (error: unknown) => T | Promise<T>,
    ): Promise<T | 'elsewhere'> {
      if (shell.stop.aborted) return 'elsewhere';
      let isOpen = false;
      try {
        return await use(async (found) => {
          isOpen = true;
          refusePaused(found.mirror.snapshot.meta, config);
          return work(found);
        });
      } catch (error) {
        if (error instanceof Interrupted) return failed(error);
        complaints.print(error);
        return !isOpen && isPassing(error) ? 'elsewhere' : failed(error);
      }
    },
    /**
     * Closes the mirror and opens it as now configured, or lets the next work do that. Never
     * throws.
     */
    async reopen(): Promise<void> {
      try {
        await close();
        config = load();
        if (!capacity) await come();
      } catch (error) {
        complaints.print(error);
      }
    },
    /** The notes about the opening hold until a run has read everything. */
    dropNotes(): void {
      if (opened) opened = { ...opened, mirror: { ...opened.mirror, notes: [] } };
    },
    /** Notes that another worker has the mirror. */
    standBy: () => void (owner = 'another'),
    /** Interrupts what runs, as another worker has the mirror, and closes it after `ended`. */
    async lose(failure: unknown, ended: (close: () => Promise<void>) => Promise<void>) {
      complaints.print(failure);
      owner = 'another';
      left.abort(new Interrupted('SIGTERM'));
      await ended(async () => close(failure));
      left = new AbortController();
    },
  };
}

/** Returns whether a mirror that could not be opened can be, soon: here, or in another process. */
export function isPassing(error: unknown): boolean {
  return error instanceof Busy || error instanceof Unavailable;
}

export const lanesAtOnce = 4;

type Lanes = ReturnType<typeof createLanes>;

/**
 * Performs runs about one person, a few at a time, each on its own connection to the snapshot. The
 * connections are reused, because opening one takes longer than most of these runs. `sibling` opens
 * one more connection.
 */
function createLanes({ sibling }: Assembled) {
  const limit = pLimit(lanesAtOnce);
  const free: Assembled[] = [];
  const underWay = new Set<Promise<unknown>>();
  const workOn = async <T>(
    lane: Assembled,
    work: (own: Assembled) => Promise<T>,
    isReused: boolean,
  ): Promise<T> => {
    let isUsable = false;
    try {
      const done = await work({ ...lane, close: async () => undefined });
      isUsable = isReused;
      return done;
    } finally {
      // The cause of a failure may be something that the connection holds open.
      if (isUsable) free.push(lane);
      else await lane.close();
    }
  };
  const watched = async <T>(running: Promise<T>): Promise<T> => {
    underWay.add(running);
    return running.finally(() => underWay.delete(running));
  };
  return {
    /** Does the work as soon as a connection is free. */
    run: async <T>(work: (mirror: Mirror) => Promise<T>): Promise<T> =>
      watched(
        limit(async () => workOn(free.pop() ?? sibling(), ({ mirror }) => work(mirror), true)),
      ),
    /** Does the work immediately, on a new connection that is closed afterwards. */
    sibling: async <T>(work: (own: Assembled) => Promise<T>): Promise<T> =>
      watched(workOn(sibling(), work, false)),
    /** Waits for the work in progress, then closes the connections. */
    async close(): Promise<void> {
      await Promise.allSettled(underWay);
      await Promise.all(free.splice(0).map(async (lane) => lane.close()));
    },
  };
}

/** A worker may stand by, or be paused, for a long time, so why it does is printed only once. */
function createComplaints(mirror: string, { note }: Shell) {
  let said = '';
  return {
    print(error: unknown): void {
      const { text } = explain(error);
      if (error instanceof Busy && said === text) return;
      said = text;
      for (const line of text.split('\n')) note(`crm-mirror: ${mirror}: ${line}`);
    },
    /** Resets the state after everything works again, so that the next error is always printed. */
    reset: (): void => void (said = ''),
  };
}

export type MirrorLock = ReturnType<typeof createMirrorLock>;

const snapshotId = 'snapshot-id';

const refusals = {
  taken: [
    'another worker serves MIRROR',
    'this one stands by, and takes over when that one is gone',
  ],
  untold: [
    'Redis was emptied',
    'this one stands by for 10 s, so that the worker that serves MIRROR can answer',
  ],
  older: [
    'this is not the newest snapshot of MIRROR: another one was written since',
    'start the worker where that one is, put a backup of it back, or give it up aloud with ' +
      '`worker --accept-lost-snapshot`',
  ],
  forged: [
    'Redis has a generation that no snapshot of MIRROR can have: it was forged',
    'if this is the newest snapshot, start once with `worker --accept-lost-snapshot`',
  ],
} as const;

/** `acceptLost`: any snapshot is claimed while no other worker lives. */
export function createMirrorLock(
  store: LockStore,
  side: {
    mirror: string;
    path: string;
    acceptLost: boolean;
    clock: Clock;
    random(bytes: number): Buffer;
  },
) {
  const { mirror, path, acceptLost, clock, random } = side;
  let refusedAt = Number.NEGATIVE_INFINITY;
  /** Whether Redis has ever known a snapshot of the mirror: it may lose its data. */
  let isKnown = false;
  let claimed: Parameters<LockStore['keep']>[0] | undefined;
  const refuse = (why: keyof typeof refusals | 'missing'): never => {
    if (why !== 'untold') refusedAt = clock.monotonic();
    const missing = missingSnapshots(dirname(path), [mirror]);
    const [reason, fix] = why === 'missing' ? [missing.reason, missing.fix] : refusals[why];
    throw new Busy(reason.replace('MIRROR', mirror), { fix: fix.replace('MIRROR', mirror) });
  };
  return {
    /**
     * Checks, before the snapshot is opened, that no other worker has the mirror, and that none
     * would be begun where Redis knows one: an empty file would look like a snapshot to the next
     * `sync`. Throws as `claim` does.
     */
    async check(): Promise<void> {
      const isServed = await store.isServed();
      isKnown ||= isServed || (await store.isKnown());
      if (isServed) refuse('taken');
      if (isKnown && !acceptLost && !existsSync(path)) refuse('missing');
    },
    /** Throws Busy if another worker has the mirror, and Unavailable while Redis is away. */
    async claim(snapshot: Snapshot): Promise<void> {
      const generation = snapshot.generation();
      const { meta, transaction } = snapshot;
      const known = meta.get(snapshotId) ?? random(8).toString('hex');
      if (meta.get(snapshotId) === undefined) transaction(() => meta.set(snapshotId, known));
      const own = { snapshot: known, generation };
      const restored = copiedAt(meta) !== undefined;
      const stoodBy = clock.monotonic() - refusedAt < aliveMs;
      const [is, token] = await store.claim({ ...own, restored, acceptLost, stoodBy });
      if (is !== 'home') {
        // Failed attempts must not make an old copy look newer than the snapshot in use.
        snapshot.withdrawFence();
        return refuse(is);
      }
      if (token > generation) snapshot.fence(token);
      claimed = { ...own, generation: token };
    },
    /**
     * Returns whether Redis names this worker, with the snapshot it claimed; true without Redis.
     */
    async keep(): Promise<boolean> {
      try {
        return claimed === undefined || (await store.keep(claimed));
      } catch (error) {
        if (!isExpected(error)) throw error;
        return true;
      }
    },
  };
}
