/** contacts.protect and policy.optIns: off, over HTTP against the emulator. */
import { expect, test } from 'vitest';
import { createWorld } from '../../support/engine/engine-world.ts';

const ann = { email: 'ann@example.com', news: 'yes' };
const bob = { email: 'bob@example.com', news: 'yes' };

test('optIns off creates nobody, and counts the people in one line', async () => {
  const world = await createWorld({ kinds: ['contact'], policy: { optIns: 'off' } });
  world.people([ann, bob]);
  const summary = await world.sync();
  expect(summary).toMatchObject({ status: 'done', problems: [] });
  expect(summary.reasons).toEqual([
    'policy.optIns is off: 2 people would be created or opted in → set it to on to do so',
  ]);
  expect(world.writes()).toEqual([]);
});

test('a protected person stays as they are, and the run says so once', async () => {
  const world = await createWorld({ kinds: ['contact'], protect: [ann.email] });
  world.people([ann, bob]);
  const summary = await world.sync();
  expect(summary.reasons.join()).toContain('contacts.protect: 1 person would be changed');
  expect(world.shown(ann.email)).toBeUndefined();
  expect(world.shown(bob.email)).toEqual({ ch_news: 'opt_in' });
  world.emulator.seed.contact({ email: ann.email, channels: { ch_news: 'opt_in' } });
  world.people([{ ...ann, news: 'no' }, bob]);
  await world.sync();
  expect(world.shown(ann.email)).toEqual({ ch_news: 'opt_out' });
});
