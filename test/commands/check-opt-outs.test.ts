/** `check` points out columns that look like an opt-out and that the configuration does not use. */
import { describe, expect, test } from 'vitest';
import { mirrored, type MirroredOptions } from '../support/commands/mirrored-contacts.ts';
import { findUnusedOptOuts } from '../../src/app/check/part-check.ts';

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

test.each([
  ['a text of each person', (at: number) => `no. ${at}`, []],
  ['dates in words of another language', (at: number) => `${at + 1} Marzo 2025`, ['Fecha de baja']],
])('a column that is named like an opt-out and holds %s', (_, value, names) => {
  const found = findUnusedOptOuts(['id']);
  for (let at = 0; at < 20; at += 1) found.add({ id: at, 'Fecha de baja': value(at) });
  expect(found.names()).toEqual(names);
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

  test('are not pointed out if the configuration uses them, or they only say why', async () => {
    const uses = { contacts: { unsubscribed: { field: 'unsubscribed', yes: ['x'] } } };
    expect(await notesOf('id,email,news,product,unsubscribed', uses)).toEqual([]);
    expect(await notesOf('id,email,news,product,unsubscribe_reason')).toEqual([]);
  });
});
