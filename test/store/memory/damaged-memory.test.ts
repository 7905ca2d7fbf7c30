/** A memory that is damaged: that is said of it, and the snapshot beside it stays as it is. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mirrored, type Mirrored } from '../../support/commands/mirrored-contacts.ts';

const people = Array.from({ length: 60 }, (_, at) => `p${at}@example.com`);
const [first = ''] = people;

/** Everybody has left; of the memory only the first pages are whole, its schema and its id. */
async function damaged(): Promise<Mirrored> {
  const world = await mirrored();
  world.people(people.map((email) => ({ email, news: 'yes' })));
  await world.call('sync');
  for (const email of people) {
    world.emulator.dashboard.leave(world.emulator.world.contact(email)?.id ?? '', 'ch_news');
  }
  await world.call('sync');
  const file = `${world.path}-memory`;
  writeFileSync(file, readFileSync(file).fill('x', 2 * 4096));
  world.writes();
  return world;
}

const filesOf = ({ folder }: Mirrored) =>
  readdirSync(`${folder}/cli`).filter((name) => !/-(wal|shm)$/.test(name));

test.each([
  ['sync'],
  ['plan'],
  ['sync', '--person', first],
  ['explain', first],
  ['forget', first, '--yes'],
])('%s is reported, and nothing is changed', async (...argv) => {
  const world = await damaged();
  const before = filesOf(world);
  for (let count = 0; count < 2; count += 1) {
    const { code, err } = await world.call(...argv);
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(/-memory: this memory is damaged.*→.*--accept-lost-ledger/),
    });
    expect(err).not.toContain('snapshot is');
  }
  expect(filesOf(world)).toEqual(before);
  expect(world.writes()).toEqual([]);
});

test('a damaged memory can be given up: it is kept aside, and rebuilt from what is recorded', async () => {
  const world = await damaged();
  const { code } = await world.call('sync', '--accept-lost-ledger');
  expect(code).toBe(0);
  expect(filesOf(world)).toContain('snapshot.sqlite-memory-lost-1');
  expect(filesOf(world).filter((name) => name.includes('.broken-'))).toEqual([]);
  const { json } = await world.call('explain', first, '--json');
  expect(json.ledger).toMatchObject([{ cause: 'opt_out' }]);
  expect(world.writes()).toEqual([]);
});
