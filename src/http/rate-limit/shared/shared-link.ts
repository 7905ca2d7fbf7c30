/**
 * Shares one connection to Redis among the budgets of all mirrors of a process. Each user has its
 * own link, which it closes; the connection ends with the last one.
 */
import { type Link, type LinkOptions, openLink } from './redis-connection.ts';

/** Opens links. */
export type OpenLink = (options: LinkOptions) => Link;

interface Shared {
  link: Link;
  users: Set<LinkOptions>;
}

/** Returns a function that opens links over one connection for each Redis. */
export function shareLinks(): OpenLink {
  const known = new Map<string, Shared>();
  return (options) => {
    const { url, clock } = options;
    const shared = known.get(url) ?? { users: new Set<LinkOptions>(), link: undefined };
    const { users } = shared;
    const link =
      shared.link ??
      openLink({
        url,
        clock,
        // The message names no mirror, so one of them says it for all.
        notice: (lost) => [...users][0]?.notice(lost),
        changed: () => users.forEach(({ changed }) => changed()),
      });
    known.set(url, { link, users });
    users.add(options);
    return {
      ...link,
      close() {
        users.delete(options);
        if (users.size > 0) return;
        known.delete(url);
        link.close();
      },
    };
  };
}
