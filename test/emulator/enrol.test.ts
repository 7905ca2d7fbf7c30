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

  test('says what is missing when neither contact_id nor email is given', () => {
    expect(stage().ask(NEWS, {}).json.why).toContain('contact_id or email is required');
  });
});
