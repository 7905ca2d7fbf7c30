/**
 * Obtains access: a temporary token, either with an app's secret (client credentials) or with a
 * claim signed by a private key (JWT bearer, RFC 7523). Both are requested from the organization's
 * address.
 *
 * The response also names the address of the API. The token gives access to everything that the
 * user may see, so that address must be either the host in the configuration or, over https, one of
 * Salesforce's own hosts.
 */
import { z } from 'zod';
import { Invalid, Unavailable } from '../../domain/errors.ts';
import { createAsking, type Said, type Surroundings } from '../shared/crm-request.ts';
import type { SalesforceOptions } from './options.ts';
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { readSmallFile } from '../../domain/values/config-file.ts';

/** A token and the place where it is valid. */
export interface Grant {
  token: string;
  /** The origin of the API. */
  origin: string;
}

/** Manages the token of one organization. */
export interface Grants {
  /** Returns the existing token, or a new one. */
  current(signal: AbortSignal): Promise<Grant>;
  /** Returns a new token after the existing one was refused. */
  renew(signal: AbortSignal): Promise<Grant>;
}

const granted = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]+$/),
  instance_url: z.string().optional(),
});
const refused = z.object({ error: z.string(), error_description: z.string().default('') });

/**
 * Creates the grants. A token is kept for as long as it is accepted, because Salesforce counts
 * logins.
 */
export function createGrants(options: SalesforceOptions, surroundings: Surroundings): Grants {
  let grant: Grant | undefined;
  const ask = async (signal: AbortSignal) => (grant = await grantOf(options, surroundings, signal));
  return {
    current: async (signal) => grant ?? ask(signal),
    renew: ask,
  };
}

async function grantOf(
  options: SalesforceOptions,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Grant> {
  const mend = { credentials: 'auth', request: 'url and auth' };
  const { origin } = new URL(options.url);
  const form = await formOf(options, surroundings);
  const asking = createAsking({ url: origin, timeoutMs: options.timeoutMs, mend }, surroundings);
  try {
    const said = await asking.ask(
      {
        address: `${origin}/services/oauth2/token`,
        body: { type: 'application/x-www-form-urlencoded', text: String(form) },
        accepts: [400, 401, 403],
      },
      signal,
    );
    if (!said) {
      throw new Invalid(`${asking.host} gives no tokens (404)`, {
        fix: 'correct url of the source',
      });
    }
    return read(said, asking.host, options);
  } finally {
    await asking.close();
  }
}

async function formOf(
  options: SalesforceOptions,
  { clock }: Surroundings,
): Promise<URLSearchParams> {
  const { clientId, clientSecret } = options.auth;
  if (clientSecret !== undefined) {
    const grant_type = 'client_credentials';
    return new URLSearchParams({ grant_type, client_id: clientId, client_secret: clientSecret });
  }
  const grant_type = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
  return new URLSearchParams({ grant_type, assertion: await assertionOf(options, clock.now()) });
}

function read({ status, value }: Said, host: string, { url }: SalesforceOptions): Grant {
  if (status >= 400) throw refusal(value, { status, host });
  const { data } = granted.safeParse(value);
  if (!data) {
    const fix = 'is url of the source the address of the organization?';
    throw new Unavailable(`${host} answered without a token (${fix})`, { acted: 'maybe', status });
  }
  const origin = apiOf(data.instance_url ?? url, url);
  if (origin !== undefined) return { token: data.access_token, origin };
  const fix = 'write the address of the organization, its My Domain, into url of the source';
  throw new Invalid(`${host} names an address for its API that is not of Salesforce`, { fix });
}

/** Returns the origin of the API if it can be trusted with a token. */
function apiOf(named: string, configured: string): string | undefined {
  const there = URL.parse(named);
  if (!there || there.username || there.password) return undefined;
  const { origin, protocol, port, hostname } = there;
  if (origin === new URL(configured).origin) return origin;
  const isTheirs = /\.(?:salesforce\.com|salesforce\.mil|sfcrmproducts\.cn)$/.test(hostname);
  return protocol === 'https:' && port === '' && isTheirs ? origin : undefined;
}

/**
 * Maps Salesforce's wording to its meaning and to the correction. The first matching row counts.
 */
const meanings: readonly [says: RegExp, what: string, fix: string][] = [
  [
    /^invalid_client_id\b|identifier invalid|^app_not_found\b/,
    'knows no app of this clientId',
    'correct auth.clientId of the source, the consumer key; a new app is known after ten minutes',
  ],
  [
    /^invalid_client\b/,
    'refuses the secret of the app',
    'correct auth.clientSecret of the source, the consumer secret',
  ],
  [
    /client credentials user|^unsupported_grant_type\b|not supported on this domain/,
    'does not let the app in by client credentials',
    'enable that flow in the app, name a user it runs as, and write My Domain into url',
  ],
  [
    /approved|^invalid_app_access\b/,
    'does not let this user use the app',
    'have the app admit users who are pre-authorized, and assign it to the user',
  ],
  [
    /audience/,
    'refuses the audience of the signed claim',
    'set auth.audience of the source: https://login.salesforce.com, or https://test.salesforce.com for a sandbox',
  ],
  [
    /assertion|signature|expired/,
    'refuses what the private key has signed',
    "correct auth.privateKeyFile or auth.username of the source, the app's certificate, or the clock here",
  ],
  [
    /^inactive_(?:user|org)\b|user is locked|inactive/,
    'says that its user or the organization is not active',
    'activate the user, or name another',
  ],
];

function refusal(value: unknown, { status, host }: { status: number; host: string }): Error {
  const { data } = refused.safeParse(value);
  const says = data ? `${data.error}: ${data.error_description}` : '';
  if (/rate exceeded|^server_error\b|temporarily_unavailable/.test(says)) {
    const what = `${host} gives no token for now`;
    return new Unavailable(what, { fix: 'try again later', acted: 'maybe', status });
  }
  const [, what, fix] = meanings.find(([pattern]) => pattern.test(says)) ?? [];
  const code = /^[a-z_]{1,40}$/.exec(data?.error ?? '')?.[0];
  const how = code === undefined ? status : `${status} ${code}`;
  return new Invalid(`${host} ${what ?? 'refuses the credentials'} (${how})`, {
    fix: fix ?? 'correct auth of the source',
  });
}

/** Salesforce accepts no claim that is valid for longer than three minutes. */
const GOOD_FOR_S = 120;

/**
 * Returns the signed claim, which states the issuer, the user, the audience and the expiry. The key
 * is read again each time, because it may have been replaced. Throws Invalid if there is no key.
 */
async function assertionOf({ url, auth }: SalesforceOptions, nowMs: number): Promise<string> {
  const claims = {
    iss: auth.clientId,
    sub: auth.username,
    aud: auth.audience ?? audienceOf(url),
    exp: Math.floor(nowMs / 1000) + GOOD_FOR_S,
  };
  const parts = [{ alg: 'RS256', typ: 'JWT' }, claims];
  const text = parts.map((part) => base64(Buffer.from(JSON.stringify(part)))).join('.');
  return `${text}.${base64(sign('RSA-SHA256', Buffer.from(text), keyOf(await pemOf(auth))))}`;
}

function audienceOf(url: string): string {
  const { hostname } = new URL(url);
  const isSandbox = hostname === 'test.salesforce.com' || hostname.includes('.sandbox.');
  return `https://${isSandbox ? 'test' : 'login'}.salesforce.com`;
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64url');
}

async function pemOf({ privateKey, privateKeyFile }: SalesforceOptions['auth']): Promise<string> {
  // A variable that cannot contain line breaks often contains instead.
  if (privateKey !== undefined) return privateKey.replaceAll('\\n', '\n');
  try {
    return readSmallFile(privateKeyFile ?? '').toString('utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    const what = `${privateKeyFile}: the private key cannot be read${code}`;
    throw new Invalid(what, {
      fix: 'make it readable, or correct auth.privateKeyFile of the source',
    });
  }
}

/** Parses the key. The error has no cause, because the cause may quote the key. */
function keyOf(pem: string): KeyObject {
  const key = parsed(pem);
  if (key?.asymmetricKeyType === 'rsa') return key;
  const what = key ? 'is no RSA key' : 'is no private key in PEM, or has a passphrase';
  throw new Invalid(`the private key of the source ${what}`, {
    fix: 'make one with openssl genrsa, and its certificate',
  });
}

function parsed(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}
