/** A run undone in the console, in a real browser, against the emulator. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole } from '../support/console/running-console.ts';

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
  await page.getByText('Opt out (1)').waitFor();
  expect(await page.getByRole('row', { name: ann }).innerText()).toContain('ch_news');
  const cannot = page.locator('section', { hasText: 'Cannot be undone: 1 change' });
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
  await page.getByText('an operator undid an earlier run (undo)').waitFor();
  await page.goto(`/m/world/runs/${run}`);
  await page.getByText('Undone by run').waitFor();
  await page.goto('/m/world/runs?mode=full');
  await page
    .getByRole('row', { name: `${run} ` })
    .getByText('Undone by run')
    .waitFor();
  await page.goto(`/m/world/runs/${run}`);
  await page.getByRole('button', { name: 'Undo what is left of it' }).waitFor();
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

test('what a guard holds is approved with the same form', async () => {
  const people = Array.from({ length: 30 }, (_, at) => `p${at}@example.com`);
  const { world, page, complaints, running, run } = await ran(people);
  await showPlan(page);
  await page.getByText('It needs an approval').waitFor();
  await page.getByText('30 people would be opted out or deleted to undo a run.').waitFor();
  expect(await page.getByRole('row', { name: 'p29@example.com' }).count()).toBe(1);
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
