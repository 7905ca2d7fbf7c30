/** A run undone in the console, in a real browser, against the emulator. */
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { isLeased } from '../../src/snapshot/database/writer-lease.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
import { start } from '../support/commands/worker-processes.ts';
import { ownRedis } from '../support/redis.ts';
import {
  closeBrowser,
  faultsOf,
  look,
  startConsole,
  viewer,
} from '../support/console/running-console.ts';

afterAll(closeBrowser);

const news = (world: Mirrored, who: string) => world.shown(who)?.['ch_news'];

const leave = (world: Mirrored, who: string) =>
  world.emulator.dashboard.leave(world.emulator.world.contact(who)?.id ?? '', 'ch_news');

/** A run has created people; an operator looks at its page. */
async function ran(people?: readonly string[]) {
  const world = await mirrored();
  if (people) world.people(people.map((email) => ({ email, news: 'yes' })));
  const { json } = await world.call('sync', '--json');
  world.writes();
  const running = await startConsole([world.file]);
  const looking = await look(running);
  const run: string = json.run;
  await looking.page.goto(`/m/world/runs/${run}`);
  return { world, running, run, ...looking };
}

const planned = { name: 'What would be done' } as const;

async function showPlan(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Undo this run' }).click();
  await page.getByRole('heading', planned).waitFor();
}

async function send(page: Page, button: string, reason = 'the wrong export'): Promise<void> {
  const form = page.locator('form', { has: page.getByRole('button', { name: button }) });
  await form.getByRole('checkbox').check();
  await form.getByLabel('Reason').fill(reason);
  await form.getByRole('button').click();
}

test('an operator sees the plan, confirms it with a reason, and the run is undone', async () => {
  const { world, running, run, page, complaints } = await ran();
  leave(world, bob);
  await showPlan(page);
  expect(page.url()).toBe(`${running.url}/m/world/runs/${run}/undo`);
  await page.getByText('opt out: 1 subscription').waitFor();
  expect(await page.getByRole('row', { name: ann }).innerText()).toContain('ch_news');
  const cannot = page.locator('section', { hasText: 'What cannot be undone' });
  const text = await cannot.innerText();
  expect(text).toContain('1 change (created): the person is not subscribed any more.');
  expect(text).toContain(`${bob} (ch_news)`);
  expect(await faultsOf(page)).toEqual([]);
  expect((await page.content()).length).toBeLessThan(150_000);
  expect(world.writes()).toEqual([]);
  await send(page, 'Undo this run');
  await page.getByText('The run is undone').waitFor();
  await page.getByText('Done: 1 opted out.').waitFor();
  expect([news(world, ann), news(world, bob)]).toEqual(['opt_out', 'opt_out']);
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole('link', { name: 'the run that has undone it' }).click();
  await page.getByRole('row', { name: `Undoes ${run}` }).waitFor();
  await page.goto('/m/world/audit?show=decisions');
  const decision = page.locator('.timeline > li').first();
  expect(await decision.innerText()).toContain('undid a run');
  expect(await decision.innerText()).toContain('the wrong export');
  expect(await decision.innerText()).toContain('olga (console)');
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('nothing is sent without the box, and a reason with an address is refused', async () => {
  const { world, page, running } = await ran();
  await showPlan(page);
  const form = page.locator('form', { has: page.getByRole('button', { name: 'Undo this run' }) });
  await form.getByLabel('Reason').fill('no box');
  await form.getByRole('button').click();
  expect(await page.getByRole('heading', planned).count()).toBe(1);
  const [run, plan, csrf] = await Promise.all(
    ['run', 'plan', 'csrf'].map(async (name) => form.locator(`[name=${name}]`).inputValue()),
  );
  const back = new URL(page.url()).pathname;
  const values = { run: run ?? '', plan: plan ?? '', csrf: csrf ?? '', back, reason: 'forged' };
  await page.request.post('/m/world/do/undo', { form: values });
  await page.reload();
  expect(world.writes()).toEqual([]);
  await send(page, 'Undo this run', 'as eve@example.com asked');
  await page.getByText('an address is in it').waitFor();
  await page.getByText('Nothing was sent.').waitFor();
  expect(world.writes()).toEqual([]);
  expect(running.failures).toEqual([]);
});

test('a plan that has changed is refused kindly, and shown anew', async () => {
  const { world, page, complaints, running } = await ran();
  await showPlan(page);
  await page.getByText('opt out: 2 subscriptions').waitFor();
  leave(world, bob);
  await send(page, 'Undo this run');
  await page.getByText('Nothing was sent.').waitFor();
  await page.getByText('has changed since you looked').waitFor();
  await page.getByText('opt out: 1 subscription').waitFor();
  expect(await faultsOf(page)).toEqual([]);
  expect(world.writes()).toEqual([]);
  await send(page, 'Undo this run');
  await page.getByText('The run is undone').waitFor();
  expect(news(world, ann)).toBe('opt_out');
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('what a guard holds is approved with the same form', async () => {
  const people = Array.from({ length: 30 }, (_, at) => `p${at}@example.com`);
  const { world, page, complaints, running, run } = await ran(people);
  await showPlan(page);
  await page.getByText('Some of it needs an approval').waitFor();
  await page.getByText('changes of 30 people').waitFor();
  await page.getByText(`crm-mirror undo ${run} --approve`).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await send(page, 'Approve and undo this run', 'checked with Eve');
  await page.getByText('Done: 30 opted out.').waitFor();
  expect(news(world, 'p1@example.com')).toBe('opt_out');
  const decisions = (await world.call('audit', 'export', '--output', `${world.folder}/a.jsonl`))
    .code;
  expect(decisions).toBe(0);
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('what can be sent without an approval is sent, and the rest is shown again', async () => {
  const world = await mirrored({ kinds: ['contact', 'template'] });
  const people = Array.from({ length: 30 }, (_, at) => `p${at}@example.com`);
  world.people(people.map((email) => ({ email, news: 'yes' })));
  world.template('welcome', { subject: 'First' });
  const { json } = await world.call('sync', '--json');
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  await page.goto(`/m/world/runs/${json.run}/undo`);
  await page.getByRole('button', { name: 'Show the plan' }).click();
  await page.getByRole('heading', planned).waitFor();
  await page.getByText('archive: 1 template').waitFor();
  await send(page, 'Undo without what needs approval');
  await page.getByText('A guard has held changes').waitFor();
  await page.getByRole('heading', planned).waitFor();
  expect(news(world, 'p1@example.com')).toBe('opt_in');
  expect(await page.getByText('archive: 1 template').count()).toBe(0);
  await send(page, 'Approve and undo this run');
  await page.getByText('Done: 30 opted out.').waitFor();
  expect(news(world, 'p1@example.com')).toBe('opt_out');
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('a worker that has the mirror undoes the run, in the name of the operator', async () => {
  const redis = await ownRedis();
  const world = await mirrored();
  world.config({ redis: redis.url, schedule: { full: '0 3 1 1 *' } });
  const { json } = await world.call('sync', '--json');
  const worker = start(world.file);
  await worker.said('worker serves');
  // No other process can write to this mirror now.
  expect((await world.call('sync')).err).toContain('the worker that has world runs this command');
  expect(isLeased(world.path)).toBe(true);
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  await page.goto(`/m/world/runs/${json.run}`);
  await showPlan(page);
  await send(page, 'Undo this run');
  await page.getByText('Done: 2 opted out.').waitFor();
  expect(news(world, ann)).toBe('opt_out');
  await page.goto('/m/world/audit?show=decisions');
  await page.getByText('olga (console)').first().waitFor();
  await page.getByText('the wrong export').waitFor();
  expect(await worker.ends()).toBe(143);
  await redis.close();
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('a viewer sees no button, and the page is refused', async () => {
  const world = await mirrored();
  const { json } = await world.call('sync', '--json');
  const running = await startConsole([world.file], { user: viewer });
  const { page } = await look(running);
  await page.goto(`/m/world/runs/${json.run}`);
  expect(await page.getByText('Undo').count()).toBe(0);
  expect((await page.goto(`/m/world/runs/${json.run}/undo`))?.status()).toBe(403);
  await page.getByText('Only operators can undo a run.').waitFor();
});

test('the plan can be read on a phone, in the dark too, and used with the keyboard', async () => {
  const { world, page, running } = await ran();
  await showPlan(page);
  for (const options of [{ width: 390 }, { width: 390, colorScheme: 'dark' } as const]) {
    const small = await look(running, options);
    await small.page.goto(page.url());
    await small.page.getByRole('heading', planned).waitFor();
    expect(await faultsOf(small.page)).toEqual([]);
    expect(small.complaints).toEqual([]);
  }
  await page.getByRole('checkbox').focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Tab');
  await page.keyboard.type('a mistake');
  await page.keyboard.press('Enter');
  await page.getByText('The run is undone').waitFor();
  expect(news(world, ann)).toBe('opt_out');
});

test('a run that has changed nothing has no button, and a run that is gone no page', async () => {
  const { world, page } = await ran();
  const { json } = await world.call('sync', '--json');
  await page.goto(`/m/world/runs/${json.run}`);
  expect(await page.getByText('Undo').count()).toBe(0);
  expect((await page.goto('/m/world/runs/gone/undo'))?.status()).toBe(404);
});
