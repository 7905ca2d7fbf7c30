/** What single quirks make impossible, or would break if they were not known, in words. */
import { describe, expect, test } from 'vitest';
import type { Send } from '../../src/domain/exchange.ts';
import { openStage, shown, type Stage, type StageOptions } from '../support/engine/engine-stage.ts';

function under(quirks: readonly string[], options: StageOptions = {}): Stage {
  return openStage({ ...options, platform: { quirks, ...options.platform } });
}

const hour = 3_600_000;

describe('no-flip', () => {
  test('an opt-out that cannot be applied is reported and retried in every run', async () => {
    const stage = under(['no-flip']);
    stage.emulator.seed.contact({ email: 'a@example.com', channels: { ch_news: 'opt_in' } });
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'no' });
    stage.people.push({ id: '2', email: 'b@example.com', ch_news: 'maybe' });
    for (const writes of [1, 0]) {
      stage.writes();
      const summary = await stage.sync();
      expect(stage.writes()).toHaveLength(writes);
      expect(summary).toMatchObject({ status: 'rejected', reasons: [] });
      expect(summary.contacts).toMatchObject({ rejected: 1, applied: { opt_out: 0 } });
      expect(summary.problems[0]).toMatchObject({
        key: 'a@example.com',
        class: 'rejected',
        part: 'ch_news',
        reason: 'ch_news: the platform does not change an existing subscription',
      });
    }
    await stage.clock.advance(hour);
    await stage.sync();
    expect(stage.writes()).toMatchObject([{ subscription: 'opt_out', status: 409 }]);
    stage.emulator.dashboard.leave('a@example.com', 'ch_news');
    const after = await stage.sync();
    expect(stage.writes()).toEqual([]);
    expect(after.contacts.rejected).toBe(0);
  });

  test('a refused opt-out is not forgotten when a listing lacks the contact', async () => {
    const now = { hides: false };
    const wire = (send: Send): Send => {
      return async (request, signal) => {
        const answer = await send(request, signal);
        if (now.hides && request.path.includes('/retrieve/')) return { ...answer, status: 500 };
        if (!now.hides || !request.path.startsWith('/api/contacts/list')) return answer;
        return { ...answer, body: JSON.stringify({ ...JSON.parse(answer.body), contacts: [] }) };
      };
    };
    const stage = under(['no-flip'], { wire });
    stage.emulator.seed.contact({ email: 'a@example.com', channels: { ch_news: 'opt_in' } });
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'no' });
    await stage.sync();
    now.hides = true;
    expect((await stage.sync()).certificate.platform).toBe(false);
    now.hides = false;
    stage.writes();
    expect((await stage.sync()).contacts.rejected).toBe(1);
    expect(stage.writes()).toEqual([]);
  });
});

describe('unknown-email', () => {
  test('nobody is created; after five refusals the channel stops, which is reported', async () => {
    const stage = under(['unknown-email']);
    for (let at = 10; at < 70; at += 1) {
      stage.people.push({ id: `${at}`, email: `p${at}@example.com`, ch_news: 'yes' });
    }
    let summary = await stage.sync();
    expect(summary.status).toBe('failed');
    expect(summary.reasons.join('\n')).toContain('answered 404 to 5 people in ch_news');
    expect(stage.writes().length).toBeLessThan(40);
    do {
      await stage.clock.advance(25 * hour);
      summary = await stage.sync();
    } while (stage.writes().length > 0);
    expect(summary).toMatchObject({ status: 'done', contacts: { rejected: 60 } });
    expect(summary.problems.map(({ key }) => key).toSorted()).toEqual(
      stage.people.map(({ email }) => email),
    );
    expect(stage.emulator.world.contacts()).toEqual([]);
  });
});

describe('a search that finds too much', () => {
  test.each([
    ['part of another address', [], 'joann@example.com', 'ann@example.com'],
    ['wildcards', ['search-wildcards'], 'annxlee@example.com', 'ann_lee@example.com'],
    ['another case', ['email-as-given'], 'Joann@Example.com', 'ann@example.com'],
  ])('%s takes nobody for somebody else', async (_what, quirks, there, wanted) => {
    const stage = under(quirks);
    stage.emulator.seed.contact({ email: there, channels: { ch_product: 'opt_in' } });
    stage.people.push({ id: '1', email: wanted, ch_news: 'yes' });
    const summary = await stage.sync({ mode: 'fast' });
    expect(summary.contacts.applied).toMatchObject({ create: 1 });
    expect([shown(stage, wanted), shown(stage, there)]).toEqual(['opt_in', undefined]);
  });

  test('email-as-given: an address in another case is enrolled by id, not created again', async () => {
    const stage = under(['email-as-given']);
    stage.emulator.dashboard.signUp({ email: 'Ann@Example.com' });
    stage.people.push({ id: '1', email: 'ann@example.com', ch_news: 'yes' });
    await stage.sync({ mode: 'fast' });
    expect(stage.emulator.world.contacts()).toMatchObject([
      { email: 'Ann@Example.com', channels: [{ id: 'ch_news', subscription: 'opt_in' }] },
    ]);
  });
});

describe('content-rederives-variables', () => {
  test('new content keeps the variables that the source states', async () => {
    const stage = under(['content-rederives-variables']);
    const variables = [{ name: 'name', type: 'string', defaultValue: 'friend' }];
    stage.templates.push({ key: 'a', content: [{ text: 'Dear {{name}}' }], variables });
    await stage.sync();
    stage.templates[0] = { key: 'a', content: [{ text: 'Hello {{name}}' }], variables };
    await stage.sync();
    expect(stage.emulator.world.templates()).toMatchObject([{ variables }]);
    expect(stage.writes().map(({ route }) => route)).toEqual([
      'templates.create',
      'templates.update',
      'templates.update',
    ]);
  });
});

describe('more than one page', () => {
  test('with 250 people in changing order creates nobody twice', async () => {
    const stage = under(['unsorted-ties', 'search-wildcards', 'list-groups-empty']);
    const createdAt = stage.clock.now() - hour;
    for (let at = 0; at < 250; at += 1) {
      const email = `p_${at}@example.com`;
      stage.people.push({ id: `${at}`, email, ch_news: at % 2 ? 'yes' : 'no' });
      const channels = { ch_news: at % 3 ? ('opt_in' as const) : ('opt_out' as const) };
      if (at % 5) stage.emulator.seed.contact({ email, channels, createdAt });
    }
    const summary = await stage.sync();
    expect(summary.reasons).toEqual([]);
    expect(stage.emulator.world.contacts()).toHaveLength(225);
    const left = stage.people.filter(({ email }) => shown(stage, String(email)) === 'opt_out');
    const reported = summary.contacts.conflicts;
    expect(reported).toBe(left.filter(({ ch_news: wish }) => wish === 'yes').length);
    stage.writes();
    await stage.sync();
    expect(stage.writes()).toEqual([]);
  });

  test.each([[['template-total=page']], [['template-limit=10', 'template-total=page']], [[]]])(
    'with 250 templates under %j creates none twice',
    async (quirks) => {
      const stage = under(quirks);
      for (let at = 0; at < 250; at += 1) {
        const letter = { name: `t${at}`, subject: 'Hello' };
        stage.emulator.seed.template(letter);
        if (at % 9 === 0) stage.templates.push({ key: `t${at}`, ...letter });
      }
      const summary = await stage.sync();
      expect(stage.writes()).toEqual([]);
      expect(summary.templates).toMatchObject({ observed: 250, conflicts: 0, rejected: 0 });
    },
  );
});

describe('rate limits', () => {
  test('retry-after-stuck ends the run, which is reported', async () => {
    const stage = under(['retry-after-stuck'], { limits: ['contacts.enrol=5/10', '*=1000/1'] });
    for (let at = 0; at < 20; at += 1) {
      stage.people.push({ id: `${at}`, email: `p${at}@example.com`, ch_news: 'yes' });
    }
    const summary = await stage.sync();
    expect(summary.status).toBe('failed');
    expect(summary.reasons.join()).toContain('refused 20 times in a row (429)');
    expect(summary.contacts.applied['create']).toBe(5);
  });

  test.each([
    [[], 0],
    [['headers=reset'], 0],
    [['headers=none'], 0.1],
    [['headers=none', 'retry-after-short', 'retry-after-body'], 0.1],
  ])('under %j refuse a share of at most %d', async (quirks, most) => {
    const stage = under(quirks, { limits: ['contacts.enrol=30/60', '*=1000/1'] });
    for (let at = 0; at < 200; at += 1) {
      stage.people.push({ id: `${at}`, email: `p${at}@example.com`, ch_news: 'yes' });
    }
    const summary = await stage.sync();
    expect(summary).toMatchObject({ status: 'done', contacts: { applied: { create: 200 } } });
    const { rateLimited, byRoute } = summary.requests;
    expect(rateLimited / (byRoute['contacts.enrol'] ?? 0)).toBeLessThanOrEqual(most);
  });
});
