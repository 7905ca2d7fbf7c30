/** The audit log, looked into in a real browser. */
import { expect, test } from 'vitest';
import { ann, bob, mirrored, tamper } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole } from '../support/console/running-console.ts';

const named = { channels: [{ id: 'ch_news', name: 'Newsletter', subscription: 'news' }] };
const guards = { optIns: { percent: 0, floor: 1 } };

/**
 * What somebody decides while a run sends is in the log between its writes, as the run moves both
 * there.
 */
test('a decision between the writes of a run is a line of its own, and each has the second', async () => {
  const world = await approved();
  const between = 'select max(seq) from audit where body like \'["w"%\'';
  tamper(
    `${world.path}-memory`,
    `update audit set body = json_array('decision', body ->> 1,
    'pause', 'anna') where seq = (${between}) - 30`,
  );
  const running = await startConsole([world.file]);
  const { page } = await look(running);
  await page.goto('/m/world/audit');
  const lines = await page.locator('.timeline > li').allInnerTexts();
  expect(lines).toEqual([
    expect.stringMatching(/^anna paused the mirror \d+ \w+ \d{4}, \d\d:\d\d:\d\d \w+, entry \d+$/),
    expect.stringMatching(/^full run \w+-\w+, asked for by .*\b59 writes$/s),
    expect.stringMatching(/^ben approved changes/),
    expect.stringMatching(/^full run \w+-\w+, asked for by .*\b2 writes$/s),
  ]);
});

/** A mirror in which Ben has approved one of two parts of a plan, and a run has made it. */
async function approved() {
  const world = await mirrored();
  world.config({ contacts: named, guards });
  await world.call('sync');
  const others = Array.from({ length: 60 }, (_, at) => `p${at}@example.com`);
  world.people([ann, bob, ...others].map((email) => ({ email, news: 'yes' })));
  const { plan } = (await world.call('sync', '--json')).json;
  const why = ['--reason', 'the campaign of June', '--by', 'ben'];
  const { part } = (await world.call('approve', plan, '--op', 'create', '--json', ...why)).json;
  expect((await world.call('sync')).code).toBe(0);
  return { ...world, plan, part };
}

test('an approval says what it allowed, and is found by the plan, by its user and by its date', async () => {
  const { plan, part, ...world } = await approved();
  const { json } = await world.call('audit', 'show', plan, '--json');
  expect(json.entries[0]).toMatchObject({ about: part, plan, name: 'ben' });
  expect(json.entries[0].changes).toEqual([{ op: 'create', part: 'ch_news', n: 60 }]);
  expect(json.entries).toHaveLength(1 + 60);
  const listed = async (...argv: string[]) =>
    (await world.call('audit', 'show', ...argv, '--json')).json.entries;
  expect(await listed('--by', 'ben')).toMatchObject([{ type: 'decision', name: 'ben' }]);
  expect(await listed('--by', 'nobody')).toEqual([]);
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  const sentence = 'ben approved changes (60 × create in Newsletter): the campaign of June';
  const today = new Date().toISOString().slice(0, 10);
  for (const query of [`plan=${plan}`, `plan=${part}`, 'by=ben', `from=${today}&to=${today}`, '']) {
    await page.goto(`/m/world/audit?${query}`);
    await page.getByText(sentence).waitFor();
  }
  await page.getByRole('link', { name: 'The people: what was sent' }).click();
  await page.getByRole('link', { name: '60 writes' }).waitFor();
  for (const [query, runs] of [
    [`plan=${plan}`, [60]],
    [`plan=${part}`, [60]],
    [`from=${today}&to=${today}`, [60, 2]],
    ['show=decisions', []],
  ] as const) {
    await page.goto(`/m/world/audit?${query}`);
    const lines = await page.locator('.timeline > li', { hasText: / run \d+T/ }).allInnerTexts();
    expect(lines).toEqual(runs.map((n) => expect.stringMatching(`${n} writes`)));
  }
  for (const query of ['plan=0123456789abcdef', 'by=eve', 'from=2031-01-01', 'to=2020-01-01']) {
    await page.goto(`/m/world/audit?${query}`);
    await page.getByText('No entry.').waitFor();
  }
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('the writes of a run are one line that unfolds, and a person has only their own', async () => {
  const world = await approved();
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running, { width: 390 });
  await page.goto('/m/world/audit');
  const items = page.locator('.timeline > li');
  const folded = await items.count();
  expect(folded).toBeLessThan(6);
  await page.getByRole('link', { name: '60 writes' }).click();
  await page.getByRole('link', { name: 'Next writes' }).waitFor();
  expect(await items.count()).toBe(folded + 50);
  const people = items.locator('summary', { hasText: /^p\d+@example\.com: create Newsletter/ });
  expect(await people.count()).toBe(50);
  await page.getByRole('link', { name: 'Next writes' }).click();
  await page.getByRole('link', { name: 'Next writes' }).waitFor({ state: 'detached' });
  expect(await items.count()).toBe(folded + 10);
  expect(await people.count()).toBe(10);
  await people.first().click();
  await items.getByRole('link', { name: /^p\d+@example\.com$/ }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await page.getByLabel('Person: address').fill('p7@example.com');
  await page.getByRole('button', { name: 'Find', exact: true }).click();
  await page.waitForURL(/person=/);
  // The key in the address is encrypted, and two letters may come by chance.
  expect(decodeURIComponent(page.url())).not.toContain('p7@');
  expect(await items.count()).toBe(1);
  await items.getByText('create Newsletter').waitFor();
  await page.getByLabel('Person: address').fill('nobody@example.com');
  await page.getByRole('button', { name: 'Find', exact: true }).click();
  await page.getByText('Nobody was found.').waitFor();
  expect([complaints, running.failures]).toEqual([[], []]);
});
