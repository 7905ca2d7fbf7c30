import { describe, expect, test } from 'vitest';
import { twoOrganizations } from '../support/emulator/emulator-stage.ts';

const LIST = 'GET /api/contacts/list';

describe('POST /api/api-key/v1/enable/{api_key_id}', () => {
  test('answers the key, enabled, with every field', () => {
    const platform = twoOrganizations();
    platform.pass(5000);
    const { status, json } = platform.ask('POST /api/api-key/v1/enable/key_off');
    expect(status).toBe(200);
    expect(json).toEqual({
      id: 'key_off',
      name: 'Off',
      start: 'k_o',
      prefix: 'k_',
      enabled: true,
      requestCount: 0,
      createdAt: '2026-11-20T12:00:00.000Z',
      updatedAt: '2026-11-20T12:00:05.000Z',
      permissions: 'read,write',
      createdBy: { id: 'user_of_org_a', name: 'Owner', email: 'owner@org_a.example' },
    });
    expect(platform.askAs('k_off', LIST).status).toBe(200);
  });

  test('changes nothing on a key that is enabled', () => {
    const platform = twoOrganizations();
    platform.pass(5000);
    const { status, json } = platform.ask('POST /api/api-key/v1/enable/key_read');
    expect(status).toBe(200);
    expect(json).toMatchObject({ enabled: true, updatedAt: '2026-11-20T12:00:00.000Z' });
  });

  test('does not find a revoked key', () => {
    const { status, json } = twoOrganizations().ask('POST /api/api-key/v1/enable/key_gone');
    expect([status, json.message]).toEqual([404, 'API key not found']);
  });
});

describe('keys', () => {
  test.each([
    ['k_gone', 'API key revoked'],
    ['k_off', 'API key disabled'],
    ['nonsense', 'Invalid API key'],
    ['key_a', 'Invalid API key'],
    ['', 'Invalid API key'],
  ])('%j: 401 %s, without rate-limit headers', (key, message) => {
    const { status, json, headers } = twoOrganizations().askAs(key, LIST);
    expect(status).toBe(401);
    expect(json.message).toBe(message);
    expect(Object.keys(headers)).not.toContain('x-ratelimit-limit');
  });

  test('every request with a key is counted for it', () => {
    const platform = twoOrganizations({ limits: ['*=2/60'] });
    const counts = () =>
      Object.fromEntries(platform.world.keys().map(({ id, requestCount }) => [id, requestCount]));
    for (const key of ['k_read', 'k_read', 'k_read', 'k_off', 'nonsense'])
      platform.askAs(key, LIST);
    platform.ask('GET /nowhere');
    expect(counts()).toMatchObject({ key_read: 3, key_off: 0, key_a: 0 });
  });

  test('a key rotated, disabled or revoked on the dashboard is refused at once', () => {
    const platform = twoOrganizations();
    const { key } = platform.dashboard.rotateKey('key_read');
    expect(platform.askAs('k_read', LIST).status).toBe(401);
    expect(platform.askAs(key, LIST).status).toBe(200);
    platform.dashboard.disableKey('key_read');
    expect(platform.askAs(key, LIST).status).toBe(401);
    platform.dashboard.enableKey('key_read');
    expect(platform.askAs(key, LIST).status).toBe(200);
    platform.dashboard.revokeKey('key_read');
    expect(platform.askAs(key, LIST).status).toBe(401);
  });
});

describe('organizations', () => {
  test('can both have a domain of the same name', () => {
    const platform = twoOrganizations();
    const body = { domain: 'new.example.org' };
    expect(platform.ask('POST /api/domain/v1/create', body).status).toBe(201);
    expect(platform.askAs('k_b', 'POST /api/domain/v1/create', body).status).toBe(201);
  });

  test('an unknown organization is reported with the existing ones', () => {
    expect(() => twoOrganizations().player('org_c')).toThrow(
      'no organization "org_c": use one of org_a, org_b',
    );
  });
});
