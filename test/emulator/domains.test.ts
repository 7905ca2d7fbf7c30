import { describe, expect, test } from 'vitest';
import { twoOrganizations } from '../support/emulator/organizations.ts';
import { stage } from '../support/emulator/emulator-stage.ts';

const CREATE = 'POST /api/domain/v1/create';
const NOON = '2026-11-20T12:00:00.000Z';

function record(fields: object) {
  return {
    id: expect.stringMatching(/^rec_/),
    domain: 'mail.example.com',
    ttl: 'Auto',
    status: 'active',
    createdAt: NOON,
    updatedAt: NOON,
    ...fields,
  };
}

describe('POST /api/domain/v1/create', () => {
  test('answers 201 with every field of a domain, pending, and the defaults', () => {
    const { status, json } = stage().ask(CREATE, { domain: 'mail.example.com' });
    expect(status).toBe(201);
    const { dnsRecords, ...domain } = json;
    expect(domain).toEqual({
      object: 'domain',
      id: expect.stringMatching(/^dom_/),
      domain: 'mail.example.com',
      status: 'pending',
      userVerifiedDomain: false,
      systemVerified: false,
      customReturnPath: 'inbound',
      trackingSubdomain: 'tracking',
      isClickTrackingEnabled: false,
      isOpenTrackingEnabled: false,
      tls: 'opportunistic',
      isTrackingDomain: false,
      isSendingEmailEnabled: true,
      isReceivingEmailEnabled: true,
      verificationFailedReason: '',
      lastVerifiedAt: NOON,
      createdAt: NOON,
      updatedAt: NOON,
      event: 'domain.created',
    });
    expect(dnsRecords).toEqual([
      record({ recordType: 'MX', recordTypeName: 'MX', name: '@', priority: 10, value: host }),
      record({
        recordType: 'TXT',
        recordTypeName: 'SPF',
        name: 'inbound',
        priority: 0,
        value: expect.stringMatching(/^v=spf1 include:\S+ ~all$/),
      }),
      record({
        recordType: 'TXT',
        recordTypeName: 'DKIM',
        name: 'crm._domainkey',
        priority: 0,
        value: expect.stringMatching(/^v=DKIM1; k=rsa; p=[A-Za-z0-9+/]{200,}$/),
      }),
      record({
        recordType: 'MX',
        recordTypeName: 'Return-Path',
        name: 'inbound',
        priority: 10,
        value: host,
      }),
      record({
        recordType: 'CNAME',
        recordTypeName: 'Tracking',
        name: 'tracking',
        priority: 0,
        value: host,
      }),
    ]);
  });

  const host = expect.stringMatching(/^[a-z]+\.mail-platform\.example$/);

  test('takes every field', () => {
    const { json } = stage().ask(CREATE, {
      domain: 'example.org',
      custom_return_path: 'bounce.mail',
      tracking: 'go',
      click_tracking: true,
      open_tracking: true,
      tls: 'enforced',
      sending_email: false,
      receiving_email: false,
    });
    expect(json).toMatchObject({
      customReturnPath: 'bounce.mail',
      trackingSubdomain: 'go',
      isClickTrackingEnabled: true,
      isOpenTrackingEnabled: true,
      tls: 'enforced',
      isSendingEmailEnabled: false,
      isReceivingEmailEnabled: false,
      dnsRecords: [{ recordTypeName: 'Tracking', name: 'go' }],
    });
  });

  const label = 'x'.repeat(63);
  const longest = `${[label, label, label, 'x'.repeat(60)].join('.')}.ab`;

  test.each(['a.io', 'x-1.example.com', '1.2.3.de', `${label}.com`, 'A.COM', longest])(
    'accepts the domain %s',
    (domain) => {
      const { status, json } = stage().ask(CREATE, { domain });
      expect(status).toBe(201);
      expect(json.domain).toBe(domain.toLowerCase());
    },
  );

  test.each([
    'a.b',
    'localhost',
    '-a.example.com',
    'a-.example.com',
    'a..example.com',
    '.example.com',
    'example.com.',
    'example.c',
    'example.c0m',
    'example.com1',
    'exa_mple.com',
    'exa mple.com',
    'exämple.com',
    `x${label}.com`,
    `x${longest}`,
    'example.com\n',
    '',
    null,
    7,
    undefined,
  ])('refuses the domain %j', (domain) => {
    const platform = stage();
    const { status, json } = platform.ask(CREATE, { domain });
    expect(status).toBe(400);
    expect(json).toMatchObject({ why: expect.stringContaining('body.domain') });
    expect(platform.world.domains()).toEqual([]);
  });

  test('says what is wrong with a name', () => {
    const { json } = stage().ask(CREATE, { domain: '-a.example.com' });
    expect(json.message).toBe('Invalid domain format');
  });

  test.each([
    { custom_return_path: '' },
    { custom_return_path: '-a' },
    { custom_return_path: 'a..b' },
    { custom_return_path: `x${label}` },
    { custom_return_path: `${label}.${label}.${label}.${label}.x` },
    { custom_return_path: null },
    { tracking: '' },
    { tracking: 'a_b' },
    { tracking: 'a-' },
    { tls: 'none' },
    { tls: null },
    { click_tracking: 'yes' },
    { open_tracking: 1 },
    { sending_email: null },
    { receiving_email: 'true' },
  ])('refuses %j', (fields) => {
    expect(stage().ask(CREATE, { domain: 'example.com', ...fields }).status).toBe(400);
  });

  test.each(['a', '1', 'in-bound', 'a.b', label, `${label}.${label}.${label}.${'x'.repeat(63)}`])(
    'accepts the label %s',
    (text) => {
      const body = { domain: 'example.com', custom_return_path: text, tracking: text };
      expect(stage().ask(CREATE, body).status).toBe(201);
    },
  );

  test('answers 409 for an existing domain in any case', () => {
    const platform = stage();
    platform.ask(CREATE, { domain: 'example.com' });
    const { status, json } = platform.ask(CREATE, { domain: 'EXAMPLE.com' });
    expect(status).toBe(409);
    expect(json).toMatchObject({ message: 'Domain already exists', why: /./ });
    expect(platform.world.domains()).toHaveLength(1);
  });
});

describe('POST /api/domain/v1/verify/{domain_id}', () => {
  test('answers the id and verifying, and keeps the time', () => {
    const platform = stage();
    platform.seed.domain({ id: 'dom_1', domain: 'example.com' });
    platform.pass(5000);
    const { status, json } = platform.ask('POST /api/domain/v1/verify/dom_1');
    expect(status).toBe(200);
    expect(json).toEqual({ id: 'dom_1', status: 'verifying' });
    expect(platform.world.domains()).toMatchObject([
      { status: 'verifying', lastVerifiedAt: '2026-11-20T12:00:05.000Z', createdAt: NOON },
    ]);
    expect(platform.ask('POST /api/domain/v1/verify/dom_1').json.status).toBe('verifying');
  });

  test('needs no body, and ignores one', () => {
    const platform = stage();
    platform.seed.domain({ id: 'dom_1', domain: 'example.com' });
    expect(platform.ask('POST /api/domain/v1/verify/dom_1', '{').status).toBe(200);
  });

  test.each([
    ['dom_none', 404, 'Domain not found'],
    ['example.com', 404, 'Domain not found'],
    ['a%20b', 400, 'Invalid domain format'],
    ['%2F', 400, 'Invalid domain format'],
    ['x'.repeat(256), 400, 'Invalid domain format'],
  ])('%s: %i %s, and nothing but the message', (id, status, message) => {
    const answer = stage().ask(`POST /api/domain/v1/verify/${id}`);
    expect(answer.status).toBe(status);
    expect(answer.json).toEqual({ message });
  });
});

describe('GET /api/domain/v1/list', () => {
  test('answers like the other lists: newest first, 20 by default', () => {
    const platform = stage();
    for (let index = 0; index < 25; index += 1) {
      platform.seed.domain({ domain: `d${index}.example` });
      platform.pass(1);
    }
    const { status, json } = platform.ask('GET /api/domain/v1/list');
    expect(status).toBe(200);
    expect(json).toMatchObject({
      object: 'domain',
      total: 25,
      page: 1,
      limit: 20,
      event: 'domain.list',
    });
    expect(json.domains).toHaveLength(20);
    expect(json.domains[0]).toMatchObject({ object: 'domain', domain: 'd24.example' });
    const second = platform.ask('GET /api/domain/v1/list?page=2&limit=24').json;
    expect(second.domains.map(({ domain }: { domain: string }) => domain)).toEqual(['d0.example']);
  });

  test.each(['limit=101', 'limit=0', 'page=0', 'page=x'])('refuses ?%s', (query) => {
    expect(stage().ask(`GET /api/domain/v1/list?${query}`).status).toBe(400);
  });
});

describe('GET /api/domain/v1/nameservers/{domain_id}', () => {
  const line = 'GET /api/domain/v1/nameservers/dom_a';

  test('answers a member of the organization, by session', () => {
    const { status, json, headers } = twoOrganizations().askIn('s_a', line);
    expect(status).toBe(200);
    expect(json).toEqual({
      object: 'domain_nameservers',
      domainId: 'dom_a',
      domain: 'mail.example.org',
      nameservers: [expect.stringMatching(/\.example$/), expect.stringMatching(/\.example$/)],
      dnsProvider: expect.stringMatching(/./),
      event: 'domain.nameservers',
    });
    expect(headers['x-ratelimit-window']).toBe('1');
  });

  test('is 403 for a user without an organization', () => {
    const { status, json } = twoOrganizations().askIn('s_none', line);
    expect(status).toBe(403);
    expect(json).toEqual({ message: 'User is not a member of an organization' });
  });

  test.each(['s_a', 's_b'])(
    'is 404 for an unknown domain, and for one of another organization: %s',
    (session) => {
      const id = session === 's_a' ? 'dom_b' : 'dom_a';
      const { status, json } = twoOrganizations().askIn(
        session,
        `GET /api/domain/v1/nameservers/${id}`,
      );
      expect(status).toBe(404);
      expect(json).toEqual({ message: 'DNS records not found' });
    },
  );

  test('accepts no API key', () => {
    const platform = twoOrganizations();
    expect(platform.ask(line).status).toBe(403);
    expect(platform.askAs('wrong', line).status).toBe(401);
    expect(platform.askIn('wrong', line).status).toBe(401);
    const cookie = 'session_token=s_a; a.session_tokens=s_a; x=.session_token';
    expect(platform.ask(line, undefined, { cookie }).status).toBe(403);
    const good = 'a=b; any.session_token=s_a';
    expect(platform.askAs('wrong', line).status).toBe(401);
    expect(platform.ask(line, undefined, { cookie: good }).status).toBe(200);
  });

  test('lets a session do nothing else', () => {
    const { status } = twoOrganizations().askIn('s_a', 'GET /api/domain/v1/list');
    expect(status).toBe(401);
  });
});
