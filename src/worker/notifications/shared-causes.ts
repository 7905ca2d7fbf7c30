/**
 * Makes one message of a cause that several mirrors of a process have, such as a Redis or a
 * platform that is away. A cause is told once to each receiver, whichever mirrors name it.
 *
 *   a mirror finds            the receiver was        result
 *   the cause, since seconds  not told of it          waits, so that the others find it, too
 *   the cause                 not told of it          one message for all mirrors that have it
 *   the cause                 told by another mirror  counts as told
 *   the cause, or its end     being told by another   waits
 *                             mirror
 *   that it is over           told, and another       waits
 *                             mirror still has it
 *   that it is over           told                    one message for all mirrors that had it
 *   that it is over           told so by another      counts as told
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../../domain/clock.ts';
import type { Config } from '../../config/config.ts';

/** A notice about a cause, as one mirror would send it to one receiver. */
interface CausedNotice {
  mirror: string;
  cause: string;
  receiver: string;
  isOver: boolean;
}

/** How long the mirrors of a process have to find the same cause, in milliseconds. */
const gatherMs = 10_000;
/** How long an end that was told counts for the other mirrors as well. */
const overMs = 300_000;

export type SharedCauses = ReturnType<typeof createSharedCauses>;

/** What one receiver was told of one cause: by which mirrors, or when it was told to be over. */
interface ToldCause {
  mirrors?: readonly string[];
  overAt?: number;
  sender?: string | undefined;
}

export function createSharedCauses({ monotonic }: Pick<Clock, 'monotonic'>) {
  /** Since when each mirror has found each cause. */
  const standing = new Map<string, Map<string, number>>();
  const told = new Map<string, ToldCause>();
  const nameOf = ({ receiver, cause }: CausedNotice): string => `${cause}\n${receiver}`;
  const setSender = (notice: CausedNotice, sender: string | undefined): void =>
    void told.set(nameOf(notice), { ...told.get(nameOf(notice)), sender });
  return {
    found(mirror: string, causes: readonly string[]): void {
      for (const [cause, mirrors] of standing) if (!causes.includes(cause)) mirrors.delete(mirror);
      for (const cause of causes) {
        const mirrors = standing.get(cause) ?? new Map<string, number>();
        standing.set(cause, mirrors);
        if (!mirrors.has(mirror)) mirrors.set(mirror, monotonic());
      }
    },
    /** Returns the mirrors that a message has to name, or why there is none. */
    decide(notice: CausedNotice): readonly string[] | 'told' | 'wait' {
      const { mirror, cause, isOver } = notice;
      const found = standing.get(cause) ?? new Map<string, number>();
      const { mirrors, overAt, sender = mirror } = told.get(nameOf(notice)) ?? {};
      if (sender !== mirror) return 'wait';
      if (isOver) {
        if (overAt !== undefined && monotonic() - overAt < overMs) return 'told';
        return found.size > 0 ? 'wait' : (mirrors ?? [mirror]);
      }
      if (mirrors) return 'told';
      if (monotonic() - Math.min(...found.values()) < gatherMs) return 'wait';
      return [...new Set([mirror, ...found.keys()])].toSorted();
    },
    /** Stores that this mirror sends the message now, so that no other one does. */
    sending: (notice: CausedNotice): void => setSender(notice, notice.mirror),
    failed: (notice: CausedNotice): void => setSender(notice, undefined),
    /** Stores that a message was sent, or counts as sent. */
    sent(notice: CausedNotice, mirrors: readonly string[]): void {
      const before = told.get(nameOf(notice))?.mirrors ?? [];
      const all = new Set([...before, ...mirrors, notice.mirror]);
      const now = notice.isOver ? { overAt: monotonic() } : { mirrors: [...all].toSorted() };
      told.set(nameOf(notice), now);
    },
  };
}

/** The same for all mirrors that share what fails; undefined if it concerns one mirror only. */
export function causeOf(
  { redis, platform, contacts, templates, snapshot }: Config,
  code: string,
): string | undefined {
  const named: Readonly<Record<string, () => string>> = {
    redis_away: () => redis ?? '',
    platform_away: () => platform.url,
    key_refused: () => `${platform.url} ${platform.apiKey}`,
    clock_differs: () => platform.url,
    source_away: () => placeIn(contacts?.source),
    templates_away: () => placeIn(templates?.source),
    disk_full: () => String(statSync(dirname(snapshot), { throwIfNoEntry: false })?.dev),
  };
  const name = named[code];
  return name && `${code} ${name()}`;
}

function placeIn(source: { path: string } | { url: string } | undefined): string {
  if (!source) return '';
  return 'path' in source ? source.path : source.url;
}
