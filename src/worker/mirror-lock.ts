/** Locks a mirror for this worker in Redis (compose/queues/lock-store.ts). */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { Busy, isExpected } from '../domain/errors.ts';
import type { Clock } from '../domain/clock.ts';
import { diskOf } from '../store/database/snapshot-folder.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { LockStore } from '../compose/queues/lock-store.ts';
import { aliveMs } from '../compose/queues/node-heartbeat.ts';
import { copiedAt } from '../store/database/meta-table.ts';

/** This worker's side of the lock of one mirror. */
export type MirrorLock = ReturnType<typeof createMirrorLock>;

const name = 'snapshot-id';

const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');

/** By the result of a claim: why it failed, and the remedy. */
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
  apart: ['the snapshot of MIRROR is on another disk', 'start a worker there; this one stands by'],
} as const;

/**
 * Creates this worker's side of the lock. With `acceptLost`, claims succeed with any snapshot while
 * no other worker is alive; with `mayMove`, on any disk. `path` is that of the snapshot.
 */
export function createMirrorLock(
  store: LockStore,
  side: { mirror: string; path: string; acceptLost: boolean; mayMove: boolean; clock: Clock },
) {
  const { mirror, path, acceptLost, mayMove, clock } = side;
  let refusedAt = Number.NEGATIVE_INFINITY;
  /** What Redis stores if it has to be told again. */
  let claimed: Parameters<LockStore['keep']>[0] | undefined;
  const refuse = (why: keyof typeof refusals): never => {
    if (why !== 'untold') refusedAt = clock.monotonic();
    const [reason, fix] = refusals[why].map((text) => text.replace('MIRROR', mirror));
    throw new Busy(reason ?? why, { fix });
  };
  return {
    /**
     * Checks, before the snapshot is opened, that no other worker has the mirror, and that none
     * would be begun where Redis knows one: an empty file would look like a snapshot to the next
     * `sync`. Throws as `claim` does.
     */
    async check(): Promise<void> {
      if (await store.isServed()) refuse('taken');
      if (!acceptLost && !existsSync(path) && (await store.isKnown())) refuse('older');
    },
    /** Throws Busy if another worker has the mirror, and Unavailable while Redis is away. */
    async claim(snapshot: Snapshot): Promise<void> {
      const generation = snapshot.generation();
      // The disk, with the name of this machine, to which the worker's files belong.
      const id = diskOf(dirname(path), randomHex);
      const disk = id === undefined ? '' : `${id}@${hostname()}`;
      const own = { snapshot: idOf(snapshot), generation, disk };
      const restored = copiedAt(snapshot.meta) !== undefined;
      const stoodBy = clock.monotonic() - refusedAt < aliveMs;
      const [is, token] = await store.claim({ ...own, restored, acceptLost, mayMove, stoodBy });
      if (is !== 'home') {
        // Failed attempts must not make an old copy look newer than the snapshot in use.
        snapshot.withdrawFence();
        return refuse(is);
      }
      if (token > generation) snapshot.fence(token);
      claimed = { ...own, generation: token };
    },
    /**
     * Returns whether this worker still has the mirror, with the snapshot that it claimed it with;
     * true while Redis is away.
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

function idOf({ meta, transaction }: Snapshot): string {
  const known = meta.get(name);
  if (known !== undefined) return known;
  const id = randomHex(8);
  transaction(() => meta.set(name, id));
  return id;
}
