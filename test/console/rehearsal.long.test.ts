/** The next run rehearsed in the console, in a real browser, against the emulator. */
import { expect, test } from 'vitest';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole } from '../support/console/running-console.ts';

const cleo = 'cleo@example.com';

/** Two people are mirrored; then the CRM opts one out, and has a new one. */
async function changed() {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  world.people([
    { email: ann, news: 'no' },
    { email: bob, news: 'yes', product: 'no' },
    { email: cleo, news: 'yes' },
  ]);
  world.writes();
  return world;
}

/** Whoever has no session is signed in by this proxy. */
const proxy = { header: 'x-user', operators: new Set<string>(), from: new Set(['127.0.0.1']) };

const rehearse = { name: 'Rehearse', exact: true } as const;

test('an operator rehearses the next run, and reads how it would go', async () => {
  const world = await changed();
  const running = await startConsole([world.file]);
  const { page, complaints } = await look(running);
  await page.getByRole('link', { name: 'Rehearse the next run' }).click();
  await page.getByLabel('Rate limits').fill('contacts.enrol=1/60');
  await page.getByRole('button', rehearse).click();
  await page.getByText('It would end well').waitFor();
  const tiles = await page.locator('.tile').allInnerTexts();
  // The second opt-in has to wait for the next minute; a busy machine answers late.
  expect(tiles[0]).toMatch(/^([6-9]\d|1[01]\d) s\n|^\d+ min/);
  expect(tiles[1]).toMatch(/^2\n* ?people would end otherwise/);
  const row = page.getByRole('row', { name: cleo });
  expect(await row.innerText()).toContain('not there → ch_news in\topt-in wanted');
  expect(await page.getByRole('row', { name: ann }).innerText()).toContain(
    'ch_news in → ch_news out',
  );
  const route = page.getByRole('row', { name: 'contacts.enrol' });
  expect(await route.innerText()).toContain('2\t1 every 60 s\tgiven for this rehearsal');
  expect(await page.getByRole('row', { name: 'contacts on the platform' }).innerText()).toContain(
    '2\t3',
  );
  expect(await faultsOf(page)).toEqual([]);
  expect((await page.content()).length).toBeLessThan(150_000);
  expect(page.url()).not.toContain('example.com');
  expect(world.writes()).toEqual([]);
  await row.getByRole('link').click();
  await page.getByText('no person of this mirror').or(page.getByText(cleo)).first().waitFor();
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('a viewer sees the result with hashes, and no button', async () => {
  const world = await changed();
  const running = await startConsole([world.file], { proxy });
  const { page } = await look(running);
  const { page: seen, complaints } = await look(running, { user: 'vera' });
  await seen.goto('/m/world/rehearsal');
  await seen.getByText('Nothing has been rehearsed').waitFor();
  await page.goto('/m/world/rehearsal');
  await page.getByRole('button', rehearse).click();
  await page.getByText('It would end well').waitFor();
  await seen.goto('/m/world');
  expect(await seen.getByText('Rehearse the next run').count()).toBe(0);
  await seen.getByRole('link', { name: 'Look at the rehearsal' }).click();
  await seen.getByText('Who would end otherwise than today').waitFor();
  expect(await seen.getByRole('row', { name: /^#[0-9a-f]{12}/ }).count()).toBe(2);
  expect(await seen.content()).not.toContain('@example.com');
  expect(await seen.locator('main').getByRole('button').count()).toBe(0);
  expect(await faultsOf(seen)).toEqual([]);
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('a rehearsal that takes long shows its progress, and can be stopped', async () => {
  const world = await changed();
  const running = await startConsole([world.file]);
  // The platform does not answer before the rehearsal is stopped.
  const stopped = Promise.withResolvers<void>();
  world.server.watch.arrived = async () => stopped.promise;
  const { page, complaints } = await look(running);
  await page.goto('/m/world/rehearsal');
  await page.getByRole('button', rehearse).click();
  await page.getByText('The next run is being rehearsed.').waitFor();
  await page.getByText('Listing contacts').waitFor();
  expect(await faultsOf(page)).toEqual([]);
  const before = page.url();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('The rehearsal could not be made').waitFor();
  stopped.resolve();
  expect(page.url()).toBe(before);
  expect([complaints, running.failures]).toEqual([[], []]);
});
