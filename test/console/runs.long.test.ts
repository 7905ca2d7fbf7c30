/** The pages of the runs and the rate limits, and the plots of the overview, in a real browser. */
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole } from '../support/console/running-console.ts';

/** Two people are created; then one leaves the newsletter by the CRM's word, and one joins. */
async function twoRuns() {
  const world = await mirrored();
  world.config({ guards: { optOuts: { percent: 100, floor: 100 } } });
  expect((await world.call('sync')).code).toBe(0);
  world.people([
    { email: 'ann@example.com', news: 'no' },
    { email: 'bob@example.com', news: 'yes', product: 'no' },
    { email: 'cleo@example.com', news: 'yes' },
  ]);
  expect((await world.call('sync')).code).toBe(0);
  return world;
}

/** The rows of the runs; the changes by day have no link to one. */
const rowsOf = (page: Page) => page.locator('tbody tr:has(a[href*="/runs/"])');

test('a run is a diff that can be filtered', async () => {
  const world = await twoRuns();
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  await page.goto('/m/world/runs');
  expect(await rowsOf(page).count()).toBe(2);
  await rowsOf(page).first().getByRole('link').first().click();
  const lines = page.locator('.diff > li');
  expect(await lines.evaluateAll((all) => all.map((one) => one.className))).toEqual([
    'removed',
    'added',
  ]);
  expect(await lines.first().innerText()).toContain('opted out ann@example.com in ch_news');
  expect(await lines.first().innerText()).toContain('opt-out wanted; subscribed');
  expect(await faultsOf(page)).toEqual([]);
  await page.locator('select[name=op]').selectOption('create');
  await page.getByRole('button', { name: 'Filter' }).click();
  expect(await lines.allInnerTexts()).toEqual([expect.stringContaining('cleo@example.com')]);
  await page.getByLabel('Outcome').selectOption('rejected');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.getByText('There are no such changes.').waitFor();
  expect(await page.getByText('No request failed.').count()).toBe(1);
  expect(page.url()).not.toContain('example.com');
  expect(complaints).toEqual([]);
  expect(running.failures).toEqual([]);
});

test('the runs are shown 20 at a time, and can be filtered', async () => {
  const world = await mirrored();
  for (let n = 0; n < 23; n += 1) expect((await world.call('sync', '--fast')).code).toBe(0);
  const running = await startConsole([world.file]);
  const { page } = await look(running, { width: 1100 });
  await page.goto('/m/world/runs');
  const rows = rowsOf(page);
  // A row is one line.
  expect(await rows.first().innerText()).toMatch(/\t\d+ s ago\t(full|fast)\tdone\t/);
  expect((await rows.first().boundingBox())?.height).toBeLessThan(35);
  // Only the first one changed something.
  expect(await rows.count()).toBe(1);
  await page.getByLabel('Runs').selectOption('all');
  await page.getByLabel('In the last').selectOption('1 h');
  await page.getByRole('button', { name: 'Filter' }).click();
  expect(await rows.count()).toBe(20);
  await page.getByRole('link', { name: 'Older' }).click();
  expect(await rows.count()).toBe(3);
  await page.getByRole('link', { name: 'Newer' }).click();
  expect(await rows.count()).toBe(20);
  await page.getByLabel('Status').selectOption('failed');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.getByText('There are no such runs.').waitFor();
});

test('the overview draws the history, which is kept as long as the runs', async () => {
  const world = await twoRuns();
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  expect(await page.locator('[data-plot] canvas').count()).toBe(6);
  expect(await page.evaluate('steps.count.slice(0, 5)')).toEqual([1, 2, 5, 10, 20]);
  expect(await page.getByText('None in this time: ').innerText()).toContain('Requests refused');
  const people = page.locator('figure', { hasText: 'People subscribed per channel' });
  expect(await people.locator('.legend li').allInnerTexts()).toEqual(['ch_news 2']);
  expect(await people.locator('summary').innerText()).toMatch(/as of \d+ \w+ \d{4}/);
  const { width = 0, height = 0 } = (await people.locator('.u-over').boundingBox()) ?? {};
  await people.locator('.u-over').hover({ position: { x: width - 2, y: height / 2 } });
  await people.locator('.tip').waitFor();
  expect(await people.locator('.tip').innerText()).toMatch(/^\d+ \w+ \d{4}, .*\nch_news: 2$/);
  expect(await page.locator('.tip').filter({ visible: true }).count()).toBe(1);
  await people.getByText('The last values').click();
  expect(await people.locator('details tbody tr').first().innerText()).toMatch(/\t2$/);
  const optOuts = page.locator('figure', { hasText: 'Opt-outs per day' });
  await optOuts.getByText('The last values').click();
  expect(await optOuts.locator('details tbody td').allInnerTexts()).toEqual(['1', '0', '0', '0']);
  expect(await faultsOf(page)).toEqual([]);
  expect(complaints).toEqual([]);

  const snapshot = openSnapshot(world.path);
  onTestFinished(() => snapshot.close());
  const rows = () => snapshot.figures.points({ since: 0, stepMs: 1 }).length;
  expect([rows(), snapshot.figures.optOuts(1, 0).length]).toEqual([2, 1]);
  expect(thinned(snapshot, 1_000)).toBe(200);
  await page.goto('/m/world?range=90+d');
  // A bar and the number above it say what they stand for, and a bar is as wide as can be seen.
  await page.getByText('Changes per run (largest in 2 d)', { exact: true }).waitFor();
  await page.getByText('Opt-outs per 2 d', { exact: true }).waitFor();
  const [bars] = await page
    .locator('[aria-label^="Changes per run"]')
    .evaluateAll((all) => all.map((one) => JSON.parse(one.getAttribute('data-plot') ?? '')));
  expect(bars.x.length).toBeLessThan(4);
  // Only what is before the end of the axis counts for the scale.
  expect(Math.max(...bars.x)).toBeLessThanOrEqual(bars.to);
  snapshot.figures.prune(Date.now() + 3 * 86_400_000);
  expect([rows(), snapshot.figures.optOuts(1, 0).length]).toEqual([0, 0]);
  await page.reload();
  await page.getByText('There is no history yet').waitFor();
});

/** Adds a run each minute before now; returns how many points a line of the plots has. */
function thinned({ figures, transaction }: Snapshot, runs: number): number {
  const now = Date.now();
  const nothing = {
    requests: 0,
    refused: 0,
    used: null,
    proofMs: null,
    changes: [],
    people: null,
  };
  transaction(() => {
    for (let n = 1; n <= runs; n += 1) {
      const at = now - n * 60_000;
      figures.add({ ...nothing, run: `run-${n}`, at, mode: 'fast', ms: 1, changed: n });
    }
  });
  const since = figures.firstSince(0) ?? now;
  const points = figures.points({ since, stepMs: Math.ceil((now - since) / 200) });
  return points.filter(({ mode }) => mode === 'fast').length;
}

test('a person who leaves on the platform is counted once', async () => {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  world.emulator.dashboard.leave('ann@example.com', 'ch_news');
  for (let n = 0; n < 2; n += 1) await world.call('sync');
  const snapshot = openSnapshot(world.path);
  onTestFinished(() => snapshot.close());
  expect(snapshot.figures.optOuts(1, 0)).toMatchObject([{ origin: 'platform', n: 1 }]);
  const counts = snapshot.figures.people({ since: 0, stepMs: 1 });
  expect(counts.map(({ people }) => people)).toEqual([
    { ch_news: 2 },
    { ch_news: 1 },
    { ch_news: 1 },
  ]);
});

test('a first load shows its progress and the rate limits while it runs', async () => {
  const world = await mirrored({ limits: ['contacts.enrol=4/1'] });
  world.people(Array.from({ length: 28 }, (_, n) => ({ email: `p${n}@example.com`, news: 'yes' })));
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  const limits = await page.context().newPage();
  await limits.goto('/m/world/limits');
  await limits.getByText('No run is in progress.').waitFor();
  const ended = world.call('backfill');
  await page.getByText('A run is in progress').waitFor();
  await page.getByLabel('Progress of the run').waitFor();
  const own = await page.context().newPage();
  await own.goto('/m/world/runs?show=all');
  await rowsOf(own).first().getByRole('link').first().click();
  await own.getByLabel('Progress of the run').waitFor();
  await own.getByText(/applying: \d+ of 28 contact changes/).waitFor();
  await own.getByRole('button', { name: 'Pause and stop the run' }).waitFor();
  await limits.getByText(/left, done at about|left: not known yet/).waitFor();
  // A run of another process tells only the limit that holds it up.
  await limits.locator('tr', { hasText: 'contacts.enrol' }).getByText('now').waitFor();
  expect((await ended).code).toBe(0);
  await page.getByText('In sync').waitFor();
  // The page of the run goes on to what came of it.
  await own.getByText('Undo this run').waitFor();
  await limits.getByText('No run is in progress.').waitFor();
  const route = limits.locator('tr', { hasText: 'contacts.enrol' });
  await route.waitFor();
  expect(await route.innerText()).toContain('4\t1 s\tidle\t0 %');
  await limits.reload();
  const plot = limits.locator('figure', { hasText: 'contacts.enrol: requests per 1 s' });
  const legend = await plot.locator('.legend li').allInnerTexts();
  expect(legend).toEqual([expect.stringMatching(/^used [\d.]+$/), 'limit 4']);
  expect(await plot.locator('summary').innerText()).toMatch(/as of \d+ \w+ \d{4}/);
  const [series] = await plot
    .locator('[data-plot]')
    .evaluateAll((all) => all.map((one) => JSON.parse(one.getAttribute('data-plot') ?? '').series));
  expect(series[0].values[0]).toBeGreaterThan(1);
  expect(series[1]).toEqual({ label: 'limit', values: [4], isLimit: true });
  expect(await limits.locator('canvas').count()).toBeGreaterThan(0);
  expect(await faultsOf(limits)).toEqual([]);
  expect(complaints).toEqual([]);
  expect(running.failures).toEqual([]);
});

test('a first load that was stopped goes on from what it has applied', async () => {
  const world = await mirrored({ limits: ['contacts.enrol=4/1'] });
  world.people(Array.from({ length: 40 }, (_, n) => ({ email: `p${n}@example.com`, news: 'yes' })));
  const now = async () => (await world.call('status', '--json')).json;
  const stopped = world.call('backfill');
  await expect.poll(async () => (await now()).running?.done ?? 0).toBeGreaterThan(4);
  await world.call('pause', '--stop');
  expect((await stopped).code).toBe(143);
  const { recorded } = await now();
  expect((await now()).attention).toMatchObject([{ code: 'paused' }]);
  await world.call('resume');
  const ended = world.call('backfill');
  await expect.poll(async () => (await now()).running?.phase).toBe('applying');
  const { total, done, perSecond } = (await now()).running;
  expect({ total, isOn: done >= recorded.contacts }).toEqual({ total: 40, isOn: true });
  expect(perSecond ?? 0).toBeLessThan(5);
  expect((await ended).code).toBe(0);
});
