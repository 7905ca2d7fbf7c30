/** The first sentences of the page of a person: what is so in each channel, and what is next. */
import { expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
import { look, startConsole, viewer } from '../support/console/running-console.ts';

const named = {
  channels: [
    { id: 'ch_news', name: 'Newsletter', subscription: 'news' },
    { id: 'ch_product', name: 'Product news', subscription: 'product' },
  ],
};

async function answers(world: Mirrored, who: string, options = {}) {
  const { page, complaints } = await look(await startConsole([world.file], options));
  await page.goto('/m/world/people');
  await page.getByLabel('Address, CRM id or hash').fill(who);
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByRole('heading', { name: 'Which mail, and why' }).waitFor();
  const textIn = async (heading: string, channel: string): Promise<string> => {
    const section = page.locator('section', { has: page.getByRole('heading', { name: heading }) });
    const item = section.locator('li', { hasText: `${channel}:` });
    return (await item.innerText()).replaceAll(/\s+/g, ' ');
  };
  const text = async (channel: string) => textIn('Which mail, and why', channel);
  const next = async (channel: string) => textIn('What a run would do', channel);
  return { page, complaints, text, next };
}

const aDay = String.raw`\d+ \w{3} 2\d{3}`;
const aTime = String.raw`${aDay}, \d\d:\d\d UTC`;

test('the first sentence says since when and why somebody is subscribed or not', async () => {
  const world = await mirrored({ lines: { contacts: named } });
  await world.call('sync');
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'no', product: 'no' },
  ]);
  await world.call('sync');
  const { text, next, page } = await answers(world, bob);
  expect(await text('Newsletter')).toMatch(
    new RegExp(
      `Newsletter: not subscribed, because the CRM said so .record id-bob@example.com.: opted out by this mirror on ${aDay}\\.$`,
    ),
  );
  expect(await next('Newsletter')).toBe('Newsletter: nothing to do');
  expect(await page.locator('main').innerText()).not.toContain('ch_news:');
  const other = await answers(world, ann);
  expect(await other.text('Newsletter')).toMatch(
    new RegExp(
      `Newsletter: subscribed, because the CRM said so: opted in by this mirror on ${aDay}`,
    ),
  );
  expect(await other.text('Product news')).toContain(
    'not subscribed, because no subscription was ever seen',
  );
});

test('who left on the platform reads between which times, and what the CRM says', async () => {
  const world = await mirrored({ lines: { contacts: named } });
  await world.call('sync');
  world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
  await world.call('sync');
  await world.call('sync');
  const { text, next, page } = await answers(world, ann);
  expect(await text('Newsletter')).toMatch(
    new RegExp(
      `not subscribed, because the person unsubscribed on the platform (on|between) .*${aDay}; the CRM says yes.`,
    ),
  );
  await page.getByText('Resolve the conflict in Newsletter').click();
  expect(await next('Newsletter')).toContain(
    '“The person wants in” is not offered: the person opted out on the platform',
  );
  expect(await next('Product news')).toContain('nothing to do');
  const read = (await world.call('runs', '--json')).json.runs[0].startedAt;
  expect(await page.getByText('last seen').locator('time').getAttribute('datetime')).toBe(read);
});

test('each channel says of itself what waits, what is rejected and what has nothing to do', async () => {
  const world = await mirrored({ lines: { contacts: named } });
  world.config({ contacts: named, guards: { optIns: { percent: 0, floor: 1 } } });
  await world.call('sync');
  const names = [ann, 'eve@example.com', 'kim@example.com', 'pia@example.com'];
  world.people([
    { email: bob, news: 'yes', product: 'no' },
    ...names.map((email) => ({ email, news: 'yes', product: 'yes' })),
  ]);
  expect((await world.call('sync')).code).toBe(3);
  const before = await answers(world, ann);
  expect(await before.next('Newsletter')).toContain('nothing to do');
  expect(await before.next('Product news')).toContain(
    'awaits a decision: opt in, because the CRM says so',
  );
  await before.page.locator('li').getByRole('link', { name: 'Approvals' }).first().waitFor();
  const { held } = (await world.call('status', '--json')).json;
  const part = ['--channel', 'ch_product', '--by', 'otto', '--reason', 'nobody asked'];
  await world.call('reject', held[0].plan, ...part);
  const after = await answers(world, ann, { user: viewer });
  expect(await after.next('Product news')).toMatch(
    new RegExp(`nothing to do: rejected by otto until ${aTime}: nobody asked`),
  );
  expect(after.complaints).toEqual([]);
});

test('the beginning of an address finds people, but only for users who see addresses', async () => {
  const world = await mirrored();
  await world.call('sync');
  const search = async (options = {}) => {
    const { page } = await look(await startConsole([world.file], options));
    await page.goto('/m/world/people');
    await page.getByText('Type the whole address, a CRM id or a hash').waitFor();
    await page.getByLabel('Address, CRM id or hash').fill('an');
    await page.getByRole('button', { name: 'Find' }).click();
    return page.getByRole('status').innerText();
  };
  expect(await search()).toContain(ann);
  expect(await search({ user: viewer })).toContain('Nobody was found');
});
