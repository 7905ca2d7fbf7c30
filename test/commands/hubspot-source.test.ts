/** A HubSpot account, hubspotMirror by the command line: from the first load to who was merged. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { TOKEN } from '../support/sources/hubspot-account.ts';
import { hubspotMirror, secret, tell } from '../support/commands/mirrored-contacts.ts';
import { start, until } from '../support/worker/fleet.ts';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
afterAll(async () => redis.close());

describe('a HubSpot account', () => {
  test('is hubspotMirror, repeatedly', async () => {
    const { hubspot, call, shown, writes } = await hubspotMirror();
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
  ])('with two contacts %s: an unsubscribe of one keeps the other out', async (_, id) => {
    const { hubspot, call, shown, emulator, writes } = await hubspotMirror();
    await call('sync');
    emulator.dashboard.leave(emulator.world.contact('bob@example.com')?.id ?? '', 'ch_news');
    await call('sync');
    writes();
    hubspot.put(3, 'cid@example.com', 'true');
    hubspot.merge([3, 2], id);
    const { code, said } = await call('sync');
    // Nobody is created under the new address, so the old contact is not waited with.
    expect([code, writes()]).toMatchObject([0, [{ method: 'DELETE', route: 'contacts.delete' }]]);
    expect(shown('bob@example.com')).toBeUndefined();
    expect(said).toContain('conflict  the person opted out under a former address');
    expect(shown('cid@example.com')).toBeUndefined();
  });

  test('lets single people be read: by command, and by event', async () => {
    const { hubspot, call, shown, file } = await hubspotMirror(
      { redis: redis.url, server: { port: 0, token: 'a-token-of-the-tests' } },
      { webhook: { format: 'hubspot', secret } },
    );
    await call('sync');
    hubspot.put(1, 'ann@example.com', 'false');
    expect((await call('sync', '--person', 'ann@example.com')).code).toBe(0);
    expect(shown('ann@example.com')).toMatchObject({ ch_news: 'opt_out' });

    const worker = start(file);
    const url = await worker.url();
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
