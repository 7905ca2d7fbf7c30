/** People who left, and every way in which stale knowledge could bring them back. */
import { describe, expect, test } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import { openStage } from '../../support/engine/engine-stage.ts';

describe('a channel that a creation adds by default', () => {
  const platform = {
    quirks: ['all-channels=opt_in'],
  };

  test('is opted out before the next person is created', async () => {
    const stage = openStage({ platform, limits: ['contacts.enrol=2/1'] });
    for (let at = 0; at < 12; at += 1) {
      stage.people.push({
        id: `${at}`,
        email: `p${at}@example.com`,
        ch_news: 'yes',
        ch_product: 'no',
      });
    }
    const summary = await stage.sync();
    expect(summary.contacts.applied).toMatchObject({ create: 12, opt_out: 12 });
    const order = stage.writes().filter(({ status }) => status < 300);
    const firstOut = order.findIndex(({ subscription }) => subscription === 'opt_out');
    expect(firstOut).toBeGreaterThan(0);
    expect(firstOut).toBeLessThan(12);
  });

  test('is opted out even when the run is asked to stop right after the creation', async () => {
    const stop = new AbortController();
    const wire =
      (send: Send): Send =>
      async (request, signal) => {
        const answer = await send(request, signal);
        if (request.body?.includes('opt_in')) stop.abort(new Error('stop'));
        return answer;
      };
    const stage = openStage({ platform, wire });
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes', ch_product: 'no' });
    await stage.sync({ stop: stop.signal }).catch(() => undefined);
    const sent = stage
      .writes()
      .map(({ channelId, subscription }) => `${subscription} ${channelId}`);
    expect(sent).toEqual(['opt_in ch_news', 'opt_out ch_product']);
  });
});

test('an invalid record in an uncertified reading is new once, and known afterwards', async () => {
  const stage = openStage();
  Object.assign(stage.certificate, { complete: false, why: 'row 7 is ragged', fix: 'mend it' });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'maybe' });
  expect((await stage.sync()).problems).toMatchObject([{ class: 'invalid', isNew: true }]);
  expect((await stage.sync()).problems).toMatchObject([{ class: 'invalid', isNew: false }]);
});
