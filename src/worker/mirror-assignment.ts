/** Claims a mirror for this worker in Redis (compose/queues/assignment-store.ts). */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { Busy, isExpected } from '../domain/errors.ts';
import type { Clock } from '../domain/clock.ts';
import { diskOf } from '../store/database/snapshot-disk.ts';
import type { Snapshot } from '../store/snapshot.ts';
import type { AssignmentStore, Claim } from '../compose/queues/assignment-store.ts';
import { aliveMs } from '../compose/queues/fleet-keys.ts';
import { copiedAt } from '../compose/snapshot-marks.ts';

/** This worker's side of the assignment of one mirror. */
export type MirrorAssignment = ReturnType<typeof assignmentIn>;

const name = 'snapshot-id';

const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');

const why: Record<Exclude<Claim['is'], 'home'>, (mirror: string) => Busy> = {
  taken: (mirror) =>
    new Busy(`another worker serves ${mirror}`, {
      fix: 'this one stands by, and takes over when that one is gone',
    }),
  untold: (mirror) =>
    new Busy('Redis was emptied', {
      fix: `this one stands by for 15 s, so that the worker that serves ${mirror} can answer`,
    }),
  older: (mirror) =>
    new Busy(`this is not the newest snapshot of ${mirror}: another one was written since`, {
      fix:
        'start the worker where that one is, put a backup of it back, or give it up aloud with ' +
        '`worker --accept-lost-snapshot`',
    }),
  forged: (mirror) =>
    new Busy(`Redis has a generation that no snapshot of ${mirror} can have: it was forged`, {
      fix: 'if this is the newest snapshot, start once with `worker --accept-lost-snapshot`',
    }),
  apart: (mirror) =>
    new Busy(`the snapshot of ${mirror} is on another disk`, {
      fix: 'start a worker there; this one stands by',
    }),
};

/**
 * Creates this worker's side of the assignment. With `acceptLost`, claims succeed with any snapshot
 * while no other worker is alive. `path` is that of the snapshot.
 */
export function assignmentIn(
  record: AssignmentStore,
  side: { mirror: string; path: string; acceptLost: boolean; clock: Clock },
) {
  const { mirror, path, acceptLost, clock } = side;
  let refusedAt = Number.NEGATIVE_INFINITY;
  /** What Redis stores if it has to be told again. */
  let claimed: Parameters<AssignmentStore['keep']>[0] | undefined;
  return {
    /**
     * Checks, before the snapshot is opened, that no worker serves the mirror that may have closed
     * it. Throws as `claim` does.
     */
    async check(): Promise<void> {
      if (!(await record.isResting())) return;
      refusedAt = clock.monotonic();
      throw why.taken(mirror);
    },
    /** Throws Busy if another worker has the mirror, and Unavailable while Redis is away. */
    async claim(snapshot: Snapshot): Promise<void> {
      const generation = snapshot.generation();
      const restored = copiedAt(snapshot.meta) !== undefined;
      const file = snapshot.fileNumber();
      // The disk, with the name of this machine, to which the worker's files belong.
      const id = diskOf(dirname(path), randomHex);
      const disk = id === undefined ? '' : `${id}@${hostname()}`;
      const own = { snapshot: idOf(snapshot), generation, file, disk };
      const claim = await record.claim({
        ...own,
        restored,
        acceptLost,
        stoodBy: clock.monotonic() - refusedAt < aliveMs,
      });
      if (claim.is === 'home') {
        if (claim.generation > generation) snapshot.fence(claim.generation);
        claimed = { ...own, generation: claim.generation };
        return;
      }
      // Failed attempts must not make an old copy look newer than the snapshot in use.
      snapshot.withdrawFence();
      if (claim.is !== 'untold') refusedAt = clock.monotonic();
      throw why[claim.is](mirror);
    },
    /**
     * Returns whether the mirror is still assigned to this worker, with the snapshot that it
     * claimed it with; true while Redis is away.
     */
    async keep(): Promise<boolean> {
      try {
        return claimed === undefined || (await record.keep(claimed));
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
