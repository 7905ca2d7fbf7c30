/** What awaits approval, decided in a real browser. */
import { afterAll, expect, test } from 'vitest';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';
import { closeBrowser, look, startConsole } from '../support/console/running-console.ts';

afterAll(closeBrowser);

/** Four newcomers await approval in two channels. */
async function held() {
  const world = await mirrored();
  world.config({ guards: { optIns: { percent: 0, floor: 1 } } });
  expect((await world.call('sync')).code).toBe(0);
  const names = [ann, bob, 'eve@example.com', 'kim@example.com'];
  world.people(names.map((email) => ({ email, news: 'yes', product: 'yes' })));
  expect((await world.call('sync')).code).toBe(3);
  const running = await startConsole([world.file]);
  const looking = await look(running);
  await looking.page.goto('/m/world/approvals');
  return { ...world, running, ...looking };
}

test('an operator sees why changes wait, approves them, and a run makes them', async () => {
  const { page, complaints, running, ...world } = await held();
  const main = page.locator('main');
  await main.getByText('often a column or a condition that changed its meaning').waitFor();
  await main.getByRole('link', { name: 'eve@example.com' }).first().waitFor();
  const approve = main.locator('form', {
    has: page.getByRole('button', { name: 'Approve', exact: true }),
  });
  await approve.getByLabel('Reason').fill('the campaign of June');
  await approve.getByRole('button').click();
  await page.getByText('olga (console) (the campaign of June)').waitFor();
  await page.goto('/m/world');
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.getByRole('status').waitFor();
  expect(world.emulator.world.contacts()).toHaveLength(4);
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

test('an operator reads what the rule says that withholds changes', async () => {
  // oxlint-disable-next-line unicorn/no-thenable
  const rule = { when: 'plan.create > 1', then: 'ask', say: 'Ask for the campaign first' };
  const world = await mirrored({ lines: { rules: [rule] } });
  expect((await world.call('sync')).code).toBe(3);
  const { page, complaints } = await look(await startConsole([world.file]));
  await page.goto('/m/world/approvals');
  const said = 'Ask for the campaign first (the rule `plan.create > 1`)';
  await page.locator('main').getByText(said).waitFor();
  expect(complaints).toEqual([]);
});

test('a part is approved, and the rest is rejected, with a reason each', async () => {
  const { page, complaints, ...world } = await held();
  const row = page.getByRole('row', { name: /opt in ch_product/ });
  await row.getByText('Decide').click();
  const reject = row.locator('form', {
    has: page.getByRole('button', { name: 'Reject this part' }),
  });
  await reject.getByLabel('Reason').fill('nobody asked for it');
  await reject.getByRole('button').click();
  await page.getByRole('heading', { name: 'Rejected' }).waitFor();
  expect((await world.call('status', '--json')).json.rejections).toMatchObject([
    { by: 'olga (console)', reason: 'nobody asked for it' },
  ]);
  const approve = page.locator('main form', {
    has: page.getByRole('button', { name: 'Approve', exact: true }),
  });
  await approve.getByLabel('Reason').fill('the newsletter is right');
  await approve.getByRole('button').click();
  await page.getByRole('heading', { name: 'Approved' }).waitFor();
  expect(complaints).toEqual([]);
});

test('a reason with an address in it is refused, in words', async () => {
  const { page } = await held();
  const approve = page.locator('main form', {
    has: page.getByRole('button', { name: 'Approve', exact: true }),
  });
  await approve.getByLabel('Reason').fill('as eve@example.com asked');
  await approve.getByRole('button').click();
  await page.locator('.flash.bad', { hasText: 'an address is in it' }).waitFor();
});

test('all decisions can be read, page by page', async () => {
  const { page, ...world } = await held();
  const { json } = await world.call('status', '--json');
  for (let at = 100; at < 155; at += 1) {
    const { code } = await world.call('approve', json.held[0].plan, `--reason=reason ${at}`);
    expect(code).toBe(0);
  }
  await world.call('sync');
  await page.goto('/m/world/audit?show=decisions');
  await page.getByText('reason 154').waitFor();
  expect(await page.getByText('reason 100').count()).toBe(0);
  await page.getByRole('link', { name: 'Older entries' }).click();
  await page.getByText('reason 100').waitFor();
});
