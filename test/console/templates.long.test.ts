/** The templates of a mirror in a real browser: what differs, side by side, and a safe preview. */
import { expect, test } from 'vitest';
import { serve } from '../support/http/test-server.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole } from '../support/console/running-console.ts';

test('an edit on the platform stands beside the source, and its preview runs nothing', async () => {
  const world = await mirrored({ kinds: ['contact', 'template'] });
  let asked = 0;
  const tracker = await serve((_, response) => {
    asked += 1;
    response.end();
  });
  const html = `<script>top.document.title = 'taken over'</script><img src="${tracker}/x">`;
  world.template('welcome', {
    subject: 'Hello',
    content: [{ type: 'text', text: 'a < b' }, { html }],
  });
  world.template('other', { subject: 'As it is' });
  expect((await world.call('sync')).code).toBe(0);
  const template = world.emulator.world.templates().find(({ name }) => name === 'welcome');
  world.emulator.dashboard.editTemplate(template?.id ?? '', { subject: 'Edited by hand' });
  await world.call('sync');
  const other = await mirrored({ lines: { mirror: 'other' } });
  const running = await startConsole([world.file, other.file]);
  const { page } = await look(running);
  const differing = page.getByRole('link', { name: '1 template differs' });
  await page.getByRole('row', { name: 'world' }).filter({ has: differing }).waitFor();
  await page.goto('/m/world');
  await differing.click();
  expect(await page.locator('tbody tr').count()).toBe(1);
  await page.getByText(/The platform as of .*, the source as of .*/).waitFor();
  await page.getByText('differs in subject: was edited on the platform (subject)').waitFor();
  await page.getByRole('link', { name: 'welcome' }).click();
  const row = page.getByRole('row', { name: 'subject (differs)' });
  await row.waitFor();
  expect(await row.getByRole('cell').allInnerTexts()).toEqual(['Hello', 'Edited by hand']);
  world.template('welcome', { subject: 'Hello again', content: [{ type: 'text', text: 'a < b' }] });
  await world.call('sync');
  await page.reload();
  expect(await row.getByRole('cell').allInnerTexts()).toEqual(['Hello again', 'Edited by hand']);
  await page.getByRole('row', { name: 'content (differs)' }).waitFor();
  world.emulator.dashboard.editTemplate(template?.id ?? '', { subject: 'Edited anew' });
  await page.getByRole('button', { name: 'Read the platform now' }).click();
  await page.getByText('Edited anew').waitFor();
  expect(await row.getByRole('cell').allInnerTexts()).toEqual(['Hello again', 'Edited anew']);
  const preview = page.locator('iframe').last().contentFrame();
  await preview.getByText('a < b').waitFor();
  expect(await page.title()).toBe('welcome · world · crm-mirror');
  expect(await faultsOf(page)).toEqual([]);
  await page.goto('/m/world/templates');
  expect(await page.locator('tbody tr').count()).toBe(2);
  const otherId = world.emulator.world.templates().find(({ name }) => name === 'other')?.id ?? '';
  world.emulator.dashboard.editTemplate(otherId, { subject: 'Edited, too' });
  await page.getByRole('button', { name: 'Read the platform now' }).click();
  await page
    .getByRole('row', { name: 'other' })
    .getByText(/^differs in subject$/)
    .waitFor();
  world.emulator.dashboard.deleteTemplate(template?.id ?? '');
  await world.call('sync');
  await page.goto('/m/world/templates');
  await page
    .getByRole('row', { name: 'welcome' })
    .getByText(/^missing on the platform$/)
    .waitFor();
  await page.getByRole('link', { name: 'welcome' }).click();
  await page.getByText('The source as it was last sent. It is missing on the platform.').waitFor();
  expect(
    await page.getByRole('row', { name: 'subject' }).getByRole('cell').allInnerTexts(),
  ).toEqual(['Hello', '–']);
  expect(await page.locator('iframe').count()).toBe(1);
  expect([asked, running.failures]).toEqual([0, []]);
});
