/** What the queues of a mirror are called in Redis. */
export const prefix = 'crm-mirror';

export function runsOf(mirror: string): string {
  return `runs-${mirror}`;
}

export function eventsOf(mirror: string): string {
  return `events-${mirror}`;
}

/** One that has to be alone may take hours: what stands beside others does not wait behind it. */
export function commandsOf(mirror: string, how: 'beside' | 'alone'): string {
  return how === 'alone' ? `commands-${mirror}` : `errands-${mirror}`;
}

export function looksOf(mirror: string): string {
  return `sentinel-${mirror}`;
}
