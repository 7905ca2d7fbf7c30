/** The pages of people in a real browser: the search, one person, and what operators do there. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ann, mirrored, type Mirrored, ownOptOut } from '../support/commands/mirrored-contacts.ts';
import {
  faultsOf,
  look,
  type Looking,
  startConsole,
  viewer,
} from '../support/console/running-console.ts';

/** Opens the search and looks for somebody; every address that the browser meets is kept. */
async function search(
  world: Mirrored,
  who: string,
  options: Parameters<typeof startConsole>[1] = {},
): Promise<Looking & { urls: string[]; failures: unknown[] }> {
  const running = await startConsole([world.file], options);
  const looking = await look(running);
  const { page } = looking;
  const urls: string[] = [];
  page.on('request', (request) => urls.push(request.url()));
  page.on('framenavigated', (frame) => urls.push(frame.url()));
  await page.goto('/m/world/people');
  await find(page, who);
  return { ...looking, urls, failures: running.failures };
}

async function find(page: Page, who: string): Promise<void> {
  await page.getByLabel('Address, CRM id or hash').fill(who);
  await page.getByRole('button', { name: 'Find' }).click();
  await page.waitForLoadState();
}

test('a search by address shows the person, and no address is in a URL or the history', async () => {
  const world = await mirrored();
  await world.call('sync');
  const { page, urls, complaints, failures } = await search(world, ' ANN@example.com ');
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(ann);
  expect(page.url()).toMatch(/\/people\/[\w-]+$/);
  await page.goBack();
  await page.goForward();
  for (const url of urls) expect(decodeURIComponent(url)).not.toContain('@');
  expect(await faultsOf(page)).toEqual([]);
  expect([complaints, failures]).toEqual([[], []]);
});

test('the page of a person tells what happened, the newest first, with rule, request and run', async () => {
  const world = await ownOptOut();
  const { page } = await search(world, ann);
  const timeline = page.locator('.timeline');
  const text = await timeline.innerText();
  expect(text).toContain('opt out ch_news – done');
  expect(text).toContain('opt-out wanted; subscribed');
  expect(text).toMatch(/asked the platform: contacts\.\w+, answered 20\d/);
  const times = await timeline
    .locator('p > time')
    .evaluateAll((all: { dateTime: string }[]) => all.map(({ dateTime }) => dateTime));
  expect(times).toEqual(times.toSorted().toReversed());
  expect(await timeline.getByRole('link', { name: /^run / }).first().getAttribute('href')).toMatch(
    /^\/m\/world\/runs\//,
  );
  await page.getByText('What the answers rest on').click();
  await page.getByText('opt-out wanted; subscribed').first().waitFor();
  expect((await page.content()).length).toBeLessThan(150_000);
  expect(await faultsOf(page)).toEqual([]);
});

test('an operator resolves a conflict in the browser, and the next run applies it', async () => {
  const world = await ownOptOut();
  const { page, complaints } = await search(world, ann);
  await page.getByText('nothing is sent: a conflict').waitFor();
  await page.getByText('Resolve the conflict in ch_news').click();
  const wantsIn = page.getByRole('button', { name: 'The person wants in' });
  const form = page.locator('form', { has: wantsIn });
  expect(await form.getByRole('button').count()).toBe(2);
  await form.getByLabel('Evidence').fill('ticket 7');
  await form.getByLabel('Reason').fill('by letter');
  await wantsIn.click();
  await page.getByText('is resolved as an opt-in, by olga (console)').waitFor();
  await page.getByText('the next run opts the person in').first().waitFor();
  expect((await world.call('sync', '--json')).json.contacts.conflicts).toBe(0);
  expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_in' });
  await page.reload();
  expect(await page.locator('.timeline').innerText()).toMatch(/resolved a conflict[^]*ticket 7/);
  expect(complaints).toEqual([]);
});

test('an operator asks the CRM and the platform, and sees what every rule says', async () => {
  const world = await ownOptOut();
  const { page, complaints } = await search(world, ann);
  await page.getByRole('button', { name: 'Ask CRM and platform now' }).click();
  await page.getByText('Rules tried for ch_news').click();
  expect(await page.getByText('yes: this decided').count()).toBeGreaterThan(0);
  expect(
    await page
      .getByRole('row', { name: /opted out by us, and no CRM record/ })
      .first()
      .innerText(),
  ).toContain('yes: this decided');
  expect(await faultsOf(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test('the signed file has a name that says nothing', async () => {
  const world = await mirrored();
  await world.call('sync');
  const { page } = await search(world, ann);
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download all of it, signed' }).click(),
  ]);
  expect(file.suggestedFilename()).toMatch(/^person-[0-9a-f]{12}\.html$/);
});

test('a viewer finds people by hash and by an address, and sees no address', async () => {
  const world = await ownOptOut();
  const { json } = await world.call('explain', ann, '--json');
  const { page } = await search(world, json.person, { user: viewer });
  expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(json.person);
  const byHash = page.url();
  const seen = [await page.content()];
  for (const end of ['now', 'signed.html']) {
    expect((await page.goto(`${byHash}/${end}`))?.status()).toBe(403);
  }
  await page.goto('/m/world/people');
  seen.push(await page.content());
  await find(page, ann);
  expect(page.url()).toBe(byHash);
  expect(await page.getByRole('button').allInnerTexts()).toEqual(['Go to… Ctrl K', 'Sign out']);
  for (const html of seen) expect(html).not.toContain('@example.com');
});

test('a search for nobody says so, and so does the page of a person who is unknown', async () => {
  const world = await mirrored();
  await world.call('sync');
  const { page } = await search(world, 'nobody@example.com');
  await page.getByText('Nobody was found').waitFor();
  // What was typed stands in the box, and in no address.
  expect(await page.getByLabel('Address, CRM id or hash').inputValue()).toBe('nobody@example.com');
  expect(page.url()).not.toContain('nobody');
  for (const who of ['#123456789abc', '#x', '4711']) {
    await find(page, who);
    await page.getByText(/Nobody was found|such as #9cc428f416d4/).waitFor();
  }
  expect((await page.goto('/m/world/people/AAAA'))?.status()).toBe(404);
});
