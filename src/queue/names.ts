/** What the queues of a mirror are called in Redis. */
export const prefix = 'crm-mirror';

export function runsOf(mirror: string): string {
  return `runs-${mirror}`;
}

export function eventsOf(mirror: string): string {
  return `events-${mirror}`;
}

/** One about all may take hours: those about one person do not wait behind it. */
export function commandsOf(mirror: string, about: 'one' | 'all'): string {
  return about === 'all' ? `commands-${mirror}` : `errands-${mirror}`;
}
