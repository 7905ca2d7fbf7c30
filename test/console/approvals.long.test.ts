/** What awaits approval, decided in a real browser. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';
import {
  type BrowserOptions,
  faultsOf,
  look,
  startConsole,
  viewer,
} from '../support/console/running-console.ts';

const named = {
  channels: [
    { id: 'ch_news', name: 'Newsletter', subscription: 'news' },
    { id: 'ch_product', name: 'Product news', subscription: 'product' },
  ],
};

/** Four newcomers await approval in two channels. */
async function held(browser: BrowserOptions = {}) {
  const world = await mirrored();
  world.config({ contacts: named, guards: { optIns: { percent: 0, floor: 1 } } });
  expect((await world.call('sync')).code).toBe(0);
  const names = [ann, bob, 'eve@example.com', 'kim@example.com'];
  world.people(names.map((email) => ({ email, news: 'yes', product: 'yes' })));
  expect((await world.call('sync')).code).toBe(3);
  const running = await startConsole([world.file]);
  const looking = await look(running, browser);
  await looking.page.goto('/m/world/approvals');
  return { ...world, running, ...looking };
}

test('an operator sees why changes wait, approves them, and a run makes them', async () => {
  const { page, complaints, running, ...world } = await held();
  const main = page.locator('main');
  await page.goto('/since');
  await main.getByText('4 await approval').waitFor();
  await page.goto('/m/world/approvals');
  await main.getByRole('heading', { name: /4 people await a decision/ }).waitFor();
  await main
    .getByRole('heading', { name: 'New in the CRM, or opted in there · 4 people' })
    .waitFor();
  const why = await main.innerText();
  expect(why).toContain(
    'more than 1 in one run (the greater of 1 and 0 % of 4 people the CRM wants)',
  );
  expect(why).toContain('4 of 4 people the CRM wants (100 %); the limit is 1');
  const badge = page.getByRole('link', { name: 'Approvals 4' });
  expect(await badge.getAttribute('aria-current')).toBe('page');
  expect(await main.locator('meter').getAttribute('high')).toBe('1');
  expect(why).toContain('is the greater of 1 person and 0 % of the people the CRM wants.');
  expect(why).toContain('often a column or a condition that changed its meaning');
  expect(why).not.toMatch(/crm-mirror|ch_news|under the plan/);
  expect(why).toContain('These are 6 changes: one in each channel.');
  expect(why).toContain('For example ann@example.com, bob@example.com, ');
  for (const name of [
    'Newsletter no contact opted in 2',
    'Product news not subscribed opted in 1',
    'Product news opted out in the CRM by product opted in 1',
  ])
    await main.getByRole('row', { name }).waitFor();
  await main.getByRole('link', { name: 'All 6 changes' }).click();
  const eve = main.getByRole('row', { name: 'eve@example.com' });
  expect(await eve.count()).toBe(2);
  expect(await eve.first().innerText()).toMatch(
    /awaits a decision\s+the CRM says so \(record id-eve@example.com\)/,
  );
  await page.getByLabel('Channel').selectOption('Product news');
  await page.getByRole('button', { name: 'Filter' }).click();
  await eve.first().waitFor();
  expect(await main.getByRole('row').count()).toBe(1 + 4);
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download these as CSV' }).click(),
  ]);
  const lines = readFileSync(await file.path(), 'utf8')
    .trim()
    .split('\r\n');
  expect(lines).toHaveLength(1 + 4);
  expect(lines[1]).toContain(',opt in,Product news,ch_product,ann@example.com,');
  expect(await faultsOf(page)).toEqual([]);
  await page.goto('/m/world/approvals');
  const approve = main.locator('form', {
    has: page.getByRole('button', { name: 'Approve these', exact: true }),
  });
  expect(await approve.getByLabel('kept with the button that you press').count()).toBe(1);
  expect(await approve.getByRole('button').allInnerTexts()).toEqual([
    'Approve these',
    'Approve these, reject the rest',
    'Reject these',
  ]);
  await approve.getByLabel('Reason').fill('the campaign of June');
  await page.getByRole('button', { name: 'Approve these', exact: true }).click();
  const notice = await page.getByRole('status').innerText();
  expect(notice).toMatch(/Approved: 4 people[^]*Nothing is scheduled: “Run now”/);
  expect(notice).not.toMatch(/crm-mirror|hash/);
  await page.getByRole('heading', { name: 'Approved, waits for the next run' }).waitFor();
  await page.getByText('approved by olga (console) (the campaign of June)').first().waitFor();
  await page.getByText('Nothing awaits a decision.').waitFor();
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.getByRole('status').waitFor();
  await expect.poll(() => world.emulator.world.contacts(), { timeout: 20_000 }).toHaveLength(4);
  await page.goto('/m/world/approvals');
  await page.getByRole('heading', { name: 'Decided lately' }).waitFor();
  const lately = page.locator('section', { hasText: 'Decided lately' });
  expect(await lately.innerText()).toMatch(/approved by olga.*June\), .* of \d done by run/);
  const { json } = await world.call(
    'audit',
    'export',
    '--output',
    `${world.folder}/audit.jsonl`,
    '--json',
  );
  expect(json.entries).toBeGreaterThan(4);
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('somebody whom the CRM marks as deleted is not called missing', async () => {
  const world = await mirrored();
  const guards = { deletes: { percent: 0, floor: 1 } };
  world.config({ contacts: { ...named, deleted: 'left' }, guards });
  const rows = (left: string) =>
    `id,email,news,product,left\n1,${ann},yes,,${left}\n2,${bob},yes,,${left}\n`;
  world.csv(rows('no'));
  await world.call('sync');
  world.csv(rows('yes'));
  expect((await world.call('sync')).code).toBe(3);
  const { page } = await look(await startConsole([world.file]));
  await page.goto('/m/world/approvals');
  await page
    .getByRole('row', { name: 'Newsletter subscribed deleted there, or out of scope 2' })
    .waitFor({ timeout: 10_000 });
  await page.getByRole('link', { name: 'All 2 changes' }).click();
  await page.getByRole('row', { name: ann }).getByText('marks the person as deleted').waitFor();
});

test('one click approves a channel and rejects the rest, with one reason', async () => {
  const { page, complaints, ...world } = await held();
  await page.goto('/m/world');
  await page.getByRole('link', { name: 'Approvals' }).click();
  const reason = page.getByLabel('Reason');
  const both = page.getByRole('button', { name: 'Approve these, reject the rest' });
  await page.getByLabel('Newsletter (2)').uncheck();
  await page.getByLabel('Product news (4)').uncheck();
  await reason.fill('nothing is ticked');
  await both.click();
  expect(await page.getByRole('status').innerText()).toContain('tick what is meant');
  await page.getByLabel('Product news (4)').uncheck();
  await reason.fill('only the newsletter is right');
  await both.click();
  expect(await page.getByRole('status').innerText()).toMatch(
    /Approved: 2 people[^]*Rejected: 4 people[^]*may count in both/,
  );
  expect(await page.getByRole('status').innerText()).not.toContain('Still awaiting');
  const { json } = await world.call('status', '--json');
  expect(json).toMatchObject({
    approvals: [{ by: 'olga (console)', reason: 'only the newsletter is right' }],
    rejections: [{ by: 'olga (console)', reason: 'only the newsletter is right' }],
  });
  await page.getByText('2 people: create in Newsletter: approved by olga').waitFor();
  const rejected = page.locator('section', { hasText: 'No run makes these changes' });
  expect(await rejected.innerText()).toContain('2 people: opt in to Product news');
  expect(complaints).toEqual([]);
});

test('the box that creates the newcomers is named, and what is not approved is rejected', async () => {
  const { page, ...world } = await held();
  await page.getByLabel('Newsletter (2)').uncheck();
  await page.getByLabel('Reason').fill('only the product news');
  await page.getByRole('button', { name: 'Approve these, reject the rest' }).click();
  const status = page.getByRole('status');
  expect(await status.innerText()).toMatch(
    /Approved: 2 people[^]*2 people left out: approve the creation as well.\s+Not ticked: Newsletter.\s+Rejected: 2 people/,
  );
  expect(await status.innerText()).not.toMatch(/Still awaiting|approved already/);
  await page.getByText('Nothing awaits a decision.').waitFor();

  // Of newcomers alone, nothing can be approved without it.
  const others = [ann, bob, 'eve@example.com', 'kim@example.com', 'lea@example.com'];
  world.people(
    [...others, 'max@example.com'].map((email) => ({ email, news: 'yes', product: 'yes' })),
  );
  expect((await world.call('sync')).code).toBe(3);
  // A page may show a status that is some moments old.
  const newsletter = page.getByLabel('Newsletter (2)');
  const shown = async () => page.reload().then(async () => newsletter.count());
  await expect.poll(shown, { timeout: 20_000 }).toBe(1);
  await newsletter.uncheck();
  await page.getByLabel('Reason').first().fill('only the product news');
  await page.getByRole('button', { name: 'Approve these, reject the rest' }).click();
  expect(await status.innerText()).toMatch(
    /2 people must be created first[^]*Not ticked: Newsletter./,
  );
  await page.getByRole('heading', { name: /2 people await a decision/ }).waitFor();
});

test('of a plan that is decided in part, the page shows the limit of then, and no bar', async () => {
  const { page } = await held();
  await page.getByLabel('Product news (4)').uncheck();
  await page.getByLabel('Reason').fill('the newsletter is right');
  await page.getByRole('button', { name: 'Approve these', exact: true }).click();
  await page.getByRole('heading', { name: /4 people await a decision/ }).waitFor();
  const why = await page.locator('main').innerText();
  expect(why).toContain('when a run held them, there were more than 1 in one run');
  expect(why).toContain('some of them no longer wait');
  expect(await page.locator('meter').count()).toBe(0);
  await page.getByRole('row', { name: 'opt in Product news 2 awaits a decision' }).waitFor();
  await page.getByRole('row', { name: /create Newsletter 2 approved by olga/ }).waitFor();
});

test('the measure is of the check that withheld the changes, and equal rows are one', async () => {
  const world = await mirrored();
  world.config({ contacts: named });
  const people = [ann, bob, 'eve@example.com', 'kim@example.com', 'lea@example.com'];
  const say = (news: string) =>
    world.people(people.map((email, at) => ({ email, news, product: at < 2 ? 'yes' : '' })));
  say('no');
  await world.call('sync');
  say('yes');
  expect((await world.call('sync')).code).toBe(3);
  const { page } = await look(await startConsole([world.file]));
  await page.goto('/m/world/approvals');
  await page.getByRole('heading', { name: '5 people await a decision' }).waitFor();
  const why = await page.locator('main').innerText();
  expect(why).toContain('5 of 5 people whose opt-out the CRM had stated (100 %); the limit is 2');
  expect(why).toContain('This is often a column of opt-outs that came empty.');
  expect(why).not.toMatch(/\?\.|guards\.optIns/);
  const before = page.getByRole('row', { name: /opted out in the CRM by news/ });
  expect(await before.allInnerTexts()).toEqual([expect.stringMatching(/opted in\s+5$/)]);
});

test('people who wait under two plans are shown once', async () => {
  const { page, ...world } = await held();
  world.people([ann, bob, 'eve@example.com'].map((email) => ({ email, news: 'yes' })));
  expect((await world.call('sync', '--fast')).code).toBe(3);
  expect((await world.call('status', '--json')).json.held).toHaveLength(2);
  await page.reload();
  await page.getByRole('heading', { name: '4 people await a decision' }).waitFor();
  expect(await page.getByRole('heading', { name: 'await a decision' }).count()).toBe(1);
});

test('several causes are approved together only in a second step that repeats the counts', async () => {
  const world = await mirrored();
  const lowest = { percent: 0, floor: 1 };
  const guards = { optIns: lowest, optOuts: lowest, deletes: lowest };
  world.config({ contacts: named, guards, policy: { absent: 'opt_out' } });
  const old = [ann, bob, 'kai@example.com', 'lea@example.com'].map((email) => ({
    email,
    news: 'yes',
  }));
  world.people(old);
  await world.call('sync');
  world.people([
    ...old.map(({ email }) => ({ email, news: 'no' })),
    ...['eve@example.com', 'kim@example.com'].map((email) => ({ email, news: 'yes' })),
  ]);
  expect((await world.call('sync')).code).toBe(3);
  const { page } = await look(await startConsole([world.file]));
  await page.goto('/m/world/approvals');
  const all = page.getByText('Approve all 6 people', { exact: true });
  expect(await page.getByRole('button', { name: 'Yes, approve all 6 people' }).count()).toBe(0);
  await all.click();
  await page.getByText('This approves all of these').waitFor();
  await page.getByRole('button', { name: 'Yes, approve all 6 people' }).waitFor();
  const { page: hashes } = await look(await startConsole([world.file], { user: viewer }));
  await hashes.goto('/m/world/approvals');
  const [file] = await Promise.all([
    hashes.waitForEvent('download'),
    hashes.getByRole('link', { name: 'Download all as CSV' }).first().click(),
  ]);
  const text = readFileSync(await file.path(), 'utf8');
  expect(text.split('\r\n').length).toBe(1 + 6 + 1);
  expect(text).toContain('Opted out in the CRM,opt out,Newsletter,ch_news,#');
  expect(text).not.toContain('@');
});
