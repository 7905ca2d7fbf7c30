/** Reads a sample from an HTTP API: finds its list of records and its paging, and reads by them. */
import { Invalid } from '../../../domain/errors.ts';
import { systemClock } from '../../../http/system-clock.ts';
import { httpSource } from '../../../sources/http/http-source.ts';
import { type MoreSigns, signsIn } from '../../../sources/http/more-signs.ts';
import { httpOptions } from '../../../sources/http/options.ts';
import { type Asking, createAsking } from '../../../sources/shared/crm-request.ts';
import { addressFault } from '../../../sources/shared/option-fields.ts';
import {
  addressWith,
  type Candidate,
  candidatesFrom,
  type FoundList,
  hintsIn,
  listIn,
  totalIn,
} from './recognize-list.ts';
import { closing, mostSampled, type Sample, sampleOf, type SourceRequest } from './sample.ts';
import { headersFrom, refuseSecretIn, withVariables } from './secrets.ts';

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
  refuseSecretIn(source);
  const fault = addressFault(url, false);
  if (fault) throw new Invalid(`the address ${fault.reason}`, { fix: fault.fix ?? '' });
  const sent = mapped(headers, (value) => withVariables(value, env));
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

interface Recognized {
  records: string | undefined;
  total: string | undefined;
  page: Candidate['page'] | undefined;
  note: string;
}

/** Asks for the first page, and tries the ways to the second one. */
async function recognized(asking: Asking, url: string, signal: AbortSignal): Promise<Recognized> {
  const said = await asking.ask({ address: url }, signal);
  const list = said && listIn(said.value);
  if (!said || !list) {
    const what = said ? 'the answer holds no list of records' : 'there is nothing there (404)';
    throw new Invalid(`${asking.host}: ${what}`, { fix: 'name the address of a list of people' });
  }
  const hints = hintsIn(said.value, said.headers['link']);
  const signs = signsIn(said, list.path);
  const total = totalIn(signs, list);
  const says = signOf(signs, list.records.length);
  const isMore = says !== undefined || hints.cursors.length > 0 || hints.links.length > 0;
  const place = list.path === undefined ? 'the answer is the list' : `the list is ${list.path}`;
  const found = { records: list.path, total };
  if (!isMore && total === undefined && list.records.length < longList) {
    return { ...found, page: undefined, note: `${place}; it is read at once` };
  }
  for (const candidate of candidatesFrom(hints, signs.more?.place, url).slice(0, mostTried)) {
    const page = await proven({ candidate, list, asking, url, signal });
    if (!page) continue;
    const by = page.cursor === undefined ? `the parameter ${page.number}` : page.cursor;
    return { ...found, page, note: `${place}; its pages follow by ${by}, which was tried` };
  }
  const unknown = 'how to come to further pages is not recognized';
  const note = says
    ? `the answer says that more pages follow (${says}), and ${unknown}: add page`
    : 'no second page was found';
  return { ...found, page: undefined, note: `${place}; ${note}` };
}

/** Returns the sign that there are more records than these; undefined: there is none. */
function signOf({ more, total, pages }: MoreSigns, records: number): string | undefined {
  if (more) return more.says;
  if (total && total.count > records) return `${total.path} is ${total.count}`;
  return pages && pages.count > 1 ? `${pages.path} is ${pages.count}` : undefined;
}

const mostTried = 10;
const refusals = [400, 403, 404, 405, 410, 422];

interface Trial {
  candidate: Candidate;
  list: FoundList;
  asking: Asking;
  url: string;
  signal: AbortSignal;
}

/** Returns the paging if it brings records that the first page does not have. */
async function proven(trial: Trial): Promise<Candidate['page'] | undefined> {
  const { candidate, list, url } = trial;
  const { page, second } = candidate;
  const next = await pageAt(trial, addressWith(url, second));
  const known = new Set(list.records.map((record) => JSON.stringify(record)));
  const isNew = next?.every((record) => !known.has(JSON.stringify(record)));
  if (!next || next.length === 0 || !isNew) return undefined;
  if (page.number === undefined) return page;
  const first = await pageAt(trial, addressWith(url, { [page.number]: '1' }));
  const isFirst = JSON.stringify(first) === JSON.stringify(list.records);
  return isFirst ? page : { ...page, first: 0 };
}

async function pageAt({ asking, list, signal }: Trial, address: string) {
  const said = await asking.ask({ address, accepts: refusals }, signal);
  if (!said || said.status >= 400) return undefined;
  const there = listIn(said.value);
  return there?.path === list.path ? there?.records : undefined;
}

/** Returns the address without the parameters that the paging sets. */
function without(source: string, params: readonly unknown[]): string {
  const [start = '', query] = source.split('?', 2);
  if (query === undefined) return source;
  const kept = query.split('&').filter((one) => !params.includes(one.split('=', 1)[0]));
  return kept.length > 0 ? `${start}?${kept.join('&')}` : start;
}

function mapped(
  texts: Readonly<Record<string, string>>,
  change: (text: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, change(text)]));
}
