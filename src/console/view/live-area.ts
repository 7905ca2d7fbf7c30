/** Renders what changes while a page is open (live.ts sends the changes). */
import { html, type Html, linkTo, type PageRequest } from './page.ts';

/** Returns the parts of a page by id, each of which the browser replaces when it changes. */
export function liveArea(request: PageRequest, pieces: Readonly<Record<string, Html>>): Html {
  return html`<div data-live="${linkTo(request, 'live')}">
    ${Object.entries(pieces).map(([id, piece]) => html`<div id="${id}">${piece}</div>`)}
  </div>`;
}
