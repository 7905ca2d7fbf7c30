/** Names the queues of a mirror in Redis. */

/** The prefix of all keys in Redis. */
export const prefix = 'crm-mirror';

/** Returns the name of the queue of runs. */
export function runsOf(mirror: string): string {
  return `runs-${mirror}`;
}

/** Returns the name of the queue of events. */
export function eventsOf(mirror: string): string {
  return `events-${mirror}`;
}

/**
 * Returns the name of a queue of commands. Commands that run alone may take hours, so the others
 * have a queue of their own and do not wait for them.
 */
export function commandsOf(mirror: string, how: 'beside' | 'alone'): string {
  return how === 'alone' ? `commands-${mirror}` : `errands-${mirror}`;
}

/** Returns the name of the sentinel's queue. */
export function looksOf(mirror: string): string {
  return `sentinel-${mirror}`;
}
