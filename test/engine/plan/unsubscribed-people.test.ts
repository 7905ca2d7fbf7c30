/** People who left, and every way in which stale knowledge could bring them back. */
import { describe, expect, test } from 'vitest';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import { openStage, type Stage } from '../../support/engine/engine-stage.ts';

/** Nobody was opted in since the last look. */
function expectNoOptIn(stage: Stage): void {
  const optIns = stage.writes().filter(({ subscription }) => subscription === 'opt_in');
  expect(optIns).toEqual([]);
}

const lea = 'lea@example.com';
const wantsBoth = { id: 'lea', email: lea, ch_news: 'yes', ch_product: 'yes' };

describe('a failed look proves nobody absent', () => {
  test('a list that the key may not use', async () => {
    const forbid = (send: Send): Send => {
      const body = JSON.stringify({ message: 'Unauthorized access' });
      return async (request, signal) =>
        request.path.startsWith('/api/contacts/list')
          ? { status: 403, headers: {}, body }
          : send(request, signal);
    };
    const stage = openStage({ wire: forbid });
    stage.emulator.seed.contact({ email: lea, status: 'blocked' });
    stage.people.push(wantsBoth);
    expect((await stage.sync()).status).toBe('failed');
    expectNoOptIn(stage);
  });
});

test('an opt-out after an unanswered opt-in is the person’s own', async () => {
  const now: { leaves?(): void } = {};
  const wire = (send: Send): Send => {
    return async (request, signal) => {
      const answer = await send(request, signal);
      if (!now.leaves || request.method !== 'POST') return answer;
      now.leaves();
      throw new Unavailable('no answer', { acted: 'maybe' });
    };
  };
  const stage = openStage({ wire });
  for (const wish of ['yes', 'no']) {
    stage.people[0] = { id: 'lea', email: lea, ch_news: wish };
    await stage.sync();
  }
  stage.people[0] = { id: 'lea', email: lea, ch_news: 'yes' };
  now.leaves = () => void stage.emulator.dashboard.leave(lea, 'ch_news');
  await stage.sync();
  delete now.leaves;
  stage.writes();
  expect((await stage.sync()).contacts.conflicts).toBe(1);
  expectNoOptIn(stage);
});

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
