/** What the queues of a mirror are called in Redis. */
export const prefix = 'crm-mirror';

export function runsOf(mirror: string): string {
  return `runs-${mirror}`;
}

export function eventsOf(mirror: string): string {
  return `events-${mirror}`;
}

export function commandsOf(mirror: string): string {
  return `commands-${mirror}`;
}

export function looksOf(mirror: string): string {
  return `sentinel-${mirror}`;
}
