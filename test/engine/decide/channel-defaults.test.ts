/** On a platform that shows a default where nobody said a word, a default is nobody's opt-out. */
import { describe, expect, test } from 'vitest';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import {
  hearing,
  openStage,
  shown,
  type Stage,
  type StageOptions,
} from '../../support/engine/engine-stage.ts';

const ann = 'ann@example.com';
const bob = 'bob@example.com';
const bare = ['enrol-raw', 'all-channels=opt_out'];

function open(options: StageOptions = {}): Stage & { told(): string[] } {
  const { heard, returns } = hearing();
  const stage = openStage({ returns, ...options });
  const told = (): string[] => heard.map(({ email, channel }) => `${email} ${channel}`);
  return Object.assign(stage, { told });
}

const record = (id: string, email: string, news = 'yes', product = '') => ({
  id,
  email,
  ch_news: news,
  ch_product: product,
});

function wish(stage: Stage, id: string, wishes: Record<string, string>): void {
  for (const person of stage.people) if (person['id'] === id) Object.assign(person, wishes);
}

/** A wire on which one enrolment of a channel has no answer, before or after it was carried out. */
function cutting() {
  let next: { channel: string; commits: boolean } | undefined;
  const wire =
    (send: Send): Send =>
    async (request, signal) => {
      const isIt = request.method === 'POST' && request.path.endsWith(`/${next?.channel}`);
      if (!next || !isIt) return send(request, signal);
      const { commits } = next;
      next = undefined;
      if (commits) await send(request, signal);
      throw new Unavailable('timed out', { acted: 'maybe' });
    };
  const cut = (channel: string, commits: boolean): void => void (next = { channel, commits });
  return { wire, cut };
}

const enrolments = (stage: Stage) =>
  stage
    .writes()
    .map(({ email, channelId, subscription }) => `${email} ${channelId} ${subscription}`);

const routes = (stage: Stage, route: string): number =>
  stage.emulator.world.requests().filter((request) => request.route === route).length;

describe('a creation that is answered without channels', () => {
  test('is read back, and the default is not reported as an opt-out by the person', async () => {
    const stage = open({ platform: { quirks: bare } });
    stage.people.push(record('1', ann), record('2', bob));
    await stage.sync();
    expect(await stage.sync()).toMatchObject({ status: 'done', contacts: { conflicts: 0 } });
    expect(stage.told()).toEqual([]);
    wish(stage, '1', { ch_product: 'yes' });
    expect(await stage.sync()).toMatchObject({ status: 'done', contacts: { conflicts: 0 } });
    expect(shown(stage, ann, 'ch_product')).toBe('opt_in');
    expect(shown(stage, bob, 'ch_product')).toBeUndefined();
  });

  test('costs one request where the platform shows no defaults', async () => {
    const stage = open({ platform: { quirks: ['enrol-raw'] } });
    stage.people.push(record('1', ann));
    await stage.sync();
    expect(routes(stage, 'contacts.retrieve')).toBe(1);
    stage.people.push(record('2', bob), record('3', 'cid@example.com'));
    await stage.sync();
    expect(routes(stage, 'contacts.retrieve')).toBe(1);
  });
});

describe('an opt-out that is read back after a creation', () => {
  test.each([
    ['at once is a default', 0, 'opt_in'],
    ['after a request that failed may be somebody’s', 1, 'opt_out'],
  ])('%s', async (_, failures, is) => {
    let left = failures;
    const wire =
      (send: Send): Send =>
      async (request, signal) => {
        const answer = await send(request, signal);
        if (!request.path.includes('/retrieve/') || left === 0) return answer;
        left -= 1;
        return { ...answer, status: 500 };
      };
    const stage = open({ platform: { quirks: bare }, wire });
    stage.people.push(record('1', ann));
    await stage.sync();
    wish(stage, '1', { ch_product: 'yes' });
    const { contacts } = await stage.sync();
    expect(contacts.conflicts).toBe(failures);
    expect(shown(stage, ann, 'ch_product') ?? 'opt_out').toBe(is);
    expect(stage.told()).toEqual([]);
  });
});

describe('an unanswered opt-in, where the platform shows defaults', () => {
  const quirks = ['all-channels=opt_out'];

  async function cutOff(platform: string[], commits: boolean, more: StageOptions = {}) {
    const { wire, cut } = cutting();
    const stage = open({ ...more, platform: { quirks: platform }, wire });
    stage.people.push(record('1', ann), record('2', bob));
    await stage.sync();
    // An enrolment of a contact that is there is acknowledged.
    wish(stage, '2', { ch_product: 'yes' });
    await stage.sync();
    await stage.sync();
    stage.writes();
    wish(stage, '1', { ch_product: 'yes' });
    cut('ch_product', commits);
    return stage;
  }

  test('is no opt-out by the person, and is not sent again while it may have acted', async () => {
    const stage = await cutOff(quirks, false);
    expect(await stage.sync()).toMatchObject({ contacts: { conflicts: 1 } });
    expect(await stage.sync()).toMatchObject({
      contacts: { conflicts: 1 },
      returns: { told: 0, waiting: 0, doubtful: 1 },
    });
    expect(enrolments(stage)).toEqual([]);
    expect(stage.told()).toEqual([]);
  });

  test('is done where the platform shows it', async () => {
    const stage = await cutOff(quirks, true);
    expect(await stage.sync()).toMatchObject({ contacts: { conflicts: 0 } });
    expect(shown(stage, ann, 'ch_product')).toBe('opt_in');
  });

  test('is sent again where the contact did not change although enrolments change it', async () => {
    const stage = await cutOff([...quirks, 'enrol-touches'], false);
    expect(await stage.sync()).toMatchObject({ contacts: { conflicts: 0 } });
    expect(enrolments(stage)).toEqual([`${ann} ch_product opt_in`]);
    expect(shown(stage, ann, 'ch_product')).toBe('opt_in');
  });

  test('is not sent again once it was done and the person has unsubscribed', async () => {
    const { wire, cut } = cutting();
    const leaving =
      (send: Send): Send =>
      async (request, signal) => {
        const answer = wire(send);
        try {
          return await answer(request, signal);
        } catch (error) {
          stage.emulator.dashboard.leave(ann, 'ch_product');
          throw error;
        }
      };
    const stage = open({ platform: { quirks: [...quirks, 'enrol-touches'] }, wire: leaving });
    stage.people.push(record('1', ann), record('2', bob));
    await stage.sync();
    wish(stage, '2', { ch_product: 'yes' });
    await stage.sync();
    await stage.sync();
    stage.writes();
    wish(stage, '1', { ch_product: 'yes' });
    cut('ch_product', true);
    expect(await stage.sync()).toMatchObject({ contacts: { conflicts: 1 } });
    await stage.sync();
    expect(enrolments(stage)).toEqual([`${ann} ch_product opt_in`]);
    expect(shown(stage, ann, 'ch_product')).toBe('opt_out');
    expect(stage.told()).toEqual([]);
  });
});

describe('an unanswered enrolment, where the platform shows no defaults', () => {
  /** Opts Ann out and in again; the platform gives the last request no answer, and ignores it. */
  async function unanswered(options: StageOptions) {
    const { wire, cut } = cutting();
    const stage = open({ ...options, wire });
    stage.people.push(record('1', ann), record('2', bob));
    await stage.sync();
    wish(stage, '1', { ch_news: 'no' });
    await stage.sync();
    wish(stage, '1', { ch_news: 'yes' });
    cut('ch_news', false);
    await stage.sync();
    await stage.sync();
    return stage;
  }

  test('is no opt-out by the person where our own opt-out was there before', async () => {
    const stage = await unanswered({});
    expect(shown(stage, ann, 'ch_news')).toBe('opt_out');
    expect(stage.told()).toEqual([]);
  });

  test('is sent again over our own opt-out where the contact did not change since', async () => {
    const stage = await unanswered({ platform: { quirks: ['enrol-touches'] } });
    expect(shown(stage, ann, 'ch_news')).toBe('opt_in');
  });

  test('two that acted are not sent again after the person has left both channels', async () => {
    let cut = 0;
    const wire =
      (send: Send): Send =>
      async (request, signal) => {
        const answer = await send(request, signal);
        if (cut === 0 || request.method !== 'POST') return answer;
        cut -= 1;
        for (const channel of cut === 0 ? ['ch_news', 'ch_product'] : [])
          stage.emulator.dashboard.leave(ann, channel);
        throw new Unavailable('timed out', { acted: 'maybe' });
      };
    const stage: Stage = open({ platform: { quirks: ['enrol-touches'] }, wire });
    stage.people.push(record('1', ann, 'yes', 'yes'), record('2', bob));
    await stage.sync();
    wish(stage, '1', { ch_news: 'no', ch_product: 'no' });
    await stage.sync();
    await stage.sync();
    await stage.clock.advance(3_600_000);
    wish(stage, '1', { ch_news: 'yes', ch_product: 'yes' });
    cut = 2;
    for (let nth = 0; nth < 3; nth += 1) await stage.sync();
    const now = ['ch_news', 'ch_product'].map((channel) => shown(stage, ann, channel));
    expect(now).toEqual(['opt_out', 'opt_out']);
  });

  test('is no opt-out by the person where our own may have been read late', async () => {
    const { wire, cut } = cutting();
    const stage = open({ wire });
    stage.people.push(record('1', ann), record('2', bob));
    await stage.sync();
    wish(stage, '1', { ch_news: 'no' });
    cut('ch_news', true);
    await stage.sync({ mode: 'fast' });
    wish(stage, '1', { ch_news: 'yes' });
    expect(await stage.sync()).toMatchObject({ contacts: { conflicts: 1 } });
    expect(stage.told()).toEqual([]);
  });

  test('is an opt-out by the person who was in no channel and is shown out afterwards', async () => {
    const { wire, cut } = cutting();
    const leaving =
      (send: Send): Send =>
      async (request, signal) =>
        wire(send)(request, signal).catch((error: unknown) => {
          stage.emulator.dashboard.leave(ann, 'ch_product');
          throw error;
        });
    const stage = open({ wire: leaving });
    stage.people.push(record('1', ann), record('2', bob));
    await stage.sync();
    wish(stage, '1', { ch_product: 'yes' });
    cut('ch_product', true);
    await stage.sync();
    await stage.sync();
    expect(stage.told()).toEqual([`${ann} ch_product`]);
  });
});
