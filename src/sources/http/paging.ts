/** Determines how to get from one page to the next, and how to recognize the end of the list. */
import { queryValue } from '../../domain/address-part.ts';
import { Invalid } from '../../domain/errors.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import { type Flaw, markOf } from '../shared/read-certificate.ts';
import type { MoreSigns } from './more-signs.ts';
import type { HttpOptions } from './options.ts';
import { cursorIn } from './page-setting.ts';

/** This many consecutive pages without a new record indicate an error. */
const MOST_IDLE = 20;

export interface ReadPage {
  /** The whole response. */
  value: unknown;
  /** The number of records, and how many of them no earlier page contained. */
  size: number;
  fresh: number;
  /** What it says about further pages. */
  signs: MoreSigns;
}

/**
 * The address of the next page, or the end of the list. `marked`: the CRM states the end.
 * `unmarked`: the end is assumed, and a total may prove it. `wrong`: nothing can prove it.
 */
export type Next =
  { address: string } | { end: 'marked' } | { end: 'unmarked' | 'wrong'; flaw: Flaw };

/** The paging method for one list. */
export interface Paging {
  first: string;
  after(page: ReadPage): Next;
  /** The flaw if a page after the first does not exist (404); undefined if that is an error. */
  missing: Flaw | undefined;
}

interface Place {
  /** The host, for messages. */
  host: string;
  /**
   * Whether a complete read has proven the cursor's path. In that case, a missing cursor marks the
   * end.
   */
  proven: boolean;
}

/** Creates the paging for one read. It remembers the cursors that it has seen. */
export function createPaging(
  { url, page }: Pick<HttpOptions, 'url' | 'page'>,
  place: Place,
): Paging {
  if (!page) return { first: url, missing: undefined, after: () => ({ end: 'marked' }) };
  const { cursor, param = '', number = '', first = 1, size, sizeValue } = page;
  const sized = size === undefined ? url : withParam(url, size, String(sizeValue));
  return cursor === undefined
    ? byNumber(sized, number, first)
    : byCursor(sized, { cursor, param, ...place });
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
  { cursor, param, host, proven }: Place & { cursor: string; param: string },
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
      if (next === undefined && known.size === 0 && !proven) {
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
