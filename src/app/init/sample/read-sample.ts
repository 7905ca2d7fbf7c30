/**
 * Reads a sample of the source that the user names: a file, an address, or a CRM, with the access
 * that the environment holds. A password is never written: `${DATABASE_URL}` stands for it.
 */
import { Invalid } from '../../../domain/errors.ts';
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { contactKey } from '../../../domain/values/contact-key.ts';
import { isAddress } from '../../../records/contact/values/email-address.ts';
import { csvSource } from '../../../sources/csv/csv-source.ts';
import { csvOptions } from '../../../sources/csv/options.ts';
import type { Encoding } from '../../../sources/csv/csv-format.ts';
import { ndjsonSource } from '../../../sources/ndjson/ndjson-source.ts';
import { ndjsonOptions } from '../../../sources/ndjson/options.ts';
import { hasUtf16Pattern } from '../../../sources/shared/files/detect-encoding.ts';
import type { Source } from '../../../sources/source.ts';
import { xlsxOptions } from '../../../sources/xlsx/options.ts';
import { xlsxSource } from '../../../sources/xlsx/xlsx-source.ts';
import { httpSample, withVariables } from './http-sample.ts';
import {
  type Column,
  type Sample,
  type SourceRequest,
  collecting,
  mostSampled,
  closing,
  sampleOf,
  Undecided,
} from './sample.ts';
import { resolve } from 'node:path';
import { systemClock } from '../../../http/system-clock.ts';
import { listed, quoted } from '../../../sources/shared/field-suggestions.ts';
import { absoluteAddress, placeOf } from '../../../sources/sql/drivers/database-address.ts';
import { sqlOptions } from '../../../sources/sql/options.ts';
import { listTables, sampleSqlite, sampleTable } from '../../../sources/sql/table-sample.ts';
import { hubspotSource, hubspotProperties } from '../../../sources/hubspot/hubspot-source.ts';
import { hubspotOptions } from '../../../sources/hubspot/options.ts';
import { salesforceFields } from '../../../sources/salesforce/field-selection.ts';
import { createGrants, createSession } from '../../../sources/salesforce/api-session.ts';
import { salesforceOptions } from '../../../sources/salesforce/options.ts';
import { salesforceSource } from '../../../sources/salesforce/salesforce-source.ts';
import { counted } from '../../../domain/values/counted.ts';

/** Throws Invalid if most of the source cannot be read, or if it holds no records. */
export async function readSample(request: SourceRequest): Promise<Sample> {
  const { source, env, table, header = [] } = request;
  const name = source.startsWith('${') ? withVariables(source, env) : source;
  const isDatabase = /^(postgres(ql)?|mysql|mariadb|sqlite):/i.test(name);
  let reader = async ({ signal }: SourceRequest): Promise<Sample> => fileSample(source, signal);
  if (/^https?:/i.test(name)) reader = httpSample;
  else if (isDatabase || (table !== undefined && isSqlite(name))) reader = sqlSample;
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

const variable = 'DATABASE_URL';

/** Throws Undecided if no table is named, with the tables there are. */
async function sqlSample({ source, table, env, signal }: SourceRequest): Promise<Sample> {
  const given = isSqlite(source) && !/^sqlite:/i.test(source) ? `sqlite:${source}` : source;
  const url = absoluteAddress(withVariables(given, env), (path) => resolve(path));
  const place = placeOf(url);
  if ('reason' in place) throw new Invalid(`the address ${place.reason}`, { fix: place.fix ?? '' });
  const around = { clock: systemClock, signal };
  const options = sqlOptions.parse({ type: 'sql', url, table: table ?? 'none' });
  if (table === undefined) {
    const tables = await listTables(options, around);
    const [first = 'NAME'] = tables;
    throw new Undecided('it is not said which table holds the people', {
      fix: `add --table ${quoted(first)}, or another one; tables found: ${listed(tables)}`,
      question: { about: 'table', among: tables },
    });
  }
  const rows = await sampleTable(options, { table, most: mostSampled }, around);
  const collected = collecting();
  collected.add(rows);
  const isWhole = rows.length < mostSampled;
  const sampled = { origin: table, ...collected.end(), flaw: undefined, isWhole };
  if (place.system === 'sqlite') {
    return { options: { type: 'sql', table }, file: place.path, ...sampled };
  }
  const isSecret = source === url && place.password !== undefined;
  const written = isSecret ? `\${${variable}}` : source;
  return {
    options: { type: 'sql', url: written, table },
    named: written,
    ...(isSecret && { env: { [variable]: url } }),
    ...sampled,
  };
}

const around = { clock: systemClock, random: Math.random };

interface File {
  type: 'csv' | 'ndjson' | 'xlsx';
  path: string;
  signal: AbortSignal;
}

const fileTypes = [
  [/\.xlsx$/i, 'xlsx'],
  [/\.(ndjson|jsonl|json)(\.gz)?$/i, 'ndjson'],
  [/\.(csv|tsv|txt|tab)(\.gz)?$/i, 'csv'],
] as const;

/** Reads the file at `path`. Throws Invalid if it cannot be read as an export. */
async function fileSample(path: string, signal: AbortSignal): Promise<Sample> {
  if (!existsSync(path)) {
    throw new Invalid(`${path}: there is no such file`, { fix: 'correct the path' });
  }
  if (isSqlite(path)) {
    const { table, rows } = sampleSqlite(resolve(path));
    const collected = collecting();
    collected.add(rows);
    const options = { type: 'sql', table };
    const place = { file: resolve(path), origin: path };
    return { options, ...place, ...collected.end(), flaw: undefined, isWhole: true };
  }
  const type = fileTypes.find(([name]) => name.test(path))?.[1];
  if (!type) {
    throw new Invalid(`${path}: init cannot tell what kind of file this is`, {
      fix: 'name it .csv, .tsv, .txt, .ndjson, .jsonl, .json, .xlsx or .sqlite, or write the configuration by hand',
    });
  }
  const file: File = { type, path, signal };
  if (type === 'xlsx') return read(file, await withHeader(file, { type }));
  if (type === 'ndjson') return completed(file, { type });
  try {
    return await completed(file, await withHeader(file, { type }));
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    // The file is not UTF-8.
    const bytes = Buffer.alloc(1_024);
    const opened = openSync(path, 'r');
    const length = readSync(opened, bytes);
    closeSync(opened);
    const isUtf16 = hasUtf16Pattern(bytes.subarray(0, length));
    const encoding: Encoding = isUtf16 ? 'utf-16' : 'windows-1252';
    return completed(file, await withHeader(file, { type, encoding }));
  }
}

/** How many rows of a file may be above the people. */
const mostTitles = 20;

/**
 * Adds `headerRow` if a row that the source does not take for the header names more columns, one of
 * which holds addresses. A row that holds an address, a number or a date itself is a person's.
 */
async function withHeader(file: File, options: Options): Promise<Options> {
  let found = { options, named: namedIn(await firstColumns(file, options)) };
  for (let headerRow = 1; headerRow <= mostTitles; headerRow += 1) {
    const tried = { ...options, headerRow };
    const columns = await firstColumns(file, tried);
    const isPerson = columns.some(({ name }) => numeric.test(name) || isAddress(contactKey(name)));
    if (isPerson && found.named > 0) break;
    const named = namedIn(columns);
    if (!isPerson && named > found.named) found = { options: tried, named };
  }
  return found.options;
}

const numeric = /^[-+\d.,:/ ]+$/;

/** Returns the number of different names of columns, or 0 if none of them holds an address. */
function namedIn(columns: readonly Column[]): number {
  const names = new Set(columns.map(({ name }) => name.replace(/ \(\d+\)$/, '')));
  names.delete('unnamed');
  return columns.some(({ addresses }) => addresses > 0) ? names.size : 0;
}

async function firstColumns(file: File, options: Options): Promise<readonly Column[]> {
  const reading = { fields: [], most: 1, signal: file.signal };
  try {
    return (await sampleOf(sourceOf(file, options), reading)).columns;
  } catch (error) {
    if (error instanceof Invalid) return [];
    throw error;
  }
}

function isSqlite(path: string): boolean {
  return /\.(sqlite3?|db3?)$/i.test(path);
}

type Options = Record<string, string | number>;

/** Reads once more with `finalNewline: optional` if the reading is complete with that option. */
async function completed(file: File, options: Options): Promise<Sample> {
  const sample = await read(file, options);
  if (sample.flaw === undefined) return sample;
  const tolerant = await read(file, { ...options, finalNewline: 'optional' });
  return tolerant.flaw === undefined ? tolerant : sample;
}

async function read(file: File, options: Options): Promise<Sample> {
  const { type, path, signal } = file;
  const reading = { fields: [], most: Number.POSITIVE_INFINITY, signal };
  const collected = await sampleOf(sourceOf(file, options), reading);
  return { options: { ...options, type }, file: resolve(path), origin: path, ...collected };
}

function sourceOf({ type, path }: File, options: Options): Source {
  const given = { ...options, type, path: resolve(path) };
  if (type === 'xlsx') return xlsxSource(xlsxOptions.parse(given), around);
  return type === 'ndjson'
    ? ndjsonSource(ndjsonOptions.parse(given), around)
    : csvSource(csvOptions.parse(given), around);
}

/** HubSpot's own properties are many, and few of them are about consent. */
const aboutConsent = /opt_?out|opt_?in|unsub|subscri|consent|legal_basis|gdpr|quarantine/i;
const mostFields = 200;

/** Reads contacts of the HubSpot account whose token is in HUBSPOT_TOKEN. */
async function hubspotSample({ env, signal }: SourceRequest): Promise<Sample> {
  const fix = 'put the access token of an app of the account into it';
  const written = { type: 'hubspot', ...variables(env, { token: 'HUBSPOT_TOKEN' }, fix) };
  const options = hubspotOptions.parse(resolved(written, env));
  const names = await hubspotProperties(options, around, signal);
  const wanted = names.filter((name) => !/^hs_|^hubspot_/.test(name) || aboutConsent.test(name));
  const properties = likely(wanted).map((name) => `properties.${name}`);
  const fields = ['id', 'archived', ...properties];
  const reading = { fields, most: mostSampled, signal };
  return {
    options: written,
    origin: 'hubspot',
    standard: {
      id: 'id',
      email: 'properties.email',
      deleted: 'archived',
      unsubscribed: 'properties.hs_email_optout',
    },
    notes: [
      `${counted(names.length, 'property', 'properties')}, ${properties.length} of them read`,
    ],
    ...(await sampleOf(hubspotSource(options, around), reading)),
  };
}

/** Takes SALESFORCE_URL, SALESFORCE_CLIENT_ID and SALESFORCE_CLIENT_SECRET. */
async function salesforceSample({ env, signal }: SourceRequest): Promise<Sample> {
  const secrets = { clientId: 'SALESFORCE_CLIENT_ID', clientSecret: 'SALESFORCE_CLIENT_SECRET' };
  const place = 'put the address of the organization into it: https://acme.my.salesforce.com';
  const key = 'put the key or secret of an app with the client credentials flow into it';
  const { url = '' } = resolved(variables(env, { url: 'SALESFORCE_URL' }, place), env);
  const auth = variables(env, secrets, key);
  const checked = salesforceOptions.safeParse({
    type: 'salesforce',
    url,
    auth: resolved(auth, env),
    // A sample is not worth a bulk job.
    bulkAbove: 1_000_000_000,
  });
  if (!checked.success) {
    throw new Invalid('SALESFORCE_URL is not the address of an organization', { fix: place });
  }
  const { data: options } = checked;
  const grants = createGrants(options, around);
  const session = createSession({ options, grants, signal, ...around });
  const names = await closing(session, async () => salesforceFields(session, 'Contact'));
  const reading = { fields: likely(names), most: mostSampled, signal };
  const source = salesforceSource(options, { ...around, unsubscribed: [] });
  return {
    options: { type: 'salesforce', url, auth },
    origin: 'salesforce',
    standard: {
      id: 'Id',
      email: 'Email',
      deleted: 'IsDeleted',
      unsubscribed: 'HasOptedOutOfEmail',
    },
    notes: ['contacts only; to read leads too, add objects: [Contact, Lead]'],
    ...(await sampleOf(source, reading)),
  };
}

/** Returns at most 200 fields, those about consent first. */
function likely(names: readonly string[]): string[] {
  const first = names.filter((name) => aboutConsent.test(name));
  return [...new Set([...first, 'email', ...names])]
    .filter((name) => names.includes(name))
    .slice(0, mostFields);
}

type Texts = Record<string, string>;

/** Returns options as `${NAME}`. Throws Invalid if a variable is not set. */
function variables(env: SourceRequest['env'], names: Texts, fix: string): Texts {
  return Object.fromEntries(
    Object.entries(names).map(([option, name]) => {
      if (!env[name]) throw new Invalid(`${name} is not set in the environment`, { fix });
      return [option, `\${${name}}`];
    }),
  );
}

function resolved(options: Texts, env: SourceRequest['env']): Texts {
  const entries = Object.entries(options);
  return Object.fromEntries(entries.map(([name, text]) => [name, withVariables(text, env)]));
}
