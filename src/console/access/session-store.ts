/** Keeps the sessions of the console in memory: a restart signs everybody out. */
import type { FastifySessionOptions } from '@fastify/session';
import type { Clock } from '../../domain/clock.ts';

type Store = NonNullable<FastifySessionOptions['store']>;
type Kept = Parameters<Store['set']>[1];

/** How long a session lasts after it was last used, in milliseconds. */
export const sessionMs = 12 * 3_600_000;
const most = 1000;

/** Creates the store. Beyond 1,000 sessions the one that was not used for longest ends. */
export function createSessionStore({ monotonic }: Pick<Clock, 'monotonic'>): Store {
  const sessions = new Map<string, { kept: Kept; usedAt: number }>();
  const isOver = (usedAt: number): boolean => monotonic() - usedAt > sessionMs;
  return {
    set(id, kept, done) {
      sessions.delete(id);
      sessions.set(id, { kept, usedAt: monotonic() });
      for (const [old, { usedAt }] of sessions) {
        if (sessions.size <= most && !isOver(usedAt)) break;
        sessions.delete(old);
      }
      done();
    },
    get(id, done) {
      const found = sessions.get(id);
      if (found && isOver(found.usedAt)) sessions.delete(id);
      done(undefined, found && !isOver(found.usedAt) ? found.kept : null);
    },
    destroy(id, done) {
      sessions.delete(id);
      done();
    },
  };
}
