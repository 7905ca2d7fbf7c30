/** Reads samples from HubSpot and Salesforce, with the access that the environment holds. */
import { Invalid } from '../../../domain/errors.ts';
import { systemClock } from '../../../http/system-clock.ts';
import { hubspotSource } from '../../../sources/hubspot/hubspot-source.ts';
import { hubspotOptions } from '../../../sources/hubspot/options.ts';
import { hubspotProperties } from '../../../sources/hubspot/property-selection.ts';
import { salesforceFields } from '../../../sources/salesforce/field-selection.ts';
import { createGrants } from '../../../sources/salesforce/access-grant.ts';
import { createSession } from '../../../sources/salesforce/api-session.ts';
import { salesforceOptions } from '../../../sources/salesforce/options.ts';
import { salesforceSource } from '../../../sources/salesforce/salesforce-source.ts';
import { closing, mostSampled, type Sample, sampleOf, type SourceRequest } from './sample.ts';
import { withVariables } from './secrets.ts';
import { counted } from '../../../domain/values/counted.ts';

const around = { clock: systemClock, random: Math.random };

/** HubSpot's own properties are many, and few of them are about consent. */
const aboutConsent = /opt_?out|opt_?in|unsub|subscri|consent|legal_basis|gdpr|quarantine/i;
const mostFields = 200;

/** Reads contacts of the HubSpot account whose token is in HUBSPOT_TOKEN. */
export async function hubspotSample({ env, signal }: SourceRequest): Promise<Sample> {
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
export async function salesforceSample({ env, signal }: SourceRequest): Promise<Sample> {
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
