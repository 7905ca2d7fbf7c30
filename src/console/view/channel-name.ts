/** Names channels as people know them: by name, with the id as a title. */
import { html, type Html, type PageRequest } from './page.ts';

type Mirror = Pick<PageRequest, 'mirror'>;

/** Returns the name of a channel as text; the id if the configuration has no name for it. */
export function channelName({ mirror }: Mirror, id: string): string {
  const found = mirror.config.contacts?.channels.find((channel) => channel.id === id);
  return found?.name ?? id;
}

/** Returns the name of a channel, with the id as its title. */
export function titledChannel(request: Mirror, id: string): Html | string {
  const name = channelName(request, id);
  return name === id ? id : html`<span title="${id}">${name}</span>`;
}

/** Returns a text in which names stand in the place of the ids of channels. */
export function withChannelNames({ mirror }: Mirror, text: string): string {
  const names = new Map(mirror.config.contacts?.channels.map(({ id, name }) => [id, name ?? id]));
  return text.replaceAll(/[\w-]+/g, (word) => names.get(word) ?? word);
}
