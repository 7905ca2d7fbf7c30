import { describe, expect, test } from 'vitest';
import { stage } from '../support/emulator/emulator-stage.ts';

const CREATE = 'POST /api/template/v1/create';

/** A template with nothing but a name, as the specification shows one ("Template"). */
function template(fields: object) {
  return {
    id: expect.stringMatching(/^tpl_/),
    description: '',
    subject: '',
    fromEmail: '',
    replyTo: '',
    previewText: '',
    organizationId: expect.stringMatching(/^org_/),
    createdByUserId: expect.any(String),
    status: 'draft',
    content: [],
    variables: [],
    currentVersion: 1,
    thumbnailUrl: '',
    isDefault: false,
    deletedAt: null,
    createdAt: '2026-11-20T12:00:00.000Z',
    updatedAt: '2026-11-20T12:00:00.000Z',
    ...fields,
  };
}

describe('POST /api/template/v1/create', () => {
  test('answers the template with 200', () => {
    const { status, json } = stage().ask(CREATE, { name: 'Welcome' });
    expect(status).toBe(200);
    expect(json).toEqual(template({ name: 'Welcome' }));
  });

  test('keeps the four fields it takes, and no other', () => {
    const taken = { name: 'Welcome', description: 'd', subject: 's', content: [1, { a: ['b'] }] };
    const { json } = stage().ask(CREATE, { ...taken, status: 'published', id: 'mine' });
    expect(json).toEqual(template(taken));
  });

  test('makes two of the same name', () => {
    const platform = stage();
    const one = platform.ask(CREATE, { name: 'Twin' }).json;
    const other = platform.ask(CREATE, { name: 'Twin' }).json;
    expect(other.id).not.toBe(one.id);
    expect(platform.world.templates()).toHaveLength(2);
  });

  test.each([
    {},
    { name: '' },
    { name: 'x'.repeat(256) },
    { name: null },
    { name: 'a', subject: 'x'.repeat(501) },
    { name: 'a', description: null },
    { name: 'a', content: {} },
  ])('refuses %j', (body) => {
    const platform = stage();
    expect(platform.ask(CREATE, body).status).toBe(400);
    expect(platform.world.templates()).toEqual([]);
  });

  test('accepts the bounds', () => {
    const body = { name: 'x'.repeat(255), subject: 'x'.repeat(500) };
    expect(stage().ask(CREATE, body).status).toBe(200);
  });
});

describe('PUT /api/template/v1/{id}', () => {
  test('changes the fields given, and updatedAt', () => {
    const platform = stage();
    platform.seed.template({ id: 'tpl_1', name: 'Welcome', subject: 'Hi', fromEmail: 'a@b.org' });
    platform.pass(5000);
    const { status, json } = platform.ask('PUT /api/template/v1/tpl_1', {
      subject: '',
      status: 'archived',
    });
    expect(status).toBe(200);
    expect(json).toEqual(
      template({
        id: 'tpl_1',
        name: 'Welcome',
        fromEmail: 'a@b.org',
        status: 'archived',
        updatedAt: '2026-11-20T12:00:05.000Z',
      }),
    );
  });

  test('takes every writable field', () => {
    const platform = stage();
    platform.seed.template({ id: 'tpl_1', name: 'Welcome' });
    const body = {
      name: 'n',
      description: 'd',
      subject: 's',
      fromEmail: 'x'.repeat(255),
      replyTo: 'x'.repeat(255),
      previewText: 'p',
      content: [{ type: 'text' }],
      variables: [{ name: 'v', type: 'number', defaultValue: null }],
      status: 'published',
    };
    expect(platform.ask('PUT /api/template/v1/tpl_1', body).json).toEqual(
      template({ ...body, id: 'tpl_1' }),
    );
  });

  test('lets any status follow any other', () => {
    const platform = stage();
    platform.seed.template({ id: 'tpl_1', name: 'Welcome' });
    for (const status of ['archived', 'published', 'draft', 'archived', 'draft', 'published']) {
      expect(platform.ask('PUT /api/template/v1/tpl_1', { status }).json.status).toBe(status);
    }
  });

  test.each([
    { subject: null },
    { name: null },
    { content: null },
    { name: '' },
    { name: 'x'.repeat(256) },
    { subject: 'x'.repeat(501) },
    { fromEmail: 'x'.repeat(256) },
    { replyTo: 'x'.repeat(256) },
    { status: 'deleted' },
    { variables: [{ name: 'v', type: 'string' }] },
    { variables: [{ name: 'v', type: 'boolean', defaultValue: null }] },
  ])('refuses %j, and changes nothing', (body) => {
    const platform = stage();
    platform.seed.template({ id: 'tpl_1', name: 'Welcome', subject: 'Hi' });
    const before = platform.world.templates();
    expect(platform.ask('PUT /api/template/v1/tpl_1', { previewText: 'new', ...body }).status).toBe(
      400,
    );
    expect(platform.world.templates()).toEqual(before);
  });

  test('answers 404 for an unknown template', () => {
    const { status, json } = stage().ask('PUT /api/template/v1/tpl_none', { name: 'a' });
    expect(status).toBe(404);
    expect(json.message).toBe('Template not found');
  });
});

describe('GET /api/template/v1/list', () => {
  test('answers newest first, 20 by default, archived ones too, with an exact total', () => {
    const platform = stage();
    for (let index = 0; index < 25; index += 1) {
      platform.seed.template({ name: `t${index}`, status: index === 24 ? 'archived' : 'draft' });
      platform.pass(1);
    }
    const { status, json } = platform.ask('GET /api/template/v1/list');
    expect(status).toBe(200);
    expect(json).toMatchObject({ total: 25, page: 1, limit: 20, event: 'template.list' });
    expect(Object.keys(json).sort()).toEqual(['event', 'limit', 'page', 'templates', 'total']);
    expect(json.templates).toHaveLength(20);
    expect(json.templates[0]).toMatchObject({ name: 't24', status: 'archived' });
    const second = platform.ask('GET /api/template/v1/list?page=2').json;
    expect(second.templates.map(({ name }: { name: string }) => name)).toEqual([
      't4',
      't3',
      't2',
      't1',
      't0',
    ]);
    expect(platform.ask('GET /api/template/v1/list?page=3').json.templates).toEqual([]);
  });

  test.each(['limit=101', 'limit=0', 'page=0', 'page=x'])('refuses ?%s', (query) => {
    expect(stage().ask(`GET /api/template/v1/list?${query}`).status).toBe(400);
  });
});

describe('POST /api/template/v1/{id}/test', () => {
  function withTemplate() {
    const platform = stage();
    platform.seed.template({
      id: 'tpl_1',
      name: 'Welcome',
      subject: 'Hello {{ name }}, {{city}} and {{missing}}',
      fromEmail: 'team@example.org',
      content: [{ type: 'text', text: 'Dear {{name}}', size: 12 }, '{{age}}'],
      variables: [
        { name: 'name', type: 'string', defaultValue: 'friend' },
        { name: 'city', type: 'string', defaultValue: 'Oslo' },
        { name: 'age', type: 'number', defaultValue: null },
      ],
    });
    return platform;
  }

  test('puts the email into the outbox, with given values before defaults', () => {
    const platform = withTemplate();
    const { status, json } = platform.ask('POST /api/template/v1/tpl_1/test', {
      to: 'me@example.org',
      variables: { name: 'Ann', age: 7, city: null },
    });
    expect(status).toBe(200);
    expect(json).toEqual({ success: true });
    expect(platform.world.outbox()).toEqual([
      {
        at: '2026-11-20T12:00:00.000Z',
        templateId: 'tpl_1',
        to: 'me@example.org',
        fromEmail: 'team@example.org',
        subject: 'Hello Ann, Oslo and {{missing}}',
        html: null,
        content: [{ type: 'text', text: 'Dear Ann', size: 12 }, '7'],
      },
    ]);
  });

  test('prefers values of the request to those of the template', () => {
    const platform = withTemplate();
    platform.ask('POST /api/template/v1/tpl_1/test', {
      to: 'x',
      fromEmail: 'other@example.org',
      subject: '{{name}}!',
      html: '<p>{{constructor}} {{city}}</p>',
    });
    expect(platform.world.outbox()[0]).toMatchObject({
      fromEmail: 'other@example.org',
      subject: 'friend!',
      html: '<p>{{constructor}} Oslo</p>',
    });
  });

  test.each([{}, { to: '' }, { to: null }, { to: 'x', variables: [] }, { to: 'x', html: 1 }])(
    'refuses %j',
    (body) => {
      const platform = withTemplate();
      expect(platform.ask('POST /api/template/v1/tpl_1/test', body).status).toBe(400);
      expect(platform.world.outbox()).toEqual([]);
    },
  );

  test('answers 404 for an unknown template', () => {
    const { status, json } = stage().ask('POST /api/template/v1/none/test', { to: 'x' });
    expect(status).toBe(404);
    expect(json.message).toBe('Template not found');
  });
});
