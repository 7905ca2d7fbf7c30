/** Values of the CRM from the command line: what check, plan and sync say of them, and show. */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { mirrored } from '../support/commands/mirrored-contacts.ts';

const channels = [{ id: 'ch_news', subscription: 'news' }];

const header = 'id;email;news;stop;gone';

async function begin(contacts: object = {}, source: object = {}) {
  const world = await mirrored();
  world.config({
    contacts: {
      source: { type: 'csv', path: './people.csv', ...source },
      unsubscribed: 'stop',
      deleted: 'gone',
      channels,
      ...contacts,
    },
  });
  return { ...world, write: (...lines: string[]) => world.csv([header, ...lines, ''].join('\n')) };
}

const people = (count: number, rest: string) =>
  Array.from({ length: count }, (_, at) => `${at};p${at}@example.com;${rest}`);

describe('an unknown word', () => {
  test('is named by check, plan and sync, and nobody is changed', async () => {
    const world = await begin();
    world.write(...people(5, 'yes;;'));
    expect((await world.call('sync')).code).toBe(0);
    world.writes();
    world.write(...people(4, 'yes;Nein;'), '4;p4@example.com;yes;;Privat 0815');

    const checked = await world.call('check');
    expect(checked.code).toBe(1);
    expect(checked.out).toContain(
      'FAIL contacts.unsubscribed: 4 records hold "Nein", which is no known word (the first: line 2) ' +
        '→ name it: unsubscribed: { field: "stop", yes: ["…"], no: ["…"] }',
    );
    expect(checked.out).toContain('FAIL contacts.deleted: 1 record holds "aaaaaa 9999", which');
    expect((await world.call('check', '--addresses')).out).toContain('holds "Privat 0815"');

    const planned = await world.call('plan', '--json');
    expect(planned.json.problems).toEqual([
      expect.objectContaining({ key: 'contacts.unsubscribed' }),
      {
        kind: 'contact',
        key: 'contacts.deleted',
        class: 'invalid',
        cause: 'opt-out-unreadable',
        reason:
          '1 record holds "aaaaaa 9999", which is no known word (the first: line 6); ' +
          'here letters are shown as a and digits as 9, the values on a terminal and with --addresses; ' +
          'it concerns people who are subscribed and may want no mail',
        fix: 'name it: deleted: { field: "gone", yes: ["…"], no: ["…"] }',
        new: true,
      },
    ]);
    expect(planned.json.contacts.invalid).toBe(5);
    const { json } = await world.call('plan', '--json', '--addresses');
    expect(json.problems[1].reason).toContain('"Privat 0815"');
    expect((await world.seen('plan')).out).toContain('"Privat 0815"');

    const synced = await world.call('sync');
    expect(synced.code).toBe(4);
    expect(synced.out.match(/^ +\d+ × invalid/gm)).toHaveLength(2);
    expect(synced.out + synced.err).not.toContain('Privat');
    expect(world.writes()).toEqual([]);
  });

  test('is known once the configuration has the advised line', async () => {
    const world = await begin();
    const lines = ['1;p1@example.com;yes;-;', '2;p2@example.com;yes;none;'];
    world.write(...lines);
    const { out } = await world.call('check');
    const [, advice = ''] = /name it: (.*)/.exec(out) ?? [];
    const written = parse(advice.replace('["…"]', '["!"]').replace('["…"]', '["-", "none"]'));
    expect(written).toEqual({ unsubscribed: { field: 'stop', yes: ['!'], no: ['-', 'none'] } });
    const mended = await begin(written);
    mended.write(...lines);
    expect((await mended.call('check')).code).toBe(0);
  });
});

test.each([
  [{ deleted: 'lost' }],
  [{ unsubscribed: { when: 'record.lost == "x"' } }],
  [{ channels: [{ id: 'ch_news', subscription: { field: 'lost', in: ['x'] } }] }],
  [{ include: 'record.lost == "x"' }],
])('a missing column is an error in the configuration: %j', async (contacts) => {
  const world = await begin(contacts);
  world.write('1;p1@example.com;yes;;');
  for (const command of ['check', 'plan', 'sync']) {
    const { code, out, err } = await world.call(command);
    expect([command, code]).toEqual([command, 2]);
    expect(out + err).toContain('there is no column "lost"');
  }
});
