/** The page of the configuration: everything that applies, and no secret. */
import { expect, test } from 'vitest';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole } from '../support/console/running-console.ts';

const include = 'record.lifecycle != "lead"';
const wanted = 'record.newsletter == "yes"';

test('conditions are shown as the file states them, and durations in words', async () => {
  const world = await mirrored();
  world.config({
    contacts: {
      include,
      protect: [{ when: 'record.vip == "yes"' }],
      channels: [{ id: 'ch_news', name: 'Newsletter', subscription: { when: wanted } }],
    },
  });
  world.csv('id,email,lifecycle,vip,newsletter\n1,ann@example.com,customer,no,yes\n');
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  expect((await page.goto('/m/world/configuration'))?.status()).toBe(200);
  const text = await page.locator('main').innerText();
  expect(text).toContain(include);
  expect(text).toContain('record.vip == "yes"');
  expect(await page.getByRole('table').innerText()).toContain(wanted);
  expect(text).toContain('deleteAfter: 30 d');
  await page.getByRole('button', { name: 'Check it now' }).click();
  const answer = page.getByRole('status');
  expect(await answer.innerText()).toMatch(/in order configuration, memory, /);
  expect(await answer.innerText()).not.toMatch(/crm-mirror|mirror\.yaml|snapshot\.sqlite/);
  await answer.getByText('Some of the people').click();
  await answer.getByText('ann@example.com').waitFor();
  expect(await faultsOf(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test('the value of a header is not shown, whatever the name of the header', async () => {
  const world = await mirrored();
  world.config({
    contacts: {
      source: {
        type: 'http',
        url: 'https://crm.example.com/people?key=in-the-address',
        headers: { id: 'hidden-one', 'x-api-key': 'hidden-two', name: 'hidden-three' },
        records: 'data',
      },
    },
  });
  const running = await startConsole([world.file]);
  const { page } = await look(running);
  expect((await page.goto('/m/world/configuration'))?.status()).toBe(200);
  const text = await page.locator('main').innerText();
  expect(text).toContain('crm.example.com (the rest is not shown)');
  expect(text).toContain('x-api-key: (set)');
  expect(text).not.toMatch(/hidden-|in-the-address/);
});
