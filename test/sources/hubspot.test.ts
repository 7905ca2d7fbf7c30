/** The contacts of a HubSpot account, as they are read, and as they change while they are. */
import { describe, expect, test } from 'vitest';
import {
  Account,
  changesOf,
  cursorOf,
  fields,
  sourceOf,
  valuesOf,
} from '../support/sources/hubspot-account.ts';
import { readAll, WRITTEN } from '../support/sources/source-reading.ts';

const minute = 60_000;
const time = (ms: number) => new Date(ms).toISOString();
const signal = new AbortController().signal;

async function account(count = 0) {
  const hubspot = await new Account().open();
  for (let id = 1; id <= count; id += 1) hubspot.put(id, `p${id}@x.y`);
  return { hubspot, ...sourceOf(hubspot.url) };
}

const said = (values: readonly Record<string, unknown>[]) =>
  values.map(({ id, archived, properties }) => {
    const { email, newsletter } = Object(properties);
    return [id, email, newsletter, archived];
  });

/** More properties than an address can hold. */
function longNames({ names }: Account): string[] {
  const many = Array.from({ length: 200 }, (_, at) => `a_property_with_a_long_name_${at}`);
  names.push(...many);
  return many;
}

describe('a full reading', () => {
  test('lists everybody there, and then the archived', async () => {
    const { hubspot, source } = await account(250);
    for (let id = 101; id <= 220; id += 1) hubspot.archive(id);
    const { values, batches, certificate } = await readAll(source, fields);
    expect(values).toHaveLength(250);
    expect(batches.map(({ length }) => length)).toEqual([100, 30, 100, 20]);
    expect(values.filter(({ archived }) => archived).map(({ id }) => id)).toEqual(
      Array.from({ length: 120 }, (_, at) => String(at + 101)),
    );
    expect(hubspot.asked).toEqual(['properties/contacts', ...Array(4).fill('objects/contacts')]);
    expect(certificate).toMatchObject({ complete: true, cursor: time(WRITTEN - 2 * minute) });
  });

  test('gives a contact as HubSpot does, with the requested properties', async () => {
    const { hubspot, source } = await account();
    hubspot.put(7, 'ann@x.y', null);
    const { records } = await readAll(source, fields);
    const at = time(WRITTEN);
    const properties = { email: 'ann@x.y', newsletter: null };
    const value = { id: '7', createdAt: at, updatedAt: at, archived: false, properties };
    expect(records).toEqual([{ where: 'contact 7', value }]);
  });

  test('reads more properties than an address can hold, of the archived and of one, too', async () => {
    const { hubspot, source } = await account(150);
    hubspot.archive(7);
    hubspot.merge([8, 9], 151);
    const many = longNames(hubspot);
    const all = [...fields, ...many.map((name) => `properties.${name}`)];
    const found = await readAll(source, all);
    const short = await readAll(source, fields);
    expect(said(found.values)).toEqual(said(short.values));
    expect(found.certificate.complete).toBe(true);
    expect(found.values[0]?.['properties']).toHaveProperty('a_property_with_a_long_name_199', null);
    const one = await source.one?.('7', { fields: all, signal });
    expect(one).toMatchObject({ value: { id: '7', archived: true } });
    expect(await source.one?.('999', { fields: all, signal })).toBeUndefined();
  });

  test('loses no contact by whose id HubSpot cannot be asked', async () => {
    const { hubspot, source } = await account(1);
    hubspot.put('1.5', 'odd@x.y');
    const all = [...fields, ...longNames(hubspot).map((name) => `properties.${name}`)];
    expect((await readAll(source, all)).values.map(({ id }) => id)).toEqual(['1', '1.5']);
  });

  test('may be empty, and is complete', async () => {
    const { source } = await account();
    expect(await readAll(source, fields)).toMatchObject({
      records: [],
      certificate: { complete: true },
    });
  });

  test.each([
    ['before the contact was reached', 150, 2],
    ['after the contact was reached', 50, 2],
    ['when all who are there were read', 150, 3],
  ])('finds contacts archived %s', async (_, id, page) => {
    const { hubspot, source } = await account(180);
    hubspot.before = (_name, count) => count === page + 1 && hubspot.archive(id);
    const { values, certificate } = await readAll(source, fields);
    const found = values.filter((value) => value['id'] === String(id));
    expect(found.at(-1)?.['archived']).toBe(true);
    expect(new Set(values.map((value) => value['id']))).toHaveLength(180);
    expect(certificate.complete).toBe(true);
  });

  test('begins by the clock of HubSpot, early enough that nothing is missed after it', async () => {
    const { hubspot, clock } = await account(150);
    const { source } = sourceOf(hubspot.url, { overlap: '5m' });
    await clock.sleep(3 * 24 * 60 * minute);
    hubspot.before = () => void (hubspot.now += minute);
    const { certificate } = await readAll(source, fields);
    expect(cursorOf(certificate)).toBe(time(WRITTEN + minute - 5 * minute));
  });
});

describe('a merged contact', () => {
  test('comes under the id of each loser too, in both spellings', async () => {
    const { hubspot, source } = await account(4);
    hubspot.merge([1, 2]);
    hubspot.merge([3, 4], 9);
    const other = hubspot.put(5, 'eve@x.y').contacts.get('5');
    Object.assign(other?.properties ?? {}, { hs_calculated_merged_vids: '6:1700000;8:1800000' });
    const { records } = await readAll(source, fields);
    expect(said(valuesOf(records)).map(([id, email]) => [id, email])).toEqual([
      ['1', 'p1@x.y'],
      ['2', 'p1@x.y'],
      ['5', 'eve@x.y'],
      ['6', 'eve@x.y'],
      ['8', 'eve@x.y'],
      ['9', 'p3@x.y'],
      ['3', 'p3@x.y'],
      ['4', 'p3@x.y'],
    ]);
    expect(records[1]?.where).toBe('contact 2, merged into 1');
  });

  test('is found among changes, and by the id of a loser', async () => {
    const { hubspot, source } = await account(3);
    hubspot.now += 10 * minute;
    hubspot.merge([1, 2]);
    const { values } = await changesOf(source, time(WRITTEN + minute));
    expect(said(values)).toEqual([
      ['1', 'p1@x.y', 'true', false],
      ['2', 'p1@x.y', 'true', false],
    ]);
    const loser = await source.one?.('2', { fields, signal });
    expect(loser).toMatchObject({ value: { id: '2', properties: { email: 'p1@x.y' } } });
  });

  test('is read as the winner while the search still names the loser', async () => {
    const { hubspot, source } = await account(2);
    hubspot.freezeIndex();
    hubspot.merge([1, 2]);
    const { values, certificate } = await changesOf(source, time(WRITTEN));
    expect(new Set(said(values).map(([id, email]) => `${id} ${email}`))).toEqual(
      new Set(['1 p1@x.y', '2 p1@x.y']),
    );
    expect(certificate).toMatchObject({ complete: true });
  });
});

describe('changes', () => {
  test('since a reading, and nothing else', async () => {
    const { hubspot, source } = await account(300);
    const first = cursorOf((await readAll(source, fields)).certificate);
    hubspot.now += 10 * minute;
    const quiet = await changesOf(source, first);
    // All were made within the overlap of the first reading.
    expect(quiet.values).toHaveLength(300);
    hubspot.put(7, 'seven@x.y', 'false').put(301, 'new@x.y');
    hubspot.asked.length = 0;
    const { values, certificate } = await changesOf(source, cursorOf(quiet.certificate));
    expect(said(values)).toEqual([
      ['7', 'seven@x.y', 'false', false],
      ['301', 'new@x.y', 'true', false],
    ]);
    expect(hubspot.asked).toEqual(['properties/contacts', 'search', 'batch/read']);
    expect(cursorOf(certificate)).toBe(time(WRITTEN + 8 * minute));
  });

  test('never move the cursor back', async () => {
    const { hubspot, source } = await account();
    hubspot.now += minute;
    const since = time(WRITTEN + 30_000);
    expect(cursorOf((await changesOf(source, since)).certificate)).toBe(since);
  });

  test.each(['', 'yesterday', time(WRITTEN + 1000)])('since %j are lost', async (since) => {
    const { source } = await account(1);
    expect(await changesOf(source, since)).toMatchObject({ records: [], certificate: 'lost' });
  });

  test('can be more than HubSpot answers to one search, all in one millisecond', async () => {
    const { hubspot, source } = await account(10_250);
    const { values, certificate } = await changesOf(source, time(WRITTEN));
    expect(new Set(values.map(({ id }) => id))).toHaveLength(10_250);
    expect(values).toHaveLength(10_250);
    expect(certificate).toMatchObject({ complete: true });
    expect(hubspot.asked.filter((name) => name === 'search')).toHaveLength(103);
  });

  test('during the reading hide nobody', async () => {
    const { hubspot, source } = await account(250);
    hubspot.before = (name) => {
      if (name !== 'search') return;
      hubspot.now += 1;
      hubspot.put(5, 'again@x.y').put(120, 'again@x.y');
    };
    const { values } = await changesOf(source, time(WRITTEN));
    expect(new Set(values.map(({ id }) => id))).toHaveLength(250);
  });

  test('are read by id, so that an outdated search result does not matter', async () => {
    const { hubspot, source } = await account(2);
    hubspot.freezeIndex();
    hubspot.put(1, 'p1@x.y', 'false');
    const { values } = await changesOf(source, time(WRITTEN));
    expect(said(values)).toEqual([
      ['1', 'p1@x.y', 'false', false],
      ['2', 'p2@x.y', 'true', false],
    ]);
  });

  test('include contacts archived since, and not those erased since', async () => {
    const { hubspot, source } = await account(3);
    hubspot.freezeIndex();
    hubspot.archive(1);
    hubspot.contacts.delete('2');
    const { values, certificate } = await changesOf(source, time(WRITTEN));
    expect(said(values)).toEqual([
      ['3', 'p3@x.y', 'true', false],
      ['1', 'p1@x.y', 'true', true],
    ]);
    expect(certificate).toMatchObject({ complete: true });
    expect(hubspot.asked.filter((name) => name === 'batch/read')).toHaveLength(2);
  });
});

describe('a single contact', () => {
  test('is read by its id, archived or not, and by nothing else', async () => {
    const { hubspot, source } = await account(2);
    hubspot.archive(2);
    const one = async (id: string) => source.one?.(id, { fields, signal });
    expect(await one('1')).toMatchObject({
      where: 'contact 1',
      value: { id: '1', archived: false, properties: { email: 'p1@x.y' } },
    });
    expect(await one('2')).toMatchObject({ value: { id: '2', archived: true } });
    expect(await one('3')).toBeUndefined();
    for (const odd of ['', '.', '..', 'a/b', '01', 'search', '1?x']) {
      expect(await one(odd)).toBeUndefined();
    }
    // The properties are looked up once in a while.
    expect(hubspot.asked).toEqual(['properties/contacts', '1', '2', '2', '3', '3']);
  });

  test('is not read by properties that HubSpot no longer has', async () => {
    const { hubspot, source, clock } = await account(1);
    await source.one?.('1', { fields, signal });
    hubspot.names = ['email'];
    await clock.sleep(15 * minute);
    await expect(source.one?.('1', { fields, signal })).rejects.toThrow(/no property "newsletter"/);
  });
});
