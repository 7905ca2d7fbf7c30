/** Records that go through a function before anything is read of them. */
import { describe, expect, test } from 'vitest';
import type { MapRecord } from '../../src/domain/record-mapping.ts';
import { mappedSource } from '../../src/sources/shared/mapped-source.ts';
import type { Source } from '../../src/sources/source.ts';
import { crm, people, sourceOf, status, type Reply } from '../support/sources/http-crm.ts';
import { errorOf, readAll } from '../support/sources/source-reading.ts';

const rename: MapRecord = ({ email, ...rest }) => ({ ...rest, mail: { address: email } });

async function mapped(map: MapRecord, options: object, ...replies: Reply[]): Promise<Source> {
  const { url } = await crm(...replies);
  const changes = { url: `${new URL(url).origin}/new?t={since}` };
  const { source } = sourceOf(url, { one: `${url}/{id}`, changes, ...options });
  return mappedSource(source, { name: 'map.ts', map, reads: ['email'] });
}

describe('a map', () => {
  test('makes the records, and their fields are those it returns', async () => {
    const source = await mapped(rename, {}, people(1, 2));
    const { values, certificate } = await readAll(source, ['id', 'mail.address']);
    expect(values).toEqual([
      { id: 1, mail: { address: 'p1@x.y' } },
      { id: 2, mail: { address: 'p2@x.y' } },
    ]);
    expect(certificate).toMatchObject({ complete: true, cursor: expect.any(String) });
    expect(source.still?.(certificate.reading)).toBe(true);
  });

  test('fails the reading when no record gets a requested field', async () => {
    const error = await errorOf(readAll(await mapped(rename, {}, people(1, 1)), ['id', 'email']));
    expect([error.name, error.message]).toEqual([
      'Invalid',
      'map.ts: after it no record has "email"; fields of the first one: "id", "mail.address"; correct the configuration or the CRM',
    ]);
  });

  test('cannot read what no record has', async () => {
    const error = await errorOf(readAll(await mapped(rename, {}, [{ id: 1 }]), ['id']));
    expect(error.message).toContain('no record has "email"');
  });

  test.each<[string, MapRecord, string]>([
    [
      'fails',
      () => {
        throw new TypeError('ann@example.com is wrong');
      },
      'is one on which contacts.map fails (TypeError)',
    ],
    ['gives nothing', () => JSON.parse('null'), 'is one for which contacts.map gives no record'],
    ['gives no record', () => JSON.parse('7'), 'is one for which contacts.map gives no record'],
    ['gives a list', () => JSON.parse('[1]'), 'is no JSON object'],
    ['gives a promise', async () => ({}), 'is one for which contacts.map gives no record'],
    ['gives a NUL', () => ({ id: 'a\0' }), 'holds a NUL character'],
  ])('leaves a broken record, and no certificate, when it %s', async (_, map, why) => {
    const some: MapRecord = (record) => (record['id'] === 2 ? map(record) : rename(record));
    const source = await mapped(some, {}, people(1, 3));
    const { values, broken, certificate } = await readAll(source, ['id']);
    expect(values.map(({ id }) => id)).toEqual([1, 3]);
    expect(broken).toMatchObject([{ where: 'page 1, record 2', broken: why }]);
    expect(JSON.stringify(broken)).not.toContain('ann@');
    expect(certificate).toMatchObject({
      complete: false,
      why: '1 record cannot be read, the first at page 1, record 2',
    });
    expect(certificate).not.toHaveProperty('cursor');
  });

  test('adds to what is wrong with the reading itself', async () => {
    const page = { number: 'p' };
    const source = await mapped(() => JSON.parse('null'), { page }, people(1, 1), status(400));
    const { certificate } = await readAll(source, ['id']);
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringMatching(/^reading stopped at page 2.*; 1 record cannot be read/),
    });
  });

  test('is applied to changes, and to a single record', async () => {
    const signal = new AbortController().signal;
    const source = await mapped(rename, {}, people(7, 1), { id: 7, email: 'e' }, status(410));
    const since = '2020-01-01T00:00:00Z';
    const reading = source.changes?.(since, { fields: ['id', 'nick'], signal });
    expect((await reading?.next())?.value).toMatchObject([
      { value: { id: 7, mail: { address: 'p7@x.y' }, nick: null } },
    ]);
    expect((await reading?.next())?.value).toMatchObject({ complete: true });
    const one = await source.one?.('7', { fields: ['id'], signal });
    expect(one).toMatchObject({ value: { id: 7, mail: { address: 'e' } } });
    const lost = source.changes?.(since, { fields: ['id'], signal });
    expect(await lost?.next()).toEqual({ done: true, value: 'lost' });
  });
});
