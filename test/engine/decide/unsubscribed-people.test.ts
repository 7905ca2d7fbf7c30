/** People who left, and every way in which stale knowledge could bring them back. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import { hearing, openStage, type Stage } from '../../support/engine/engine-stage.ts';
import { NEW, OLD, sent } from '../../support/engine/sample-people.ts';
import { scratchFolder } from '../../support/waiting.ts';

const lea = 'lea@example.com';
const wants = { id: 'lea', email: lea, ch_news: 'yes' };

describe('a channel that a creation adds by default', () => {
  const platform = { quirks: ['all-channels=opt_in'] };

  test('is opted out before the next person is created', async () => {
    const stage = openStage({ platform, limits: ['contacts.enrol=2/1'] });
    for (let at = 0; at < 12; at += 1) {
      const email = `p${at}@example.com`;
      stage.people.push({ id: `${at}`, email, ch_news: 'yes', ch_product: 'no' });
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
    expect(sent(stage)).toEqual([
      'opt_in a@example.com ch_news',
      'opt_out a@example.com ch_product',
    ]);
  });
});

test('an invalid record in an uncertified reading is new once, and known afterwards', async () => {
  const stage = openStage();
  Object.assign(stage.certificate, { complete: false, why: 'row 7 is ragged', fix: 'mend it' });
  stage.people.push({ id: '1', email: 'a@example.com', ch_news: 'maybe' });
  expect((await stage.sync()).problems).toMatchObject([{ class: 'invalid', isNew: true }]);
  expect((await stage.sync()).problems).toMatchObject([{ class: 'invalid', isNew: false }]);
});

test('after the contact and the snapshot were lost, a bounce belongs to the address', async () => {
  const stage = openStage();
  stage.people.push({ ...wants });
  await stage.sync();
  stage.emulator.dashboard.suppress(lea, 'bounce');
  await stage.sync();
  stage.emulator.dashboard.deleteContact(lea);
  stage.loseSnapshot();
  stage.writes();
  expect((await stage.sync()).contacts.conflicts).toBe(1);
  expect(stage.writes()).toEqual([]);
  stage.people[0] = { ...wants, email: 'other@example.com' };
  await stage.sync();
  expect(stage.emulator.world.contact('other@example.com')?.channels).toHaveLength(1);
});

test('an entry made in the list during a run counts before the next request', async () => {
  const stage = openStage();
  stage.people.push({ ...wants });
  const { ledger } = stage;
  const erasure = { part: '*', cause: 'erasure' as const, contact: null, after: null, by: 0 };
  let asked = 0;
  // Known from the second question on: the first is asked when it is decided.
  stage.ledger = {
    ...ledger,
    concerning: (who) => {
      asked += 1;
      if (asked === 2) ledger.write([{ ...who, adds: [erasure], ends: [] }], 0);
      return ledger.concerning(who);
    },
  };
  const summary = await stage.sync();
  expect(asked).toBeGreaterThan(2);
  expect(stage.writes()).toEqual([]);
  expect(summary).toMatchObject({ status: 'done', reasons: [], contacts: { conflicts: 1 } });
});

/** The list of contacts claims one more than it shows. */
const unproven = (send: Send): Send => {
  return async (request, signal) => {
    const answer = await send(request, signal);
    if (!request.path.startsWith('/api/contacts/list')) return answer;
    const body = JSON.parse(answer.body);
    return { ...answer, body: JSON.stringify({ ...body, total: body.total + 1 }) };
  };
};

test.each([
  ['one', async (stage: Stage) => stage.sync({ mode: { single: NEW } })],
  ['an event', async (stage: Stage) => stage.clock.run(stage.one('1'))],
  ['a full run whose listing has no proof', async (stage: Stage) => stage.sync()],
])('an opt-out met again in a second round of the same run is ours: %s', async (what, runs) => {
  const { heard, returns } = hearing();
  let lists = (send: Send): Send => send;
  const wire = (send: Send): Send => {
    return async (request, signal) => lists(send)(request, signal);
  };
  const stage = openStage({ returns, wire, path: join(scratchFolder(), 'snapshot.sqlite') });
  // Two more people show that this platform names no channel without a subscription.
  stage.people.push(
    { id: '1', email: OLD, ch_news: 'yes', ch_product: 'yes' },
    { id: '8', email: 'max@example.com', ch_news: 'yes' },
    { id: '9', email: 'ida@example.com', ch_product: 'yes' },
  );
  stage.emulator.dashboard.signUp({ email: NEW, channels: ['ch_news'] });
  await stage.sync();
  sent(stage);
  stage.people[0] = { id: '1', email: NEW, ch_news: 'no', ch_product: 'yes' };
  if (what.startsWith('a full')) lists = unproven;
  await runs(stage);
  expect(sent(stage).filter((line) => line.includes(`${NEW} ch_news`))).toEqual([
    `opt_out ${NEW} ch_news`,
  ]);
  lists = (send) => send;
  stage.people[0] = { id: '1', email: NEW, ch_news: 'yes', ch_product: 'yes' };
  await stage.sync();
  expect(sent(stage)).toContain(`opt_in ${NEW} ch_news`);
  expect(heard).toEqual([]);
});
