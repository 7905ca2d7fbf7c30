/** Renders what all pages of the console share. */
import { html, prose, raw, type Html } from './page.ts';
import type { FlashKind, User } from '../access/visitor.ts';

/** The path below which the style and the scripts lie. Browsers keep them for an hour. */
export const assetsAt = '/assets';

/** A place in the navigation. */
export interface NavLink {
  text: string;
  href: string;
  isCurrent: boolean;
}

/** What surrounds the body of a page. */
export interface Frame {
  title: string;
  body: Html;
  /** The mirror of the page, with the address of its overview; undefined for pages of none. */
  mirror?: { name: string; href: string } | undefined;
  nav?: readonly NavLink[];
  user?: (Pick<User, 'name' | 'role'> & { canSignOut: boolean; csrf: string }) | undefined;
  /** What the last action answered. */
  flash?: { kind: FlashKind; lines: readonly string[] } | undefined;
}

/** Returns the whole page. */
export async function renderPage(frame: Frame): Promise<string> {
  const { title, body, mirror, nav = [], user, flash } = frame;
  const page = await html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · crm-mirror</title>
        <link rel="icon" href="${assetsAt}/own/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="${assetsAt}/uplot/uPlot.min.css" />
        <link rel="stylesheet" href="${assetsAt}/own/console.css" />
        <script src="${assetsAt}/uplot/uPlot.iife.min.js" defer></script>
        <script src="${assetsAt}/own/console.js" defer></script>
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>
          <a class="brand" href="/">crm-mirror</a>
          ${mirror ? html`<a class="mirror" href="${mirror.href}">${mirror.name}</a>` : ''}
          ${user ? visitor(user) : ''}
        </header>
        <div class="columns">
          ${nav.length > 0 ? navigation(nav) : ''}
          <main id="main" tabindex="-1">
            <h1>${title}</h1>
            ${flash ? notice(flash, mirror?.href) : ''} ${body}
          </main>
        </div>
      </body>
    </html>`;
  return String(page);
}

function visitor({ name, role, canSignOut, csrf }: NonNullable<Frame['user']>): Html {
  return html`<span class="visitor">${name} <small>${role}</small></span> ${
      canSignOut
        ? html`<form method="post" action="/sign-out">
            <input type="hidden" name="csrf" value="${csrf}" /><button class="plain">
              Sign out
            </button>
          </form>`
        : ''
    }`;
}

function navigation(links: readonly NavLink[]): Html {
  return html`<nav aria-label="Pages of the mirror">
    <ul>
      ${links.map(
        ({ text, href, isCurrent }) =>
          html`<li>
            <a href="${href}" ${isCurrent ? raw('aria-current="page"') : ''}>${text}</a>
          </li>`,
      )}
    </ul>
  </nav>`;
}

/** The line that an action answers whose progress the overview shows. */
export const runBegun = 'The run has begun. The overview shows its progress.';

function notice({ kind, lines }: NonNullable<Frame['flash']>, overview = '/'): Html {
  const said = (line: string): Html =>
    line === runBegun
      ? html`The run has begun. <a href="${overview}">The overview</a> shows its progress.`
      : prose(line);
  // Columns of a report stand below each other only in letters of one width.
  const isReport = lines.some((line) => /\S {3,}\S/.test(line));
  return html`<div class="flash ${kind}" role="status" tabindex="0">
    ${isReport ? html`<pre>${lines.join('\n')}</pre>` : lines.map((line) => html`<p>${said(line)}</p>`)}
  </div>`;
}
