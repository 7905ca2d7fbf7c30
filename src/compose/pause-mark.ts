/** Reads and writes the pause of a mirror, a mark in its snapshot. */
import { z } from 'zod';
import { addDecision, type Decision } from '../store/memory/audit-trail.ts';
import type { Config } from '../config/config.ts';
import { Busy } from '../domain/errors.ts';
import { type Meta, metaValue } from '../store/database/meta-table.ts';
import { openSnapshot } from '../store/snapshot.ts';
import { instant } from './output/format-values.ts';

const pausedKey = 'paused';

const stored = z.object({
  /** When the pause began, in milliseconds since the epoch. */
  at: z.number(),
  /** The reason; '' if none was given. */
  reason: z.string(),
  /** Who paused it. */
  by: z.string(),
});
/** A pause. */
export type Paused = z.infer<typeof stored>;

/** Returns the pause of a mirror, or undefined if it is not paused. */
export function pausedOf(meta: Meta): Paused | undefined {
  return metaValue(meta, pausedKey, stored);
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
      if (after) meta.set(pausedKey, JSON.stringify(after));
      else meta.drop(pausedKey);
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

/** A pause as documents show it. */
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
