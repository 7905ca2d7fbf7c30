/** How the organization is got into, and what is said when it lets nobody in. */
import { createVerify, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { errorOf, readAll, scratch, virtualClock } from '../../support/sources/source-reading.ts';
import {
  createOrg,
  NOW,
  onNet,
  refused,
  type Org,
  type Reply,
  auth,
  changesOf,
  contact,
  cursorIn,
  one,
  contactId,
  readFrom,
  sourceOf,
} from '../../support/sources/salesforce-org.ts';

const folder = await scratch();
const { publicKey, privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const privateKeyFile = join(folder, 'key.pem');
writeFileSync(privateKeyFile, privateKey);
const byKey = { clientId: '3MVG9.id', username: 'sync@acme.example' };
const logins = ({ asked }: Org) => asked.filter(({ path }) => path.endsWith('/oauth2/token'));

/** The claims of the assertion that was sent, if its signature is that of the key. */
function claimsIn(org: Org) {
  const form = new URLSearchParams(logins(org)[0]?.body);
  const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.');
  const text = (part: string) => Buffer.from(part, 'base64url');
  const isGenuine = createVerify('RSA-SHA256')
    .update(`${header}.${claims}`)
    .verify(publicKey, text(signature));
  expect(isGenuine).toBe(true);
  expect(JSON.parse(text(header).toString())).toEqual({ alg: 'RS256', typ: 'JWT' });
  return { grant: form.get('grant_type'), claims: JSON.parse(text(claims).toString()) };
}

describe('a login', () => {
  test('uses client credentials, once for all that is read', async () => {
    const org = createOrg({ Contact: [contact(1)] });
    const { source, certificate } = await readFrom(org);
    await one(source, contactId(1));
    await changesOf(source, cursorIn(certificate));
    expect(logins(org).map(({ body }) => body)).toEqual([
      'grant_type=client_credentials&client_id=3MVG9.id&client_secret=sk_secret',
    ]);
    const tokens = org.asked.slice(1).map(({ headers }) => headers['authorization']);
    expect(new Set(tokens)).toEqual(new Set(['Bearer 00Dx!token1']));
  });

  test('uses a claim signed with the key', async () => {
    const org = createOrg();
    await readFrom(org, { auth: { ...byKey, privateKeyFile } });
    const nowS = virtualClock().now() / 1000;
    expect(claimsIn(org)).toEqual({
      grant: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      claims: {
        iss: '3MVG9.id',
        sub: 'sync@acme.example',
        aud: 'https://login.salesforce.com',
        exp: nowS + 120,
      },
    });
  });

  test.each([
    ['https://acme--uat.sandbox.my.salesforce.com', {}, 'https://test.salesforce.com'],
    ['https://test.salesforce.com', {}, 'https://test.salesforce.com'],
    ['https://acme.my.salesforce.com', { audience: 'https://x.example' }, 'https://x.example'],
  ])('goes to %s %o', async (url, extra, aud) => {
    const org = createOrg();
    org.origin = url;
    onNet(org, url);
    // As a variable holds it that cannot hold lines.
    const key = { privateKey: privateKey.replaceAll('\n', '\\n') };
    await readAll(sourceOf({ url, auth: { ...byKey, ...key, ...extra } }).source, ['Id']);
    expect(claimsIn(org).claims.aud).toBe(aud);
  });

  test('is repeated when the token has expired in the middle, and so is the page', async () => {
    const org = createOrg({ Contact: [1, 2, 3, 4, 5].map((n) => contact(n)) });
    org.pageSize = 2;
    org.instead = ({ path }) => {
      if (path.endsWith('-2') && logins(org).length === 1) org.expire();
      return undefined;
    };
    const { values, certificate } = await readFrom(org);
    expect(values).toHaveLength(5);
    expect(certificate.complete).toBe(true);
    expect(logins(org)).toHaveLength(2);
    expect(org.asked.filter(({ path }) => path.endsWith('-2'))).toHaveLength(2);
  });

  test('uses the address in the answer when it is one of Salesforce', async () => {
    const org = createOrg({ Contact: [contact(1)] });
    org.origin = 'https://na1.salesforce.com';
    onNet(org, org.origin);
    const { values } = await readFrom(org);
    expect(values).toHaveLength(1);
  });
});

describe('a failed login', () => {
  test.each([
    'https://acme.my.salesforce.com.evil.example',
    'https://salesforce.com.evil.example',
    'https://evilsalesforce.com',
    'http://acme.my.salesforce.com',
    'https://acme.my.salesforce.com:8443',
    'https://me:pw@acme.my.salesforce.com',
    'nonsense',
  ])('sends no token when the answer names %s for the API', async (origin) => {
    const org = createOrg();
    org.instead = ({ path }) =>
      path.endsWith('/token')
        ? { status: 200, body: { access_token: '00Dx!token', instance_url: origin } }
        : undefined;
    onNet(org);
    const error = await errorOf(readAll(sourceOf().source, ['Id']));
    expect(error.message).toBe(
      'acme.my.salesforce.com names an address for its API that is not of Salesforce → write the address of the organization, its My Domain, into url of the source',
    );
    expect(org.asked).toHaveLength(1);
  });

  const oauth = (error: string, error_description = '', status = 400): Reply => ({
    status,
    body: { error, error_description: `${error_description} sk_secret` },
  });
  test.each<[Reply, string, string?]>([
    [oauth('invalid_client_id', 'client identifier invalid'), 'correct auth.clientId'],
    [oauth('invalid_client', 'invalid client credentials'), 'correct auth.clientSecret'],
    [oauth('invalid_grant', 'no client credentials user enabled'), 'name a user it runs as'],
    [oauth('invalid_grant', 'request not supported on this domain'), 'write My Domain into url'],
    [oauth('invalid_grant', "user hasn't approved this consumer"), 'pre-authorized'],
    [oauth('invalid_app_access', 'user is not admin approved'), 'pre-authorized'],
    [oauth('invalid_grant', 'audience is invalid'), 'set auth.audience'],
    [oauth('invalid_grant', 'invalid assertion'), 'correct auth.privateKeyFile'],
    [oauth('inactive_user', 'user is inactive', 401), 'activate the user'],
    [oauth('sk secret!'), 'refuses the credentials (400) → correct auth of the source'],
    [{ status: 403, body: '<p>sk_secret' }, 'correct auth of the source'],
    [{ status: 404 }, 'gives no tokens (404) → correct url of the source'],
    [oauth('invalid_grant', 'login rate exceeded'), 'gives no token for now', 'Unavailable'],
    [{ status: 200, body: { hello: 1 } }, 'answered without a token', 'Unavailable'],
    [{ status: 503 }, 'answered 503, after 4 attempts', 'Unavailable'],
    [{ status: 302, headers: { location: 'https://evil.example' } }, 'answered with a redirect'],
  ])('is reported: %o', async (reply, words, name = 'Invalid') => {
    const org = createOrg();
    org.instead = ({ path }) => (path.endsWith('/token') ? reply : undefined);
    onNet(org);
    const error = await errorOf(readAll(sourceOf().source, ['Id']));
    expect(error.name).toBe(name);
    expect(error.message).toContain(words);
    expect(`${error.message} ${String(error.cause)}`).not.toMatch(/sk.secret|3MVG9/);
  });

  test('is reported when a token is refused right after it was given', async () => {
    const org = createOrg();
    org.instead = ({ path }) =>
      path.endsWith('/token') ? undefined : refused(401, 'INVALID_SESSION_ID', 'no');
    onNet(org);
    const error = await errorOf(readAll(sourceOf().source, ['Id']));
    expect(error.message).toContain('does not accept the token it has just given → give the app');
    expect(logins(org)).toHaveLength(2);
  });

  const ed25519 = generateKeyPairSync('ed25519').privateKey.export({
    type: 'pkcs8',
    format: 'pem',
  });
  test.each<[string, object, RegExp]>([
    ['no file', { privateKeyFile: join(folder, 'no.pem') }, /cannot be read \(ENOENT\) → make it/],
    ['no key', { privateKey: 'sk_secret' }, /is no private key in PEM, or has a passphrase → make/],
    ['a key of another kind', { privateKey: ed25519.toString() }, /is no RSA key → make one/],
  ])('is reported with %s', async (_, key, words) => {
    const org = createOrg();
    onNet(org);
    const error = await errorOf(readAll(sourceOf({ auth: { ...byKey, ...key } }).source, ['Id']));
    expect(error.name).toBe('Invalid');
    expect(error.message).toMatch(words);
    expect(error.message).not.toContain('sk_secret');
    expect(org.asked).toEqual([]);
  });

  test('is reported when our clock is a day off', async () => {
    const org = createOrg();
    org.nowMs = NOW + 86_400_000;
    const { certificate } = await readFrom(org, { auth });
    expect(cursorIn(certificate)).toMatch(/^2026-01-16T11:58:00Z/);
  });
});
