/** How to get to the next page, to recognize the end, and which `page` setting to propose. */
import { queryValue } from '../../domain/address-part.ts';
import { Invalid } from '../../domain/errors.ts';
import { fieldAt, isObject, isRecord } from '../../domain/values/record-field.ts';
import { type Flaw, markOf } from '../shared/read-certificate.ts';
import type { HttpOptions } from './options.ts';

const MOST_IDLE = 20;

export interface ReadPage {
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

interface Paging {
  first: string;
  after(page: ReadPage): Next;
  /** The flaw if a page after the first does not exist (404); undefined if that is an error. */
  missing: Flaw | undefined;
}

/** What to do if the end of the list has no mark: a total outweighs that. */
export const TELL_TOTAL = 'name the total of the source, if its answers tell one';

/** Creates the paging for one read. `isProven`: a missing cursor marks the end. */
export function createPaging({ url, page }: HttpOptions, host: string, isProven: boolean): Paging {
  if (!page) return { first: url, missing: undefined, after: () => ({ end: 'marked' }) };
  const { cursor, param = '', number = '', first = 1, size, sizeValue } = page;
  const sized = size === undefined ? url : withParam(url, size, String(sizeValue));
  if (cursor === undefined) return byNumber(sized, number, first);
  return byCursor(sized, { cursor, param }, host, isProven);
}

/**
 * Pages by number, until an empty page. A short page proves nothing, because the CRM may have a
 * limit of its own. If the first one comes again, the parameter may be wrong, and the total may
 * count only that page.
 */
function byNumber(url: string, param: string, first: number): Paging {
  let number = first;
  const fix = TELL_TOTAL;
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
 * Pages by cursor, until a response without one. If the first has none, or only the first page has
 * new records, the path may be wrong, and the other pages would be lost. Some APIs name a cursor
 * after the last page, too: an empty page with a flag that there is no more is the end.
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

function withParam(url: string, name: string, value: string): string {
  const mark = url.includes('?') ? '&' : '?';
  return `${url}${mark}${queryValue(name)}=${queryValue(value)}`;
}

/** Returns what to do to read the rest of a list, with the setting that a sign suggests. */
export function howToReadOn({ url, page }: HttpOptions, sign?: Sign): string {
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

// Finds in a response the signs that its list goes on. Names are compared without case and
// punctuation, flags and numbers may be text:
//
//   has_more, more_records, hasNextPage, truncated …   true                     more
//   last, isLastPage, done, complete …                 false                    more
//   next, next_page, next_cursor, links.next …         filled                   more (1)
//   cursor, page_token, continuation …                 filled                   more (1) (2)
//   total, count, totalSize, X-Total-Count …           above the records read   more
//   pages, total_pages, last_page …                    above the pages read     more
//
//   (1) unless has_more is false or last is true: some APIs always name a next place
//   (2) unless a `next` is there and empty
//
// These places count: each object on the way to the list, the objects for paging within them
// (meta, pagination, links …), and the headers. Records and other objects do not.

export interface Stated {
  path: string;
  count: number;
}

interface MoreSigns {
  /** The flag, link or cursor that says that there is more. */
  more: Sign | undefined;
  isEnd: boolean;
  /** The path of an error that is not empty, or of a success that is false. */
  error: string | undefined;
  total: Stated | undefined;
  pages: Stated | undefined;
}

/** The cursor of the next page, or its address, and where it is. */
export interface NextPlace {
  path: string;
  text: string;
}

/** One sign: where it is, and what it says. `place` is the next place that the response names. */
interface Sign {
  path: string;
  says: string;
  isFlag: boolean;
  place: NextPlace | undefined;
}

type Entry = readonly [path: string, name: string, value: unknown];

const things =
  '(records?|results?|items?|elements?|entries|rows?|hits|objects?|resources?|contacts?|people|persons?|members?|users?|customers?|subscribers?|matches)';
const moreFlag = new RegExp(
  `^(has|is|are)?(there)?(more|next|additional)(pages?|batch|data|available|exists?|incollection|${things})*$`,
);
const cutFlag = /^(is|was)?(list)?(truncated|incomplete|partial)(results?|list)?$/;
const lastFlag =
  /^(is|on)?(last|final)(page|batch|chunk)?$|^(is)?(at)?end(of\w+|reached)?$|^nomore/;
const doneFlag = /^(is)?(done|complete|completed|finished|exhausted|eof)$/;
const nextName =
  /^next(page|batch|results?)?(cursor|token|link|url|uri|href|path|number|no|index|id|key|marker|start|offset|skip|after|position|continuation|continuationtoken|pagetoken|recordsurl|startingafter)?$|^lastevaluatedkey$/;
const cursorName =
  /^(end|page|paging|list)?cursor$|^(page|paging|continuation|resumption)token$|^continuation$/;
const totalName = new RegExp(
  `^(grand|overall)?(total|count)(of|num|number|numberof)?(count|size|number|found|available|${things})?(count)?$` +
    `|^(num|number)(of${things}|found)$|^nbhits$|^found$|^${things}(count|total|filtered)$`,
);
const pagesName =
  /^(total|num)?pages?(count|total)$|^(total|num|numberof)?pages$|^(last|max|total)page$/;
const pagingName =
  /^(response|results?|list|pages?|paging|pagination|search|collection|query|records?)?(meta|metadata|info|paging|pagination|paginator|pager|links?|cursors?)$|^(pages?|pageable|additionaldata|summary|navigation|resultset)$/;

const deepest = 3;

/** Reads the signs in a response. `records` is the path of its list; undefined: it is the list. */
export function signsIn(
  { value, headers }: { value: unknown; headers: Readonly<Record<string, string>> },
  records: string | undefined,
): MoreSigns {
  const entries = [...bodyEntries(value, records), ...headerEntries(headers)];
  // `done` may be said of the request, so it does not say that the list ends here.
  const isEnd = entries.some(([, name, given]) => {
    if (lastFlag.test(name)) return isTrue(given);
    if (!moreFlag.test(name) || name.startsWith('next')) return false;
    return isFalse(given) || countOf(given) === 0;
  });
  const flag = entries.find(([, name, given]) => {
    if (moreFlag.test(name))
      return isTrue(given) || (!name.startsWith('next') && (countOf(given) ?? 0) > 0);
    if (cutFlag.test(name)) return isTrue(given);
    return (lastFlag.test(name) || doneFlag.test(name)) && isFalse(given);
  });
  const next = entries.find(([, name, given]) => nextName.test(name) && isFilled(given));
  const cursor = entries.some(([, name, given]) => nextName.test(name) && !isFilled(given))
    ? undefined
    : entries.find(([, name, given]) => cursorName.test(name) && isFilled(given));
  const named = isEnd ? undefined : (next ?? cursor);
  const sign = flag ?? named;
  const isFiltered = entries.some(([, name]) => name === 'recordsfiltered');
  return {
    more: sign && {
      path: sign[0],
      says: flag ? `${flag[0]} is ${String(flag[2])}` : `${sign[0]} names one`,
      isFlag: flag !== undefined,
      place: named && placeIn(named),
    },
    isEnd,
    error: entries.find(([, name, given]) => {
      if (/^(ok|(is)?success(ful)?)$/.test(name)) return isFalse(given);
      return /^errors?$/.test(name) && isFilled(given);
    })?.[0],
    total: largest(entries, (name) => {
      return totalName.test(name) && !(isFiltered && name === 'recordstotal');
    }),
    pages: largest(entries, (name) => pagesName.test(name)),
  };
}

function isTrue(value: unknown): boolean {
  return value === true || (typeof value === 'string' && /^(true|yes|y)$/i.test(value.trim()));
}

function isFalse(value: unknown): boolean {
  return value === false || (typeof value === 'string' && /^(false|no|n)$/i.test(value.trim()));
}

/** Returns whether a value names a place: no empty text, 0 or -1, and no object of only these. */
function isFilled(value: unknown): boolean {
  if (typeof value === 'string')
    return !/^(|0|-1|null|none|nil|false|undefined)$/i.test(value.trim());
  if (typeof value === 'number') return value > 0;
  if (isObject(value)) return Object.values(value).some(isFilled);
  return value === true;
}

/** Returns the text that leads to the next page: the value, or the first filled one inside it. */
function placeIn([path, , value]: Entry): Sign['place'] {
  if (typeof value === 'string' || typeof value === 'number') return { path, text: String(value) };
  if (!isRecord(value)) return undefined;
  const inner = Object.entries(value).find(([, one]) => typeof one !== 'object' && isFilled(one));
  return inner && { path: `${path}.${inner[0]}`, text: String(inner[1]) };
}

function largest(entries: readonly Entry[], is: (name: string) => boolean): Stated | undefined {
  const stated = entries.flatMap(([path, name, value]) => {
    if (!is(name)) return [];
    const count = countOf(value) ?? countOf(fieldAt(value, 'value'));
    return count === undefined ? [] : [{ path, count }];
  });
  return stated.toSorted((a, b) => b.count - a.count)[0];
}

/** Parses a count, which some APIs send as text. */
export function countOf(value: unknown): number | undefined {
  const isText = typeof value === 'string' && /^\d{1,15}$/.test(value.trim());
  const count = isText ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

/** Returns the fields of the objects that lead to the list, the outermost first. */
function bodyEntries(value: unknown, records: string | undefined): Entry[] {
  if (records === undefined) return [];
  const isOwn = isRecord(value) && Object.hasOwn(value, records);
  const names = isOwn ? [records] : records.split('.');
  return names.flatMap((_, depth) => {
    const path = names.slice(0, depth).join('.');
    return entriesOf(depth === 0 ? value : fieldAt(value, path), path, 0);
  });
}

function entriesOf(value: unknown, path: string, depth: number): Entry[] {
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([name, inner]): Entry[] => {
    const at = path === '' ? name : `${path}.${name}`;
    const plain = plainName(name);
    if (pagingName.test(plain) && Array.isArray(inner)) {
      // One of a list of links: `[{ rel: 'next', href }]`.
      const next: unknown = inner.find((link) =>
        [fieldAt(link, 'rel'), fieldAt(link, 'relation')].includes('next'),
      );
      return next === undefined ? [] : [[at, 'next', [next]]];
    }
    const isPaging = pagingName.test(plain) && isRecord(inner) && depth < deepest;
    return isPaging ? entriesOf(inner, at, depth + 1) : [[at, plain, inner]];
  });
}

function headerEntries(headers: Readonly<Record<string, string>>): Entry[] {
  const own = Object.entries(headers).filter(([name]) => /^(x-|total)/.test(name));
  const entries = own.map(([name, value]): Entry => {
    return [`the header ${name}`, plainName(name.replace(/^x-(wp-)?/, '')), value];
  });
  const range = /^\S*\s*\d+-\d+\/(\d+)$/.exec(headers['content-range'] ?? '')?.[1];
  const link = /<([^>]*)>[^,]*;\s*rel="?next\b/i.exec(headers['link'] ?? '')?.[1];
  return [
    ...(link === undefined ? [] : [['the header link', 'next', link] as const]),
    ...entries,
    ...(range === undefined ? [] : [['the header content-range', 'total', range] as const]),
  ];
}

const plainName = (name: string): string => name.toLowerCase().replaceAll(/^@?odata|[^a-z]/g, '');
