/**
 * What one receiver was told, and the claim of the process that sends to it. Both are stored in the
 * snapshot, because several processes may send: runs of `sync --notify` that overlap, or a worker.
 *
 *   claim      stored before each attempt; while it holds, no other process sends to the receiver
 *   told       stored after a message was sent, together with the end of the claim
 *   unsent     stored after an attempt failed (unsent-notices.ts)
 *   unstored   what came of an attempt but could not be stored; the next claim of this process
 *              stores it
 *
 * A claim ends by itself after some time, because its process may have died. As long as there is no
 * snapshot, there is no claim, and what was told is known to this process only.
 */
import { existsSync } from 'node:fs';
import type { Clock } from '../../domain/clock.ts';
import { told } from '../../views/status/trouble-notice.ts';
import { type Meta, metaValue } from '../../store/database/meta-table.ts';
import { lookInto, openSnapshot } from '../../store/snapshot.ts';
import { afterAttempt, type Told, type Tried, unsentSchema } from './unsent-notices.ts';

/** What a receiver was told, and by which process. */
interface Standing extends Told {
  /** Whether another process is sending to the receiver. */
  isClaimed: boolean;
  /** Whether all that this process tried is stored. */
  isStored: boolean;
}

/** The memory of one receiver. Each function throws if the snapshot cannot be read or written. */
export interface ToldMemory {
  /** Reads the current state. */
  read(): Standing;
  /** Reads the current state and, unless another process has the claim, stores one. */
  claim(): Standing;
  /** Stores what came of an attempt, and ends the claim of this process. */
  release(tried: readonly Tried[]): void;
}

/** How long a claim holds, in milliseconds: longer than any attempt takes. */
const claimMs = 120_000;

/** Creates the memory of the receiver with this name in the snapshot at `file`. */
export function createToldMemory(
  file: string,
  name: string,
  { now }: Pick<Clock, 'now'>,
): ToldMemory {
  const key = `notices.${name}`;
  const claimKey = `notices-claim.${name}`;
  const unsentKey = `notices-unsent.${name}`;
  let unstored: Tried[] = [];
  let ownClaim: string | undefined;

  const readFrom = (meta?: Meta): Standing => {
    const is = unstored.reduce(afterAttempt, storedIn(meta, key, unsentKey));
    const until = meta?.get(claimKey);
    // A clock that was ahead may have stored a time that is far away.
    const leftMs = Number(until ?? 0) - now();
    const isClaimed = until !== ownClaim && leftMs > 0 && leftMs <= claimMs;
    return { ...is, isClaimed, isStored: unstored.length === 0 };
  };
  const store = (meta: Meta): void => {
    const { lines, unsent } = readFrom(meta);
    if (unstored.some(({ isSent }) => isSent)) meta.set(key, JSON.stringify(lines));
    if (unstored.length > 0) keep(meta, unsentKey, unsent);
  };
  return {
    read() {
      const snapshot = lookInto(file);
      try {
        return readFrom(snapshot?.meta);
      } finally {
        snapshot?.close();
      }
    },
    claim() {
      if (!existsSync(file)) return readFrom();
      const until = String(now() + claimMs);
      const standing = write(file, (meta) => {
        const is = readFrom(meta);
        if (is.isClaimed) return is;
        store(meta);
        meta.set(claimKey, until);
        return is;
      });
      if (standing.isClaimed) return standing;
      [unstored, ownClaim] = [[], until];
      return standing;
    },
    release(tried) {
      unstored.push(...tried);
      if (!existsSync(file)) return;
      write(file, (meta) => {
        store(meta);
        if (meta.get(claimKey) === ownClaim) meta.drop(claimKey);
      });
      [unstored, ownClaim] = [[], undefined];
    },
  };
}

/**
 * Creates a memory that lasts as long as this process, for what only this process notices. It works
 * without the snapshot.
 */
export function createProcessMemory(): ToldMemory {
  let is: Told = { lines: {}, unsent: [] };
  const read = (): Standing => ({ ...is, isClaimed: false, isStored: true });
  return {
    read,
    claim: read,
    release: (tried) => void (is = tried.reduce(afterAttempt, is)),
  };
}

function storedIn(meta: Meta | undefined, key: string, unsentKey: string): Told {
  return {
    lines: (meta && metaValue(meta, key, told)) ?? {},
    unsent: (meta && metaValue(meta, unsentKey, unsentSchema)) ?? [],
  };
}

/** Stores a list, or drops it if it is empty. */
function keep(meta: Meta, key: string, list: readonly unknown[]): void {
  if (list.length > 0) meta.set(key, JSON.stringify(list));
  else meta.drop(key);
}

/**
 * Runs work in a transaction of a connection of its own, because the one opened at the beginning
 * may be closed.
 */
function write<T>(file: string, work: (meta: Meta) => T): T {
  const { meta, transaction, close } = openSnapshot(file);
  try {
    return transaction(() => work(meta));
  } finally {
    close();
  }
}
