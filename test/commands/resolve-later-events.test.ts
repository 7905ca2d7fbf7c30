/** What happens between `resolve` and the next run: it never opts in a person who said no since. */
import { expect, test } from 'vitest';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const said = ['--reason', 'by letter', '--evidence', 'ticket 7', '--by', 'eva'] as const;

const settle = async (world: Mirrored, who: string, as: 'in' | 'out') =>
  world.call('resolve', who, '--channel', 'ch_news', `--${as}`, ...said);
const crm = (...rows: string[]) =>
  ['id,email,news,product', ...rows, '9,x@example.com,yes,', ''].join('\n');
const news = (world: Mirrored, who: string): string | undefined =>
  world.emulator.world.contact(who)?.channels.find(({ id }) => id === 'ch_news')?.subscription;

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
