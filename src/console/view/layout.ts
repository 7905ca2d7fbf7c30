/**
 * Renders and sends the pages of the console, with what all of them share, and reads the forms that
 * a browser sends.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { Invalid } from '../../domain/errors.ts';
import { withCommas } from '../../domain/values/counted.ts';
import type { User } from '../access/access-rules.ts';
import { html, type Html, type HtmlReader, raw, sectionsHtml } from '../../views/render/html.ts';
import { textField } from './form.ts';

/** The path below which the style and the scripts lie. Browsers keep them for an hour. */
export const assetsAt = '/assets';

/** A place in the navigation. */
export interface NavLink {
  text: string;
  href: string;
  isCurrent: boolean;
  /** How much there is to decide; 0 is not shown. */
  count: number;
}

/** The places that a phone shows besides "More". */
const tabs = 5;

function navigation(links: readonly NavLink[]): Html {
  const list = (some: readonly NavLink[]): Html =>
    html`<ul>
      ${some.map(
        ({ text, href, isCurrent, count }) =>
          html`<li>
            <a href="${href}" ${isCurrent ? raw('aria-current="page"') : ''}
              >${text}${count > 0 ? html` <span class="badge">${withCommas(count)}</span>` : ''}</a
            >
          </li>`,
      )}
    </ul>`;
  const others = links.slice(tabs);
  return html`<nav aria-label="Pages of the mirror">
    ${list(links.slice(0, tabs))}
    <details open data-wide>
      <summary ${others.some(({ isCurrent }) => isCurrent) ? raw('aria-current="page"') : ''}>
        More
      </summary>
      ${list(others)}
    </details>
  </nav>`;
}

/** Asks for a mirror, a page or a person; jump.js opens it. Without a change, it has no token. */
function jumpDialog(mirror: SentPage['mirror']): Html {
  const example = 'acme, or #9cc428f416d4';
  return html`<button class="plain" data-jump hidden>Go to… <kbd>Ctrl K</kbd></button>
    <dialog id="jump" aria-label="Go to a mirror, a page or a person">
      <form method="post" action="${mirror?.href ?? ''}/people">
        ${textField('Mirror, page or person', { name: 'who', example })}
        <ul></ul>
        <button class="second">Go</button>
        ${mirror && html`<button class="second" formaction="/people">Find in all mirrors</button>`}
      </form>
    </dialog>`;
}

/** Without a mirror, a page of the console is that of a mirror. */
const ofNone: HtmlReader = { pageLink: (path) => `/m/${path}` };

/** A page to send; `lines` are shown as paragraphs if there is no body. */
interface SentPage {
  title: string;
  body?: Html;
  lines?: readonly string[];
  /** The HTTP status; by default 200. */
  code?: number;
  /** The token of the forms in the body, for the one that signs out; by default a new one. */
  csrf?: string;
  /** The mirror of the page, with the address of its overview; undefined for pages of none. */
  mirror?: { name: string; href: string };
  /** How what the last action has answered is shown; by default, as of all mirrors. */
  reader?: HtmlReader;
  nav?: readonly NavLink[];
}

/** Renders the page for the visitor, with what the last action answered. */
export async function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { title, code = 200, lines = [], mirror, reader = ofNone, nav = [], ...page }: SentPage,
): Promise<void> {
  const { session, visitor } = request;
  const { flash, user } = session;
  if (flash) session.set('flash', undefined);
  const csrf = page.csrf ?? (visitor ? csrfOf(reply, visitor) : '');
  const body = page.body ?? html`${lines.map((line) => html`<p>${line}</p>`)}`;
  const signOut = html`<form method="post" action="/sign-out">
    <input type="hidden" name="csrf" value="${csrf}" /><button class="plain">Sign out</button>
  </form>`;
  const usersLink = html`<a href="/users">Users</a>`;
  const text = await html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${[...new Set([title, mirror?.name ?? title, 'crm-mirror'])].join(' · ')}</title>
        <link rel="icon" href="${assetsAt}/own/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="${assetsAt}/uplot/uPlot.min.css" />
        <link rel="stylesheet" href="${assetsAt}/own/console.css" />
        <script src="${assetsAt}/uplot/uPlot.iife.min.js" defer></script>
        <script src="${assetsAt}/own/console.js" defer></script>
        <script src="${assetsAt}/own/jump.js" defer></script>
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>
          <a class="brand" href="/">crm-mirror</a>
          ${mirror && html`<a class="mirror" href="${mirror.href}">${mirror.name}</a>`}
          ${
            visitor &&
            html`${jumpDialog(mirror)}<span class="visitor"
                >${visitor.name} <small>${visitor.role}</small></span
              >
              ${user && !user.isByLink && visitor.role === 'operator' && usersLink}
              ${user && signOut}`
          }
        </header>
        <div class="columns">
          ${nav.length > 0 && navigation(nav)}
          <main id="main" tabindex="-1">
            <h1>${title}</h1>
            ${
              flash &&
              html`<div class="flash ${flash.kind}" role="status" tabindex="0">
                ${sectionsHtml(flash.sections, reader, 3)}
              </div>`
            }
            ${body}
          </main>
        </div>
      </body>
    </html>`;
  await reply.code(code).type('text/html; charset=utf-8').send(String(text));
}

/** Sends the page for a viewer who does what only operators may do. */
export async function sendOperatorsOnly(
  request: FastifyRequest,
  reply: FastifyReply,
  frame: Partial<SentPage> = {},
): Promise<void> {
  const page = { title: 'Only operators can do this', code: 403, ...frame };
  await sendPage(request, reply, { ...page, lines: ['You are signed in as a viewer.'] });
}

type Handler<More extends unknown[]> = (
  request: FastifyRequest,
  reply: FastifyReply,
  ...more: More
) => Promise<void>;

/** Returns a handler that does the work for operators, and says to others that they may not. */
export function forOperators(work: Handler<[User]>): Handler<[]> {
  return async (request, reply) =>
    request.visitor?.role === 'operator'
      ? work(request, reply, request.visitor)
      : sendOperatorsOnly(request, reply);
}

/** Returns the token for the visitor's forms; who has no forms needs none. */
export function csrfOf(reply: FastifyReply, visitor: FastifyRequest['visitor']): string {
  const { session } = reply.request;
  const { user } = session;
  const isKnown = user !== undefined || visitor?.role === 'operator' || visitor?.seesAddresses;
  if (!isKnown) return '';
  if (!user) session.set('proxied', visitor?.name);
  return reply.generateCsrf();
}

/** Returns the values. Throws Invalid for what no form of the console sends. */
export function formOf<Values>({ body }: FastifyRequest, form: z.ZodType<Values>): Values {
  const read = form.safeParse(body ?? {});
  if (read.success) return read.data;
  throw new Invalid('the form is not as this console sends it', { fix: 'go back and reload' });
}
