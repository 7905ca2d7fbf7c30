/**
 * Reads a sample of the source that the user names: a file, an address, or a CRM, with the access
 * that the environment holds. A password is never written: `${DATABASE_URL}` stands for it.
 */
import { Invalid } from '../../../domain/errors.ts';
import { fileSample, isSqlite } from './file-sample.ts';
import { httpSample, withVariables } from './http-sample.ts';
import {
  type Sample,
  type SourceRequest,
  collecting,
  mostSampled,
  closing,
  sampleOf,
} from './sample.ts';
import { resolve } from 'node:path';
import { systemClock } from '../../../http/system-clock.ts';
import { listed, quoted } from '../../../sources/shared/field-suggestions.ts';
import { absoluteAddress, placeOf } from '../../../sources/sql/drivers/database-address.ts';
import { sqlOptions } from '../../../sources/sql/options.ts';
import { listTables, sampleTable } from '../../../sources/sql/table-sample.ts';
import { Undecided } from './undecided.ts';
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

/**
 * Reads contacts of the Salesforce organization at SALESFORCE_URL, with SALESFORCE_CLIENT_ID and
 * SALESFORCE_CLIENT_SECRET.
 */
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
