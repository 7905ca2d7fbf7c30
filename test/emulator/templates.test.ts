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
});
