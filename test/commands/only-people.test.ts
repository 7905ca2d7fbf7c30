/** Beginning with a few people: --people and contacts.sample. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { mirrored, type MirroredOptions } from '../support/commands/mirrored-contacts.ts';

const channels = [{ id: 'ch_news', subscription: 'news' }];
const source = { type: 'csv', path: './people.csv' };
const header = 'id;email;news;gone';
const address = (id: number) => `p${id}@example.com`;
const line = (id: number, news = 'yes', gone = '') => `n${id};${address(id)};${news};${gone}`;
const lines = (count: number) => Array.from({ length: count }, (_, at) => line(at));

async function begin(options: MirroredOptions['lines'] = {}) {
  const world = await mirrored();
  const configure = (more: MirroredOptions['lines'] = options) =>
    world.config({ ...more, contacts: { source, deleted: 'gone', channels, ...more?.contacts } });
  configure();
  const list = join(world.folder, 'few.txt');
  const only = (...rows: string[]) => {
    writeFileSync(list, rows.join('\n'));
    return ['--people', list];
  };
  const write = (...rows: string[]) => world.csv([header, ...rows, ''].join('\n'));
  const seed = (id: number, news?: 'opt_in' | 'opt_out') =>
    world.emulator.seed.contact({
      email: address(id),
      ...(news && { channels: { ch_news: news } }),
    });
  const news = (id: number) => world.shown(address(id))?.['ch_news'];
  const rows = (sql: string) => {
    const db = new Database(world.path, { readonly: true });
    try {
      return db.prepare(sql).pluck().all();
    } finally {
      db.close();
    }
  };
  const recorded = () => rows('select key from recorded order by key');
  const owned = () => rows(`select key from recorded where ownership <> 'noted' order by key`);
  return { ...world, configure, list, only, write, seed, news, rows, recorded, owned };
}

describe('with --people', () => {
  test('only the people of the list are created, opted in and adopted', async () => {
    const world = await begin();
    world.write(...lines(8));
    // n2 and n3 are chosen.
    world.seed(1);
    world.seed(2);
    world.seed(3, 'opt_in');
    world.seed(4, 'opt_in');
    const flags = world.only('# the first ones', '', `  ${address(2).toUpperCase()}`, 'n3', 'n5');
    const plan = await world.call('plan', '--json', ...flags);
    const { code, json } = await world.call('sync', '--json', ...flags);
    expect(code).toBe(0);
    expect(json.contacts.applied).toEqual({ create: 1, opt_in: 1, opt_out: 0, delete: 0 });
    expect(plan.json.plan).toBe(json.plan);
    expect(json.contacts.prevented).toEqual({ optIns: 0, protect: 0, sample: 4 });
    expect([1, 2, 3, 4, 5, 6].map(world.news)).toEqual([
      undefined,
      'opt_in',
      'opt_in',
      'opt_in',
      'opt_in',
      undefined,
    ]);
    expect(world.owned()).toEqual([2, 3, 5].map(address));
    // n4 is not adopted, but it is known that they were subscribed.
    expect(world.recorded()).toEqual([2, 3, 4, 5].map(address));
    expect(json.reasons).toEqual([
      `Only 3 of 8 people (--people ${world.list}): the others are opted out where the CRM ` +
        'says so, and nothing else; nobody counts as missing, and nobody is deleted',
    ]);
    expect((await world.call('status', '--json')).json.proven).toBeNull();
    expect((await world.call('sync')).code).toBe(0);
    expect((await world.call('status', '--json')).json.proven).not.toBeNull();
    expect(world.recorded()).toHaveLength(8);
    expect([0, 1, 6, 7].map(world.news)).toEqual(['opt_in', 'opt_in', 'opt_in', 'opt_in']);
  });

  test('opt-outs of everybody apply, and are remembered as ours', async () => {
    const world = await begin();
    world.write(line(1), line(2), line(3), line(4));
    await world.call('sync', ...world.only('n1'));
    world.seed(3, 'opt_in');
    world.seed(4, 'opt_in');
    world.write(line(1, 'no'), line(2), line(3, 'no'), line(4));
    const { json } = await world.call('sync', '--json', ...world.only('n2'));
    expect(json.contacts.applied).toMatchObject({ create: 1, opt_out: 2 });
    expect([1, 2, 3, 4].map(world.news)).toEqual(['opt_out', 'opt_in', 'opt_out', 'opt_in']);
    // The person is recorded for our opt-out, and is not opted in by another record.
    expect(world.rows("select ownership from recorded where key like 'p3@%'")).toEqual(['noted']);
    world.write(line(1, 'no'), line(2), `x;${address(3)};yes;`, line(4));
    await world.call('sync');
    expect(world.news(3)).toBe('opt_out');
    // Somebody whom the limited runs left alone is adopted by the next whole one.
    expect(world.rows("select ownership from recorded where key like 'p4@%'")).toEqual(['adopted']);
  });

  test('nobody counts as missing, and nobody is deleted', async () => {
    const world = await begin({
      policy: { absent: 'opt_out', deletes: 'owned', deleteAfter: '0s' },
      guards: { absentReadings: 1, absentFor: '0s', deletes: { percent: 100, floor: 100 } },
    });
    world.write(...lines(6));
    await world.call('sync');
    world.write(...lines(6).slice(2), line(1, 'yes', 'yes'));
    const { json } = await world.call('sync', '--json', ...world.only('n1', 'n3'));
    // The CRM says that p1 is gone: that person is opted out at once, and not deleted.
    expect([0, 1, 2].map(world.news)).toEqual(['opt_in', 'opt_out', 'opt_in']);
    expect(json.contacts.applied).toMatchObject({ opt_out: 1, delete: 0 });
    expect(world.rows('select count(*) from absence')).toEqual([0]);
    await world.call('sync');
    expect([0, 1].map((id) => world.shown(address(id)))).toEqual([undefined, undefined]);
  });

  test('the first load goes on: the guard for opt-ins holds nobody of it', async () => {
    const world = await begin({ guards: { optIns: { percent: 1, floor: 1 } } });
    world.write(...lines(9));
    expect((await world.call('sync', ...world.only('n1'))).code).toBe(0);
    expect(world.rows("select count(*) from meta where name = 'loaded'")).toEqual([0]);
    const { code, json } = await world.call('sync', '--json');
    expect([code, json.contacts.applied.create]).toEqual([0, 8]);
    expect(world.rows("select count(*) from meta where name = 'loaded'")).toEqual([1]);
  });

  test('lines that name nobody are said, by their numbers', async () => {
    const world = await begin();
    world.write(...lines(3));
    const flags = world.only('n1', '# n2', 'n77', 'nobody@example.com');
    const { json } = await world.call('plan', '--json', ...flags);
    expect(json.reasons[0]).toMatch(/^Only 1 of 3 people/);
    expect(json.reasons[1]).toBe(
      `${world.list}: nobody in the CRM has the address or id of line 3, 4 → correct these lines`,
    );
  });

  test('a list that names nobody, or that is not there, is refused', async () => {
    const world = await begin();
    world.write(...lines(3));
    const empty = await world.call('sync', ...world.only('# nobody yet'));
    expect([empty.code, empty.err]).toEqual([2, expect.stringContaining('the file names nobody')]);
    const missing = await world.call('sync', '--people', '/nowhere');
    expect([missing.code, missing.err]).toEqual([2, expect.stringContaining('(ENOENT)')]);
    expect(world.writes()).toEqual([]);
  });
});

describe('with contacts.sample', () => {
  const sampling = (sample: number) => ({ contacts: { sample } });

  test('the same people are chosen in a plan, in every run, and for one person', async () => {
    const world = await begin(sampling(4));
    world.write(...lines(20));
    const plan = await world.call('plan', '--json', '--all');
    const first = await world.call('sync', '--json');
    expect(first.json.contacts.applied.create).toBe(4);
    expect(first.json.plan).toBe(plan.json.plan);
    expect(first.json.reasons).toEqual([
      expect.stringMatching(/^Only 4 of 20 people \(contacts\.sample: 4\): /),
    ]);
    const chosen = world.recorded();
    for (const mode of ['--full', '--fast']) {
      expect((await world.call('sync', mode, '--json')).json.contacts.applied.create).toBe(0);
    }
    expect(world.recorded()).toEqual(chosen);
    const other = lines(20).findIndex((_, id) => !chosen.includes(address(id)));
    await world.call('sync', '--person', address(other));
    expect(world.news(other)).toBeUndefined();
    expect((await world.call('explain', address(other))).out).toContain(
      'contacts.sample chooses others',
    );
  });

  test('the choice grows with the number, and then everybody follows', async () => {
    const world = await begin(sampling(2));
    world.write(...lines(12));
    await world.call('sync');
    const few = world.recorded();
    world.configure(sampling(5));
    await world.call('sync');
    const more = world.recorded();
    expect([few.length, more.length]).toEqual([2, 5]);
    expect(more).toEqual(expect.arrayContaining(few));
    world.configure({});
    expect((await world.call('sync', '--fast')).code).toBe(0);
    expect(world.recorded()).toHaveLength(12);
  });
});
