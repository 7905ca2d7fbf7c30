/**
 * Reads a sample from an HTTP API: finds its list of records and its paging, and reads by them. A
 * way of paging is proposed only if it was tried and brought other records. Secrets stay out of the
 * configuration: they are written as `${NAME}`.
 */
import { openSource } from '../../compose/source-registry.ts';
import { interpolate } from '../../config/yaml-document.ts';
import { Invalid } from '../../domain/errors.ts';
import { systemClock } from '../../http/system-clock.ts';
import { type NextPlace, signsIn, cursorIn, settingsFor } from '../../sources/http/paging.ts';
import { httpOptions, type HttpOptions } from '../../sources/http/options.ts';
import { type Asking, createAsking } from '../../sources/shared/crm-request.ts';
import { isRecord } from '../../sources/shared/record-fields.ts';
import { addressFault } from '../../sources/shared/option-fields.ts';
import { isMail, mostSampled, type Sample, sampleOf, type SourceRequest } from './sample.ts';

const mend = { credentials: '--header', request: 'the address', of: 'init' };
const timeoutMs = 30_000;
const mostWaitMs = 20_000;
const secret = /auth|key|token|secret|passw|cookie|credential|session|signature/i;

/** Throws Invalid if there is no list of records at the address, and what a request throws. */
export async function httpSample(request: SourceRequest): Promise<Sample> {
  const { source, env, signal } = request;
  // A header as it is given, such as `Accept: text/csv`, is one as the configuration states it.
  const texts = request.header ?? [];
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
  const headers = Object.fromEntries(pairs);
  const url = withVariables(source, env);
  for (const [name, value] of URL.parse(source)?.searchParams ?? []) {
    if (!secret.test(name) || value.includes('${')) continue;
    throw new Invalid(`${name} in the address would be written into the configuration`, {
      fix: `put it into the environment, and write ${name}=\${CRM_TOKEN}, in single quotes`,
    });
  }
  const fault = addressFault(url, false);
  if (fault) throw new Invalid(`the address ${fault.reason}`, { fix: fault.fix ?? '' });
  const sent = resolved(headers, env);
  const options = { url, headers: sent, timeoutMs, mend, mostWaitMs };
  const asking = createAsking(options, { clock: systemClock, random: Math.random });
  const found = await closing(asking, () => recognize(asking, url, signal));
  const { note, page, ...places } = found;
  const written = {
    type: 'http',
    url: page ? withoutParams(source, Object.values(page)) : source,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...places,
    ...(page && { page }),
  };
  const given = { ...written, url: withVariables(written.url, env), headers: sent };
  const used = await openSource(httpOptions.parse(given));
  const from = { options: written, origin: new URL(url).hostname, notes: [note] };
  return sampleOf(used, from, { most: mostSampled, signal });
}

/** Returns what the work yields, and closes the connection that it used. */
export async function closing<T>(
  connection: { close(): Promise<void> },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } finally {
    await connection.close();
  }
}

/** Returns the address without these parameters, which the paging sets. */
function withoutParams(source: string, params: readonly unknown[]): string {
  const [start = '', query = ''] = source.split('?', 2);
  const kept = query.split('&').filter((one) => !params.includes(one.split('=', 1)[0]));
  return kept.join('') === '' ? start : `${start}?${kept.join('&')}`;
}

/** A list this long without any sign of further pages may still be the first of several. */
const longList = 20;
const mostTried = 10;
const refusals = [400, 403, 404, 405, 410, 422];

/** Returns the places of the list and its total, the way of paging that was tried, and a note. */
async function recognize(asking: Asking, url: string, signal: AbortSignal) {
  const said = await asking.ask({ address: url }, signal);
  const list = said && listIn(said.value);
  if (!list) {
    const what = said ? 'the answer holds no list of records' : 'there is nothing there (404)';
    throw new Invalid(`${asking.host}: ${what}`, { fix: 'name the address of a list of people' });
  }
  const { path, records } = list;
  const { more, total: count, pages } = signsIn(said, path);
  const named = placesNamed(said.value);
  // The count of a page is no total.
  const isTotal = count && /^total/i.test(lastOf(count.path));
  const least = records.length + (isTotal ? 0 : 1);
  const total = count && !count.path.includes(' ') && count.count >= least ? count.path : undefined;
  const found = { ...(path !== undefined && { records: path }), ...(total && { total }) };
  // What says that there are more records than these.
  let says = more?.says;
  if (count && count.count > records.length) says ??= `${count.path} is ${count.count}`;
  if (pages && pages.count > 1) says ??= `${pages.path} is ${pages.count}`;
  const place = path === undefined ? 'the answer is the list' : `the list is ${path}`;
  const isMore = says !== undefined || named.length > 0 || total !== undefined;
  if (!isMore && records.length < longList) {
    return { ...found, page: undefined, note: `${place}; it is read at once` };
  }
  const recordsAt = async (name: string, value: string) => {
    const address = new URL(url);
    address.searchParams.set(name, value);
    const answer = await asking.ask({ address: address.href, accepts: refusals }, signal);
    const there = answer && answer.status < 400 ? listIn(answer.value) : undefined;
    return there?.path === path ? there?.records : undefined;
  };
  const known = new Set(records.map((record) => JSON.stringify(record)));
  for (const { page, text } of waysFrom(more?.place, named, url).slice(0, mostTried)) {
    const { number, cursor, param = '' } = page;
    const next = await (number === undefined
      ? recordsAt(param, String(cursorIn(text, param, url)))
      : recordsAt(number, '2'));
    // A way of paging is right if it brings records that the first page does not have.
    if (!next?.length || next.some((record) => known.has(JSON.stringify(record)))) continue;
    const note = `${place}; its pages follow by ${cursor ?? `the parameter ${number}`}, which was tried`;
    if (number === undefined) return { ...found, page, note };
    const isFirst = JSON.stringify(await recordsAt(number, '1')) === JSON.stringify(records);
    return { ...found, page: isFirst ? page : { ...page, first: 0 }, note };
  }
  const unknown = 'how to come to further pages is not recognized';
  const note = says
    ? `the answer says that more pages follow (${says}), and ${unknown}: add page`
    : 'no second page was found';
  return { ...found, page: undefined, note: `${place}; ${note}` };
}

/**
 * Returns the list of objects with the most addresses in it, and its path, which is undefined if
 * the answer itself is the list; undefined: there is none.
 */
function listIn(answer: unknown) {
  const isList = (value: unknown): value is unknown[] =>
    Array.isArray(value) && value.length > 0 && value.every(isRecord);
  const lists = leavesOf(answer, isList).map(([path, records]) => {
    const addresses = records.filter((record) => leavesOf(record, isMail).length > 0).length;
    return { path: path === '' ? undefined : path, records, addresses };
  });
  const [best] = lists.toSorted(
    (a, b) => b.addresses - a.addresses || b.records.length - a.records.length,
  );
  return best;
}

const deepest = 4;

/** Returns the values of a kind with their dotted paths; lists are not looked into. */
function leavesOf<T>(
  value: unknown,
  is: (value: unknown) => value is T,
  path: readonly string[] = [],
): [path: string, value: T][] {
  if (is(value)) return [[path.join('.'), value]];
  if (!isRecord(value) || path.length >= deepest) return [];
  const entries = Object.entries(value).filter(([name]) => !name.includes('.'));
  return entries.flatMap(([name, inner]) => leavesOf(inner, is, [...path, name]));
}

const cursorNames = [
  /^(next|after|offset|next_?page|end_?cursor|starting_?after)$/i,
  /^((next_?)?(page_?)?(cursor|token)|continuation(_?token)?)$/i,
];

/** Finds the cursors and addresses in a response that may lead to a next page. */
function placesNamed(answer: unknown): NextPlace[] {
  const isText = (value: unknown): value is string | number =>
    (typeof value === 'string' && value !== '') || typeof value === 'number';
  const found = Array.isArray(answer) ? [] : leavesOf(answer, isText);
  return found
    .filter(([path]) => cursorNames.some((name) => name.test(lastOf(path))))
    .map(([path, value]) => ({ path, text: String(value) }));
}

/** A way of paging to be tried, with the text that leads to the second page. */
interface Way {
  page: NonNullable<HttpOptions['page']>;
  text: string;
}

/** Returns the ways to ask for the second page, the likeliest first. */
function waysFrom(place: NextPlace | undefined, named: readonly NextPlace[], url: string): Way[] {
  const isLink = ({ text }: NextPlace): boolean => /^(https?:\/)?\//.test(text);
  const places = [...(place ? [place] : []), ...named.filter(isLink)];
  const suggested = places.flatMap((one) =>
    settingsFor(one, url).map((page) => ({ page, text: one.text })),
  );
  const cursors = named.filter((one) => !isLink(one));
  const byCursor = cursors.flatMap(({ path, text }) => {
    const names = new Set([lastOf(path), 'cursor', 'after', 'page_token', 'starting_after']);
    return [...names].map((param) => ({ page: { cursor: path, param }, text }));
  });
  const numbers = ['page', 'page_number', 'pageNumber'];
  return [...suggested, ...byCursor, ...numbers.map((number) => ({ page: { number }, text: '' }))];
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

/** Returns texts with their `${NAME}` replaced. */
export function resolved(
  texts: Readonly<Record<string, string>>,
  env: SourceRequest['env'],
): Record<string, string> {
  const entries = Object.entries(texts);
  return Object.fromEntries(entries.map(([name, text]) => [name, withVariables(text, env)]));
}
