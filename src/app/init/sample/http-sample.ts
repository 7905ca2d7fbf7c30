/**
 * Reads a sample from an HTTP API: finds its list of records and its paging, and reads by them. A
 * way of paging is proposed only if it was tried and brought other records. Secrets stay out of the
 * configuration: they are written as `${NAME}`.
 */
import { Invalid } from '../../../domain/errors.ts';
import { systemClock } from '../../../http/system-clock.ts';
import { httpSource } from '../../../sources/http/http-source.ts';
import { signsIn, type NextPlace } from '../../../sources/http/more-signs.ts';
import { httpOptions, type HttpOptions } from '../../../sources/http/options.ts';
import { type Asking, createAsking } from '../../../sources/shared/crm-request.ts';
import { addressFault } from '../../../sources/shared/option-fields.ts';
import { closing, mostSampled, type Sample, sampleOf, type SourceRequest } from './sample.ts';
import { isAddress } from '../../../records/contact/values/email-address.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import { cursorIn, settingsFor } from '../../../sources/http/paging.ts';
import { interpolate } from '../../../config/yaml-document.ts';

const around = { clock: systemClock, random: Math.random };
const mend = { credentials: '--header', request: 'the address', of: 'init' };
const timeoutMs = 30_000;
const mostWaitMs = 20_000;
/** A list this long without any sign of further pages may still be the first of several. */
const longList = 20;

/** Throws Invalid if there is no list of records at the address, and what a request throws. */
export async function httpSample(given: SourceRequest): Promise<Sample> {
  const { source, env, signal } = given;
  const headers = headersFrom(given.header ?? []);
  const url = withVariables(source, env);
  for (const [name, value] of URL.parse(source)?.searchParams ?? []) {
    if (!secret.test(name) || value.includes('${')) continue;
    throw new Invalid(`${name} in the address would be written into the configuration`, {
      fix: `put it into the environment, and write ${name}=\${CRM_TOKEN}, in single quotes`,
    });
  }
  const fault = addressFault(url, false);
  if (fault) throw new Invalid(`the address ${fault.reason}`, { fix: fault.fix ?? '' });
  const sent = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, withVariables(value, env)]),
  );
  const asking = createAsking({ url, headers: sent, timeoutMs, mend, mostWaitMs }, around);
  const found = await closing(asking, async () => recognized(asking, url, signal));
  const { records, total, page } = found;
  const written = {
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(records !== undefined && { records }),
    ...(total !== undefined && { total }),
    ...(page && { page }),
  };
  const address = page ? without(source, Object.values(page)) : source;
  const used = { ...written, type: 'http', headers: sent, url: withVariables(address, env) };
  const options = httpOptions.parse(used);
  const reading = { fields: [], most: mostSampled, signal };
  const collected = await sampleOf(httpSource(options, { ...around, id: '' }), reading);
  return {
    options: { type: 'http', url: address, ...written },
    origin: new URL(url).hostname,
    notes: [found.note],
    ...collected,
  };
}

async function recognized(asking: Asking, url: string, signal: AbortSignal) {
  const said = await asking.ask({ address: url }, signal);
  const list = said && listIn(said.value);
  if (!said || !list) {
    const what = said ? 'the answer holds no list of records' : 'there is nothing there (404)';
    throw new Invalid(`${asking.host}: ${what}`, { fix: 'name the address of a list of people' });
  }
  const hints = hintsIn(said.value, said.headers['link']);
  const signs = signsIn(said, list.path);
  const { total: count, pages } = signs;
  // The count of a page is no total.
  const isTotal = count && /^total/i.test(lastOf(count.path));
  const least = list.records.length + (isTotal ? 0 : 1);
  const total = count && !count.path.includes(' ') && count.count >= least ? count.path : undefined;
  const isLonger = count && count.count > list.records.length;
  // What says that there are more records than these.
  let says = signs.more?.says;
  if (isLonger) says ??= `${count.path} is ${count.count}`;
  if (pages && pages.count > 1) says ??= `${pages.path} is ${pages.count}`;
  const isMore = says !== undefined || hints.cursors.length > 0 || hints.links.length > 0;
  const place = list.path === undefined ? 'the answer is the list' : `the list is ${list.path}`;
  const found = { records: list.path, total };
  if (!isMore && total === undefined && list.records.length < longList) {
    return { ...found, page: undefined, note: `${place}; it is read at once` };
  }
  const recordsAt = async (params: Readonly<Record<string, string>>) => {
    const address = new URL(url);
    for (const [name, value] of Object.entries(params)) address.searchParams.set(name, value);
    const answer = await asking.ask({ address: address.href, accepts: refusals }, signal);
    if (!answer || answer.status >= 400) return undefined;
    const there = listIn(answer.value);
    return there?.path === list.path ? there?.records : undefined;
  };
  const known = new Set(list.records.map((record) => JSON.stringify(record)));
  for (const { page: tried, second } of candidatesFrom(hints, signs.more?.place, url).slice(
    0,
    mostTried,
  )) {
    const next = await recordsAt(second);
    // A way of paging is right if it brings records that the first page does not have.
    if (!next?.length || next.some((record) => known.has(JSON.stringify(record)))) continue;
    let page = tried;
    if (tried.number !== undefined) {
      const first = await recordsAt({ [tried.number]: '1' });
      const isFirst = JSON.stringify(first) === JSON.stringify(list.records);
      if (!isFirst) page = { ...tried, first: 0 };
    }
    const by = page.cursor === undefined ? `the parameter ${page.number}` : page.cursor;
    return { ...found, page, note: `${place}; its pages follow by ${by}, which was tried` };
  }
  const unknown = 'how to come to further pages is not recognized';
  const note = says
    ? `the answer says that more pages follow (${says}), and ${unknown}: add page`
    : 'no second page was found';
  return { ...found, page: undefined, note: `${place}; ${note}` };
}

const mostTried = 10;
const refusals = [400, 403, 404, 405, 410, 422];

/** Returns the address without the parameters that the paging sets. */
function without(source: string, params: readonly unknown[]): string {
  const [start = '', query] = source.split('?', 2);
  if (query === undefined) return source;
  const kept = query.split('&').filter((one) => !params.includes(one.split('=', 1)[0]));
  return kept.length > 0 ? `${start}?${kept.join('&')}` : start;
}

/** A way of paging to be tried, with the parameters of the second page. */
interface Candidate {
  page: NonNullable<HttpOptions['page']>;
  second: Readonly<Record<string, string>>;
}

const deepest = 4;

/**
 * Returns the list of objects with the most addresses in it, and its path, which is undefined if
 * the answer itself is the list; undefined: there is none.
 */
function listIn(answer: unknown) {
  const isList = (value: unknown): value is unknown[] =>
    Array.isArray(value) && value.length > 0 && value.every(isObject);
  const isMail = (value: unknown): value is string =>
    typeof value === 'string' && value.includes('@') && isAddress(contactKey(value));
  const lists = leavesOf(answer, isList).map(([path, records]) => {
    const addresses = records.filter((record) => leavesOf(record, isMail).length > 0).length;
    return { path: path === '' ? undefined : path, records, addresses };
  });
  const [best] = lists.toSorted(
    (a, b) => b.addresses - a.addresses || b.records.length - a.records.length,
  );
  return best;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
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

const cursorNames = [
  /^(next|after|cursor|offset|next_?page|end_?cursor|starting_?after)$/i,
  /^(next_?)?(page_?)?(cursor|token)$/i,
  /^continuation(_?token)?$/i,
];

/** Finds the cursors and addresses in a response that may lead to a next page, by their paths. */
function hintsIn(answer: unknown, link: string | undefined) {
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

/** The ways to ask for the second page, the likeliest first. */
function candidatesFrom(
  { cursors, links }: ReturnType<typeof hintsIn>,
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

function lastOf(path: string): string {
  return path.split('.').at(-1) ?? '';
}

/** Returns the text with its `${NAME}` replaced. Throws Invalid if a variable is not set. */
export function withVariables(text: string, env: SourceRequest['env']): string {
  const { text: whole, missing, malformed } = interpolate(text, env);
  const [name] = missing;
  if (name !== undefined) {
    throw new Invalid(`the environment variable ${name} is not set`, { fix: 'set it' });
  }
  if (!malformed) return whole;
  throw new Invalid('a ${ is not understood', { fix: 'write ${NAME}' });
}

const secret = /auth|key|token|secret|passw|cookie|credential|session|signature/i;

/** Returns headers as the configuration states them, from texts such as `Accept: text/csv`. */
function headersFrom(texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text): [string, string] => {
    const [, name, value = ''] = /^([^:\s]+)\s*:\s*(.+)$/s.exec(text) ?? [];
    if (name === undefined) {
      throw new Invalid('--header is not understood', { fix: "write 'NAME: VALUE'" });
    }
    if (secret.test(name) && !value.includes('${')) {
      throw new Invalid(`--header ${name} would write its secret into the configuration`, {
        fix: `put it into the environment, and write '${name}: \${CRM_TOKEN}', in single quotes`,
      });
    }
    return [name, value];
  });
  return Object.fromEntries(pairs);
}
