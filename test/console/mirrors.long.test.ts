/** The page of many mirrors, in a real browser: how each stands, one person in all, a pause. */
import { writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';
import { refusing } from '../support/commands/notice-receivers.ts';
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
    /Needs attention[^]*2 runs failed, for \d+ s: the platform does not allow this API key/,
  );
  expect(await faultsOf(page)).toEqual([]);

  await page.getByRole('link', { name: '1 In sync' }).click();
  expect(await rows.locator('th').allInnerTexts()).toEqual(['well']);
  await page.getByText('Pause or resume it').click();
  await page.getByLabel('Reason').fill('maintenance');
  await page.getByRole('button', { name: 'Pause 1 mirror' }).click();
  expect(await page.getByRole('status').innerText()).toContain('well is paused');
  expect(await page.getByRole('link', { name: '1 Paused' }).count()).toBe(1);

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

test('a pause of many leaves that of a colleague, and so does the button that ends it', async () => {
  const { well, failed, first } = await three();
  await failed.call('pause', '--by', 'marta', '--reason', 'moves the CRM');
  const before = (await failed.call('status', '--json')).json.paused;
  const { page } = await look(await startConsole([well.file, failed.file, first.file]));
  const steer = async (button: string): Promise<string> => {
    await page.getByText('Pause or resume these').click();
    await page.getByLabel('Reason').fill('maintenance');
    await page.getByRole('button', { name: button }).click();
    return page.getByRole('status').innerText();
  };
  const said = await steer('Pause 2 mirrors');
  expect(said).toMatch(/2 mirrors paused\.\s+failed was already paused by marta \(moves the CRM\)/);
  expect((await failed.call('status', '--json')).json.paused).toEqual(before);
  const buttons = page.locator('form[action="/steer"] button');
  expect(await buttons.allTextContents()).toEqual([
    expect.stringMatching(/Resume 2 mirrors, paused by olga \(console\) \(maintenance\)/),
    expect.stringMatching(/Resume 1 mirror, paused by marta \(moves the CRM\)/),
  ]);
  expect(await steer('Resume 2 mirrors')).toMatch(
    /2 mirrors resumed\.\s+failed stays paused by marta/,
  );
  expect((await failed.call('status', '--json')).json.paused).toEqual(before);
  expect((await well.call('status', '--json')).json.paused).toBeNull();
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
  expect(await find(ann.slice(0, 2))).toMatch(/that begin like it:[^]*ann@example\.com/);
  expect(await find('#12')).toContain('Type the whole address, a CRM id or a hash');
  expect(await find('broken')).toMatch(/well: The record of the CRM .* cannot be used: /);
  await page.goto('/');
  expect(await page.getByRole('row', { name: 'well' }).innerText()).toMatch(
    /In sync, but\s[^]*1 person with a record that cannot be used/,
  );
  expect(running.failures).toEqual([]);
});

test('what has happened since yesterday is in the order of time, a run a line that unfolds', async () => {
  const { well, failed, first } = await three();
  await failed.call('sync');
  well.csv(`id,email,news,product\n1,${ann},no,\nbroken,no address,yes,\nalike,no address,yes,\n`);
  await well.call('sync');
  const { page, complaints } = await look(
    await startConsole([well.file, failed.file, first.file]),
    { width: 390 },
  );
  await page.getByRole('link', { name: 'What has happened since yesterday' }).click();
  await page.getByRole('heading', { name: 'Since yesterday' }).waitFor();
  const main = page.locator('main');
  const items = main.locator('.timeline > li');
  const texts = await items.allInnerTexts();
  const order = texts.map((text) => / (well|failed|first) /.exec(text)?.[1]);
  expect(order.join(', ')).toBe('well, first, failed, failed, well');
  expect(texts[0]).toMatch(/ well 1 opted out · 2 new problems$/);
  // It has failed twice: when it began is the news.
  expect(texts[2]).toMatch(/ failed\s+full run failed · .* ×3$/s);
  expect(await faultsOf(page)).toEqual([]);
  const change = items
    .nth(0)
    .getByRole('listitem')
    .filter({ hasText: `opted out ${ann}` });
  expect(await change.isVisible()).toBe(false);
  await items.nth(0).getByText('2 new problems').click();
  expect(await change.isVisible()).toBe(true);
  // The reason stands once, above everybody whom it is about.
  const problem = items.nth(0).getByRole('listitem').filter({ hasText: 'invalid: ' });
  expect(await problem.allInnerTexts()).toEqual([
    expect.stringMatching(/invalid: "email" holds no email address .*\sid alike, id broken/),
  ]);
  expect(await problem.isVisible()).toBe(true);
  expect(await items.nth(0).getByRole('link', { name: 'Problems' }).count()).toBe(1);
  expect(await faultsOf(page)).toEqual([]);
  await items.nth(0).getByRole('link', { name: 'Run ' }).click();
  await page.goto('/m/well/runs');
  await page.getByRole('link', { name: 'What has happened since yesterday' }).click();
  expect(await items.count()).toBe(2);
  await main.getByLabel('Mirror').selectOption('failed');
  await page.getByRole('button', { name: 'Filter' }).click();
  expect(await items.count()).toBe(2);
  await page.goto('/since?day=2031-01-01');
  await page.getByText('Nothing has happened in this time.').waitFor();
  await page.goto('/');
  await page.getByText('Pause or resume these 3 mirrors').click();
  await page.getByLabel('Reason').fill('maintenance');
  await page.getByRole('button', { name: 'Pause 3 mirrors' }).click();
  const answer = page.getByRole('status');
  expect(await answer.innerText()).toMatch(/^3 mirrors paused\.\s+Each of them$/);
  await answer.getByText('Each of them').click();
  await answer.getByText('well is paused').waitFor();
  // A mirror that needs attention shows that it is paused, too.
  const fresh = page.getByRole('row', { name: 'first' }).first();
  expect(await fresh.innerText()).toMatch(/^first\s+Paused\s/);
  const broken = page.getByRole('row', { name: 'failed' }).first();
  expect(await broken.innerText()).toMatch(/^failed[^]*Paused, and needs attention/);
  // It is counted among the paused ones, too, and found there.
  await page.getByRole('link', { name: '3 Paused' }).click();
  expect(await broken.count()).toBe(1);
  await page.goto('/since');
  // One act is one line, whatever the number of mirrors.
  const [act = '', ...others] = await items.allInnerTexts();
  expect(act).toMatch(/(, |(well|failed|first)\b){5} olga \(console\) paused the mirror: maint/);
  expect(others.join()).not.toContain('paused');
  expect(complaints).toEqual([]);
});

test('who opted out on the platform, and what the CRM was told of it, has happened, too', async () => {
  const world = await mirrored({
    lines: { contacts: { returns: { type: 'csv', path: 'b.csv' } } },
  });
  await world.call('sync');
  world.emulator.dashboard.leave(ann, 'ch_news');
  world.emulator.dashboard.unsubscribe(bob);
  await world.call('sync');
  const { page } = await look(await startConsole([world.file]));
  await page.goto('/since');
  const line = (words: string) => page.locator('.timeline > li', { hasText: words });
  for (const words of ['2 opt-outs made on the platform', '2 opt-outs reported to the CRM']) {
    await line(words).locator('summary').click();
    const people = line(words).getByRole('listitem');
    expect((await people.allInnerTexts()).toSorted()).toEqual([
      expect.stringMatching(`${ann} in ch_news$`),
      expect.stringMatching(`${bob} of all mail$`),
    ]);
  }
});

test('one button verifies the logs of all mirrors, and a table says what came of it', async () => {
  const { well, failed, first } = await three();
  const memory = new Database(`${failed.path}-memory`);
  memory.exec("update audit set body = replace(body, 'full', 'fast') where seq = 1");
  memory.close();
  const running = await startConsole([well.file, failed.file, first.file]);
  const { page, complaints } = await look(running, { width: 390 });
  await page.getByRole('link', { name: 'All audit logs' }).click();
  const row = (name: string) => page.getByRole('row', { name });
  await row('well').getByText('not verified yet').waitFor();
  await page.getByRole('button', { name: 'Verify the logs of 3 mirrors' }).click();
  await row('first').getByText('whole').waitFor();
  expect(await row('well').innerText()).toMatch(/^well\s+\d+\s+entry \d+\s+whole/);
  expect(await row('failed').innerText()).toMatch(/not as it was written: entry 1: /);
  expect(await faultsOf(page)).toEqual([]);
  expect([complaints, running.failures]).toEqual([[], []]);
  const others = await startConsole([well.file, first.file], { user: viewer });
  const { page: seen } = await look(others);
  await seen.goto('/audit');
  expect(await seen.getByRole('button', { name: 'Verify' }).count()).toBe(0);
  expect((await seen.request.post('/audit', { form: { csrf: '' } })).ok()).toBe(false);
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
  const paused = page.getByRole('link', { name: '1 Paused' });
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
