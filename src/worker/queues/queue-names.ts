/** The names of a mirror's queues in Redis, and the prefix of all keys. */
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
 * Returns the name of the queue of commands: one for those that run alone and may take hours, and
 * one for the others, which do not wait for them.
 */
export function commandsOf(mirror: string, how: 'beside' | 'alone'): string {
  return how === 'alone' ? `commands-${mirror}` : `errands-${mirror}`;
}

/** Returns the name of the sentinel's queue. */
export function looksOf(mirror: string): string {
  return `sentinel-${mirror}`;
}
