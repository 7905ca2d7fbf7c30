/**
 * Makes one message of a cause that several mirrors of a process have, such as a Redis or a
 * platform that is away. Of the mirrors that have the same receiver, the first one tells it of the
 * cause and of its end, for all of them, and tries again where that fails:
 *
 *   a mirror has to tell      while                       result
 *   a cause, or its end       another one has told it     counts as told
 *   a cause                   it is seconds old           waits, so that the others find it, too
 *   the end                   another mirror still has it waits
 *   a cause, or its end       the first one still can     waits for some minutes
 *   a cause                   it is older                 one message for all that have it
 *   the end                   no mirror has it            one message for all that had it
 *
 * The first one may be unable to tell it, because its snapshot cannot be written, say, or the cause
 * has ended for it alone: so nothing counts as told that was not sent.
 */
/** How long the mirrors of a process have to find the same cause, in milliseconds. */
const gatherMs = 10_000;
/** How long the first mirror has to tell it, and an end that was told counts for the others. */
const turnMs = 300_000;

interface Standing {
  /** Since when each mirror has found the cause, and all that had it since it began. */
  since: Map<string, number>;
  had: Set<string>;
}

interface Tellers {
  mirrors: Set<string>;
  /** When the first one had to tell the cause. */
  since: number;
  /** When the end had to be told first. */
  overAt?: number;
  /** What was told: the cause, or its end as well. */
  told?: 'cause' | 'end';
}

interface SharedNotice {
  cause: string;
  receiver: string;
  isOver: boolean;
}

export type SharedCauses = ReturnType<typeof createSharedCauses>;

export function createSharedCauses(monotonic: () => number) {
  const standing = new Map<string, Standing>();
  /** The mirrors that have to tell a receiver of a cause, in order. */
  const tellers = new Map<string, Tellers>();
  return {
    found(mirror: string, causes: readonly string[]): void {
      for (const [cause, { since }] of standing) if (!causes.includes(cause)) since.delete(mirror);
      for (const cause of causes) {
        const known = standing.get(cause);
        const is: Standing =
          known && known.since.size > 0 ? known : { since: new Map(), had: new Set() };
        standing.set(cause, is);
        if (!is.since.has(mirror)) is.since.set(mirror, monotonic());
        is.had.add(mirror);
      }
    },
    /** The mirror is served by another process from now on. */
    leave(mirror: string): void {
      for (const { since } of standing.values()) since.delete(mirror);
      for (const { mirrors } of tellers.values()) mirrors.delete(mirror);
    },
    /** Returns the mirrors that a message of this mirror has to name, or why there is none. */
    decide(
      mirror: string,
      { cause, receiver, isOver }: SharedNotice,
    ): readonly string[] | 'told' | 'wait' {
      const name = nameOf(cause, receiver);
      const now = monotonic();
      const known = tellers.get(name);
      const overAt = known?.overAt ?? Infinity;
      const isPast = isOver ? now - overAt >= turnMs : overAt < Infinity;
      const tell: Tellers = known && !isPast ? known : { mirrors: new Set(), since: now };
      tellers.set(name, tell);
      tell.mirrors.add(mirror);
      const [first] = tell.mirrors;
      const { since, had }: Standing = standing.get(cause) ?? { since: new Map(), had: new Set() };
      const isEarly = now - Math.min(...since.values()) < gatherMs;
      if (isOver ? since.size > 0 : isEarly) return 'wait';
      if (isOver) tell.overAt ??= now;
      if (first !== mirror && tell.told === (isOver ? 'end' : 'cause')) return 'told';
      const next = [...tell.mirrors].find((one) => isOver || since.has(one));
      if (next !== mirror && (isOver || now - tell.since < turnMs)) return 'wait';
      return [...new Set([mirror, ...(isOver && isPast ? [] : had)])].toSorted();
    },
    /** Notes that the mirror has told it, which counts for the others. */
    sent(mirror: string, { isOver, ...about }: SharedNotice): void {
      const tell = tellers.get(nameOf(about.cause, about.receiver));
      if (!tell) return;
      tell.mirrors = new Set([mirror, ...tell.mirrors]);
      tell.told = isOver ? 'end' : 'cause';
      if (isOver) tell.overAt = monotonic();
    },
  };
}

function nameOf(cause: string, receiver: string): string {
  return `${cause}\n${receiver}`;
}
