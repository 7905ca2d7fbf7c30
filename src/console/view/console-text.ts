/**
 * Writes what the console names: a link where a command would be typed, channels by their names
 * with the id as a title, and people with a link to their page. Such a link contains the person's
 * key in encrypted form, so no address is in the history of a browser or the log of a proxy. The
 * same person always has the same link.
 */
import { createHmac } from 'node:crypto';
import type { Key } from '../../domain/record.ts';
import { isExpected } from '../../domain/errors.ts';
import { sealOf } from '../../compose/queues/payload-encryption.ts';
import { html, type Html, type HtmlReader, prose } from '../../views/render/html.ts';
import { linkTo, type AboutMirror } from './page.ts';

/** The page that does what a command does, and what it is called in a sentence. */
const places: Readonly<Record<string, readonly [path: string, text: string]>> = {
  approve: ['approvals', 'the page Approvals'],
  reject: ['approvals', 'the page Approvals'],
  plan: ['approvals', 'the page Approvals'],
  problems: ['problems', 'the page Problems'],
  retry: ['problems', '“Try again”'],
  resolve: ['people', '“Resolve the conflict” on the page of the person'],
  explain: ['people', 'the page of the person'],
  runs: ['runs', 'the page Runs'],
  sync: ['', '“Run now” on the overview'],
  backfill: ['', '“Run now” on the overview'],
  resume: ['', '“End the pause” on the overview'],
  status: ['', 'the overview'],
  check: ['configuration', 'the page Configuration'],
  audit: ['audit', 'the page Audit log'],
};

const aCommand = /(?:(\brun) )?`(?:crm-mirror )([a-z-]+)[^`]*`/;

/**
 * Returns a text as `prose` does, with links for the commands that the console has, and with the
 * names of channels for their ids, but in code.
 */
export function consoleText(request: AboutMirror, text: string): Html {
  const channels = request.mirror.config.contacts?.channels;
  const names = new Map(channels?.map(({ id, name }) => [id, name ?? id]));
  const parts: (Html | string)[] = [];
  let rest = text.replaceAll(/`[^`]*`|[\w-]+/g, (word) => names.get(word) ?? word);
  for (let found = aCommand.exec(rest); found; found = aCommand.exec(rest)) {
    const [whole, verb, name = ''] = found;
    const place = places[name];
    parts.push(prose(rest.slice(0, found.index)));
    if (place) {
      const [path, words] = place;
      parts.push(html`${verb ? 'use ' : ''}<a href="${linkTo(request, path)}">${words}</a>`);
    } else parts.push(prose(whole));
    rest = rest.slice(found.index + whole.length);
  }
  return html`${parts}${prose(rest)}`;
}

/** Returns the name of a channel as text; the id if the configuration has no name for it. */
export function channelName({ mirror }: AboutMirror, id: string): string {
  const found = mirror.config.contacts?.channels.find((channel) => channel.id === id);
  return found?.name ?? id;
}

/** The key is the snapshot's own, so the name of the mirror adds nothing. */
const use = { purpose: 'link' } as const;

/** Returns the address of the person's page. */
export function personLink(
  request: AboutMirror,
  { meta }: { meta: { get(name: string): string | undefined } },
  key: Key,
): string {
  const secret = meta.get('name-key') ?? '';
  // A nonce that follows from the key keeps the link the same, and is never used for another key.
  const nonce = createHmac('sha256', secret).update(`link ${key}`).digest().subarray(0, 12);
  const sealed = sealOf({ key: secret, mirror: '', random: () => nonce }).close(key, use);
  return linkTo(request, `people/${Buffer.from(sealed, 'base64').toString('base64url')}`);
}

/** Returns how sections are shown to the user. Without a snapshot, people have no links. */
export function readerOf(
  request: AboutMirror,
  snapshot?: { meta: { get(name: string): string | undefined } },
): HtmlReader {
  return {
    words: (text) => consoleText(request, text),
    channel(id) {
      const name = channelName(request, id);
      return name === id ? id : html`<span title="${id}">${name}</span>`;
    },
    pageLink: (path) => linkTo(request, path),
    recordLink({ kind, key }) {
      if (kind === 'template') return linkTo(request, `templates/${encodeURIComponent(key)}`);
      return snapshot && personLink(request, snapshot, key);
    },
  };
}

/** Returns the person whose page has this id in its address; undefined if it names nobody. */
export function personIn(
  { meta }: { meta: { get(name: string): string | undefined } },
  id: string,
): Key | undefined {
  const sealed = Buffer.from(id, 'base64url').toString('base64');
  try {
    const random = () => new Uint8Array();
    return sealOf({ key: meta.get('name-key') ?? '', mirror: '', random }).open(sealed, use);
  } catch (error) {
    if (isExpected(error)) return undefined;
    throw error;
  }
}
