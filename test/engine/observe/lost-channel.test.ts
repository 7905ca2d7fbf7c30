/** A channel that most of its people have lost at once is one problem, and nobody's own word. */
import { expect, test } from 'vitest';
import { recordedBody } from '../../../src/records/contact/observe/contact-state.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const addressOf = (at: number) => `p${at}@example.com`;

/** Opens a stage with `count` people whose one channel, in CRM and platform, is the newsletter. */
async function members(count: number, options: StageOptions = {}): Promise<Stage> {
  const stage = openStage(options);
  for (let at = 0; at < count; at += 1) {
    const email = addressOf(at);
    stage.people.push({ id: `${at}`, email, ch_news: 'yes' });
    stage.emulator.seed.contact({ email, channels: { ch_news: 'opt_in' } });
  }
  await stage.sync();
  stage.writes();
  return stage;
}

function take(stage: Stage, count: number): void {
  for (let at = 0; at < count; at += 1) {
    stage.emulator.dashboard.removeFromChannel(addressOf(at), 'ch_news');
  }
}

function recordedOf(stage: Stage, at: number) {
  const row = stage.snapshot.recorded.get('contact', addressOf(at));
  return recordedBody.parse(JSON.parse(row?.body ?? '')).channels['ch_news'];
}

test.each([
  [10, 6, 1],
  [10, 5, 5],
  [9, 9, 9],
  [12, 12, 1],
])(
  'a loss by more than half is one conflict: of %d people %d, conflicts %d',
  async (count, lost, conflicts) => {
    const stage = await members(count);
    take(stage, lost);
    const summary = await stage.sync();
    expect(summary.contacts.conflicts).toBe(conflicts);
    const [problem] = summary.problems;
    expect(problem?.key).toBe(conflicts === 1 ? 'ch_news' : addressOf(0));
    const is = conflicts === 1 ? 'opt_in' : 'opt_out';
    expect(recordedOf(stage, 0)?.is).toBe(is);
    expect(stage.writes()).toEqual([]);
  },
);

test('people who are not on the platform any more do not hide the loss', async () => {
  const stage = await members(30);
  for (let at = 10; at < 30; at += 1) stage.emulator.dashboard.deleteContact(addressOf(at));
  take(stage, 10);
  const summary = await stage.sync();
  expect(summary.problems.some(({ key }) => key === 'ch_news')).toBe(true);
  expect(recordedOf(stage, 0)?.is).toBe('opt_in');
});

test('the loss stays one problem, listed once, and the reason why every run fails', async () => {
  const stage = await members(12);
  stage.people.splice(0, 4);
  take(stage, 7);
  expect((await stage.sync()).problems).toMatchObject([{ key: 'ch_news', isNew: true }]);
  for (const mode of ['fast', 'full', 'full'] as const) {
    const { contacts, problems, status, reasons } = await stage.sync({ mode });
    expect({ mode, status, conflicts: contacts.conflicts, problems, reasons }).toEqual({
      mode,
      status: 'failed',
      conflicts: 1,
      problems: [],
      reasons: [expect.stringMatching(/^ch_news: more than half .* → restore the channel/)],
    });
  }
  const plan = await stage.sync({ writes: false });
  expect(plan).toMatchObject({ status: 'done', reasons: [expect.stringContaining('ch_news: ')] });
  for (let at = 0; at < 12; at += 1) expect(recordedOf(stage, at)?.is).toBe('opt_in');
  expect(stage.writes()).toEqual([]);
});

test('nobody is opted in meanwhile; opt-outs and the other channels continue', async () => {
  const stage = await members(12);
  take(stage, 7);
  stage.people.push({ id: 'new', email: 'new@example.com', ch_news: 'yes', ch_product: 'yes' });
  stage.people[11] = { ...stage.people[11], ch_news: 'no' };
  stage.people[0] = { ...stage.people[0], ch_product: 'yes' };
  await stage.sync();
  expect(stage.writes().map(({ channelId, subscription }) => [channelId, subscription])).toEqual([
    ['ch_news', 'opt_out'],
    ['ch_product', 'opt_in'],
    ['ch_product', 'opt_in'],
  ]);
  await stage.sync({ mode: 'fast' });
  expect(stage.writes()).toEqual([]);
});

test('everything continues as before once the channel is restored', async () => {
  const stage = await members(12);
  take(stage, 12);
  stage.people.push({ id: 'new', email: 'new@example.com', ch_news: 'yes' });
  await stage.sync();
  for (let at = 0; at < 12; at += 1) {
    stage.emulator.dashboard.signUp({ email: addressOf(at), channels: ['ch_news'] });
  }
  const summary = await stage.sync();
  expect(summary.contacts).toMatchObject({ conflicts: 0, applied: { create: 1 } });
});

test('a listing without proof can show the loss, but not its end', async () => {
  const counts = { more: 0 };
  const stage = await members(12, {
    wire: (send) => async (request, signal) => {
      const answer = await send(request, signal);
      if (!request.path.startsWith('/api/contacts/list')) return answer;
      const body = JSON.parse(answer.body);
      return { ...answer, body: JSON.stringify({ ...body, total: body.total + counts.more }) };
    },
  });
  counts.more = 1;
  take(stage, 7);
  const conflicts = async () => {
    const { contacts, certificate } = await stage.sync();
    return { conflicts: contacts.conflicts, certified: certificate.platform };
  };
  expect(await conflicts()).toEqual({ conflicts: 1, certified: false });
  for (let at = 0; at < 7; at += 1) {
    stage.emulator.dashboard.signUp({ email: addressOf(at), channels: ['ch_news'] });
  }
  expect(await conflicts()).toEqual({ conflicts: 1, certified: false });
  counts.more = 0;
  expect(await conflicts()).toEqual({ conflicts: 0, certified: true });
});
