/** Keeps the sessions of the console in memory: a restart signs everybody out. */
import type { FastifySessionOptions } from '@fastify/session';
import type { Clock } from '../../domain/clock.ts';

type Store = NonNullable<FastifySessionOptions['store']>;
type Kept = Parameters<Store['set']>[1];

/** How long a session lasts after it was last used, in milliseconds. */
export const sessionMs = 12 * 3_600_000;
const mostOfUser = 50;

/**
 * Creates the store. Beyond 50 sessions of one user, the one of that user that was not used for
 * longest ends.
 */
export function createSessionStore({ monotonic }: Pick<Clock, 'monotonic'>): Store {
  const sessions = new Map<string, { kept: Kept; owner: string; usedAt: number }>();
  const isOver = (usedAt: number): boolean => monotonic() - usedAt > sessionMs;
  return {
    set(id, kept, done) {
      sessions.delete(id);
      const owner = ownerOf(kept);
      sessions.set(id, { kept, owner, usedAt: monotonic() });
      for (const [old, { usedAt }] of sessions) if (isOver(usedAt)) sessions.delete(old);
      const own = [...sessions].filter(([, one]) => one.owner === owner);
      for (const [old] of own.slice(0, -mostOfUser)) sessions.delete(old);
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

/** Returns a text that differs between users, and between the ways in which they are let in. */
function ownerOf({ user, proxied }: Kept): string {
  return JSON.stringify(user ? [user.name, user.isByLink] : [proxied]);
}
