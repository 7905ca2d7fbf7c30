/**
 * What one receiver was told or could not be told, and the claim of the process that sends to it.
 * All is stored in the snapshot, because several processes may send: runs of `sync --notify` that
 * overlap, or a worker.
 *
 *   claim      stored before each attempt; while it holds, no other process sends to the receiver
 *   told       stored after a message was sent, together with the end of the claim
 *   unsent     stored after an attempt failed (afterAttempt)
 *   unstored   what came of an attempt but could not be stored; the next claim of this process
 *              stores it
 *
 * A claim ends by itself after some time, because its process may have died. As long as there is no
 * snapshot, there is no claim, and what was told is known to this process only.
 */
import { existsSync } from 'node:fs';
import type { Clock } from '../../domain/clock.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { lookInto, openSnapshot } from '../../store/snapshot.ts';
import { instant } from '../../compose/output/format-values.ts';
import {
  after,
  type Found,
  type Notice,
  type NoticeLines,
  subjectsIn,
} from '../../views/status/trouble-notice.ts';

/** What a receiver was told, and by which process. */
interface Standing extends Told {
  isClaimed: boolean;
  /** Whether all that this process tried is stored. */
  isStored: boolean;
}

/** The memory of one receiver. Each function throws if the snapshot cannot be read or written. */
export interface ToldMemory {
  read(): Standing;
  /** Reads the current state and, unless another process has the claim, stores one. */
  claim(): Standing;
  /** Stores what came of an attempt, and ends the claim of this process. */
  release(tried: readonly Tried[]): void;
}

/** How long a claim holds, in milliseconds: longer than any attempt takes. */
const claimMs = 120_000;

/** Creates the memory of the receiver with this name in the snapshot at `file`. */
export function createToldMemory(file: string, name: string, { now }: Clock): ToldMemory {
  const linesIn = storedFact<NoticeLines>(`notices.${name}`, 'the reported troubles');
  const claimKey = `notices-claim.${name}`;
  const unsentIn = storedFact<Unsent[]>(`notices-unsent.${name}`, 'the unsent notices');
  let unstored: Tried[] = [];
  let ownClaim: string | undefined;

  const readFrom = (meta?: Meta): Standing => {
    const is = unstored.reduce(afterAttempt, {
      lines: (meta && linesIn.read(meta)) ?? {},
      unsent: (meta && unsentIn.read(meta)) ?? [],
    });
    const until = meta?.get(claimKey);
    // A clock that was ahead may have stored a time that is far away.
    const leftMs = Number(until ?? 0) - now();
    const isClaimed = until !== ownClaim && leftMs > 0 && leftMs <= claimMs;
    return { ...is, isClaimed, isStored: unstored.length === 0 };
  };
  const store = (meta: Meta): void => {
    const { lines, unsent } = readFrom(meta);
    if (unstored.some(({ isSent }) => isSent)) linesIn.write(meta, lines);
    if (unstored.length === 0) return;
    unsentIn.write(meta, unsent.length > 0 ? unsent : undefined);
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

/** Lasts as long as this process, for what only it notices, and works without the snapshot. */
export function createProcessMemory(): ToldMemory {
  let is: Told = { lines: {}, unsent: [] };
  const read = (): Standing => ({ ...is, isClaimed: false, isStored: true });
  return { read, claim: read, release: (tried) => void (is = tried.reduce(afterAttempt, is)) };
}

/** Uses a connection of its own, because the one opened at the beginning may be closed. */
function write<T>(file: string, work: (meta: Meta) => T): T {
  const { meta, transaction, close } = openSnapshot(file);
  try {
    return transaction(() => work(meta));
  } finally {
    close();
  }
}

interface Unsent {
  trouble: Notice['trouble'];
  subject: string;
  why: string;
  /** When it was first tried, and when the problem was first found to be over. */
  from: number;
  until?: number | undefined;
}

/**
 * What a receiver was told, and what it could not be told, so that a receiver that was away hears
 * of a problem that has ended meanwhile:
 *
 *   the attempt failed                the problem is kept, with the time of the first attempt
 *   it is sent later                  dropped
 *   it ends before it could be sent   reported as: from … to …, solved since; then dropped
 *   there are more than twenty        the oldest are dropped, and so is what is older than a week
 */
export interface Told {
  lines: NoticeLines;
  unsent: Unsent[];
}

interface Tried {
  notice: Notice;
  at: number;
  isSent: boolean;
}

const most = 20;
const keptMs = 7 * 86_400_000;

/** Returns the state after an attempt. */
export function afterAttempt({ lines, unsent }: Told, { notice, at, isSent }: Tried): Told {
  const { trouble, subject, type, reason: why, solved } = notice;
  const before = unsent.find((one) => one.trouble === trouble && one.subject === subject);
  const others = unsent.filter((one) => one !== before && at - one.from <= keptMs);
  if (isSent) return { lines: after(lines, notice, at), unsent: others };
  if (type === 'mirror.recovered') {
    const kept = before && solved ? [{ ...before, until: solved.until }] : (before ?? []);
    return { lines, unsent: others.concat(kept) };
  }
  const from = before?.from ?? at;
  return { lines, unsent: [...others, { trouble, subject, why, from }].slice(-most) };
}

/** Returns the notices about what has ended before it could be sent. */
export function solvedNotices(
  { lines, unsent }: Told,
  found: readonly Found[],
  now: number,
): Notice[] {
  const standing = subjectsIn(found);
  return unsent.flatMap(({ trouble, subject, why, from, until = now }): Notice[] => {
    // What was told before it could not be told again has a notice of its own.
    const told = lines[trouble];
    const isTold = typeof told === 'object' && subject in told;
    if (isTold || standing.has(`${trouble} ${subject}`) || now - from > keptMs) return [];
    const reason = `from ${instant(from)} to ${instant(until)}, solved since: ${why}`;
    const about = { trouble, subject, reason, fix: '' };
    return [{ type: 'mirror.recovered', ...about, solved: { until } }];
  });
}
