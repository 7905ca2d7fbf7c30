/** Which opt-outs are ours to take back, and which only look like it. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Send } from '../../../src/domain/exchange.ts';
import { hearing, openStage, type Stage } from '../../support/engine/engine-stage.ts';
import { NEW, OLD, sent } from '../../support/engine/sample-people.ts';
import { scratchFolder } from '../../support/waiting.ts';

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
  const folder = scratchFolder();
  const { heard, returns } = hearing();
  let lists = (send: Send): Send => send;
  const wire = (send: Send): Send => {
    return async (request, signal) => lists(send)(request, signal);
  };
  const stage = openStage({ returns, wire, path: join(folder, 'snapshot.sqlite') });
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
