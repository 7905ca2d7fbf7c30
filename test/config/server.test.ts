/** The worker's server and the CRM's events, as they are configured. */
import { afterAll, describe, expect, it } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const server = (fields: string, env: Record<string, string> = {}) =>
  load(minimal(`server: ${fields}`), env).server;

describe('a server', () => {
  it('is off unless it is configured, and then listens on this machine alone', () => {
    expect(load(minimal()).server).toBeUndefined();
    expect(load(minimal('server:')).server).toBeUndefined();
    expect(server('{}')).toEqual({ host: '127.0.0.1', port: 8080, viewersSeeAddresses: false });
  });

  it('takes its settings from the environment', () => {
    const fields = '{ host: 0.0.0.0, port: ${PORT}, token: ${TOKEN:-} }';
    const env = { PORT: '0', TOKEN: 'tok_1' };
    expect(server(fields, env)).toMatchObject({ host: '0.0.0.0', port: 0, token: 'tok_1' });
    expect(server('{ publicUrl: https://crm.example.com/hooks/ }')?.publicUrl).toBe(
      'https://crm.example.com/hooks',
    );
  });

  it.each(['localhost', '127.0.0.1', '127.1.2.3', '"::1"'])('on %s needs no token', (host) => {
    expect(mistakes(minimal(`server: { host: ${host}, token: "\${TOKEN:-}" }`))).toBeUndefined();
  });

  it.each(['0.0.0.0', '"::"', '10.1.2.3', 'crm.example.com', '127.evil.com', '"127.0.0.1:1@x"'])(
    'on %s needs one',
    (host) => {
      expect(mistakes(minimal(`server: { host: ${host}, token: "\${TOKEN:-}" }`))).toEqual([
        expect.stringMatching(
          /^mirror.yaml:6:\d+ {2}server.token {2}is missing, and host is not .* → add token: \$\{OPS_TOKEN\}, or use host: 127.0.0.1$/,
        ),
      ]);
    },
  );

  it.each([
    ['port: 65536', '6:17  server.port  is above 65535  → write 65535 or less'],
    [
      'token: a b',
      '6:18  server.token  is empty or holds what a header cannot carry  → write the key alone',
    ],
    [
      'publicUrl: "https://a.b?x=1"',
      '6:22  server.publicUrl  is no web address  → write https://HOST, as the CRM calls it',
    ],
    [
      'publicUrl: crm.example.com',
      '6:22  server.publicUrl  is no web address  → write https://HOST, as the CRM calls it',
    ],
    [
      'users: u.yaml, publicUrl: "https://a.b/crm/"',
      '6:37  server.publicUrl  has the path /crm, and the links of the console begin at /  → give the console a host name of its own, and write https://HOST',
    ],
    [
      'proxies: [proxy]',
      '6:21  server.proxies[0]  is no IP address  → write it as the connection shows it: 10.0.0.7',
    ],
  ])('with %s is refused', (fields, line) => {
    expect(mistakes(minimal(`server: { ${fields} }`))).toEqual([`mirror.yaml:${line}`]);
  });
});

const one = '{ type: http, url: https://c.r/p, one: "https://c.r/p/{id}" }';
const contacts = (webhook: string, source = one) =>
  minimal(
    `contacts:\n  source: ${source}\n  id: i\n  email: e\n` +
      `  channels: [{ id: a, subscription: s }]\n  webhook: ${webhook}`,
  );
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

describe('a webhook', () => {
  it('finds the record where its format has it, unless configured', () => {
    const webhook = (fields: string) =>
      load(contacts(`{ ${fields} }`), { SECRET: secret }).contacts?.webhook;
    expect(webhook('format: standard, secret: ${SECRET}')).toEqual({
      format: 'standard',
      secret,
      id: 'data.id',
    });
    expect(webhook('format: hubspot, secret: 0a-b')?.id).toBe('objectId');
    expect(webhook('format: hubspot, secret: 0a-b, id: x.y')?.id).toBe('x.y');
    expect(webhook(`format: standard, secret: ${secret.slice(6)}`)?.format).toBe('standard');
    expect(load(contacts('')).contacts?.webhook).toBeUndefined();
  });

  it.each([
    '{ type: http, url: https://c.r/p }',
    '{ type: csv, path: p.csv }',
    '{ type: ndjson, path: p.ndjson }',
  ])('needs more than %s', (source) => {
    expect(mistakes(contacts('{ format: hubspot, secret: s }', source))).toEqual([
      'mirror.yaml:11:12  contacts.webhook  needs a source that reads a single record' +
        '  → use http with `one`, hubspot, salesforce or sql, or remove it',
    ]);
  });

  it.each(['whsec_', 'whsec_YQ', 'a-_b', 'whsec_whsec_YWJj', 'YWI', '===='])(
    'takes no secret of another kind: %s',
    (given) => {
      expect(mistakes(contacts(`{ format: standard, secret: "${given}" }`))).toEqual([
        'mirror.yaml:11:40  contacts.webhook.secret  is no secret of Standard Webhooks' +
          '  → copy it as the sender shows it: whsec_ and then base64',
      ]);
      expect(mistakes(contacts(`{ format: hubspot, secret: "${given}" }`))).toBeUndefined();
    },
  );

  it('needs a secret', () => {
    expect(mistakes(contacts('{ format: hubspot, secret: "${NONE:-}" }'))).toEqual([
      expect.stringContaining('contacts.webhook.secret'),
    ]);
  });
});
