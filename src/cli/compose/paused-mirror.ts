/** Reads and writes in the snapshot whether a mirror is paused. */
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { Busy } from '../../domain/errors.ts';
import { type Meta, metaValue } from '../../snapshot/database/meta-table.ts';
import { lookInto, openSnapshot } from '../../snapshot/snapshot.ts';
import { instant } from '../output/format-values.ts';

const name = 'paused';

const stored = z.object({
  /** When the pause began, in milliseconds since the epoch. */
  at: z.number(),
  /** '' if none was given. */
  reason: z.string(),
});
/** A pause. */
export type Paused = z.infer<typeof stored>;

/** Returns the pause of a mirror; undefined: it is not paused. */
export function pausedOf(meta: Meta): Paused | undefined {
  return metaValue(meta, name, stored);
}

/**
 * Pauses the mirror, or resumes it if `next` returns undefined; returns the state before and after.
 * Takes no lease: a pause has to work at once, above all while a run is under way.
 */
export function movePaused(
  file: string,
  next: (before: Paused | undefined) => Paused | undefined,
): { before: Paused | undefined; after: Paused | undefined } {
  // This refuses a snapshot that an older version has open, instead of migrating it.
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

/** Returns words such as: paused since 2026-08-06T03:00:00Z: works on the CRM */
export function sayPaused({ at, reason }: Paused): string {
  return `paused since ${instant(at)}${reason === '' ? '' : `: ${reason}`}`;
}

/** Throws Busy if the mirror is paused. */
export function refusePaused(meta: Meta, { mirror, file }: Config): void {
  const paused = pausedOf(meta);
  if (paused) throw new Busy(`${mirror} is ${sayPaused(paused)} → crm-mirror resume -c ${file}`);
}
