/** Problems of a run, grouped by their cause. */
import { describe, expect, test } from 'vitest';
import { groupProblems } from '../../src/engine/report/problem-groups.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const words = { contacts: { unsubscribed: 'stop', channels: channels('news') } };

function channels(field: string) {
  return [{ id: 'ch_news', subscription: { field, in: ['Ja'], out: ['Nein'] } }];
}

async function begin(...rows: string[]): Promise<Mirrored> {
  const world = await mirrored();
  const source = { type: 'csv', path: './people.csv' };
  world.config({ contacts: { ...words.contacts, source } });
  world.csv(['id;email;news;stop', ...rows, ''].join('\n'));
  return world;
}

const many = (count: number, rest: string, from = 0) =>
  Array.from({ length: count }, (_, at) => `${from + at};p${from + at}@example.com;${rest}`);

describe('the groups of a run', () => {
  test('count every record, also where the list of problems is cut at 100', async () => {
    const world = await begin(...many(150, 'unbekannt;'), ...many(4, 'Ja;', 500), '900;nobody;Ja;');
    const { json } = await world.call('plan', '--json');
    expect(json.contacts.invalid).toBe(151);
    expect(json.groups).toEqual([
      {
        class: 'invalid',
        kind: 'contact',
        cause: 'unknown-word',
        count: 150,
        values: [{ value: 'unbekannt', count: 150 }],
        samples: ['line 2', 'line 3', 'line 4'].map((place) => ({
          key: expect.stringMatching(/^#[0-9a-f]{12}$/),
          place,
        })),
        reason: 'contacts.channels[0].subscription: "unbekannt" is no known word',
        fix: 'name it: subscription: { field: "news", in: ["…"], out: ["…"], none: ["…"] }',
      },
      {
        class: 'invalid',
        kind: 'contact',
        cause: 'address-invalid',
        count: 1,
        values: [],
        samples: [{ key: 'id 900', place: 'line 156' }],
        reason: '"email" is not an email address',
        fix: 'correct the address in the CRM; if contacts.email names the wrong column, correct that',
      },
    ]);
  });

  test('are printed with the count, three records and the option that mends it', async () => {
    const world = await begin(...many(5, 'unbekannt;'), ...many(4, 'Ja;', 500));
    const { out } = await world.call('plan');
    expect(out.split('\n').slice(out.split('\n').indexOf('Problems (1 cause, 5 records)'))).toEqual(
      expect.arrayContaining([
        'Problems (1 cause, 5 records)',
        '  5 × invalid    contacts.channels[0].subscription: "unbekannt" is no known word',
        '                 lines 2, 3, 4 …',
        '                 → name it: subscription: { field: "news", in: ["…"], out: ["…"], none: ["…"] }',
      ]),
    );
  });

  test('show a value that may be personal data only by its form, unless addresses are shown', async () => {
    const world = await begin(...many(4, 'Ja;'), '9;ann@example.com;Ja;Privat 0815');
    const { json, out } = await world.call('plan', '--json');
    expect(out).not.toContain('Privat');
    expect(json.groups[0]).toMatchObject({
      values: [{ value: 'aaaaaa 9999', count: 1 }],
      reason: expect.stringContaining('letters are shown as a'),
    });
    const shown = await world.call('plan', '--json', '--addresses');
    expect(shown.json.groups[0]).toMatchObject({
      values: [{ value: 'Privat 0815', count: 1 }],
      samples: [{ key: ann }],
      reason: 'contacts.unsubscribed: "Privat 0815" is no known word',
    });
  });

  test('hold known conflicts in every run, and refused opt-outs first', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
    world.server.fail(({ body }) => body.subscription === 'opt_out', { is: 'answer', status: 422 });
    world.people([
      { email: ann, news: 'yes' },
      { email: bob, news: 'no' },
    ]);
    const causes = [
      ['rejected', 'opt-out-refused', 1],
      ['conflict', 'left-channel', 1],
    ];
    for (const command of ['sync', 'sync', 'plan']) {
      const { json } = await world.call(command, '--json');
      expect(
        json.groups.map((group: { class: string; cause: string; count: number }) => {
          return [group.class, group.cause, group.count];
        }),
      ).toEqual(causes);
    }
  });

  test('count the people whose changes await approval', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.config({ guards: { optOuts: { percent: 1, floor: 0 } } });
    world.people([
      { email: ann, news: 'no' },
      { email: bob, news: 'no' },
    ]);
    const { json } = await world.call('sync', '--json');
    expect(json.groups).toMatchObject([{ class: 'held', cause: 'awaiting-approval', count: 2 }]);
  });
});

describe('grouping', () => {
  const one = (about: string) => ({
    class: 'rejected' as const,
    cause: 'platform-refused' as const,
    about,
    option: null,
    value: null,
    fix: 'mend it',
    n: 2,
    samples: [{ key: about, place: null }],
  });

  test('never loses a record, however many reasons there are', () => {
    const found = groupProblems();
    found.add(
      'contact',
      Array.from({ length: 500 }, (_, at) => one(`reason ${at}`)),
    );
    const groups = found.groups();
    expect(groups.length).toBe(21);
    expect(groups.reduce((sum, { count }) => sum + count, 0)).toBe(1_000);
    expect(groups[0]).toMatchObject({ reason: 'other reasons', count: 960 });
  });
});
