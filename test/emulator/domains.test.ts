import { describe, expect, test } from 'vitest';
import { twoOrganizations, stage } from '../support/emulator/emulator-stage.ts';

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

  test('says what is wrong with a name', () => {
    const { json } = stage().ask(CREATE, { domain: '-a.example.com' });
    expect(json.message).toBe('Invalid domain format');
  });

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
});

describe('GET /api/domain/v1/nameservers/{domain_id}', () => {
  const line = 'GET /api/domain/v1/nameservers/dom_a';

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
