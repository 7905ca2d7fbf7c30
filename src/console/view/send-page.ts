/** Sends a page of the console. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Frame, renderPage } from './layout.ts';
import { html } from './page.ts';

/** A page to send; `lines` are shown as paragraphs if there is no body. */
export interface SentPage extends Pick<Frame, 'title' | 'mirror' | 'nav'> {
  body?: Frame['body'];
  lines?: readonly string[];
  /** The HTTP status; by default 200. */
  code?: number;
  /** The token of the forms in the body, for the one that signs out; by default a new one. */
  csrf?: string;
}

/** Renders the page for the visitor, with what the last action answered. */
export async function sendPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { code = 200, lines = [], body, csrf, ...frame }: SentPage,
): Promise<void> {
  const { session, visitor } = request;
  const { flash, user } = session;
  if (flash) session.set('flash', undefined);
  const text = await renderPage({
    ...frame,
    body: body ?? html`${lines.map((line) => html`<p>${line}</p>`)}`,
    flash,
    user: visitor && {
      ...visitor,
      canSignOut: user !== undefined,
      csrf: csrf ?? csrfOf(reply, visitor),
    },
  });
  await reply.code(code).type('text/html; charset=utf-8').send(text);
}

/** Sends the page for a viewer who does what only operators may do. */
export async function sendOperatorsOnly(
  request: FastifyRequest,
  reply: FastifyReply,
  frame: Pick<SentPage, 'mirror' | 'nav'> = {},
): Promise<void> {
  const lines = ['You are signed in as a viewer.'];
  await sendPage(request, reply, {
    title: 'Only operators can do this',
    code: 403,
    lines,
    ...frame,
  });
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
