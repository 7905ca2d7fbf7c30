/** Reads and writes the pause of a mirror, a mark in its snapshot. */
import { addDecision, type Decision } from '../store/memory/audit-trail.ts';
import type { Config } from '../config/config.ts';
import { Busy } from '../domain/errors.ts';
import { type Meta, storedFact } from '../store/database/meta-table.ts';
import { openSnapshot } from '../store/snapshot.ts';
import { instant } from './output/format-values.ts';

/** A pause: when it began (epoch milliseconds), why ('' if nobody said), and who paused. */
export interface Paused {
  at: number;
  reason: string;
  by: string;
}
const stored = storedFact<Paused>('paused', 'the pause');

/** Returns the pause of a mirror, or undefined if it is not paused. */
export function pausedOf(meta: Meta): Paused | undefined {
  return stored.read(meta);
}

/**
 * Pauses the mirror, or resumes it if `next` returns undefined. Returns the state before and after.
 * It takes no lease, because a pause must work immediately, especially during a run. `decision` is
 * remembered for the audit log, unless the mirror was not paused and still is not.
 */
export function movePaused(
  file: string,
  next: (before: Paused | undefined) => Paused | undefined,
  decision?: Decision,
): { before: Paused | undefined; after: Paused | undefined } {
  const { meta, unaudited, transaction, close } = openSnapshot(file);
  try {
    return transaction(() => {
      const before = pausedOf(meta);
      const after = next(before);
      stored.write(meta, after);
      if (decision && (before || after)) addDecision({ unaudited }, decision);
      return { before, after };
    });
  } finally {
    close();
  }
}

/** Formats a pause, such as: paused since 2026-08-06T03:00:00Z by anna: works on the CRM */
export function sayPaused({ at, reason, by }: Paused): string {
  return `paused since ${instant(at)} by ${by}${reason === '' ? '' : `: ${reason}`}`;
}

export interface ToldPause {
  since: string;
  reason: string;
  by: string;
}

/** Returns the document of a pause. */
export function tellPaused({ at, reason, by }: Paused): ToldPause {
  return { since: instant(at), reason, by };
}

/** Throws Busy if the mirror is paused. */
export function refusePaused(meta: Meta, { mirror, file }: Config): void {
  const paused = pausedOf(meta);
  if (paused)
    throw new Busy(`${mirror} is ${sayPaused(paused)}`, { fix: `crm-mirror resume -c ${file}` });
}
