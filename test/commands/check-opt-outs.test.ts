/** `check` points out columns that look like an opt-out and that the configuration does not use. */
import { describe, expect, test } from 'vitest';
import { mirrored, type MirroredOptions } from '../support/commands/mirrored-contacts.ts';
import { findUnusedOptOuts } from '../../src/app/check/source-check.ts';

test.each<[unused: string, used: string, holding: (word: string) => object]>([
  ['its.tags', 'its.tags', (word) => ({ its: { tags: ['vip', word] } })],
  ['consents[].status', 'consents', (word) => ({ consents: [{ status: word }] })],
  ['unnamed (1)', 'unnamed (1)', (word) => ({ 'unnamed (1)': word })],
])('a value that opts out is pointed out unless it is used: %s', (unused, used, holding) => {
  const namesFor = (fields: string[]) => {
    const found = findUnusedOptOuts(fields);
    for (const word of ['', 'vip', 'Do Not Email']) found.add({ id: 1, ...holding(word) });
    return found.names();
  };
  expect(namesFor(['id'])).toEqual([unused]);
  expect(namesFor(['id', used])).toEqual([]);
});

describe('columns that look like an opt-out', () => {
  const notesOf = async (head: string, lines: MirroredOptions['lines'] = {}) => {
    const world = await mirrored({ lines });
    world.csv([head, '1,ann@example.com,yes,,x', ''].join('\n'));
    const { code, json } = await world.call('check', '--json');
    expect([code, json.ok]).toEqual([0, true]);
    const all: { what: string; level: string; found: string }[] = json.findings;
    const found = all.filter(({ what }) => what === 'contacts.unsubscribed');
    expect(found.map(({ level }) => level)).not.toContain('fail');
    return found.map((one) => one.found);
  };

  test.each(['unsubscribed', 'Newsletter abgemeldet', 'opt-out', 'désinscrit'])(
    'are pointed out if the configuration does not use them: %s',
    async (name) => {
      const [found] = await notesOf(`id,email,news,product,${name}`);
      expect(found).toContain(`"${name}" looks like an opt-out`);
    },
  );

  test.each([
    ['a text of each person', (at: number) => `no. ${at}`, 0],
    ['dates in words', (at: number) => `"Mar ${at + 1}, 2025 9:05 AM"`, 1],
    ['dates in words of another language', (at: number) => `${at + 1} Marzo 2025`, 1],
    ['times in digits', (at: number) => `202503121430${at + 10}`, 1],
  ])('are pointed out unless they hold a text of each person: %s', async (_, value, notes) => {
    const world = await mirrored({ lines: {} });
    const rows = Array.from(
      { length: 20 },
      (_, at) => `${at},p${at}@example.com,yes,,${value(at)}`,
    );
    world.csv(['id,email,news,product,Fecha de baja', ...rows, ''].join('\n'));
    const { json } = await world.call('check', '--json');
    const all: { what: string }[] = json.findings;
    expect(all.filter(({ what }) => what === 'contacts.unsubscribed')).toHaveLength(notes);
  });

  test('are not pointed out if the configuration uses them, or they only say why', async () => {
    const uses = { contacts: { unsubscribed: { field: 'unsubscribed', yes: ['x'] } } };
    expect(await notesOf('id,email,news,product,unsubscribed', uses)).toEqual([]);
    expect(await notesOf('id,email,news,product,unsubscribe_reason')).toEqual([]);
  });
});
