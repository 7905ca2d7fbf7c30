/**
 * Reads a sample of a file, an address or a CRM, with the access that the environment holds. A
 * password is never written: `${DATABASE_URL}` stands for it. The paging of an HTTP API is proposed
 * only if it was tried and brought other records.
 */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { openSource } from '../../compose/source-registry.ts';
import { contactSource } from '../../config/schema/source-types.ts';
import { Invalid, isExpected } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';
import { systemClock } from '../../http/system-clock.ts';
import { hubspotProperties } from '../../sources/hubspot/hubspot-source.ts';
import { hubspotOptions } from '../../sources/hubspot/options.ts';
import { createGrants, createSession } from '../../sources/salesforce/salesforce-api.ts';
import { salesforceFields } from '../../sources/salesforce/salesforce-records.ts';
import { salesforceOptions } from '../../sources/salesforce/options.ts';
import { listed, quoted } from '../../sources/shared/record-fields.ts';
import { isRecord } from '../../domain/values/record-field.ts';
import { hasUtf16Pattern } from '../../sources/shared/files/file-origin.ts';
import { absoluteAddress, placeOf, sqlOptions } from '../../sources/sql/options.ts';
import { firstRows, listTables, tableWithMost } from '../../sources/sql/database.ts';
import { Undecided } from './flags.ts';
import {
  type Column,
  isMail,
  mostSampled,
  type Sample,
  sampleOf,
  type SourceRequest,
  type PlatformChannel,
  localPlatform,
} from './sample.ts';
import { interpolate } from '../../config/yaml-document.ts';
import { type NextPlace, signsIn, cursorIn, settingsFor } from '../../sources/http/paging.ts';
import { httpOptions, type HttpOptions } from '../../sources/http/options.ts';
import { type Asking, createAsking } from '../../sources/shared/crm-request.ts';
import { addressFault } from '../../sources/shared/option-fields.ts';
import { createPlatform } from '../../platform/platform.ts';
import type { Shell } from '../../compose/process-shell.ts';

const around = { clock: systemClock, random: Math.random };

/** Throws Invalid if most of the source cannot be read, or if it holds no records. */
export async function readSample(request: SourceRequest): Promise<Sample> {
  const { source, env, table, header = [] } = request;
  const name = source.startsWith('${') ? withVariables(source, env) : source;
  const isDatabase = /^(postgres(ql)?|mysql|mariadb|sqlite):/i.test(name) || isSqlite(name);
  let reader = fileSample;
  if (/^https?:/i.test(name)) reader = httpSample;
  else if (isDatabase) reader = sqlSample;
  else if (name === 'hubspot') reader = hubspotSample;
  else if (name === 'salesforce') reader = salesforceSample;
  if (table !== undefined && reader !== sqlSample) {
    throw new Invalid('--table belongs to a database', { fix: 'remove it, or name a database' });
  }
  if (header.length > 0 && reader !== httpSample) {
    throw new Invalid('--header belongs to an HTTP API', { fix: 'remove it, or name an address' });
  }
  const sample = await reader(request);
  const { unread } = sample;
  if (unread) throw new Invalid(`${sample.origin}: ${unread.why}`, { fix: unread.fix });
  if (sample.records > 0) return sample;
  throw new Invalid(`${sample.origin}: it has no records`, { fix: 'name another source' });
}

function isSqlite(path: string): boolean {
  return /\.(sqlite3?|db3?)$/i.test(path);
}

const fileTypes = [
  [/\.xlsx$/i, 'xlsx'],
  [/\.(ndjson|jsonl|json)(\.gz)?$/i, 'ndjson'],
  [/\.(csv|tsv|txt|tab)(\.gz)?$/i, 'csv'],
] as const;

type Options = Record<string, string | number>;
type Read = (options: Options, most?: number) => Promise<Sample>;

async function fileSample({ source: path, signal }: SourceRequest): Promise<Sample> {
  assertFile(path);
  const type = fileTypes.find(([name]) => name.test(path))?.[1];
  if (!type) {
    throw new Invalid(`${path}: init cannot tell what kind of file this is`, {
      fix: 'name it .csv, .tsv, .txt, .ndjson, .jsonl, .json, .xlsx or .sqlite, or write the configuration by hand',
    });
  }
  const file = resolve(path);
  const read: Read = async (more, most = Infinity) => {
    const options = { ...more, type };
    const source = await openSource(contactSource.parse({ ...options, path: file }));
    return sampleOf(source, { options, file, origin: path }, { most, signal });
  };
  const readWhole = async (options: Options): Promise<Sample> => {
    const placed = type === 'ndjson' ? options : await withHeader(read, options);
    const sample = await read(placed);
    if (type === 'xlsx' || sample.flaw === undefined) return sample;
    // The last line may be whole although nothing ends it.
    const tolerant = await read({ ...placed, finalNewline: 'optional' });
    return tolerant.flaw === undefined ? tolerant : sample;
  };
  try {
    return await readWhole({});
  } catch (error) {
    if (type !== 'csv' || !(error instanceof Invalid)) throw error;
    // The file is not UTF-8.
    const bytes = Buffer.alloc(1_024);
    const opened = openSync(path, 'r');
    const length = readSync(opened, bytes);
    closeSync(opened);
    const isUtf16 = hasUtf16Pattern(bytes.subarray(0, length));
    return readWhole({ encoding: isUtf16 ? 'utf-16' : 'windows-1252' });
  }
}

function assertFile(path: string): void {
  if (existsSync(path)) return;
  throw new Invalid(`${path}: there is no such file`, { fix: 'correct the path' });
}

/** How many rows of a file may be above the people. */
const mostTitles = 20;

/**
 * Adds `headerRow` if a later row names more columns, one of which holds addresses. A row that
 * itself holds an address, a number or a date is a person's.
 */
async function withHeader(read: Read, options: Options): Promise<Options> {
  const columnsBy = async (tried: Options): Promise<readonly Column[]> => {
    try {
      return (await read(tried, 1)).columns;
    } catch (error) {
      if (error instanceof Invalid) return [];
      throw error;
    }
  };
  let found = { options, named: countNames(await columnsBy(options)) };
  for (let headerRow = 1; headerRow <= mostTitles; headerRow += 1) {
    const tried = { ...options, headerRow };
    const columns = await columnsBy(tried);
    const isPerson = columns.some(({ name }) => /^[-+\d.,:/ ]+$/.test(name) || isMail(name));
    if (isPerson && found.named > 0) break;
    const named = countNames(columns);
    if (!isPerson && named > found.named) found = { options: tried, named };
  }
  return found.options;
}

/** 0 if no column holds an address. */
function countNames(columns: readonly Column[]): number {
  const names = new Set(columns.map(({ name }) => name.replace(/ \(\d+\)$/, '')));
  names.delete('unnamed');
  return columns.some(({ addresses }) => addresses > 0) ? names.size : 0;
}

const variable = 'DATABASE_URL';

/** Without a named table, reads that of a file with the most addresses, and otherwise asks. */
async function sqlSample({ source, table: given, env, signal }: SourceRequest): Promise<Sample> {
  const isPath = isSqlite(source) && !/^sqlite:/i.test(source);
  if (isPath) assertFile(source);
  const address = isPath ? `sqlite:${source}` : withVariables(source, env);
  const url = absoluteAddress(address, (path) => resolve(path));
  const place = placeOf(url);
  if ('reason' in place) throw new Invalid(`the address ${place.reason}`, { fix: place.fix ?? '' });
  const opening = { clock: systemClock, signal };
  const reach = sqlOptions.parse({ type: 'sql', url, table: given ?? 'none' });
  let table = given;
  if (table === undefined) {
    const tables = await listTables(reach, opening);
    const [first = 'NAME'] = tables;
    if (!isPath) {
      throw new Undecided('it is not said which table holds the people', {
        fix: `add --table ${quoted(first)}, or another one; tables found: ${listed(tables)}`,
        question: { about: 'table', among: tables },
      });
    }
    table = await tableWithMost(reach, tables, opening);
    if (table === undefined) {
      throw new Invalid(`${source}: no table holds email addresses`, { fix: 'name another file' });
    }
  }
  const origin = isPath && given === undefined ? source : table;
  if (place.system === 'sqlite') {
    const extent = { table, most: mostOfFile };
    const from = { options: { type: 'sql', table }, file: place.path, origin };
    return sampleOf(firstRows(reach, extent, opening), from, { most: mostOfFile, signal });
  }
  const isSecret = address === source && place.password !== undefined;
  const named = isSecret ? `\${${variable}}` : source;
  const options = { type: 'sql', url: named, table };
  const from = { options, named, origin, ...(isSecret && { env: { [variable]: url } }) };
  return sampleOf(firstRows(reach, { table, most: mostSampled }, opening), from, { signal });
}

const mostOfFile = 100_000;

/** HubSpot's own properties are many, and few of them are about consent. */
const aboutConsent = /opt_?out|opt_?in|unsub|subscri|consent|legal_basis|gdpr|quarantine/i;
const mostFields = 200;

async function hubspotSample({ env, signal }: SourceRequest): Promise<Sample> {
  const fix = 'put the access token of an app of the account into it';
  const options = { type: 'hubspot', ...variables(env, { token: 'HUBSPOT_TOKEN' }, fix) };
  const used = hubspotOptions.parse(resolved(options, env));
  const names = await hubspotProperties(used, around, signal);
  const wanted = names.filter((name) => !/^hs_|^hubspot_/.test(name) || aboutConsent.test(name));
  const properties = likely(wanted).map((name) => `properties.${name}`);
  const standard = {
    id: 'id',
    email: 'properties.email',
    deleted: 'archived',
    unsubscribed: 'properties.hs_email_optout',
  };
  const notes = [
    `${counted(names.length, 'property', 'properties')}, ${properties.length} of them read`,
  ];
  const fields = ['id', 'archived', ...properties];
  const from = { options, origin: 'hubspot', standard, notes };
  return sampleOf(await openSource(used), from, { fields, signal });
}

async function salesforceSample({ env, signal }: SourceRequest): Promise<Sample> {
  const secrets = { clientId: 'SALESFORCE_CLIENT_ID', clientSecret: 'SALESFORCE_CLIENT_SECRET' };
  const place = 'put the address of the organization into it: https://acme.my.salesforce.com';
  const key = 'put the key or secret of an app with the client credentials flow into it';
  const { url = '' } = resolved(variables(env, { url: 'SALESFORCE_URL' }, place), env);
  const auth = variables(env, secrets, key);
  const options = { type: 'salesforce', url, auth };
  // A sample is not worth a bulk job.
  const given = { ...options, auth: resolved(auth, env), bulkAbove: 1_000_000_000 };
  const { success, data: used } = salesforceOptions.safeParse(given);
  if (!success) {
    throw new Invalid('SALESFORCE_URL is not the address of an organization', { fix: place });
  }
  const session = createSession(used, createGrants(used, around), signal, around);
  const names = await closing(session, salesforceFields(session, 'Contact'));
  const standard = {
    id: 'Id',
    email: 'Email',
    deleted: 'IsDeleted',
    unsubscribed: 'HasOptedOutOfEmail',
  };
  const notes = ['contacts only; to read leads too, add objects: [Contact, Lead]'];
  const from = { options, origin: 'salesforce', standard, notes };
  return sampleOf(await openSource(used), from, { fields: likely(names), signal });
}

/** Returns at most 200 fields, those about consent first. */
function likely(names: readonly string[]): string[] {
  const first = names.filter((name) => aboutConsent.test(name));
  return [...new Set([...first, 'email', ...names])]
    .filter((name) => names.includes(name))
    .slice(0, mostFields);
}

type Texts = Record<string, string>;

function variables(env: SourceRequest['env'], names: Texts, fix: string): Texts {
  return Object.fromEntries(
    Object.entries(names).map(([option, name]) => {
      if (!env[name]) throw new Invalid(`${name} is not set in the environment`, { fix });
      return [option, `\${${name}}`];
    }),
  );
}

const mend = { credentials: '--header', request: 'the address', of: 'init' };
const timeoutMs = 30_000;
const mostWaitMs = 20_000;
const secret = /auth|key|token|secret|passw|cookie|credential|session|signature/i;

/** Throws Invalid if there is no list of records at the address, and what a request throws. */
async function httpSample(request: SourceRequest): Promise<Sample> {
  const { source, env, signal } = request;
  // A header as it is given, such as `Accept: text/csv`, is one as the configuration states it.
  const headers: Record<string, string> = {};
  for (const text of request.header ?? []) {
    const [, name, value = ''] = /^([^:\s]+)\s*:\s*(.+)$/s.exec(text) ?? [];
    if (name === undefined) {
      throw new Invalid('--header is not understood', { fix: "write 'NAME: VALUE'" });
    }
    if (secret.test(name) && !value.includes('${')) {
      throw new Invalid(`--header ${name} would write its secret into the configuration`, {
        fix: `put it into the environment, and write '${name}: \${CRM_TOKEN}', in single quotes`,
      });
    }
    headers[name] = value;
  }
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
  const { note, page, ...places } = await closing(asking, recognize(asking, url, signal));
  // What the paging sets is no part of the address.
  const [start = '', query = ''] = source.split('?', 2);
  const params: readonly unknown[] = Object.values(page ?? {});
  const kept = query.split('&').filter((one) => !params.includes(one.split('=', 1)[0]));
  const written = {
    type: 'http',
    url: page ? [start, ...(kept.join('') === '' ? [] : [kept.join('&')])].join('?') : source,
    ...(Object.keys(headers).length > 0 && { headers }),
    ...places,
    ...(page && { page }),
  };
  const given = { ...written, url: withVariables(written.url, env), headers: sent };
  const from = { options: written, origin: new URL(url).hostname, notes: [note] };
  return sampleOf(await openSource(httpOptions.parse(given)), from, { signal });
}

async function closing<T>(connection: { close(): Promise<void> }, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } finally {
    await connection.close();
  }
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
  // The cursors and addresses that may lead to a next page.
  const isText = (value: unknown): value is string | number =>
    (typeof value === 'string' && value !== '') || typeof value === 'number';
  const named = (Array.isArray(said.value) ? [] : leavesOf(said.value, isText))
    .filter(([path]) => cursorNames.some((name) => name.test(lastOf(path))))
    .map(([path, value]): NextPlace => ({ path, text: String(value) }));
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

/** The list with the most addresses; `path` is undefined if the answer itself is the list. */
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

/** Lists are not looked into. */
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

/** Returns ways of paging to be tried, the likeliest first; `text` leads to the second page. */
function waysFrom(
  place: NextPlace | undefined,
  named: readonly NextPlace[],
  url: string,
): { page: NonNullable<HttpOptions['page']>; text: string }[] {
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
function withVariables(text: string, env: SourceRequest['env']): string {
  const { text: whole, missing, malformed } = interpolate(text, env);
  const [name] = missing;
  if (name !== undefined) {
    throw new Invalid(`the environment variable ${name} is not set`, { fix: 'set it' });
  }
  if (!malformed) return whole;
  throw new Invalid('a ${ is not understood', { fix: 'write ${NAME}' });
}

function resolved(texts: Readonly<Record<string, string>>, env: SourceRequest['env']) {
  const entries = Object.entries(texts);
  return Object.fromEntries(entries.map(([name, text]) => [name, withVariables(text, env)]));
}

const mostRead = 300;
const answerMs = 10_000;

/**
 * Needs PLATFORM_API_KEY. No operation lists channels, but contacts name theirs, so at most 300 are
 * read. `note`: why the platform could not be asked.
 */
export async function platformChannels(
  env: Shell['env'],
  stop: AbortSignal,
): Promise<{ channels: PlatformChannel[]; note?: string }> {
  const apiKey = env['PLATFORM_API_KEY'] ?? '';
  const url = env['PLATFORM_URL'] || localPlatform;
  if (apiKey === '' || addressFault(url, false)) return { channels: [] };
  const patience = { timeoutMs: answerMs, maxAttempts: 2, signal: stop };
  const platform = createPlatform({ url, apiKey, ...patience });
  const channels = new Map<string, PlatformChannel>();
  try {
    let read = 0;
    for await (const contact of platform.contacts.all({ limit: 100 })) {
      for (const { id, name } of contact.channels) channels.set(id, { id, name: name ?? id });
      read += 1;
      if (read === mostRead) break;
    }
    return { channels: [...channels.values()] };
  } catch (error) {
    stop.throwIfAborted();
    if (!isExpected(error)) throw error;
    return { channels: [], note: `the channels of the platform are not known: ${error.message}` };
  } finally {
    await platform.close();
  }
}
