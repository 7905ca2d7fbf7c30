/**
 * What one receiver was told, and what it could not be told, so that a receiver that was away hears
 * of a problem that has ended meanwhile:
 *
 *   an attempt begins                 the problem is kept, with the time of the first attempt
 *   it was sent                       dropped
 *   it ends before it could be sent   reported as: from … to …, solved since; then dropped
 *   there are more than twenty        the oldest are dropped, and so is what is older than a week
 */
import { existsSync } from 'node:fs';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { lookInto, openSnapshot } from '../../store/open-snapshot.ts';
import { instant } from '../../compose/output/format-values.ts';
import {
  after,
  type Found,
  type Notice,
  type NoticeLines,
  subjectsIn,
} from '../../views/status/trouble-notice.ts';

/** What a receiver was told, and the problems that it could not be told yet. */
export interface Told {
  lines: NoticeLines;
  unsent: {
    trouble: Notice['trouble'];
    subject: string;
    why: string;
    /** When it was first tried and tried last, and when it was first found to be over. */
    from: number;
    triedAt: number;
    until?: number | undefined;
  }[];
}

interface Tried {
  notice: Notice;
  at: number;
  isSent: boolean;
}

export type ToldMemory = ReturnType<typeof createToldMemory>;

/**
 * Creates the memory of the receiver with this name, which lies in the snapshot at `file`. Without
 * a file, and until there is a snapshot, it lasts as long as this process.
 */
export function createToldMemory(name: string, file: string | undefined) {
  const fact = storedFact<Told>(`notices.${name}`, 'the reported troubles');
  let own: Told = { lines: {}, unsent: [] };
  let unstored: Tried[] = [];
  const readFrom = (meta?: Meta): Told =>
    unstored.reduce(afterAttempt, (meta && fact.read(meta)) ?? own);
  return {
    /** Throws if the snapshot cannot be read. */
    read(): Told {
      const snapshot = file === undefined ? undefined : lookInto(file);
      try {
        return readFrom(snapshot?.meta);
      } finally {
        snapshot?.close();
      }
    },
    /** Stores attempts, or throws, and stores them with the next call. */
    store(tried: readonly Tried[]): void {
      unstored.push(...tried);
      if (unstored.length === 0) return;
      if (file === undefined || !existsSync(file)) own = readFrom();
      else {
        // The connection that was opened at the beginning may be closed.
        const { meta, transaction, close } = openSnapshot(file);
        try {
          transaction(() => fact.write(meta, readFrom(meta)));
        } finally {
          close();
        }
      }
      unstored = [];
    },
  };
}

const most = 20;
const keptMs = 7 * 86_400_000;

/** Returns the state after an attempt, or at the beginning of one, which counts as not sent. */
export function afterAttempt({ lines, unsent }: Told, { notice, at, isSent }: Tried): Told {
  const { trouble, subject, type, reason: why, solved } = notice;
  const before = unsent.find((one) => one.trouble === trouble && one.subject === subject);
  const others = unsent.filter((one) => one !== before && at - one.from <= keptMs);
  if (isSent) return { lines: after(lines, notice, at), unsent: others };
  if (type === 'mirror.recovered') {
    const until = before?.until ?? solved?.until;
    return { lines, unsent: others.concat(before ? { ...before, triedAt: at, until } : []) };
  }
  const from = before?.from ?? at;
  return { lines, unsent: [...others, { trouble, subject, why, from, triedAt: at }].slice(-most) };
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
    const isTold = lines[trouble] !== undefined && subject in lines[trouble];
    if (isTold || standing.has(`${trouble} ${subject}`) || now - from > keptMs) return [];
    const reason = `from ${instant(from)} to ${instant(until)}, solved since: ${why}`;
    const about = { trouble, subject, reason, fix: '' };
    return [{ type: 'mirror.recovered', ...about, solved: { until } }];
  });
}
