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
  test.each(['500@contacts.list', 'timeout-before@contacts.list'])('%s', async (fault) => {
    const stage = openStage({ platform: { faults: [fault] } });
    stage.emulator.seed.contact({
      email: lea,
      status: 'unsubscribed',
      channels: { ch_news: 'opt_out' },
    });
    stage.people.push(wantsBoth);
    const summary = await stage.sync({ mode: 'fast' });
    expect(summary.status).toBe('failed');
    expectNoOptIn(stage);
  });

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

test('a contact that is gone by its id proves nothing about its address', async () => {
  const stage = openStage({ policy: { missing: 'recreate' } });
  stage.people.push({ id: 'lea', email: lea, ch_news: 'yes' });
  await stage.sync();
  stage.emulator.dashboard.deleteContact(lea);
  stage.emulator.seed.contact({ email: lea, status: 'unsubscribed' });
  stage.people[0] = wantsBoth;
  stage.writes();
  await stage.sync({ mode: 'fast' });
  expectNoOptIn(stage);
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

describe('an address that changed in the CRM', () => {
  const ways = {
    'keeps a person out who has just left all mail': (stage: Stage) =>
      stage.emulator.dashboard.unsubscribe('old@example.com'),
    'keeps a person out who has just left the channel': (stage: Stage) =>
      stage.emulator.dashboard.leave('old@example.com', 'ch_news'),
  };
  for (const [name, leaves] of Object.entries(ways)) {
    test.each(['full', 'fast'] as const)(`${name}: %s`, async (mode) => {
      const stage = openStage();
      stage.people.push({ id: '1', email: 'old@example.com', ch_news: 'yes' });
      await stage.sync();
      leaves(stage);
      stage.people[0] = { id: '1', email: 'new@example.com', ch_news: 'yes' };
      stage.writes();
      const summary = await stage.sync({ mode });
      expectNoOptIn(stage);
      expect(summary.contacts.conflicts).toBe(1);
    });
  }

  test('is opted in when nobody unsubscribed the old one', async () => {
    const stage = openStage();
    stage.people.push({ id: '1', email: 'old@example.com', ch_news: 'yes' });
    await stage.sync();
    stage.people[0] = { id: '1', email: 'new@example.com', ch_news: 'yes' };
    expect((await stage.sync({ mode: 'fast' })).contacts.applied).toMatchObject({ create: 1 });
  });
});

describe('an address that changed on the platform', () => {
  /** Once `now.renamed`, the platform shows every a@ as that. */
  function renaming(now: { renamed?: string }) {
    return (send: Send): Send =>
      async (request, signal) => {
        const answer = await send(request, signal);
        const body = now.renamed
          ? answer.body.replaceAll('a@example.com', now.renamed)
          : answer.body;
        return { ...answer, body };
      };
  }

  test('keeps the person out when the new address is another CRM record', async () => {
    const now: { renamed?: string } = {};
    const stage = openStage({ wire: renaming(now) });
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
    await stage.sync();
    stage.emulator.dashboard.unsubscribe('a@example.com');
    now.renamed = 'b@example.com';
    stage.people.push({ id: '2', email: 'b@example.com', ch_news: 'yes' });
    stage.writes();
    await stage.sync();
    expectNoOptIn(stage);
  });

  test.each(['full', 'fast'] as const)(
    'does not apply one consent to another mailbox: %s',
    async (mode) => {
      const now: { renamed?: string } = {};
      const stage = openStage({ wire: renaming(now) });
      stage.emulator.seed.contact({ email: 'a@example.com', channels: { ch_news: 'opt_in' } });
      stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'no' });
      await stage.sync();
      now.renamed = 'zed@example.com';
      stage.people[0] = { id: '1', email: 'a@example.com', ch_news: 'yes' };
      stage.writes();
      await stage.sync({ mode });
      expectNoOptIn(stage);
    },
  );
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

test('an opt-out in a record with an unreadable address applies to its former address', async () => {
  const stage = openStage();
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
  await stage.sync();
  stage.people[0] = { id: '1', email: 'a@@example.com', ch_news: 'no' };
  stage.people.push({ id: '2', email: 'a@example.com', ch_product: 'yes' });
  const summary = await stage.sync();
  expect(summary.contacts).toMatchObject({ applied: { opt_out: 1, opt_in: 0 }, invalid: 1 });
});

test.each(['a\u200b@example.com', '\u200ba@example.com', 'mailto:a@example.com'])(
  'an address that only resembles another one is invalid: %j',
  async (email) => {
    const stage = openStage();
    stage.emulator.seed.contact({ email: 'a@example.com', status: 'unsubscribed' });
    stage.people.push({ id: '1', email, ch_news: 'yes' });
    expect((await stage.sync()).contacts).toMatchObject({ invalid: 1, applied: { create: 0 } });
  },
);

test('templates that cannot be listed do not hinder opt-outs of people', async () => {
  const stage = openStage({ platform: { faults: ['500@templates.list'] } });
  stage.emulator.seed.contact({ email: 'a@example.com', channels: { ch_news: 'opt_in' } });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'no' });
  const summary = await stage.sync();
  expect(summary.status).toBe('failed');
  expect(summary.contacts.applied).toMatchObject({ opt_out: 1 });
});

test('an invalid record in an uncertified reading is new once, and known afterwards', async () => {
  const stage = openStage();
  Object.assign(stage.certificate, { complete: false, why: 'row 7 is ragged', fix: 'mend it' });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'maybe' });
  expect((await stage.sync()).problems).toMatchObject([{ class: 'invalid', isNew: true }]);
  expect((await stage.sync()).problems).toMatchObject([{ class: 'invalid', isNew: false }]);
});
