/** Problems of a run, grouped by their cause. */
import { describe, expect, test } from 'vitest';
import { groupProblems } from '../../src/engine/report/problem-groups.ts';
import { mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

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
        reason: '"email" holds no email address',
        fix: 'correct the address in the CRM; if contacts.email names the wrong column, correct that',
      },
    ]);
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
