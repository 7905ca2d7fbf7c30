/** The console in a real browser: every page, what operators do, and who may not. */
import { expect, test } from 'vitest';
import { sampled } from '../support/extent.ts';
import { pages } from '../../src/console/mirror-routes.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import {
  type BrowserOptions,
  cookieOf,
  faultsOf,
  look,
  startConsole,
  viewer,
} from '../support/console/running-console.ts';

/** Two people are mirrored, and everybody's opt-out awaits approval. */
async function waiting() {
  const world = await mirrored();
  world.config({ guards: { optOuts: { percent: 0, floor: 0 } } });
  expect((await world.call('sync')).code).toBe(0);
  world.people([{ email: 'ann@example.com', news: 'no' }]);
  expect((await world.call('sync')).code).toBe(3);
  return world;
}

const pathOf = (path: string): string => `/m/world${path === '' ? '' : `/${path}`}`;

const views: readonly BrowserOptions[] = [{ width: 390, colorScheme: 'dark' }, {}, { width: 390 }];

test.each(pages.filter(({ nav }) => nav !== undefined).map(({ path }) => [path]))(
  'the page "%s" can be used by everybody, on a phone too',
  async (path) => {
    const world = await waiting();
    const running = await startConsole([world.file]);
    for (const options of sampled(views, views.length)) {
      const { page, complaints } = await look(running, options);
      expect((await page.goto(pathOf(path)))?.status()).toBe(200);
      expect(await faultsOf(page)).toEqual([]);
      expect(await page.title()).toMatch(/\bworld · crm-mirror$/);
      const main = page.locator('main :is(button, .button):not(.second, .grave, .plain)');
      expect(await main.filter({ visible: true }).count()).toBeLessThan(2);
      const { length } = await page.content();
      expect(length).toBeLessThan(150_000);
      expect(complaints).toEqual([]);
    }
    expect(running.failures).toEqual([]);
  },
);

test('the page of a person who waits fits a phone', async () => {
  const world = await waiting();
  const { page } = await look(await startConsole([world.file]), { width: 390 });
  await page.goto(pathOf('people'));
  await page.getByRole('link', { name: 'ann@example.com' }).first().click();
  await page.locator('.chip', { hasText: 'awaits a decision: opt out' }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
});

test('an operator stops the run in progress with a pause', async () => {
  const world = await mirrored();
  const running = await startConsole([world.file]);
  const { page } = await look(running);
  world.server.delayMs = 9_000;
  const begun = new Promise<void>((resolve) => (world.server.watch.arrived = () => resolve()));
  const run = world.call('sync');
  await begun;
  await page.goto(pathOf(''));
  await page.locator('summary', { hasText: 'Pause' }).click();
  for (const width of [1100, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    // Neither the open form nor a long text takes the room of the state, or leaves its tile.
    const narrow = await page.locator('[data-live]').evaluate((area) => {
      const state = area.querySelector('#state')?.clientWidth ?? 0;
      const tiles = [...area.querySelectorAll('.tile')];
      const spilt = tiles.filter((tile) => tile.scrollWidth > tile.clientWidth);
      return [state < 0.49 * area.clientWidth, spilt.length];
    });
    expect([width, ...narrow]).toEqual([width, false, 0]);
  }
  await page.getByLabel('Reason').fill('the wrong export');
  await page.getByRole('button', { name: 'Pause and stop the run' }).click();
  expect((await run).code).toBe(143);
  expect(running.failures).toEqual([]);
});

test('an operator pauses the mirror and ends the pause, with a reason that is kept', async () => {
  const world = await waiting();
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  await page.locator('summary', { hasText: 'Pause' }).click();
  await page.getByLabel('Reason').fill('the export is being repaired');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('the export is being repaired').first().waitFor();
  expect(await page.getByRole('status').innerText()).not.toContain('process holds');
  await page.locator('.chip', { hasText: /^Paused, and needs/ }).waitFor();
  expect((await world.call('status', '--json')).json.paused).toMatchObject({
    reason: 'the export is being repaired',
    by: 'olga (console)',
  });
  await page
    .getByText(/paused since .* by olga \(console\): the export is/)
    .first()
    .waitFor();
  await page.getByLabel('Reason (optional)').fill('it is repaired');
  await page.getByRole('button', { name: 'End the pause' }).click();
  await page.getByRole('button', { name: 'Run now' }).waitFor();
  expect((await world.call('status', '--json')).json.paused).toBeNull();
  await page.getByRole('button', { name: 'Fast run' }).click();
  // What has come of it is shown as the page of the runs does, and not as a terminal does.
  const answer = page.getByRole('status');
  await answer.locator('a[href*="/runs/"]').waitFor();
  expect(await answer.innerText()).not.toMatch(/crm-mirror|→|\d{4}-\d\d-\d\dT|snapshot/);
  await page.goto(pathOf('runs'));
  await page.getByText('asked for by olga (console)').waitFor();
  await page.goto(pathOf('audit?show=decisions'));
  for (const reason of ['the export is being repaired', 'it is repaired']) {
    const entry = page.getByRole('listitem').filter({ hasText: reason });
    expect(await entry.innerText()).toContain('olga (console)');
  }
  await page.getByText('olga (console) paused the mirror: the export').waitFor();
  const unknown = await page.request.get('/m/beta', {
    headers: { accept: 'text/html' },
  });
  expect(unknown.status()).toBe(404);
  expect(await unknown.text()).toContain('This console shows no such page');
  expect(complaints).toEqual([]);
});

test('a viewer sees no address and no button', async () => {
  const world = await waiting();
  const running = await startConsole([world.file], { user: viewer });
  const { page } = await look(running);
  expect(await page.getByRole('button').allInnerTexts()).toEqual(['Go to… Ctrl K', 'Sign out']);
  for (const { path, nav } of pages) {
    if (nav === undefined) continue;
    await page.goto(pathOf(path));
    expect(await page.content()).not.toContain('@example.com');
  }
});

test('whoever has no session is sent away', async () => {
  const world = await waiting();
  const { url } = await startConsole([world.file]);
  for (const path of ['/', '/m/world', '/m/world/live']) {
    expect((await fetch(url + path, { redirect: 'manual' })).status).toBe(401);
  }
  const wrong = await fetch(`${url}/sign-in?key=another`, { redirect: 'manual' });
  expect([wrong.status, wrong.headers.get('set-cookie')]).toEqual([200, null]);
});

test('many downloads at once start two processes at a time, and too many are refused kindly', async () => {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  const { url, link, failures } = await startConsole([world.file], { user: viewer });
  const cookie = cookieOf(await fetch(link, { redirect: 'manual' }));
  const answers = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const answer = await fetch(`${url}/m/world/problems.csv`, { headers: { cookie } });
      return { status: answer.status, text: await answer.text() };
    }),
  );
  const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
  expect(statuses).toEqual([...Array(6).fill(200), ...Array(6).fill(503)]);
  for (const { text } of answers.filter(({ status }) => status === 503)) {
    expect(text).toContain('Reload this page in a moment.');
  }
  expect((await fetch(`${url}/m/world/problems.csv`, { headers: { cookie } })).status).toBe(200);
  expect(failures).toEqual([]);
});

test('Ctrl-K goes to a mirror or a page by the beginning of its name, and to a person', async () => {
  const world = await waiting();
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  await page.goto(pathOf('runs'));
  const ask = async (words: string): Promise<void> => {
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').getByRole('link', { name: 'world' }).waitFor();
    expect(await faultsOf(page)).toEqual([]);
    await page.getByLabel('Mirror, page or person').fill(words);
    await page.keyboard.press('Enter');
  };
  await ask('wor');
  await page.waitForURL(`**${pathOf('')}`);
  // A page of the mirror that is shown, among those of its navigation.
  await ask('audit');
  await page.waitForURL(`**${pathOf('audit')}`);
  await ask('ann@example.com');
  await page.getByRole('heading', { level: 1, name: 'ann@example.com' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').getByRole('link', { name: 'world' }).waitFor();
  await page.getByLabel('Mirror, page or person').fill('audit');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**${pathOf('audit')}`);
  await page.keyboard.press('Control+k');
  await page.getByLabel('Mirror, page or person').fill('ann@example.com');
  await page.getByRole('button', { name: 'Find in all mirrors' }).click();
  await page.getByRole('heading', { level: 1, name: 'Found in 1 mirror' }).waitFor();
  expect(complaints).toEqual([]);
});

test('a phone has five tabs and the rest below "More", and folds plots', async () => {
  const world = await waiting();
  const running = await startConsole([world.file]);
  const { page } = await look(running, { width: 390 });
  await page.goto(pathOf(''));
  const links = page.getByRole('navigation').getByRole('link');
  expect(await links.filter({ visible: true }).count()).toBe(5);
  await page.getByRole('navigation').getByText('More').click();
  expect(await faultsOf(page)).toEqual([]);
  await links.filter({ hasText: 'Audit log' }).click();
  await page.waitForURL(`**${pathOf('audit')}`);
  expect(await page.locator('nav summary[aria-current]').innerText()).toBe('More');
  await page.goto(pathOf('configuration'));
  expect(await faultsOf(page)).toEqual([]);
  await page.goto(pathOf(''));
  const newest = page.getByRole('figure').filter({ hasText: 'Changes per run' });
  expect(await newest.isVisible()).toBe(false);
  await page.getByRole('heading', { name: 'History' }).click();
  await newest.waitFor();
  await page.setViewportSize({ width: 1200, height: 800 });
  await links.filter({ hasText: 'Audit log' }).waitFor();
});
