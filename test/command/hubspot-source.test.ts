/** A HubSpot account, mirrored by the command line: from the first load to who was merged. */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { main } from '../../src/cli.ts';
import { ownRedis, type TestRedis } from '../redis.ts';
import { Account, TOKEN } from '../source/hubspot-account.ts';
import { createWorld } from '../sync/world.ts';
import { start, until } from './workers.ts';

vi.setConfig({ testTimeout: 60_000 });

const secret = 'b5c9f1c4-2a6e-4a37-9d02-5f2d1f6a8e10';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
afterAll(async () => redis.close());

async function mirrored(lines: object = {}, extra: object = {}) {
  const hubspot = await new Account().open();
  hubspot.put(1, 'ann@example.com').put(2, 'bob@example.com').put(3, 'cid@example.com', null);
  const world = await createWorld({ kinds: ['contact'] });
  const file = world.config({
    contacts: {
      source: { type: 'hubspot', token: '${HUBSPOT_TOKEN:-pat-eu1-secret}', url: hubspot.url },
      email: 'properties.email',
      deleted: 'archived',
      channels: [{ id: 'ch_news', subscription: 'properties.newsletter' }],
      ...extra,
    },
    policy: { deletes: 'owned' },
    ...lines,
  });
  const call = async (...argv: string[]) => {
    const said: string[] = [];
    const say = (line: string) => void said.push(line);
    const signal = new AbortController().signal;
    const code = await main([...argv, '-c', file], {
      env: {},
      print: say,
      note: say,
      progress: () => undefined,
      terminal: false,
      interactive: false,
      stop: signal,
      abort: signal,
    });
    expect(said.join('\n')).not.toMatch(new RegExp(`${TOKEN}|@example`));
    return { code, said: said.join('\n') };
  };
  return { hubspot, ...world, file, call };
}

describe('a HubSpot account', () => {
  test('is mirrored, again and again', async () => {
    const { hubspot, call, shown, writes } = await mirrored();
    const checked = await call('check');
    expect(checked.said).toContain('3 records, 0 of them invalid, and one of them was read by');
    expect(checked.code).toBe(0);
    expect((await call('sync')).code).toBe(0);
    expect(shown('ann@example.com')).toMatchObject({ ch_news: 'opt_in' });
    expect(shown('cid@example.com')).toBeUndefined();
    expect(writes()).toHaveLength(2);
    expect((await call('sync')).code).toBe(0);
    expect(writes()).toEqual([]);

    hubspot.put(2, 'bob@example.com', 'false');
    hubspot.archive(1);
    expect((await call('sync')).code).toBe(0);
    expect(shown('bob@example.com')).toMatchObject({ ch_news: 'opt_out' });
    expect(shown('ann@example.com')).toBeUndefined();
  });

  test.each([
    ['the winner', 3],
    ['a new contact', 9],
  ])('in which two became %s: who left as one of them is not opted in', async (_, id) => {
    const { hubspot, call, shown, emulator, writes } = await mirrored();
    await call('sync');
    emulator.dashboard.leave(emulator.world.contact('bob@example.com')?.id ?? '', 'ch_news');
    await call('sync');
    writes();
    hubspot.put(3, 'cid@example.com', 'true');
    hubspot.merge([3, 2], id);
    const { code, said } = await call('sync');
    expect([code, writes()]).toEqual([0, []]);
    expect(said).toContain('ch_news: the person left under a former address');
    expect(shown('cid@example.com')).toBeUndefined();
  });

  test('that refuses the token is named, and the token is not', async () => {
    const { hubspot, call, writes } = await mirrored();
    hubspot.token = 'another';
    const { code, said } = await call('sync');
    expect(said).toContain('refused the credentials (401) → correct the token of the source');
    expect([code, writes()]).toEqual([2, []]);
  });

  test('without a property that is named stops everything before it begins', async () => {
    const { hubspot, call, writes } = await mirrored();
    hubspot.names = ['email', 'news_letter'];
    const { code, said } = await call('sync');
    expect(said).toContain('did you mean "news_letter" for "newsletter"?');
    expect([code, writes()]).toEqual([2, []]);
  });

  test('has single people read: by hand, and when it tells of them', async () => {
    const { hubspot, call, shown, file } = await mirrored(
      { redis: redis.url, server: { port: 0, token: 'a-token-of-the-tests' } },
      { webhook: { format: 'hubspot', secret } },
    );
    await call('sync');
    hubspot.put(1, 'ann@example.com', 'false');
    expect((await call('one', 'ann@example.com')).code).toBe(0);
    expect(shown('ann@example.com')).toMatchObject({ ch_news: 'opt_out' });

    const worker = start(file);
    await worker.said('worker serves');
    const url = /listens on (\S+)/.exec(worker.heard())?.[1] ?? '';
    hubspot.put(2, 'bob@example.com', 'false').put(5, 'eve@example.com');
    hubspot.asked.length = 0;
    expect(await tell(url, [['contact.propertyChange', 2]])).toBe(202);
    expect(
      await tell(url, [
        ['contact.creation', 5],
        ['deal.creation', 3],
      ]),
    ).toBe(202);
    await until(() => shown('bob@example.com')?.['ch_news'] === 'opt_out');
    await until(() => shown('eve@example.com')?.['ch_news'] === 'opt_in');
    expect(hubspot.asked.filter((name) => !/^(properties\/contacts|2|5)$/.test(name))).toEqual([]);
    expect(worker.heard()).not.toContain(TOKEN);
    expect(await worker.ends()).toBe(143);
  });
});

/** As HubSpot tells of what happened to which objects. */
async function tell(url: string, happened: [string, number][]): Promise<number> {
  const address = `${url}/webhooks/world`;
  const events = happened.map(([subscriptionType, objectId]) => ({ subscriptionType, objectId }));
  const body = JSON.stringify(events);
  const timestamp = String(Date.now());
  const signed = createHmac('sha256', secret).update(`POST${address}${body}${timestamp}`);
  const headers = {
    'content-type': 'application/json',
    'x-hubspot-request-timestamp': timestamp,
    'x-hubspot-signature-v3': signed.digest('base64'),
  };
  return (await fetch(address, { method: 'POST', headers, body })).status;
}
