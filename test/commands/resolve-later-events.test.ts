/** What happens between `resolve` and the next run: it never opts in a person who said no since. */
import { expect, test } from 'vitest';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const said = ['--reason', 'by letter', '--evidence', 'ticket 7', '--by', 'eva'] as const;
const other = 'b@example.com';
const settle = async (world: Mirrored, who: string, as: 'in' | 'out') =>
  world.call('resolve', who, '--channel', 'ch_news', `--${as}`, ...said);
const crm = (...rows: string[]) =>
  ['id,email,news,product', ...rows, '9,x@example.com,yes,', ''].join('\n');
const contactOf = (world: Mirrored): string => world.emulator.world.contact(ann)?.id ?? '';
const news = (world: Mirrored, who: string): string | undefined =>
  world.emulator.world.contact(who)?.channels.find(({ id }) => id === 'ch_news')?.subscription;

test.each(['--fast', '--full'])(
  'who signs up and leaves again on the platform stays out in a run with %s',
  async (mode) => {
    const world = await mirrored();
    world.csv(crm(`1,${ann},yes,`));
    await world.call('sync');
    world.csv(crm(`1,${ann},yes,`, `2,${ann},no,`));
    await world.call('sync');
    world.csv(crm(`1,${ann},yes,`));
    await world.call('sync');
    expect((await settle(world, ann, 'in')).code).toBe(0);
    world.emulator.dashboard.signUp({ email: ann, channels: ['ch_news'] });
    world.emulator.dashboard.leave(contactOf(world), 'ch_news');
    await world.call('sync', mode);
    expect(news(world, ann)).toBe('opt_out');
  },
);

test('an opt-in of another address with the same CRM id opts nobody else in', async () => {
  const world = await mirrored();
  world.csv(crm(`1,${ann},yes,`, `2,${ann},no,`));
  await world.call('sync');
  expect((await settle(world, ann, 'out')).code).toBe(0);
  world.csv(crm(`1,${ann},yes,`, `2,${other},yes,`));
  await world.call('sync');
  expect((await settle(world, other, 'in')).code).toBe(0);
  await world.call('sync');
  expect([news(world, ann), news(world, other)]).toEqual([undefined, 'opt_in']);
});

test('an opt-in sent before, whose outcome is found later, does not end an opt-out', async () => {
  const world = await mirrored();
  world.emulator.seed.contact({ email: ann });
  world.csv(crm(`1,${ann},yes,`));
  const cut = world.server.fail(({ method }) => method === 'POST', { is: 'cut', acts: true });
  await world.call('sync', '--json');
  cut.undo();
  world.csv(crm(`1,${ann},yes,`, `2,${ann},no,`));
  expect((await settle(world, ann, 'out')).code).toBe(0);
  world.csv(crm(`1,${ann},yes,`, `2,${ann},yes,`));
  await world.call('sync');
  await world.call('sync');
  expect(news(world, ann)).toBe('opt_out');
});
