/** Whether a mirror is paused: a fact of its snapshot. */
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { Busy } from '../../domain/errors.ts';
import { type Meta, metaValue } from '../../snapshot/database/meta-table.ts';
import { lookInto, openSnapshot } from '../../snapshot/snapshot.ts';
import { instant } from '../output/format-values.ts';

const name = 'paused';

const stored = z.object({
  /** Milliseconds since the epoch. */
  at: z.number(),
  /** '' when none was given. */
  reason: z.string(),
});
export type Paused = z.infer<typeof stored>;

export function pausedOf(meta: Meta): Paused | undefined {
  return metaValue(meta, name, stored);
}

/**
 * Pauses or, where `next` answers undefined, resumes. Takes no lease: whoever pauses a mirror wants
 * it now, and most of all when a run is under way. Answers what was before and what is now.
 */
export function movePaused(
  file: string,
  next: (before: Paused | undefined) => Paused | undefined,
): { before: Paused | undefined; after: Paused | undefined } {
  // Refuses to bring a snapshot up to date under an older version that is at it.
  lookInto(file)?.close();
  const { meta, transaction, close } = openSnapshot(file);
  try {
    return transaction(() => {
      const before = pausedOf(meta);
      const after = next(before);
      if (after) meta.set(name, JSON.stringify(after));
      else meta.drop(name);
      return { before, after };
    });
  } finally {
    close();
  }
}

/** paused since 2026-08-06T03:00:00Z: works on the CRM */
export function sayPaused({ at, reason }: Paused): string {
  return `paused since ${instant(at)}${reason === '' ? '' : `: ${reason}`}`;
}

/** Throws Busy when nothing is to be written on the platform for now. */
export function refusePaused(meta: Meta, { mirror, file }: Config): void {
  const paused = pausedOf(meta);
  if (paused) throw new Busy(`${mirror} is ${sayPaused(paused)} → crm-mirror resume -c ${file}`);
}
