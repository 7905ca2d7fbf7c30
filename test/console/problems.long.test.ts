/** The page of the problems in a real browser: causes, remedies, people, and the CSV. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
import {
  faultsOf,
  look,
  type Looking,
  startConsole,
  viewer,
} from '../support/console/running-console.ts';

/** A person who left on the platform, and one without a usable word. */
async function troubled(): Promise<Mirrored> {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
  world.csv(
    ['id,email,news,product', `1,${ann},yes,`, '2,cid@example.com,perhaps,', ''].join('\n'),
  );
  await world.call('sync');
  return world;
}

async function open(
  world: Mirrored,
  options: Parameters<typeof startConsole>[1] = {},
): Promise<Looking> {
  const looking = await look(await startConsole([world.file], options));
  await looking.page.goto('/m/world/problems');
  return looking;
}

test('each cause has its count, its remedy and a link to the person', async () => {
  const { page, complaints } = await open(await troubled());
  const text = await page.locator('main').innerText();
  expect(text).toMatch(/1 ×\s+conflict/);
  expect(text).toMatch(/1 ×\s+invalid/);
  expect(text).toContain('"perhaps" is no known word');
  expect(text).toContain('→ ');
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole('link', { name: /^conflict \(1\)/ }).click();
  expect(await page.locator('main').innerText()).not.toContain('perhaps');
  await page.getByRole('link', { name: ann }).click();
  await page.getByText('nothing is sent: a conflict').waitFor();
  expect(page.url()).not.toContain('@');
  expect(complaints).toEqual([]);
});

test('the CSV is the one of `problems --output`, with addresses for those who see them', async () => {
  const world = await troubled();
  for (const [options, flags] of [
    [{}, ['--addresses']],
    [{ user: viewer }, []],
  ] as const) {
    const { page } = await open(world, options);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Download as CSV' }).click(),
    ]);
    const path = `${world.folder}/problems-${flags.length}.csv`;
    await world.call('problems', '--output', path, ...flags);
    expect(readFileSync(await file.path(), 'utf8')).toBe(readFileSync(path, 'utf8'));
    const html = await page.content();
    expect(html.includes('@example.com')).toBe(flags.length > 0);
  }
});

test('a remedy says where, a list says where the rest is, and a viewer sees no value', async () => {
  const world = await mirrored();
  const words = { field: 'news', in: ['Ja'], out: ['Nein'] };
  world.config({ contacts: { channels: [{ id: 'ch_news', name: 'News', subscription: words }] } });
  const rows = Array.from({ length: 5 }, (_, at) => `${at},p${at}@example.com,Mar-${at},`);
  world.csv(['id,email,news,product', ...rows, '7,,Ja,', ''].join('\n'));
  await world.call('sync');
  const { page, complaints } = await open(world);
  const group = page.locator('tr', { hasText: 'known word' });
  const text = (await group.innerText()).replaceAll(/\s+/g, ' ');
  expect(text).toContain('News (contacts.channels[0].subscription): "Mar-0" (1)');
  expect(text).toMatch(
    /in the CRM, change these values to .Ja. or .Nein.; or let the maintainer of \S+\.yaml name/,
  );
  expect(text).toContain('… and 2 more');
  await group.getByRole('link', { name: 'all of them as CSV' }).waitFor();
  const { page: hidden } = await open(world, { user: viewer });
  const seen = await hidden.locator('main').innerText();
  expect(seen).toContain('(the value is hidden from viewers)');
  expect(seen).not.toMatch(/Aaa-9|letters are shown as a/);
  expect(complaints).toEqual([]);
});
