/**
 * Determines how to get from one page to the next, how to recognize the end of the list, and which
 * `page` setting to propose if the list goes on without one.
 */
import { queryValue } from '../../domain/address-part.ts';
import { Invalid } from '../../domain/errors.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import { type Flaw, markOf } from '../shared/read-certificate.ts';
import type { MoreSigns, NextPlace, Sign } from './more-signs.ts';
import type { HttpOptions } from './options.ts';

/** This many consecutive pages without a new record indicate an error. */
const MOST_IDLE = 20;

export interface ReadPage {
  /** The whole response. */
  value: unknown;
  /** The number of records, and how many of them no earlier page contained. */
  size: number;
  fresh: number;
  signs: MoreSigns;
}

/**
 * The address of the next page, or the end of the list. `marked`: the CRM states the end.
 * `unmarked`: the end is assumed, and a total may prove it. `wrong`: nothing can prove it.
 */
export type Next =
  | { address: string }
  | { end: 'marked' }
  | { end: 'unmarked' | 'wrong'; flaw: Flaw };

export interface Paging {
  first: string;
  after(page: ReadPage): Next;
  /** The flaw if a page after the first does not exist (404); undefined if that is an error. */
  missing: Flaw | undefined;
}

/** Creates the paging for one read. `isProven`: a missing cursor marks the end. */
export function createPaging({ url, page }: Paged, host: string, isProven: boolean): Paging {
  if (!page) return { first: url, missing: undefined, after: () => ({ end: 'marked' }) };
  const { cursor, param = '', number = '', first = 1, size, sizeValue } = page;
  const sized = size === undefined ? url : withParam(url, size, String(sizeValue));
  if (cursor === undefined) return byNumber(sized, number, first);
  return byCursor(sized, { cursor, param }, host, isProven);
}

/**
 * Creates paging by number, which ends with an empty page. A short page proves nothing, because the
 * CRM may have a limit of its own. If the first page is returned again, the parameter may be wrong,
 * and the total may count only that page.
 */
function byNumber(url: string, param: string, first: number): Paging {
  let number = first;
  const fix = 'name the total of the source, if its answers tell one';
  return {
    first: withParam(url, param, String(first)),
    missing: { why: 'the list ended with a page that is not there (404)', fix },
    after({ size, fresh }) {
      if (size === 0) return { end: 'marked' };
      if (fresh === 0) {
        const flaw = { why: 'a page came twice', fix: `correct page, or ${fix}` };
        return { end: number === first + 1 ? 'wrong' : 'unmarked', flaw };
      }
      number += 1;
      return { address: withParam(url, param, String(number)) };
    },
  };
}

/**
 * Creates paging by cursor, which ends with a response without a next cursor. If the first response
 * has none, the path may be wrong, and all other pages would be lost. The same applies if only the
 * first page contains new records. Some APIs name a cursor after the last page, too: an empty page
 * with a flag that there is no more is the end.
 */
function byCursor(
  url: string,
  { cursor, param }: { cursor: string; param: string },
  host: string,
  isProven: boolean,
): Paging {
  const known = new Set<number>();
  let idle = 0;
  let useful = 0;
  const circling = (why: string): Next => {
    const flaw = { why, fix: 'correct page.cursor and page.param' };
    return { end: useful > 1 ? 'unmarked' : 'wrong', flaw };
  };
  return {
    first: url,
    missing: undefined,
    after({ value, size, fresh, signs }) {
      const next = cursorIn(fieldAt(value, cursor), param, url);
      if (size === 0 && signs.isEnd && useful > 0) return { end: 'marked' };
      if (next === undefined && known.size === 0 && !isProven) {
        const why = 'the first answer has no cursor, so it is not known to be the only';
        const fix = 'correct page.cursor; or have smaller pages, or name the total of the source';
        return { end: 'unmarked', flaw: { why, fix } };
      }
      if (next === undefined || next === null || next === '' || next === false) {
        return { end: 'marked' };
      }
      if (typeof next !== 'string' && typeof next !== 'number') {
        throw new Invalid(`${host}: page.cursor is no text or number there`, { fix: 'correct it' });
      }
      const text = String(next);
      useful += fresh > 0 ? 1 : 0;
      idle = fresh > 0 ? 0 : idle + 1;
      if (known.size === known.add(markOf(text)).size) return circling('a cursor came twice');
      if (idle >= MOST_IDLE) return circling(`${MOST_IDLE} pages in a row brought nothing new`);
      return { address: withParam(url, param, text) };
    },
  };
}

/** Appends a parameter and leaves the rest of the address unchanged. */
function withParam(url: string, name: string, value: string): string {
  const mark = url.includes('?') ? '&' : '?';
  return `${url}${mark}${queryValue(name)}=${queryValue(value)}`;
}

type Paged = Pick<HttpOptions, 'url' | 'page'>;

/** Returns what to do to read the rest of a list, with the setting that a sign suggests. */
export function howToReadOn({ url, page }: Paged, sign?: Sign): string {
  if (page)
    return page.cursor === undefined ? 'correct page' : 'correct page.cursor and page.param';
  const [first] = sign?.place ? settingsFor(sign.place, url) : [];
  if (!first) return 'add page, by which the API is asked for its pages, such as { number: page }';
  const { number, cursor, param } = first;
  const setting = number === undefined ? `cursor: ${cursor}, param: ${param}` : `number: ${number}`;
  return `add page: { ${setting} }`;
}

/** Returns the settings that a named place suggests, the likeliest first. */
export function settingsFor(
  { path, text }: NextPlace,
  url: string,
): NonNullable<HttpOptions['page']>[] {
  const link = linkIn(text, url);
  if (link) {
    const own = URL.parse(url)?.searchParams;
    const params = [...link.searchParams].filter(([name, value]) => own?.get(name) !== value);
    const numbers = params.filter(([name, value]) => value === '2' && /page|^p$/i.test(name));
    const isPath = !path.includes(' ');
    return [
      ...numbers.map(([number]) => ({ number })),
      ...(isPath ? params.map(([param]) => ({ cursor: path, param })) : []),
    ];
  }
  if (path.includes(' ')) return [];
  // A field `next_page_token` is probably for the parameter `page_token`.
  const rest = (path.split('.').at(-1) ?? '').replace(/^next[_-]?/i, '');
  const param = rest === '' ? 'cursor' : rest.charAt(0).toLowerCase() + rest.slice(1);
  return [{ cursor: path, param }];
}

/** Returns the cursor in a field, which may be the address of the next page. */
export function cursorIn(value: unknown, param: string, url: string): unknown {
  if (typeof value !== 'string') return value;
  return linkIn(value, url)?.searchParams.get(param) ?? value;
}

/** Returns the address in a text, which may begin with its path. */
function linkIn(text: string, url: string): URL | undefined {
  return /^(https?:\/)?\/|^\?/.test(text) ? (URL.parse(text, url) ?? undefined) : undefined;
}
