/**
 * Recognizes in the first response of an API where its list of records is, and how the next pages
 * are asked for. A way of paging is proposed only if it was tried and brought other records.
 */
import { isAddress } from '../../../records/contact/values/email-address.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import type { MoreSigns, NextPlace } from '../../../sources/http/more-signs.ts';
import type { HttpOptions } from '../../../sources/http/options.ts';
import { cursorIn, settingsFor } from '../../../sources/http/page-setting.ts';

/** A list of records in a response; `path` is undefined if the response itself is the list. */
export interface FoundList {
  path: string | undefined;
  records: readonly unknown[];
}

type Page = NonNullable<HttpOptions['page']>;

const deepest = 4;

/** Returns the list of objects with the most addresses in it; undefined: there is none. */
export function listIn(answer: unknown): FoundList | undefined {
  const lists = leavesOf(answer, isList).map(([path, records]) => ({
    path: path === '' ? undefined : path,
    records,
  }));
  const ranked = lists.map((list) => ({ list, addresses: list.records.filter(hasAddress).length }));
  const [best] = ranked.toSorted(
    (a, b) => b.addresses - a.addresses || b.list.records.length - a.list.records.length,
  );
  return best?.list;
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value) && value.length > 0 && value.every(isObject);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasAddress(record: unknown): boolean {
  const isMail = (value: unknown): value is string =>
    typeof value === 'string' && value.includes('@') && isAddress(contactKey(value));
  return leavesOf(record, isMail).length > 0;
}

/** Returns the values of a kind with their dotted paths; lists are not looked into. */
function leavesOf<T>(
  value: unknown,
  is: (value: unknown) => value is T,
  path: readonly string[] = [],
): [path: string, value: T][] {
  if (is(value)) return [[path.join('.'), value]];
  if (!isObject(value) || path.length >= deepest) return [];
  const entries = Object.entries(value).filter(([name]) => !name.includes('.'));
  return entries.flatMap(([name, inner]) => leavesOf(inner, is, [...path, name]));
}

/** Returns the path of the number of all records, as far as a response states one. */
export function totalIn(found: MoreSigns, { records }: FoundList): string | undefined {
  const { total } = found;
  if (!total || total.path.includes(' ')) return undefined;
  // The count of a page is no total.
  const isTotal = /^total/i.test(lastOf(total.path));
  return total.count >= records.length + (isTotal ? 0 : 1) ? total.path : undefined;
}

const cursorNames = [
  /^(next|after|cursor|offset|next_?page|end_?cursor|starting_?after)$/i,
  /^(next_?)?(page_?)?(cursor|token)$/i,
  /^continuation(_?token)?$/i,
];

/** What a response says about the pages after it. */
export interface PageHints {
  /** Cursors by their paths. */
  cursors: readonly (readonly [path: string, cursor: string])[];
  /** The addresses of next pages by their paths; that of a header has none. */
  links: readonly (readonly [path: string, link: string])[];
}

/** Finds everything in a response that may lead to a next page. */
export function hintsIn(answer: unknown, link: string | undefined): PageHints {
  const isText = (value: unknown): value is string | number =>
    (typeof value === 'string' && value !== '') || typeof value === 'number';
  const found = Array.isArray(answer) ? [] : leavesOf(answer, isText);
  const named = found
    .filter(([path]) => cursorNames.some((name) => name.test(lastOf(path))))
    .map(([path, value]) => [path, String(value)] as const);
  const isLink = (text: string) => /^(https?:\/)?\//.test(text);
  const header = /<([^>]+)>\s*;\s*rel="?next\b/i.exec(link ?? '')?.[1];
  return {
    cursors: named.filter(([, text]) => !isLink(text)),
    links: [
      ...named.filter(([, text]) => isLink(text)),
      ...(header ? [['', header] as const] : []),
    ],
  };
}

/** A way of paging to be tried, with the parameters of the second page. */
export interface Candidate {
  page: Page;
  second: Readonly<Record<string, string>>;
}

/**
 * Returns the ways to ask for the second page that the hints and the next place suggest, the
 * likeliest first.
 */
export function candidatesFrom(
  { cursors, links }: PageHints,
  place: NextPlace | undefined,
  url: string,
): Candidate[] {
  const places = [
    ...(place ? [place] : []),
    ...links.flatMap(([path, text]) => (path === '' ? [] : [{ path, text }])),
  ];
  const suggested = places.flatMap(({ path, text }) =>
    settingsFor({ path, text }, url).map((page): Candidate => {
      const { number, param = '' } = page;
      if (number !== undefined) return { page, second: { [number]: '2' } };
      return { page, second: { [param]: String(cursorIn(text, param, url)) } };
    }),
  );
  const inLinks = links.flatMap(([, link]) => [...(URL.parse(link, url)?.searchParams ?? [])]);
  const byCursor = cursors.flatMap(([path, cursor]) => {
    const linked = inLinks.filter(([, value]) => value === cursor).map(([name]) => name);
    const names = [...linked, lastOf(path), 'cursor', 'after', 'page_token', 'starting_after'];
    return [...new Set(names)].map((param) => ({
      page: { cursor: path, param },
      second: { [param]: cursor },
    }));
  });
  const numbers = inLinks.filter(([name, value]) => value === '2' && /page|^p$/i.test(name));
  const names = new Set([...numbers.map(([name]) => name), 'page', 'page_number', 'pageNumber']);
  const byNumber = [...names].map((number) => ({ page: { number }, second: { [number]: '2' } }));
  return [...suggested, ...byCursor, ...byNumber];
}

/** Returns the address with these parameters in place of those it has. */
export function addressWith(url: string, params: Readonly<Record<string, string>>): string {
  const address = new URL(url);
  for (const [name, value] of Object.entries(params)) address.searchParams.set(name, value);
  return address.href;
}

function lastOf(path: string): string {
  return path.split('.').at(-1) ?? '';
}
