import { describe, expect, test } from 'vitest';
import { twoOrganizations, stage } from '../support/emulator/emulator-stage.ts';

describe('GET /_emulator/', () => {
  test('lists every operation, with examples that work', () => {
    const platform = twoOrganizations();
    const { status, json } = platform.ask('GET /_emulator/');
    expect(status).toBe(200);
    expect(json.organizations).toEqual(['org_a', 'org_b']);
    for (const { get } of json.look) expect(platform.handle(asked('GET', get)).status).toBe(200);
    for (const { post, fields } of json.act) {
      const filled = Object.keys(fields).map((name) => [name.replace('?', ''), sample[name]]);
      const given = filled.filter(([, value]) => value !== undefined);
      const answer = twoOrganizations().ask(`POST ${post}`, Object.fromEntries(given));
      expect([post, answer.status]).toEqual([post, 200]);
    }
  });

  const sample: Record<string, unknown> = {
    email: 'new@example.org',
    contact: 'con_a',
    channel: 'ch_a',
    reason: 'bounce',
    template: 'tpl_a',
    fields: { name: 'New' },
    id: 'ch_new',
    name: 'New',
    domain: 'mail.example.org',
    status: 'active',
    key: 'key_read',
  };

  function asked(method: string, path: string) {
    return { method, path, headers: {} };
  }
});

describe('a page of another site', () => {
  const asking = (origin?: string) =>
    twoOrganizations().handle({
      method: 'GET',
      path: '/_emulator/state',
      headers: { host: '127.0.0.1:4010', ...(origin !== undefined && { origin }) },
    }).status;

  test.each(['https://evil.example', 'http://127.0.0.1:5000', 'null', 'http://localhost:4010'])(
    'cannot act on the emulator: %s',
    (origin) => {
      expect(asking(origin)).toBe(403);
    },
  );

  test('is neither the emulator’s own page nor a program', () => {
    expect([asking('http://127.0.0.1:4010'), asking()]).toEqual([200, 200]);
  });
});

describe('acts of colleagues in the console', () => {
  test.each([
    [
      'edit-contact',
      { contact: 'ann@example.org', email: 'zoe@example.org', firstName: 'Zoe' },
      { id: 'con_a', email: 'zoe@example.org', firstName: 'Zoe', channels: [{ id: 'ch_a' }] },
    ],
    ['remove-from-channel', { contact: 'con_a', channel: 'ch_a' }, { id: 'con_a', channels: [] }],
    ['delete-template', { template: 'tpl_a' }, { id: 'tpl_a' }],
    ['create-channel', { id: 'ch_2', name: 'Two' }, { id: 'ch_2', name: 'Two' }],
    [
      'settle-domain',
      { domain: 'dom_a', status: 'active' },
      { status: 'active', userVerifiedDomain: true, systemVerified: true },
    ],
    [
      'settle-domain',
      { domain: 'mail.example.org', status: 'failed', reason: 'no MX' },
      { status: 'failed', systemVerified: false, verificationFailedReason: 'no MX' },
    ],
    ['delete-domain', { domain: 'dom_a' }, { id: 'dom_a' }],
    ['create-key', { name: 'CI', permissions: 'read' }, { name: 'CI', permissions: 'read' }],
    ['disable-key', { key: 'key_read' }, { enabled: false }],
    ['enable-key', { key: 'key_off' }, { enabled: true }],
    ['revoke-key', { key: 'key_read' }, { revoked: true }],
  ])('%s %j', (act, body, expected) => {
    const { status, json } = twoOrganizations().ask(`POST /_emulator/${act}`, body);
    expect(status).toBe(200);
    expect(json).toMatchObject(expected);
  });

  test('a deleted template is not found any more', () => {
    const platform = twoOrganizations();
    platform.ask('POST /_emulator/delete-template', { template: 'tpl_a' });
    expect(platform.ask('GET /api/template/v1/list').json.total).toBe(0);
    expect(platform.ask('PUT /api/template/v1/tpl_a', { name: 'x' }).status).toBe(404);
  });

  test('a new key works at once', () => {
    const platform = twoOrganizations();
    const { key } = platform.ask('POST /_emulator/create-key', {}).json;
    expect(platform.askAs(key, 'GET /api/contacts/list').json.contacts[0].id).toBe('con_a');
  });

  test('belong to the named organization', () => {
    const platform = twoOrganizations();
    const block = (query: string, contact: string) =>
      platform.ask(`POST /_emulator/block${query}`, { contact }).status;
    expect(block('?organization=org_b', 'con_b')).toBe(200);
    expect(block('', 'con_b')).toBe(404);
    expect(block('?organization=org_c', 'con_b')).toBe(404);
    const { json } = platform.ask('GET /_emulator/state?organization=org_b');
    expect(json).toMatchObject({ organizationId: 'org_b', contacts: [{ status: 'blocked' }] });
  });

  test('on an unknown contact or channel are refused by name', () => {
    const platform = twoOrganizations();
    expect(platform.ask('POST /_emulator/revoke-key', { key: 'x' }).json.why).toContain('"x"');
    expect(platform.ask('POST /_emulator/delete-domain', { domain: 'x' }).status).toBe(404);
    const taken = platform.ask('POST /_emulator/create-channel', { id: 'ch_a', name: 'x' });
    expect(taken.json.why).toBe('channel "ch_a" exists already: choose another id');
    platform.ask('POST /_emulator/sign-up', { email: 'zoe@example.org' });
    const edited = { contact: 'con_a', email: 'zoe@example.org' };
    expect(platform.ask('POST /_emulator/edit-contact', edited).json.why).toContain(
      'has the email "zoe@example.org" already: choose another',
    );
  });
});

describe('the outbox', () => {
  test('shows the test emails, oldest first, as many as requested', () => {
    const platform = twoOrganizations();
    for (const to of ['one', 'two', 'three']) {
      platform.ask('POST /api/template/v1/tpl_a/test', { to });
    }
    const tos = (query: string) =>
      platform.ask(`GET /_emulator/outbox${query}`).json.outbox.map(({ to }: { to: string }) => to);
    expect(tos('')).toEqual(['one', 'two', 'three']);
    expect(tos('?count=2')).toEqual(['two', 'three']);
    expect(tos('?count=0')).toEqual([]);
    expect(tos('?organization=org_b')).toEqual([]);
    expect(platform.ask('GET /_emulator/requests?count=1').json.requests).toHaveLength(1);
  });
});

describe('POST /_emulator/reset', () => {
  const story = (platform: ReturnType<typeof twoOrganizations>) => {
    platform.ask('POST /api/contacts/channel/ch_a', { email: 'new@example.org' });
    platform.ask('POST /api/contacts/channel/ch_a', {
      email: 'ann@example.org',
      subscription: 'opt_out',
    });
    platform.ask('DELETE /api/contacts/con_a');
    platform.ask('PUT /api/template/v1/tpl_a', { name: 'Changed', content: [1] });
    platform.ask('POST /api/template/v1/create', { name: 'New' });
    platform.ask('POST /api/template/v1/tpl_a/test', { to: 'x' });
    platform.ask('POST /api/domain/v1/create', { domain: 'new.example.org' });
    platform.ask('POST /api/domain/v1/verify/dom_a');
    platform.ask('POST /api/api-key/v1/enable/key_off');
    platform.askAs('k_b', 'DELETE /api/contacts/con_b');
    platform.dashboard.rotateKey('key_read');
    return platform.organizations().map((id) => platform.player(id).world.state(100));
  };

  test('restores the world as it was at the first request, to the last id', () => {
    const platform = twoOrganizations({ limits: ['contacts.enrol=3/60'] });
    const before = platform.organizations().map((id) => platform.player(id).world.state(100));
    const first = story(platform);
    expect(first).not.toEqual(before);
    expect(platform.ask('POST /_emulator/reset').json).toEqual({ reset: true });
    expect(platform.organizations().map((id) => platform.player(id).world.state(100))).toEqual(
      before,
    );
    expect(story(platform)).toEqual(first);
  });

  test('keeps what a program had put there, and the program’s reference to the emulator', () => {
    const platform = stage();
    platform.seed.contact({ id: 'con_1', email: 'a@b.c', channels: { ch_news: 'opt_in' } });
    platform.ask('DELETE /api/contacts/con_1');
    platform.seed.contact({ id: 'con_2', email: 'late@b.c' });
    platform.reset();
    expect(platform.world.contacts()).toMatchObject([{ id: 'con_1' }]);
    platform.dashboard.leave('con_1', 'ch_news');
    expect(platform.ask('GET /api/contacts/retrieve/con_1').json.channels).toMatchObject([
      { subscription: 'opt_out' },
    ]);
  });
});
