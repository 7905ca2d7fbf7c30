import nock from 'nock';
import { expect, onTestFinished } from 'vitest';
import { fieldAt, textOf } from '../../../src/domain/values/record-field.ts';
import { salesforceOptions } from '../../../src/sources/salesforce/options.ts';
import { salesforceSource } from '../../../src/sources/salesforce/salesforce-source.ts';
import { longId } from '../../../src/sources/salesforce/salesforce-records.ts';
import type { Certificate, SourceRecord } from '../../../src/sources/source.ts';
import { readAll, virtualClock } from './source-reading.ts';

// A Salesforce organization that answers as the REST and Bulk APIs are documented to: tokens,
// descriptions, queries in pages, jobs. Of SOQL it knows what a mirror asks.

export const ORIGIN = 'https://acme.my.salesforce.com';
export const NOW = Date.UTC(2026, 0, 15, 12);
const VERSION = '/services/data/v62.0';

export interface Person {
  Id: string;
  [field: string]: unknown;
}

export interface Asked {
  method: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

export interface Reply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Org {
  records: Record<'Contact' | 'Lead', Person[]>;
  /** Besides those every object has; a name with its type behind a colon. */
  fields: Record<'Contact' | 'Lead', string[]>;
  origin: string;
  nowMs: number;
  pageSize: number;
  /** How often a job is asked for before it is done, and how it ends. */
  job: { polls: number; state: string; chunk: number };
  asked: Asked[];
  /** The queries among them, in order. */
  queries(): string[];
  /** The tokens given so far are good no more. */
  expire(): void;
  /** What is answered instead, if anything. */
  instead(asked: Asked): Reply | undefined;
  answer(asked: Asked): Reply;
}

export function createOrg(people: Partial<Org['records']> = {}): Org {
  const tokens = { given: 0, valid: new Set<string>() };
  const lists = new Map<string, { object: 'Contact' | 'Lead'; names: string[]; found: Person[] }>();
  const org: Org = {
    records: { Contact: [], Lead: [], ...people },
    fields: { Contact: [], Lead: [] },
    origin: ORIGIN,
    nowMs: NOW,
    pageSize: 2_000,
    job: { polls: 1, state: 'JobComplete', chunk: 5_000 },
    asked: [],
    queries: () => org.asked.flatMap((asked) => soqlIn(asked) ?? []),
    expire: () => tokens.valid.clear(),
    instead: () => undefined,
    answer(asked) {
      org.asked.push(asked);
      const reply = org.instead(asked) ?? answerOf(asked);
      const headers = { date: new Date(org.nowMs).toUTCString(), ...reply.headers };
      return { ...reply, headers };
    },
  };
  function answerOf({ method, path, headers, body }: Asked): Reply {
    if (path === '/services/oauth2/token') {
      tokens.given += 1;
      const access_token = `00Dx!token${tokens.given}`;
      tokens.valid.add(`Bearer ${access_token}`);
      return {
        status: 200,
        body: { access_token, instance_url: org.origin, token_type: 'Bearer' },
      };
    }
    if (!tokens.valid.has(String(headers['authorization']))) {
      return refused(401, 'INVALID_SESSION_ID', 'Session expired or invalid');
    }
    const url = new URL(path, org.origin);
    const [, kind = '', rest = ''] =
      /^\/services\/data\/v62\.0\/(\w+)\/?(.*)$/.exec(url.pathname) ?? [];
    if (kind === 'sobjects') return describe(rest.startsWith('Lead') ? 'Lead' : 'Contact');
    if (kind === 'queryAll') return select(url.searchParams.get('q') ?? '');
    if (kind === 'query') return page(rest);
    if (kind === 'jobs') return bulk({ method, rest, url, body });
    return refused(404, 'NOT_FOUND', 'The requested resource does not exist');
  }
  function describe(object: 'Contact' | 'Lead'): Reply {
    const own =
      object === 'Lead' ? ['IsConverted:boolean', 'ConvertedContactId'] : ['AccountId::Account'];
    const names = [...standard, ...own, ...org.fields[object]];
    const fields = names.map((text) => {
      const [name, type, relationshipName] = text.split(':');
      return { name, type: type || 'string', relationshipName: relationshipName ?? null };
    });
    return { status: 200, body: { name: object, fields } };
  }
  function select(soql: string): Reply {
    const { object, names, found } = matching(org, soql);
    const locator = `01g${lists.size}`;
    lists.set(locator, { object, names, found });
    return page(`${locator}-0`);
  }
  function page(place: string): Reply {
    const [locator = '', from = 0] = place.split('-');
    const { object, names, found } = lists.get(locator)!;
    const end = Number(from) + org.pageSize;
    const done = end >= found.length;
    const records = found.slice(Number(from), end).map((one) => jsonOf(object, names, one));
    const next = { nextRecordsUrl: `${VERSION}/query/${locator}-${end}` };
    return { status: 200, body: { totalSize: found.length, done, ...(!done && next), records } };
  }
  let polls = 0;
  let listed: ReturnType<typeof matching>;
  function bulk({
    method,
    rest,
    url,
    body,
  }: {
    method: string;
    rest: string;
    url: URL;
    body: string;
  }): Reply {
    const id = '750R0000000zlh9IAA';
    if (method === 'POST') {
      listed = matching(org, JSON.parse(body).query);
      return { status: 200, body: { id, operation: 'queryAll', state: 'UploadComplete' } };
    }
    if (!rest.endsWith('/results')) {
      const isDone = (polls += 1) > org.job.polls;
      const done = { state: org.job.state, numberRecordsProcessed: listed.found.length };
      return { status: 200, body: { id, ...(isDone ? done : { state: 'InProgress' }) } };
    }
    const from = Number(url.searchParams.get('locator') ?? 0);
    const end = from + org.job.chunk;
    const some = listed.found.slice(from, end);
    const lines = [listed.names, ...some.map((one) => listed.names.map((name) => at(one, name)))];
    const headers = {
      'content-type': 'text/csv',
      'sforce-numberofrecords': String(some.length),
      'sforce-locator': end < listed.found.length ? String(end) : 'null',
    };
    return {
      status: 200,
      headers,
      body: lines.map((line) => `${line.map(cell).join()}\n`).join(''),
    };
  }
  return org;
}

const standard = [
  'Id',
  'Email',
  'IsDeleted:boolean',
  'MasterRecordId',
  'SystemModstamp:datetime',
  'HasOptedOutOfEmail:boolean',
  'OwnerId::Owner',
  'LastName',
];

export function refused(status: number, errorCode: string, message = ''): Reply {
  return { status, body: [{ errorCode, message }] };
}

/** The organization behind its address, for one test. */
export function onNet(org: Org, origin = ORIGIN): void {
  if (!nock.isActive()) nock.activate();
  nock.disableNetConnect();
  nock.enableNetConnect('127.0.0.1');
  onTestFinished(() => {
    nock.cleanAll();
    nock.enableNetConnect();
    // Other files of this process have connections of their own.
    nock.restore();
  });
  const scope = nock(origin).persist();
  for (const method of ['GET', 'POST']) {
    scope.intercept(/.*/, method).reply(async (request: Request) => {
      const { pathname, search } = new URL(request.url);
      const sent = { method, path: pathname + search, body: await request.text() };
      const headers = Object.fromEntries(request.headers);
      const { status, body = '', headers: told } = org.answer({ ...sent, headers });
      return [status, typeof body === 'string' ? body : JSON.stringify(body), told];
    });
  }
}

function soqlIn({ path, body }: Asked): string | undefined {
  if (path.endsWith('/jobs/query')) return JSON.parse(body).query;
  return new URL(path, ORIGIN).searchParams.get('q') ?? undefined;
}

/** Conditions it knows; whatever else is asked everybody meets. */
function matching({ records }: Org, soql: string) {
  const [, select = '', object = '', where = ''] =
    /^SELECT (.+?) FROM (\w+)(?: WHERE (.+?))?(?: ORDER BY .+)?$/.exec(soql) ?? [];
  const [, field = '', list = ''] = /\((\w+) IN \((.+?)\)\)/.exec(where) ?? [];
  const since = /SystemModstamp >= ([\w:-]+)/.exec(where)?.[1];
  const from: 'Contact' | 'Lead' = object === 'Lead' ? 'Lead' : 'Contact';
  const found = records[from].filter((one) => {
    if (field !== '' && !list.includes(`'${at(one, field)}'`)) return false;
    if (where.includes("LastName = 'Hidden'")) return one['LastName'] === 'Hidden';
    if (where.includes("LastName != 'Hidden'") && one['LastName'] === 'Hidden') return false;
    return since === undefined || Date.parse(String(one['SystemModstamp'])) >= Date.parse(since);
  });
  return { object: from, names: select.split(', '), found };
}

function at(record: unknown, path: string): unknown {
  return fieldAt(record, path) ?? null;
}

function jsonOf(type: string, names: readonly string[], record: Person) {
  const tops = [...new Set(names.map((name) => name.split('.')[0]!))];
  return {
    attributes: { type, url: `${VERSION}/sobjects/${type}/${record.Id}` },
    ...Object.fromEntries(tops.map((name) => [name, record[name] ?? null])),
  };
}

function cell(value: unknown): string {
  return value === null ? '' : `"${textOf(value)?.replaceAll('"', '""')}"`;
}

// The source of options as they stand in a configuration, in virtual time, and people for it.

export const auth = { clientId: '3MVG9.id', clientSecret: 'sk_secret' };
export const fields = ['Id', 'Email', 'HasOptedOutOfEmail', 'IsDeleted'];
const never = new AbortController().signal;

/** The long id of the nth contact or lead. */
export const contactId = (n: number) => longId(`0035g00000${String(n).padStart(5, 'A')}`)!;
export const leadId = (n: number) => longId(`00Q5g00000${String(n).padStart(5, 'A')}`)!;

export function contact(n: number, rest: object = {}): Person {
  const standing = { HasOptedOutOfEmail: false, IsDeleted: false, MasterRecordId: null };
  const SystemModstamp = '2026-01-01T00:00:00.000+0000';
  return { Id: contactId(n), Email: `c${n}@example.com`, SystemModstamp, ...standing, ...rest };
}

export function lead(n: number, rest: object = {}): Person {
  const own = { Id: leadId(n), Email: `l${n}@example.com`, IsConverted: false };
  return { ...contact(n), ...own, ConvertedContactId: null, ...rest };
}

type OptOuts = Parameters<typeof salesforceSource>[1]['unsubscribed'];

export function sourceOf(options: object = {}, ...unsubscribed: OptOuts) {
  const clock = virtualClock();
  const parsed = salesforceOptions.parse({ type: 'salesforce', url: ORIGIN, auth, ...options });
  const source = salesforceSource(parsed, { clock, random: () => 1, unsubscribed });
  const { read, changes, one, still } = source;
  return { source: { read, changes: changes!, one: one!, still: still! }, clock };
}

/** Reads people of an organization that is behind its address. */
export async function readFrom(org: Org, options: object = {}, asked: readonly string[] = fields) {
  onNet(org);
  const { source, clock } = sourceOf(options);
  return { source, clock, ...(await readAll(source, asked)) };
}

export async function changesOf(
  source: ReturnType<typeof sourceOf>['source'],
  since: string,
  asked: readonly string[] = fields,
) {
  const reading = source.changes(since, { fields: asked, signal: never });
  const records: SourceRecord[] = [];
  let step = await reading.next();
  for (; !step.done; step = await reading.next()) records.push(...step.value);
  const values = records.flatMap((record) => ('value' in record ? [record.value] : []));
  return { values, certificate: step.value };
}

export function one(source: ReturnType<typeof sourceOf>['source'], id: string, asked = fields) {
  return source.one(id, { fields: asked, signal: never });
}

export function cursorIn(certificate: Certificate | 'lost'): string {
  expect(certificate).toMatchObject({ complete: true });
  return (typeof certificate === 'object' && certificate.complete && certificate.cursor) || '';
}
