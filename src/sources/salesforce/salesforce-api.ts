/** Sends requests to the API of one organization, with a token that is renewed when it expires. */
import { pathSegment } from '../../domain/address-part.ts';
import { observe } from '../../http/rate-limit-headers.ts';
import { createAsking, type Asking, type Said, type Surroundings } from '../shared/crm-request.ts';
import type { SalesforceOptions } from './options.ts';
import { z } from 'zod';
import { codeOf, Invalid, Unavailable, RateLimited } from '../../domain/errors.ts';
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { readSmallFile } from '../../domain/values/config-file.ts';
import { quoted } from '../shared/record-fields.ts';

interface ApiQuestion {
  /** The path below the version (/queryAll?q=…), or a full path named in a response. */
  path: string;
  /** A JSON document; if present, the request is a POST, unless `method` is given. */
  json?: object;
  method?: 'PATCH';
  /** Set if the response is text of this type instead of JSON. */
  text?: 'text/csv';
  /** Statuses to accept as a response, whatever their body contains. */
  accepts?: readonly number[];
}

export type Session = ReturnType<typeof createSession>;

/** Statuses whose meaning depends on the code in the response. */
const refusals = [400, 401, 403, 404];
const mend = { credentials: 'auth', request: 'where' };

export function createSession(
  options: SalesforceOptions,
  grants: ReturnType<typeof createGrants>,
  signal: AbortSignal,
  surroundings: Surroundings,
) {
  const { timeoutMs, version } = options;
  const { host } = new URL(options.url);
  const base = `/services/data/${pathSegment(version)}`;
  let startedAt: number | undefined;
  let open: { origin: string; asking: Asking } | undefined;
  const askWith = async (
    { origin, token }: Grant,
    { path, text, accepts = [], ...how }: ApiQuestion,
  ) => {
    if (open?.origin !== origin) {
      await open?.asking.close();
      open = { origin, asking: createAsking({ url: origin, timeoutMs, mend }, surroundings) };
    }
    const address = origin + (path.startsWith('/services/') ? path : base + path);
    const headers = { authorization: `Bearer ${token}`, ...(text && { accept: text }) };
    const all = [...(text ? [200] : []), ...refusals, ...accepts];
    const said = await open.asking.ask({ address, headers, accepts: all, ...how }, signal);
    if (!said) throw new Error('404 is among what is accepted');
    startedAt ??= observe(said.status, said.headers, 0).dateMs;
    return said;
  };
  return {
    host,
    /** Returns when the first response was sent, by the organization's own clock. */
    startedAt: () => startedAt,
    /** Throws Invalid, Unavailable, RateLimited, and the signal's reason if aborted. */
    async ask(question: ApiQuestion): Promise<Said> {
      const grant = await grants.current(signal);
      let said = await askWith(grant, question);
      if (said.status === 401) said = await askWith(await grants.renew(signal), question);
      const isAnswer = said.status < 400 || question.accepts?.includes(said.status);
      if (!isAnswer) throw errorOf(refusalOf(said), host);
      return said;
    },
    close: async () => open?.asking.close(),
  };
}

interface Grant {
  token: string;
  origin: string;
}

const granted = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]+$/),
  instance_url: z.string().optional(),
});
const refused = z.object({ error: z.string(), error_description: z.string().default('') });

/**
 * Manages the token of one organization, kept while it is accepted, because Salesforce counts
 * logins. It is obtained with an app's secret (client credentials) or with a claim signed by a
 * private key (JWT bearer, RFC 7523). The response also names the address of the API. As the token
 * gives access to all that the user may see, that is the configured host or, over https, one of
 * Salesforce's.
 */
export function createGrants(options: SalesforceOptions, surroundings: Surroundings) {
  let grant: Grant | undefined;
  const ask = async (signal: AbortSignal) => {
    grant = await requestGrant(options, surroundings, signal);
    return grant;
  };
  return {
    current: async (signal: AbortSignal) => grant ?? ask(signal),
    renew: ask,
  };
}

async function requestGrant(
  options: SalesforceOptions,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Grant> {
  const credentials = { credentials: 'auth', request: 'url and auth' };
  const { timeoutMs, auth } = options;
  const { origin, host } = new URL(options.url);
  const { clientId: client_id, clientSecret: client_secret } = auth;
  const form =
    client_secret === undefined
      ? {
          grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
          assertion: signClaim(options, surroundings.clock.now()),
        }
      : { grant_type: 'client_credentials', client_id, client_secret };
  const asking = createAsking({ url: origin, timeoutMs, mend: credentials }, surroundings);
  try {
    const said = await asking.ask(
      {
        address: `${origin}/services/oauth2/token`,
        form,
        accepts: [400, 401, 403],
      },
      signal,
    );
    if (!said)
      throw new Invalid(`${host} gives no tokens (404)`, { fix: 'correct url of the source' });
    const { status, value } = said;
    if (status >= 400) throw explainRefusal(value, status, host);
    const { data } = granted.safeParse(value);
    if (!data) {
      const what =
        'answered without a token (is url of the source the address of the organization?)';
      throw new Unavailable(`${host} ${what}`, { acted: 'maybe', status });
    }
    const trusted = trustedOrigin(data.instance_url ?? options.url, options.url);
    if (trusted !== undefined) return { token: data.access_token, origin: trusted };
    const fix = 'write the address of the organization, its My Domain, into url of the source';
    throw new Invalid(`${host} names an address for its API that is not of Salesforce`, { fix });
  } finally {
    await asking.close();
  }
}

function trustedOrigin(named: string, configured: string): string | undefined {
  const there = URL.parse(named);
  if (!there || there.username || there.password) return undefined;
  const { origin, protocol, port, hostname } = there;
  if (origin === new URL(configured).origin) return origin;
  const isTheirs = /\.(?:salesforce\.com|salesforce\.mil|sfcrmproducts\.cn)$/.test(hostname);
  return protocol === 'https:' && port === '' && isTheirs ? origin : undefined;
}

/** Maps Salesforce's wording to its meaning and the correction. The first matching row counts. */
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

function explainRefusal(value: unknown, status: number, host: string): Error {
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

/** Returns the signed claim. Its key is read each time: it may be another. Throws Invalid. */
function signClaim({ url, auth }: SalesforceOptions, nowMs: number): string {
  const { hostname } = new URL(url);
  const isSandbox = hostname === 'test.salesforce.com' || hostname.includes('.sandbox.');
  const claims = {
    iss: auth.clientId,
    sub: auth.username,
    aud: auth.audience ?? `https://${isSandbox ? 'test' : 'login'}.salesforce.com`,
    exp: Math.floor(nowMs / 1000) + GOOD_FOR_S,
  };
  const parts = [{ alg: 'RS256', typ: 'JWT' }, claims];
  const text = parts
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const signature = sign('RSA-SHA256', Buffer.from(text), readKey(auth));
  return `${text}.${signature.toString('base64url')}`;
}

/** Parses the key. The error has no cause, because the cause may quote the key. */
function readKey({ privateKey, privateKeyFile }: SalesforceOptions['auth']): KeyObject {
  // A variable that cannot contain line breaks often contains \n instead.
  let pem = privateKey?.replaceAll('\\n', '\n');
  try {
    pem ??= readSmallFile(privateKeyFile ?? '').toString('utf8');
  } catch (error) {
    const code = codeOf(error);
    const what = `${privateKeyFile}: the private key cannot be read${code && ` (${code})`}`;
    const fix = 'make it readable, or correct auth.privateKeyFile of the source';
    throw new Invalid(what, { fix });
  }
  let key: KeyObject | undefined;
  try {
    key = createPrivateKey(pem);
  } catch {
    key = undefined;
  }
  if (key?.asymmetricKeyType === 'rsa') return key;
  const what = key ? 'is no RSA key' : 'is no private key in PEM, or has a passphrase';
  const fix = 'make one with openssl genrsa, and its certificate';
  throw new Invalid(`the private key of the source ${what}`, { fix });
}

// Explains an error of the API in one line. The API's own words are not repeated, because they
// quote the query, and conditions may contain anything. Only field names are taken from them.

const LIMIT_WAIT_MS = 60 * 60_000;

const errors = z.array(z.object({ errorCode: z.string(), message: z.string().default('') }));

interface Refusal {
  status: number;
  code: string;
  message: string;
  /** How many of the organization's daily requests are used up, if the response states it. */
  usage: string | undefined;
}

export function refusalOf({ status, value, headers }: Said): Refusal {
  const [first] = errors.safeParse(value).data ?? [];
  const code = /^[A-Z][A-Z_]{1,60}$/.exec(first?.errorCode ?? '')?.[0] ?? '';
  const limits = /\bapi-usage=(\d+)\/(\d+)/.exec(headers['sforce-limit-info'] ?? '');
  const usage = limits ? `${limits[1]} of ${limits[2]}` : undefined;
  return { status, code, message: first?.message ?? '', usage };
}

type Lines = Record<string, [what: string, fix: string]>;

const toMend: Lines = {
  INVALID_SESSION_ID: [
    'does not accept the token it has just given',
    'give the app the scope api, and its user the permission "API Enabled"; are addresses restricted?',
  ],
  INVALID_FIELD: [
    'has no such field{field}, or its user may not see it',
    'correct the fields of the configuration or where of the source, or let the user see it',
  ],
  INVALID_TYPE: [
    'does not show an object that is to be read',
    'correct objects of the source, or give its user the right to read them',
  ],
  MALFORMED_QUERY: ['does not understand the query', 'correct where of the source'],
  INVALID_QUERY_FILTER_OPERATOR: [
    'cannot compare a field as the query does',
    'correct where of the source',
  ],
  API_DISABLED_FOR_ORG: ['has no API in its edition', 'have it enabled for the organization'],
  NOT_FOUND: [
    'has no such thing',
    'correct version and objects of the source, or give its user the right to read them',
  ],
  INSUFFICIENT_ACCESS: [
    'does not let its user read this',
    'give the user the right to read the objects and fields',
  ],
};

const passing: Lines = {
  QUERY_TIMEOUT: [
    'took too long for the query',
    'narrow where of the source, to fields that are indexed',
  ],
  INVALID_QUERY_LOCATOR: ['has closed the list in the middle of it', 'read it again'],
  API_CURRENTLY_DISABLED: ['has its API switched off for a while', 'try again later'],
  SERVER_UNAVAILABLE: ['is too busy', 'try again later'],
  UNABLE_TO_LOCK_ROW: ['is busy with the same records', 'try again later'],
};

export function errorOf(refusal: Refusal, host: string): Error {
  const { status, code, message, usage } = refusal;
  if (code === 'REQUEST_LIMIT_EXCEEDED') {
    if (/concurrent/i.test(message)) {
      const what = `${host} has too many long requests at once`;
      return new Unavailable(what, { fix: 'try again later', acted: 'maybe', status });
    }
    // The daily limit is no permission problem, whatever the status says.
    const used = usage === undefined ? '' : ` (${usage})`;
    return new RateLimited(`${host} has used up its API requests of 24 hours${used}`, {
      fix: 'run less often, or have them raised',
      retryAfterMs: LIMIT_WAIT_MS,
      route: host,
    });
  }
  const [temporary, again] = passing[code] ?? [];
  if (temporary !== undefined) {
    return new Unavailable(`${host} ${temporary}`, { fix: again, acted: 'maybe', status });
  }
  const field =
    /No such column '([\w.]{1,200})'/.exec(message) ??
    /relationship '([\w.]{1,200})' in field path/.exec(message) ??
    /\bfield '([\w.]{1,200})'/.exec(message);
  const [what, fix] = toMend[code] ?? [
    `refused the request (${[status, code].join(' ').trim()})`,
    status === 401 || status === 403
      ? 'correct auth of the source, or the rights of its user'
      : 'correct where of the source, and the fields of the configuration',
  ];
  const name = field?.[1] === undefined ? '' : `: ${quoted(field[1])}`;
  return new Invalid(`${host} ${what.replace('{field}', () => name)}`, { fix });
}
