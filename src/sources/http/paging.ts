/** How to come from one page to the next, and what the end of the list looks like. */
import { Invalid } from '../../domain/errors.ts';
import { fieldAt } from '../../domain/values/record-field.ts';
import type { Flaw } from '../shared/read-certificate.ts';
import type { HttpOptions } from './options.ts';
import { markOf } from '../shared/hash-mark.ts';

/** So many pages in a row that bring nothing new are no accident. */
const MOST_IDLE = 20;

interface Page {
  /** The whole answer. */
  value: unknown;
  /** How many records it has, and how many of them no page has shown before. */
  size: number;
  fresh: number;
  /** Whether a header names a next page. */
  linked: boolean;
}

/**
 * The next page's address, or the end. marked: the CRM says so. unmarked: it is only taken for it,
 * and a total may prove it. wrong: nothing does.
 */
export type Next =
  { address: string } | { end: 'marked' } | { end: 'unmarked' | 'wrong'; flaw: Flaw };

export interface Paging {
  first: string;
  after(page: Page): Next;
  /** What it means that a page after the first is not there (404). */
  missing: Flaw | undefined;
}

interface Place {
  /** For messages. */
  host: string;
  /** Whether a whole reading has proven the path of the cursor: its absence is then the end. */
  proven: boolean;
}

/** Of one reading: a cursor that comes again is known. */
export function createPaging(
  { url, page }: Pick<HttpOptions, 'url' | 'page'>,
  place: Place,
): Paging {
  if (!page) return wholeAtOnce(url);
  const { cursor, param = '', number = '', first = 1, size, sizeValue } = page;
  const sized = size === undefined ? url : withParam(url, size, String(sizeValue));
  return cursor === undefined
    ? byNumber(sized, number, first)
    : byCursor(sized, { cursor, param, ...place });
}

function wholeAtOnce(url: string): Paging {
  const why = 'the answer says that more pages follow';
  const flaw = { why, fix: 'say with page how to come to them' };
  return {
    first: url,
    missing: undefined,
    after: ({ linked }) => (linked ? { end: 'wrong', flaw } : { end: 'marked' }),
  };
}

/**
 * Ends with an empty page; a short one proves nothing, since a CRM may have a limit of its own. If
 * the first page comes again, the parameter may be wrong, and its total that of a page.
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
 * Ends with an answer without a next cursor. If the first one is, the path may be wrong, and then
 * all pages but that would be lost; so would they be if no page but the first brings anything new.
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
    after({ value, fresh }) {
      const next = fieldAt(value, cursor);
      if (next === undefined && known.size === 0 && !proven) {
        const why = 'the first answer has no cursor, so it is not known to be the only';
        const fix = 'correct page.cursor; or have smaller pages, or name the total of the source';
        return { end: 'unmarked', flaw: { why, fix } };
      }
      if (next === undefined || next === null || next === '' || next === false) {
        return { end: 'marked' };
      }
      if (typeof next !== 'string' && typeof next !== 'number') {
        throw new Invalid(`${host}: page.cursor is no text or number there → correct it`);
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

/** Appended as it is: what else the address says is not written anew. */
function withParam(url: string, name: string, value: string): string {
  const mark = url.includes('?') ? '&' : '?';
  return `${url}${mark}${encodeURIComponent(name)}=${encodeURIComponent(value)}`;
}
