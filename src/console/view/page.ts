/**
 * Defines what a page of the console is, and what pages write alike: links, and an
 * error that is no bug. A new page is one file in pages/ and one row in mirror-routes.ts.
 */
import { html, type Html } from '../../views/render/html.ts';
import { explain, isBug } from '../../compose/output/failure-report.ts';
import type { User } from '../access/access-rules.ts';
import type { ConsoleMirror } from './console-mirror.ts';

/** What is about one mirror. */
export interface AboutMirror {
  mirror: ConsoleMirror;
}

/** Which page is asked for, and what its address selects. */
export interface PageAddress {
  /** The path and query of this page, to which an action returns. */
  here: string;
  query: Readonly<Record<string, string | undefined>>;
}

/** A request for a page. */
export interface PageRequest extends AboutMirror, PageAddress {
  user: User;
  /** The token that every form must send as `csrf`. */
  csrf: string;
  /** The part of the path after the mirror's page, such as the id of a run. */
  id: string;
}

/** What a page shows. */
export interface PageContent {
  title: string;
  body: Html;
  /** The HTTP status; by default 200. */
  code?: number;
}

/** A file that a page offers instead of content. */
interface PageFile {
  type: string;
  text: string;
  /** The name under which browsers save it; undefined if they show it. */
  name?: string;
  /** The Content-Security-Policy, if it is not the one of pages. */
  policy?: string;
}

/** What a page answers. */
export type Shown = PageContent | PageFile;

/** Where a page sends the browser instead: a path on this server. */
export interface PageElsewhere {
  to: string;
}

/** A page about one mirror, at `/m/<mirror>/<path>`. */
export interface Page {
  /** `runs`, or `runs/:id`; empty for the page of the mirror itself. */
  path: string;
  /** The name in the navigation; undefined for pages that others link to. */
  nav?: string;
  show(request: PageRequest): Shown | Promise<Shown>;
  /** Answers the form that has this process ask the CRM or the platform, which needs the token. */
  ask?(request: PageRequest): Promise<Shown>;
  /**
   * Answers the form of the page that asks for something that may not be in an address. It changes
   * nothing, so the form needs no token.
   */
  search?(
    request: PageRequest,
    values: Readonly<Record<string, string>>,
  ): Promise<PageContent | PageElsewhere>;
}

/** Returns the address of a page of the mirror. */
export function linkTo({ mirror }: AboutMirror, path = ''): string {
  return `/m/${mirror.config.mirror}${path === '' ? '' : `/${path}`}`;
}

/** Returns a link to a page of the mirror. */
export function link(about: AboutMirror, path: string, text: string | Html): Html {
  return html`<a href="${linkTo(about, path)}">${text}</a>`;
}

/** Returns what `read` returns, or the error that it throws. A bug is thrown again. */
export function orFault<Value>(read: () => Value): Value | { fault: string } {
  try {
    return read();
  } catch (error) {
    if (isBug(error)) throw error;
    return { fault: explain(error).text };
  }
}
