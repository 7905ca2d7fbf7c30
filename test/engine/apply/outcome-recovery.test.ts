import { describe, expect, test } from 'vitest';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import { failing as breaking, openStage } from '../../support/engine/engine-stage.ts';

const letter = {
  key: 'welcome',
  subject: 'Hello',
  content: [{ text: 'Dear {{name}}' }],
  variables: [{ name: 'name', type: 'string', defaultValue: null }],
  status: 'published',
};

describe.each(['keep', 'overwrite'] as const)('templates: %s', (templates) => {
  test.each(['timeout-after', 'timeout-before', 'reset-after', 'half', 'garbage'])(
    'the second step of a creation that ends in %s is found by the id of the first',
    async (fault) => {
      const stage = openStage({
        policy: { templates },
        platform: { faults: [`${fault}@templates.update`] },
      });
      stage.templates.push(letter);
      await stage.sync();
      stage.emulator.fail([]);
      const summary = await stage.sync();
      expect(summary.templates).toMatchObject({ conflicts: 0, rejected: 0 });
      expect(stage.emulator.world.templates()).toMatchObject([
        { name: 'welcome', variables: letter.variables, status: 'published' },
      ]);
      stage.writes();
      await stage.sync();
      expect(stage.writes()).toEqual([]);
    },
  );
});

/** The first few requests to paths with this text get no answer, though the platform saw them. */
function deaf(text: string, times: number): (send: Send) => Send {
  let left = times;
  return (send) => async (request, signal) => {
    const answer = await send(request, signal);
    if (!request.path.includes(text) || left === 0) return answer;
    left -= 1;
    throw new Unavailable('no answer', { acted: 'maybe' });
  };
}

/** The first request of this method is carried out, and answered with 500. */
function failing(method: string): (send: Send) => Send {
  let done = false;
  return (send) => async (request, signal) => {
    const answer = await send(request, signal);
    if (request.method !== method || done) return answer;
    done = true;
    return { ...answer, status: 500, body: '{"message":"Internal error"}' };
  };
}

test('a creation with a failed look does not prove that the person is absent', async () => {
  const stage = openStage({ wire: deaf('search=left', 4) });
  stage.emulator.seed.contact({ email: 'left@example.com', status: 'unsubscribed' });
  for (const name of ['left', 'new']) {
    const email = `${name}@example.com`;
    stage.people.push({ id: name, email, ch_news: 'yes', ch_product: 'yes' });
  }
  await stage.sync({ mode: 'fast' });
  expect(new Set(stage.writes().map(({ email }) => email))).toEqual(new Set(['new@example.com']));
  const summary = await stage.sync({ mode: 'fast' });
  expect(stage.writes()).toEqual([]);
  expect(summary.contacts.conflicts).toBe(1);
});

test('our opt-out stays ours after the answers 500, 409 and silence', async () => {
  const wire = (send: Send): Send => failing('POST')(deaf('/retrieve/', 4)(send));
  const stage = openStage({ wire });
  stage.emulator.seed.contact({ email: 'a@example.com', channels: { ch_news: 'opt_in' } });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'no' });
  await stage.sync();
  expect(stage.writes().map(({ status }) => status)).toEqual([201, 409]);
  stage.people[0] = { id: '1', email: 'a@example.com', ch_news: 'yes' };
  const summary = await stage.sync();
  expect(summary.contacts).toMatchObject({ conflicts: 0, applied: { opt_in: 1 } });
});

test.each(['no', 'yes'])(
  'an unanswered change in one channel keeps no other waiting: %s',
  async (wish) => {
    const stage = openStage({ wire: deaf('/channel/ch_news', 4) });
    const is = wish === 'no' ? 'opt_out' : 'opt_in';
    const channels = wish === 'no' ? ({ ch_news: 'opt_in', ch_product: 'opt_in' } as const) : {};
    stage.emulator.seed.contact({ email: 'a@example.com', channels });
    stage.people.push({ id: '1', email: 'a@example.com', ch_news: wish, ch_product: wish });
    expect((await stage.sync()).status).toBe('done');
    const shown = stage.emulator.world.contact('a@example.com')?.channels ?? [];
    expect(shown.map(({ subscription }) => subscription)).toEqual([is, is]);
  },
);

test('an opt-out found by a later run may be the person’s own by then', async () => {
  const faults = ['reset-after@contacts.enrol'];
  const stage = openStage({ wire: deaf('/retrieve/', 8), platform: { faults } });
  stage.emulator.seed.contact({ email: 'a@example.com', channels: { ch_news: 'opt_in' } });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'no' });
  expect((await stage.sync()).reasons.join()).toContain('the outcome of 1 change is not known yet');
  stage.emulator.fail([]);
  stage.writes();
  expect((await stage.sync()).status).toBe('done');
  expect(stage.writes()).toEqual([]);
  stage.people[0] = { id: '1', email: 'a@example.com', ch_news: 'yes' };
  const summary = await stage.sync();
  expect(summary.contacts).toMatchObject({ conflicts: 1, applied: { opt_in: 0 } });
});

test('an unanswered creation that the person took back is told of as that', async () => {
  const faults = ['reset-after@contacts.enrol'];
  const stage = openStage({ wire: deaf('search=', 8), platform: { faults } });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
  await stage.sync();
  stage.emulator.fail([]);
  stage.emulator.dashboard.leave('a@example.com', 'ch_news');
  await stage.sync();
  const told = stage.snapshot.unaudited.next(9).map(({ op, outcome }) => [op, outcome]);
  expect(told.at(-1)).toEqual(['create', 'undone']);
});

test('a 409 to an opt-out that nothing else explains is the person’s own opt-out', async () => {
  const stage = openStage({ wire: deaf('/retrieve/', 4) });
  const id = stage.emulator.seed.contact({
    email: 'a@example.com',
    channels: { ch_news: 'opt_in' },
  });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
  await stage.sync();
  stage.emulator.dashboard.leave(id, 'ch_news');
  stage.people[0] = { id: '1', email: 'a@example.com', ch_news: 'no' };
  for (let times = 0; times < 2; times += 1) await stage.sync({ mode: 'fast' });
  stage.people[0] = { id: '1', email: 'a@example.com', ch_news: 'yes' };
  stage.writes();
  expect((await stage.sync()).contacts.conflicts).toBe(1);
  expect(stage.writes()).toEqual([]);
});

test('an opt-out without an outcome keeps back none that the CRM states of another channel', async () => {
  const stage = openStage({
    wire: (send) => deaf('/channel/ch_news', 99)(deaf('/retrieve/', 99)(send)),
  });
  const email = 'a@example.com';
  const channels = { ch_news: 'opt_in', ch_product: 'opt_in' } as const;
  stage.emulator.seed.contact({ email, channels });
  stage.people.push({ id: '1', email, ch_news: 'no', ch_product: 'yes' });
  expect((await stage.sync()).status).toBe('failed');
  stage.people[0] = { id: '1', email, ch_news: 'no', ch_product: 'no' };
  stage.writes();
  await stage.sync();
  expect(stage.writes().map(({ channelId }) => channelId)).toEqual(['ch_product']);
});

test('an opt-out that never arrived is not ours because the person made it meanwhile', async () => {
  const stage = openStage();
  const email = 'a@example.com';
  stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  stage.people.push({ id: '1', email, ch_news: 'yes' });
  await stage.sync();
  stage.emulator.dashboard.leave(email, 'ch_news');
  stage.people[0] = { id: '1', email, ch_news: 'no' };
  stage.emulator.fail(['timeout-before@contacts.enrol']);
  await stage.sync({ mode: 'fast' });
  stage.emulator.fail([]);
  stage.people[0] = { id: '1', email, ch_news: 'yes' };
  stage.writes();
  expect((await stage.sync()).contacts.conflicts).toBe(1);
  expect(stage.writes()).toEqual([]);
});

test('a creation of a killed run may arrive until a time-out of this one has passed', async () => {
  const { state, wire } = breaking();
  const stage = openStage({ wire });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
  state.how = 'breaks';
  await expect(stage.sync()).rejects.toThrow('a bug');
  state.how = 'well';
  // The clock of the killed run may have been another one.
  await stage.clock.advance(3_600_000);
  const { ms, contacts } = await stage.sync();
  expect(ms).toBeGreaterThanOrEqual(10_000);
  expect(contacts.applied).toMatchObject({ create: 1 });
});

test('an opt-out found done does not hide another contact of the address', async () => {
  const stage = openStage({ wire: (send) => deaf('/channel/', 1)(deaf('/retrieve/', 4)(send)) });
  const email = 'a@example.com';
  stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  stage.people.push({ id: '1', email, ch_news: 'no' });
  expect((await stage.sync()).status).toBe('failed');
  stage.emulator.seed.contact({ email: email.toUpperCase(), channels: { ch_news: 'opt_in' } });
  await stage.sync();
  const left = stage.emulator.world.contacts().flatMap(({ channels }) => channels);
  expect(left.map(({ subscription }) => subscription)).toEqual(['opt_out', 'opt_out']);
});

/** There is one more than it lists, and with other page borders it may not be listed at all. */
const halfListed = (send: Send): Send => {
  return async (request, signal) => {
    const answer = await send(request, signal);
    if (!request.path.startsWith('/api/contacts/list')) return answer;
    if (!request.path.includes('limit=100')) {
      return { ...answer, status: 403, body: '{"message":"Forbidden"}' };
    }
    const page = JSON.parse(answer.body);
    return { ...answer, body: JSON.stringify({ ...page, total: page.total + 1 }) };
  };
};

test('an opt-in found done is not undone by an older listing', async () => {
  const stage = openStage({ wire: (send) => deaf('/channel/', 1)(halfListed(send)) });
  stage.emulator.seed.contact({ email: 'a@example.com' });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'yes' });
  const summary = await stage.sync();
  const [channel] = stage.emulator.world.contact('a@example.com')?.channels ?? [];
  expect(channel).toMatchObject({ id: 'ch_news', subscription: 'opt_in' });
  expect(summary.contacts.conflicts).toBe(0);
  expect(stage.ledger.newest()).toBe(0);
});

test('a look before the listing does not date what the listing shows', async () => {
  const minuteMs = 60_000;
  let isLate = false;
  const slow: (send: Send) => Send = (send) => async (request, signal) => {
    const lists = request.path.startsWith('/api/contacts/list?page=1&limit=100');
    if (isLate && lists && !request.path.includes('search=')) {
      isLate = false;
      await stage.clock.sleep(2 * minuteMs);
      stage.emulator.dashboard.leave(id, 'ch_news');
    }
    return send(request, signal);
  };
  const stage = openStage({
    wire: (send) => deaf('/retrieve/', 4)(slow(send)),
    policy: { resubscribe: 'newer' },
    platform: { faults: ['timeout-before@contacts.enrol'] },
  });
  const email = 'a@example.com';
  const id = stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  stage.people.push({ id: '1', email, ch_news: 'yes', ch_product: 'yes' });
  expect((await stage.sync()).status).toBe('failed');
  stage.emulator.fail([]);
  // Newer than what is read first, and older than the person's opt-out.
  const at = new Date(stage.clock.now() + minuteMs).toISOString();
  stage.people[0] = { ...stage.people[0], ch_product: '', consent_at: at };
  isLate = true;
  await stage.sync();
  await stage.sync();
  const [channel] = stage.emulator.world.contact(email)?.channels ?? [];
  expect(channel).toMatchObject({ id: 'ch_news', subscription: 'opt_out' });
});

test('an opt-out with an unknown outcome keeps back no other contact of the address', async () => {
  const email = 'a@example.com';
  let isAway = false;
  const stage = openStage({
    platform: { quirks: ['email-as-given'] },
    wire: (send) => async (request, signal) => {
      const isFirst = `${request.path} ${request.body}`.includes(first);
      if (isAway && isFirst) throw new Unavailable('no answer', { acted: 'maybe' });
      return send(request, signal);
    },
  });
  const first = stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  stage.people.push({ id: '1', email, ch_news: 'yes' });
  await stage.sync();
  isAway = true;
  stage.people[0] = { id: '1', email, ch_news: 'no' };
  await stage.sync();
  const second = stage.emulator.seed.contact({
    email: 'A@Example.com',
    channels: { ch_news: 'opt_in' },
  });
  stage.writes();
  await stage.sync();
  expect(stage.writes().map(({ contactId }) => contactId)).toEqual([second]);
});
