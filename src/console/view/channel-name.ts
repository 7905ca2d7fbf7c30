/** Names channels as the configuration does. */
import type { PageRequest } from './page.ts';

/** Returns the name of a channel, or its id if it has none. */
export function channelName({ mirror }: Pick<PageRequest, 'mirror'>, id: string): string {
  return mirror.config.contacts?.channels.find((one) => one.id === id)?.name ?? id;
}
