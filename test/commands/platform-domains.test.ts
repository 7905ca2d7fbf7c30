import { describe, expect, test } from 'vitest';
import { KEY, mirrorOn, platformOf } from '../support/commands/mirrored-contacts.ts';

const news = {
  object: 'domain',
  id: 'dom_1',
  domain: 'news.example.com',
  status: 'pending',
  isSendingEmailEnabled: true,
  isReceivingEmailEnabled: false,
  tls: 'enforced',
  dnsRecords: [
    {
      id: 'rec_1',
      recordType: 'MX',
      recordTypeName: 'Return path',
      name: 'inbound.news',
      value: 'mx.platform.example',
      ttl: 'Auto',
      priority: 10,
    },
  ],
};
const other = { ...news, id: 'dom_2', domain: 'Example.com', status: 'failed' };
const listed = {
  body: { domains: [news, { ...other, verificationFailedReason: 'No\u001b[2J MX' }], total: 2 },
};

/** Calls a command for the domains of the platform at `url`. */
function domains(url: string) {
  const call = mirrorOn(url);
  return async (...words: string[]) => call('platform', 'domains', ...words);
}

describe('domains list', () => {
  test('prints a table', async () => {
    const { url } = await platformOf({ 'GET /api/domain/v1/list': listed });
    const { code, out, err } = await domains(url)('list');
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toEqual([
      'Domain            Status   Sends  Receives  TLS       Last verified  Id',
      'news.example.com  pending  yes    no        enforced  –              dom_1',
      'Example.com       failed   yes    no        enforced  –              dom_2',
      '',
      'Example.com failed: No [2J MX',
    ]);
  });
});

describe('domains create', () => {
  const create = 'POST /api/domain/v1/create';

  test('sends the given options, and prints the records to create', async () => {
    const { url, asked } = await platformOf({ [create]: { status: 201, body: news } });
    const flags = ['--return-path', 'in.bound', '--open-tracking', '--tls', 'enforced'];
    const { code, out } = await domains(url)(
      'create',
      ' news.example.com.',
      ...flags,
      '--no-receiving',
    );
    expect(code).toBe(0);
    expect(asked).toMatchObject([
      {
        line: create,
        headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
        body: {
          domain: 'news.example.com',
          custom_return_path: 'in.bound',
          open_tracking: true,
          tls: 'enforced',
          receiving_email: false,
        },
      },
    ]);
    expect(out.slice(2)).toEqual([
      '',
      expect.stringMatching(
        /^Put these into the DNS of news\.example\.com, then: `crm-mirror platform domains verify dom_1 -c .*`$/,
      ),
      '',
      'Type  Name          For          TTL   Priority  Value',
      'MX    inbound.news  Return path  Auto  10        mx.platform.example',
    ]);
  });

  test('says of a duplicate what is wrong and how to fix it, in one line', async () => {
    const words = { message: 'Domain already exists', why: 'Another one has it.', fix: 'Take it.' };
    const { url, asked } = await platformOf({ [create]: { status: 409, body: words } });
    const { code, out, err } = await domains(url)('create', 'example.com');
    expect({ code, out }).toEqual({ code: 1, out: [] });
    expect(err).toBe('crm-mirror: Domain already exists: Another one has it → Take it.');
    expect(asked).toHaveLength(1);
  });

  test('is not retried when its outcome is unknown', async () => {
    const { url, asked } = await platformOf({
      [create]: { status: 503, body: { message: 'Oops' } },
    });
    const { code, err } = await domains(url)('create', 'example.com');
    expect(code).toBe(1);
    expect(err).toContain('Oops; it may have been done → crm-mirror platform domains list tells');
    expect(asked).toHaveLength(1);
  });

  test.each([
    [['example'], 'no domain name'],
    [['a.b'], 'no domain name'],
    [['-a.example.com'], "unknown option '-a.example.com'"],
    [['a-.example.com'], 'no domain name'],
    [['example.c0m'], 'no domain name'],
    [['bücher.example'], 'xn--'],
    [['example.com', '--return-path', 'a_b'], '--return-path'],
    [['example.com', '--tracking', ''], '--tracking'],
    [['example.com', '--tls', 'strict'], '--tls: there are opportunistic and enforced'],
    [[], "missing required argument 'domain'"],
  ])('refuses %j before anything is sent', async (words, message) => {
    const { url, asked } = await platformOf({});
    const { code, err } = await domains(url)('create', ...words);
    expect(code).toBe(2);
    expect(err).toContain(message);
    expect(asked).toEqual([]);
  });
});

describe('domains verify', () => {
  const verify = (id: string, status: string) => ({
    'GET /api/domain/v1/list': listed,
    [`POST /api/domain/v1/verify/${id}`]: { body: { id, status } },
  });

  test.each([
    ['dom_1', 'dom_1', ['POST /api/domain/v1/verify/dom_1']],
    ['example.COM', 'dom_2', ['GET /api/domain/v1/list', 'POST /api/domain/v1/verify/dom_2']],
    ['id.of.it', 'id.of.it', ['GET /api/domain/v1/list', 'POST /api/domain/v1/verify/id.of.it']],
  ])('prints the status: %s', async (said, id, lines) => {
    const { url, asked } = await platformOf(verify(id, 'verifying'));
    const { code, out } = await domains(url)('verify', said);
    expect({ code, out }).toEqual({ code: 0, out: [`${said}: verifying`] });
    expect(asked.map(({ line }) => line)).toEqual(lines);
  });

  test('exits with 1 for a domain that failed', async () => {
    const { url } = await platformOf(verify('dom_1', 'failed'));
    expect(await domains(url)('verify', 'dom_1')).toMatchObject({
      code: 1,
      out: ['dom_1: failed → crm-mirror platform domains list says why'],
    });
  });
});

describe('domains nameservers', () => {
  const path = 'GET /api/domain/v1/nameservers/dom_1';
  const cookie = 'PLATFORM_SESSION_COOKIE=app.session_token=s3cr3t.value';

  test('sends the cookie of a session', async () => {
    const body = { domain: 'news.example.com', nameservers: ['ns1.x', 'ns2.x'], dnsProvider: 'X' };
    const { url, asked } = await platformOf({ [path]: { body } });
    const { code, out } = await domains(url)('nameservers', 'dom_1', cookie);
    expect(code).toBe(0);
    expect(out).toEqual(['news.example.com is answered for by (X):', '  ns1.x', '  ns2.x']);
    expect(asked[0]?.headers).toMatchObject({ cookie: 'app.session_token=s3cr3t.value' });
    expect(asked[0]?.headers).not.toHaveProperty('x-api-key');
  });

  test('says that somebody without an organization must sign in as a member', async () => {
    const message = 'User is not a member of an organization';
    const { url } = await platformOf({ [path]: { status: 403, body: { message } } });
    const { code, err } = await domains(url)('nameservers', 'dom_1', cookie);
    expect(code).toBe(1);
    expect(err).toContain(`(403): ${message} → sign in as a member`);
  });

  test.each([
    [[], 'PLATFORM_SESSION_COOKIE is not set'],
    [['PLATFORM_SESSION_COOKIE=s3cr3t'], 'its name ends in .session_token'],
  ])('refuses %j', async (env, message) => {
    const { url, asked } = await platformOf({});
    const { code, err } = await domains(url)('nameservers', 'dom_1', ...env);
    expect(code).toBe(2);
    expect(err).toContain(message);
    expect(err).not.toContain('s3cr3t');
    expect(asked).toEqual([]);
  });
});

describe('api-key enable', () => {
  const path = 'POST /api/api-key/v1/enable/key_1';
  const key = { id: 'key_1', name: 'CI', start: 'key_l', permissions: 'read,write' };

  test.each([
    [true, 0],
    [false, 1],
  ])('reports an enabled key: %s', async (enabled, code) => {
    const { url } = await platformOf({ [path]: { body: { ...key, enabled, requestCount: 7 } } });
    expect(await mirrorOn(url)('platform', 'key', 'enable', 'key_1')).toEqual({
      code,
      err: '',
      out: [
        'Key  Begins with  Enabled  Permissions  Requests  Id',
        `CI   key_l        ${enabled ? 'yes' : 'no '}      read,write   7         key_1`,
      ],
    });
  });

  test('reports a key that is refused itself', async () => {
    const { url } = await platformOf({ [path]: { status: 401, body: { message: 'Disabled' } } });
    const { code, err } = await mirrorOn(url)('platform', 'key', 'enable', 'key_1', '--json');
    expect(code).toBe(1);
    expect(err).toContain('refused the API key (401)');
  });

  test.each([
    [['platform', 'key']],
    [['platform', 'key', 'enable']],
    [['platform', 'key', 'revoke', 'key_1']],
  ])('refuses %j', async (words) => {
    const { url, asked } = await platformOf({});
    expect(await mirrorOn(url)(...words)).toMatchObject({ code: 2, out: [] });
    expect(asked).toEqual([]);
  });
});
