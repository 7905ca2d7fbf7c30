import { describe, expect, test } from 'vitest';
import { stage } from '../support/emulator/emulator-stage.ts';

const NEWS = 'POST /api/contacts/channel/ch_news';

function withAnn(subscription?: 'opt_in' | 'opt_out') {
  const platform = stage();
  const channels = subscription && { ch_news: subscription };
  platform.seed.contact({ id: 'con_ann', email: 'ann@example.org', channels });
  return platform;
}

describe('POST /api/contacts/channel/{channel_id}', () => {
  test('makes a contact that does not exist, and enrols it', () => {
    const { status, json } = stage().ask(NEWS, { email: 'new@example.org' });
    expect(status).toBe(201);
    expect(json).toEqual({
      contact: {
        object: 'contact',
        id: expect.stringMatching(/^con_/),
        email: 'new@example.org',
        firstName: '',
        lastName: '',
        status: 'subscribed',
        properties: {},
        groups: [],
        channels: [{ id: 'ch_news', name: 'Newsletter', subscription: 'opt_in' }],
        suppressionReason: null,
        suppressedAt: null,
        createdAt: '2026-11-20T12:00:00.000Z',
        updatedAt: '2026-11-20T12:00:00.000Z',
        event: 'contact.created',
      },
      subscriptionId: expect.stringMatching(/^sub_/),
      event: 'contact.created',
    });
  });

  test.each([
    { contact_id: 'con_ann' },
    { email: 'ann@example.org' },
    { email: 'ANN@Example.ORG' },
  ])('enrols an existing contact: %j', (who) => {
    const platform = withAnn();
    const { status, json } = platform.ask(NEWS, { ...who, subscription: 'opt_out' });
    expect(status).toBe(201);
    expect(json.contact).toMatchObject({
      id: 'con_ann',
      channels: [{ id: 'ch_news', name: 'Newsletter', subscription: 'opt_out' }],
    });
    expect(platform.world.contacts()).toHaveLength(1);
  });

  test('stores a new email in lower case', () => {
    const platform = stage();
    expect(platform.ask(NEWS, { email: 'New@Example.ORG' }).json.contact.email).toBe(
      'new@example.org',
    );
  });

  test('lists only the channels the contact has a row in', () => {
    const platform = withAnn('opt_in');
    const { json } = platform.ask('POST /api/contacts/channel/ch_product', {
      contact_id: 'con_ann',
      subscription: 'opt_out',
    });
    expect(json.contact.channels).toEqual([
      { id: 'ch_news', name: 'Newsletter', subscription: 'opt_in' },
      { id: 'ch_product', name: 'Product updates', subscription: 'opt_out' },
    ]);
  });

  test.each([
    ['opt_in', 'opt_in', 409],
    ['opt_out', 'opt_out', 409],
    ['opt_in', 'opt_out', 201],
    ['opt_out', 'opt_in', 201],
    [undefined, 'opt_in', 201],
    [undefined, 'opt_out', 201],
  ] as const)(
    'changes a contact that is %s when asked for %s: %i',
    (is, subscription, expected) => {
      const platform = withAnn(is);
      const { status, json } = platform.ask(NEWS, { contact_id: 'con_ann', subscription });
      expect(status).toBe(expected);
      expect(platform.world.contact('con_ann')?.channels[0]?.subscription).toBe(subscription);
      if (status === 409) {
        expect(json.message).toBe('Contact is already subscribed to this channel');
        expect(json.why).toContain(subscription);
      }
    },
  );

  test('takes an omitted subscription for an opt_in', () => {
    expect(withAnn('opt_in').ask(NEWS, { contact_id: 'con_ann' }).status).toBe(409);
    expect(withAnn('opt_out').ask(NEWS, { contact_id: 'con_ann' }).status).toBe(201);
  });

  test('keeps the subscriptionId when the subscription changes', () => {
    const platform = stage();
    const first = platform.ask(NEWS, { email: 'new@example.org' }).json;
    const second = platform.ask(NEWS, { email: 'new@example.org', subscription: 'opt_out' }).json;
    expect(second.subscriptionId).toBe(first.subscriptionId);
  });

  test('ignores status and suppression', () => {
    const platform = withAnn('opt_out');
    platform.dashboard.unsubscribe('con_ann');
    platform.dashboard.suppress('con_ann', 'complaint');
    const { status, json } = platform.ask(NEWS, { contact_id: 'con_ann' });
    expect(status).toBe(201);
    expect(json.contact).toMatchObject({
      status: 'unsubscribed',
      suppressionReason: 'complaint',
      channels: [{ subscription: 'opt_in' }],
    });
  });

  test('lets contact_id win over email, and makes no contact', () => {
    const platform = withAnn();
    const body = { contact_id: 'con_ann', email: 'other@example.org' };
    expect(platform.ask(NEWS, body).json.contact.email).toBe('ann@example.org');
    expect(platform.ask(NEWS, { ...body, contact_id: 'con_none' }).status).toBe(404);
    expect(platform.world.contacts()).toHaveLength(1);
  });

  test('answers 404 for an unknown contact_id', () => {
    const { status, json } = stage().ask(NEWS, { contact_id: 'con_none' });
    expect(status).toBe(404);
    expect(json.message).toBe('Contact not found');
  });

  test('answers 404 for an unknown channel, and makes no contact', () => {
    const platform = stage();
    const { status, json } = platform.ask('POST /api/contacts/channel/ch_none', {
      email: 'new@example.org',
    });
    expect(status).toBe(404);
    expect(json.message).toBe('Channel subscription not found');
    expect(platform.world.contacts()).toEqual([]);
  });

  test.each(['plain', 'a b@example.org', 'a@b@example.org', 'a@example', '@example.org', '', ' '])(
    'refuses the email "%s"',
    (email) => {
      const { status, json } = stage().ask(NEWS, { email });
      expect(status).toBe(400);
      expect(json.message).toBe('Invalid email format');
    },
  );

  test.each([
    {},
    { subscription: 'opt_in' },
    { email: null },
    { contact_id: null },
    { contact_id: 7 },
    { email: 'a@example.org', subscription: 'yes' },
    { email: 'a@example.org', subscription: null },
    [],
    'null',
    '"text"',
  ])('refuses the body %j', (body) => {
    const platform = stage();
    expect(platform.ask(NEWS, body).status).toBe(400);
    expect(platform.world.contacts()).toEqual([]);
  });

  test('says what is missing when neither contact_id nor email is given', () => {
    expect(stage().ask(NEWS, {}).json.why).toContain('contact_id or email is required');
  });
});
