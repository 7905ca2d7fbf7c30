/** The page of many mirrors, in a real browser: how each stands, one person in all, a pause. */
import { writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { ann, mirrored } from '../support/commands/mirrored-contacts.ts';
import { refusing } from '../support/commands/notice-receivers.ts';
import { dayText } from '../../src/compose/output/format-values.ts';
import { untilHolds } from '../support/waiting.ts';
import { faultsOf, look, startConsole, viewer } from '../support/console/running-console.ts';

/** One mirror is in sync, one has failed, and one waits for its first run. */
async function three() {
  const named = async (mirror: string) => mirrored({ lines: { mirror } });
  const [well, failed, first] = [await named('well'), await named('failed'), await named('first')];
  await well.call('sync');
  await failed.call('sync');
  refusing(failed, 403);
  await failed.call('sync');
  await first.call('sync', '--fast');
  return { well, failed, first };
}

test('an operator sees the worst first, finds a person in all of them, and pauses some', async () => {
  const { well, failed, first } = await three();
  const running = await startConsole([well.file, failed.file, first.file]);
  const { page, complaints } = await look(running, { width: 390 });
  expect(await page.locator('h1').innerText()).toBe('1 mirror needs attention');
  const rows = page.locator('tbody tr');
  expect(await rows.locator('th').allInnerTexts()).toEqual(['failed', 'first', 'well']);
  expect(await rows.nth(0).innerText()).toMatch(
    /Needs attention[^]*the last run failed, for \d+ s/,
  );
  expect(await faultsOf(page)).toEqual([]);

  await page.getByRole('link', { name: 'In sync 1' }).click();
  expect(await rows.locator('th').allInnerTexts()).toEqual(['well']);
  await page.getByText('Pause or resume it').click();
  await page.getByLabel('Reason').fill('maintenance');
  await page.getByRole('button', { name: 'Pause 1 mirror' }).click();
  expect(await page.getByRole('status').innerText()).toContain('well is paused');
  expect(await page.getByRole('link', { name: 'Paused 1' }).count()).toBe(1);

  await page.getByLabel('Find a person in all mirrors').fill(ann);
  await page.getByRole('button', { name: 'Find' }).click();
  expect(page.url()).not.toContain('ann');
  expect(await page.locator('h1').innerText()).toBe('Found in 3 mirrors');
  await page.getByRole('listitem').filter({ hasText: 'failed' }).getByRole('link').click();
  expect(await page.locator('h1').innerText()).toBe(ann);
  expect(complaints).toEqual([]);
  expect(running.failures).toEqual([]);
});

test('a pause leaves a run that sends, says so, and offers to stop it', async () => {
  const [well, busy] = [await mirrored(), await mirrored({ lines: { mirror: 'busy' } })];
  await well.call('sync');
  busy.server.delayMs = 30_000;
  const begun = new Promise<void>((resolve) => (busy.server.watch.arrived = () => resolve()));
  const run = busy.call('sync');
  await begun;
  const { page } = await look(await startConsole([well.file, busy.file]));
  const steer = async (button: string) => {
    await page.getByText('Pause or resume these').click();
    await page.getByLabel('Reason').fill('the wrong export');
    await page.getByRole('button', { name: button }).click();
  };
  await steer('Pause 2 mirrors');
  expect(await page.getByRole('status').innerText()).toContain('goes on to its end');
  await page.getByRole('row', { name: 'busy' }).getByText('Paused, a run still sends').waitFor();
  await page.goto('/m/busy');
  await page.getByRole('button', { name: 'Stop the run' }).waitFor();
  await page.goto('/');
  await steer('Pause, and stop 1 run');
  expect((await run).code).toBe(143);
});

test('a search names the mirrors that it cannot look into, and counts mirrors', async () => {
  const { well, failed, first } = await three();
  writeFileSync(failed.path, 'no database');
  well.csv(`id,email,news,product\n1,${ann},yes,\nbroken,no address,yes,\n`);
  await well.call('sync');
  const running = await startConsole([well.file, failed.file, first.file]);
  const { page } = await look(running);
  const find = async (who: string) => {
    await page.getByLabel('Find a person in all mirrors').fill(who);
    await page.getByRole('button', { name: 'Find' }).click();
    return page.getByRole('status').innerText();
  };
  expect(await find(ann)).toContain('cannot be read here: failed.');
  expect(await page.locator('h1').innerText()).toBe('Found in 2 mirrors');
  expect(await find('nobody@example.com')).toContain('No mirror that was searched has a record');
  expect(await find('#12')).toContain('Type the whole address, a CRM id or a hash');
  expect(await find('broken')).toMatch(/well: The record of the CRM .* cannot be used: /);
  await page.goto('/');
  expect(await page.getByRole('row', { name: 'well' }).innerText()).toMatch(
    /In sync, but\s[^]*1 person with a record that cannot be used/,
  );
  expect(running.failures).toEqual([]);
});

test('what has changed since yesterday stands by day, over mirrors and in one', async () => {
  const { well, failed, first } = await three();
  const { page, complaints } = await look(
    await startConsole([well.file, failed.file, first.file]),
    { width: 390 },
  );
  await page.getByRole('link', { name: 'What has changed since yesterday' }).click();
  await page.getByRole('heading', { name: 'Since yesterday' }).waitFor();
  const today = dayText(new Date().toISOString());
  const main = page.locator('main');
  expect(await main.innerText()).toMatch(/In all, 3 runs: \d+ created/);
  await main.getByRole('heading', { name: 'Failed runs' }).waitFor();
  const rows = page.locator('tbody tr');
  expect(await rows.count()).toBe(3);
  expect(await rows.locator('th').allInnerTexts()).toEqual([today, today, today]);
  expect(await faultsOf(page)).toEqual([]);
  await rows.getByRole('link', { name: 'well' }).click();
  expect(await page.locator('h1').innerText()).toBe('Runs');
  const section = page.locator('section', { hasText: 'Changes by day' });
  expect(await section.innerText()).toMatch(/1\s+2 created, 1 opted out|2 created/);
  await page.goto('/since?day=2031-01-01');
  await page.getByText('No run has changed anything in this time.').waitFor();
  await page.goto('/');
  await page.getByText('Pause or resume these 3 mirrors').click();
  await page.getByLabel('Reason').fill('maintenance');
  await page.getByRole('button', { name: 'Pause 3 mirrors' }).click();
  const answer = page.getByRole('status');
  expect(await answer.innerText()).toMatch(/^3 mirrors paused\.\s+Each of them$/);
  await answer.getByText('Each of them').click();
  await answer.getByText('well is paused').waitFor();
  // A mirror that needs attention shows that it is paused, too.
  const broken = page.getByRole('row', { name: 'failed' }).first();
  expect(await broken.innerText()).toMatch(/^failed[^]*Paused, and needs attention/);
  await page.goto('/since');
  const decisions = page.locator('section', { hasText: 'Decisions' });
  expect(await decisions.innerText()).toContain('paused the mirror: maintenance');
  expect(complaints).toEqual([]);
});

test('a locked snapshot is one row that says so', async () => {
  const { well, failed, first } = await three();
  const lock = new Database(well.path);
  onTestFinished(() => void lock.close());
  lock.exec('pragma journal_mode = delete; begin exclusive');
  const { page } = await look(await startConsole([well.file, failed.file, first.file]));
  const row = page.getByRole('row', { name: 'well' });
  expect(await row.innerText()).toContain('another process has locked its snapshot');
  expect(await page.locator('tbody tr').count()).toBe(3);
});

test('the table follows what happens, and a viewer can steer nothing', async () => {
  const { well, failed } = await three();
  const running = await startConsole([well.file, failed.file], { user: viewer });
  const { page } = await look(running);
  await page.clock.install();
  await page.reload();
  expect(await page.getByText(/Pause or resume/).count()).toBe(0);
  await well.call('pause', '--reason', 'maintenance');
  const paused = page.getByRole('link', { name: 'Paused 1' });
  await untilHolds(async () => {
    await page.clock.runFor(10_000);
    expect(await paused.count()).toBe(1);
  });
  const answer = await page.request.post('/steer', {
    form: { csrf: '', what: 'resume', mirrors: 'well', reason: 'because' },
  });
  expect(answer.ok()).toBe(false);
  await page.reload();
  expect(await paused.count()).toBe(1);
});
