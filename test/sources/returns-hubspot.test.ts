/** Who left, told to HubSpot by its communication preferences. */
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { hubspotOptions, hubspotReturnsOptions } from '../../src/sources/hubspot/options.ts';
import { hubspotReturns } from '../../src/sources/hubspot/hubspot-source.ts';
import { allMail, left, tell, errorOf, virtualClock } from '../support/sources/source-reading.ts';
import { onlyNocked } from '../support/sources/nock-server.ts';

const api = 'https://api.hubapi.com';
const one = '/communication-preferences/v3/unsubscribe';
const all = '/communication-preferences/v4/statuses/a%40x.y/unsubscribe-all?channel=EMAIL';
const TOKEN = 'pat-eu1-secret';

onlyNocked();

const hubspot = () => nock(api, { reqheaders: { authorization: `Bearer ${TOKEN}` } });

function returns(options: object = {}) {
  const source = hubspotOptions.parse({ type: 'hubspot', token: TOKEN });
  const wanted = { type: 'hubspot', subscriptions: { ch_news: 4711 }, ...options };
  const clock = virtualClock();
  const around = { clock, random: () => 1 };
  return { back: hubspotReturns(source, hubspotReturnsOptions.parse(wanted), around), clock };
}

const error = (message: string) => ({ status: 'error', message, category: 'VALIDATION_ERROR' });

describe('write-back to HubSpot', () => {
  test('unsubscribes the address from the subscription of a channel', async () => {
    hubspot().post(one, { emailAddress: 'a@x.y', subscriptionId: '4711' }).reply(200, {});
    expect(await tell(returns().back, left('a'))).toEqual([{ is: 'told' }]);
  });

  test('sends the legal basis where one is configured', async () => {
    const isWhole = (body: Record<string, unknown>) =>
      body['legalBasis'] === 'CONSENT_WITH_NOTICE' &&
      String(body['legalBasisExplanation']).includes('unsubscribed');
    hubspot().post(one, isWhole).reply(200, {});
    const { back } = returns({ legalBasis: 'CONSENT_WITH_NOTICE' });
    expect(await tell(back, left('a'))).toEqual([{ is: 'told' }]);
  });

  test('unsubscribes from all mail at once, whatever subscriptions there are', async () => {
    hubspot().post(all).reply(200, { results: [] });
    const { back } = returns({ subscriptions: undefined });
    expect(await tell(back, left('a', allMail))).toEqual([{ is: 'told' }]);
  });

  test('accepts all mail, and named channels, without a CRM id', () => {
    const { back } = returns();
    const takes = (channel: string) => back.takes({ crmId: '', channel });
    expect(['*', 'ch_news', 'ch_product', 'toString'].map(takes)).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  test('counts as reported when HubSpot has it already', async () => {
    const message = 'a@x.y is already unsubscribed from subscription 4711';
    hubspot().post(one).reply(400, error(message));
    expect(await tell(returns().back, left('a'))).toEqual([{ is: 'told' }]);
  });

  test.each([
    [400, 'Subscription 4711 is unknown', 'refused it (400)', 'correct subscriptions'],
    [400, 'A legal basis is required', 'refused it (400)', 'add legalBasis'],
    [404, 'not found', 'does not have this person', 'correct subscriptions'],
  ])(
    'rejects an opt-out on %i, %s, and continues with the next',
    async (status, says, why, fix) => {
      hubspot().post(one).reply(status, error(says)).post(one).reply(200, {});
      expect(await tell(returns().back, left('a'), left('b'))).toEqual([
        { is: 'rejected', reason: expect.stringContaining(why), fix: expect.stringContaining(fix) },
        { is: 'told' },
      ]);
    },
  );

  test('stops on a refused token, which is not printed', async () => {
    hubspot().post(one).reply(401, error('bad token'));
    const { name, message } = await errorOf(tell(returns().back, left('a'), left('b')));
    expect(name).toBe('Invalid');
    expect(message).toContain('correct the token');
    expect(message).not.toContain(TOKEN);
  });

  test('waits some seconds when asked to, but not for the day', async () => {
    const limited = { status: 'error', policyName: 'SECONDLY', message: 'secondly limit' };
    hubspot().post(one).reply(429, limited).post(one).reply(200, {});
    const { back, clock } = returns();
    expect(await tell(back, left('a'))).toEqual([{ is: 'told' }]);
    expect(clock.slept).toContain(1_000);
    hubspot()
      .post(one)
      .reply(429, { ...limited, policyName: 'DAILY', message: 'daily limit' });
    expect((await errorOf(tell(returns().back, left('a')))).name).toBe('RateLimited');
  });
});
