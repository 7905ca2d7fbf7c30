/**
 * Reads a sample of the source that the user names: a file, an address, or a CRM, with the access
 * that the environment holds. A password is never written: `${DATABASE_URL}` stands for it.
 */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { openSource } from '../../compose/source-registry.ts';
import { contactSource } from '../../config/schema/source-types.ts';
import { Invalid } from '../../domain/errors.ts';
import { counted } from '../../domain/values/counted.ts';
import { systemClock } from '../../http/system-clock.ts';
import { hubspotProperties } from '../../sources/hubspot/hubspot-source.ts';
import { hubspotOptions } from '../../sources/hubspot/options.ts';
import { createGrants, createSession } from '../../sources/salesforce/salesforce-api.ts';
import { salesforceFields } from '../../sources/salesforce/salesforce-records.ts';
import { salesforceOptions } from '../../sources/salesforce/options.ts';
import { listed, quoted } from '../../sources/shared/record-fields.ts';
import { hasUtf16Pattern } from '../../sources/shared/files/file-origin.ts';
import { absoluteAddress, placeOf, sqlOptions } from '../../sources/sql/options.ts';
import { firstRows, listTables, tableWithMost } from '../../sources/sql/database.ts';
import { closing, httpSample, resolved, withVariables } from './http-sample.ts';
import { Undecided } from './flags.ts';
import {
  type Column,
  isMail,
  mostSampled,
  type Sample,
  sampleOf,
  type SourceRequest,
} from './sample.ts';

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
  const read: Read = async (more, most) => {
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
 * Adds `headerRow` if a row that the source does not take for the header names more columns, one of
 * which holds addresses. A row that holds an address, a number or a date itself is a person's.
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

/** Returns the number of different names of columns, or 0 if none of them holds an address. */
function countNames(columns: readonly Column[]): number {
  const names = new Set(columns.map(({ name }) => name.replace(/ \(\d+\)$/, '')));
  names.delete('unnamed');
  return columns.some(({ addresses }) => addresses > 0) ? names.size : 0;
}

const variable = 'DATABASE_URL';

/**
 * Without a named table, reads that of a file with the most addresses. Throws Undecided, with the
 * tables there are, for another database.
 */
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
  const isFile = place.system === 'sqlite';
  const most = isFile ? mostOfFile : mostSampled;
  const isSecret = !isFile && address === source && place.password !== undefined;
  const written = isSecret ? `\${${variable}}` : source;
  const from = isFile
    ? { options: { type: 'sql', table }, file: place.path }
    : {
        options: { type: 'sql', url: written, table },
        named: written,
        ...(isSecret && { env: { [variable]: url } }),
      };
  const origin = isPath && given === undefined ? source : table;
  return sampleOf(
    firstRows(reach, { table, most }, opening),
    { ...from, origin },
    { most, signal },
  );
}

const mostOfFile = 100_000;

/** HubSpot's own properties are many, and few of them are about consent. */
const aboutConsent = /opt_?out|opt_?in|unsub|subscri|consent|legal_basis|gdpr|quarantine/i;
const mostFields = 200;

/** Reads contacts of the HubSpot account whose token is in HUBSPOT_TOKEN. */
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
  const extent = { fields: ['id', 'archived', ...properties], most: mostSampled, signal };
  return sampleOf(await openSource(used), { options, origin: 'hubspot', standard, notes }, extent);
}

/** Takes SALESFORCE_URL, SALESFORCE_CLIENT_ID and SALESFORCE_CLIENT_SECRET. */
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
  const grants = createGrants(used, around);
  const session = createSession(used, grants, signal, around);
  const names = await closing(session, () => salesforceFields(session, 'Contact'));
  const standard = {
    id: 'Id',
    email: 'Email',
    deleted: 'IsDeleted',
    unsubscribed: 'HasOptedOutOfEmail',
  };
  const notes = ['contacts only; to read leads too, add objects: [Contact, Lead]'];
  const from = { options, origin: 'salesforce', standard, notes };
  return sampleOf(await openSource(used), from, {
    fields: likely(names),
    most: mostSampled,
    signal,
  });
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
