import { describe, expect, test } from 'vitest';
import { NOON, stage } from '../support/emulator/emulator-stage.ts';

function withAnn() {
  const platform = stage();
  platform.seed.contact({
    id: 'con_ann',
    email: 'ann@example.org',
    firstName: 'Ann',
    lastName: 'Lee',
    properties: { plan: 'pro' },
    groups: [{ id: 'grp_1', name: 'Friends' }],
    channels: { ch_news: 'opt_out' },
  });
  return platform;
}

/** Contacts p0 to p(count-1), a second apart, so that the last is the newest. */
function withPeople(count: number) {
  const platform = stage();
  for (let index = 0; index < count; index += 1) {
    platform.seed.contact({ id: `p${index}`, email: `p${index}@example.org` });
    platform.pass(1000);
  }
  return platform;
}

function ids(json: { contacts: { id: string }[] }): string[] {
  return json.contacts.map(({ id }) => id);
}

describe('GET /api/contacts/list', () => {
  test('gives 100 by default, newest first, and pages of what is asked for', () => {
    const platform = withPeople(120);
    const first = platform.ask('GET /api/contacts/list').json;
    expect(first.contacts).toHaveLength(100);
    expect(first).toMatchObject({ total: 120, page: 1, limit: 100 });
    expect(ids(first).slice(0, 2)).toEqual(['p119', 'p118']);
    const third = platform.ask('GET /api/contacts/list?page=3&limit=50').json;
    expect(third).toMatchObject({ total: 120, page: 3, limit: 50 });
    expect(ids(third)).toHaveLength(20);
    expect(ids(third).at(-1)).toBe('p0');
  });

  test('sorts by createdAt, not by when a row was added', () => {
    const platform = withPeople(2);
    platform.seed.contact({ id: 'old', email: 'old@example.org', createdAt: NOON - 1 });
    platform.seed.contact({ id: 'between', email: 'between@example.org', createdAt: NOON + 500 });
    expect(ids(platform.ask('GET /api/contacts/list').json)).toEqual([
      'p1',
      'between',
      'p0',
      'old',
    ]);
  });

  test('shifts later pages when a contact is added or removed between two requests', () => {
    const platform = withPeople(4);
    expect(ids(platform.ask('GET /api/contacts/list?limit=2').json)).toEqual(['p3', 'p2']);
    platform.ask('POST /api/contacts/channel/ch_news', { email: 'new@example.org' });
    expect(ids(platform.ask('GET /api/contacts/list?limit=2&page=2').json)).toEqual(['p2', 'p1']);
    platform.ask('DELETE /api/contacts/p3');
    platform.ask('DELETE /api/contacts/p2');
    expect(ids(platform.ask('GET /api/contacts/list?limit=2&page=2').json)).toEqual(['p0']);
  });

  test('searches a part of the email in any case, and nothing but the email', () => {
    const platform = stage();
    platform.seed.contact({ id: 'a', email: 'Ann.Lee@Example.org' });
    platform.seed.contact({ id: 'b', email: 'bob@example.org', firstName: 'Ann' });
    expect(ids(platform.ask('GET /api/contacts/list?search=ANN').json)).toEqual(['a']);
    expect(ids(platform.ask('GET /api/contacts/list?search=lee%40ex').json)).toEqual(['a']);
    expect(ids(platform.ask('GET /api/contacts/list?search=example').json)).toEqual(['b', 'a']);
    expect(ids(platform.ask('GET /api/contacts/list?search=').json)).toEqual(['b', 'a']);
  });

  test.each(['%25', '_', 'a%25n'])('knows no wildcards: %s', (search) => {
    const { json } = withAnn().ask(`GET /api/contacts/list?search=${search}`);
    expect(json).toMatchObject({ contacts: [], total: 0 });
  });

  test('pages through what a search finds', () => {
    const platform = withPeople(25);
    const { json } = platform.ask('GET /api/contacts/list?search=p1&limit=4&page=3');
    expect(json).toMatchObject({ total: 11, page: 3, limit: 4 });
    expect(ids(json)).toEqual(['p11', 'p10', 'p1']);
  });
});

describe('GET /api/contacts/retrieve/{contact_id}', () => {
  test('decodes the id', () => {
    const platform = stage();
    platform.seed.contact({ id: 'a/b c', email: 'odd@example.org' });
    expect(platform.ask('GET /api/contacts/retrieve/a%2Fb%20c').json.id).toBe('a/b c');
  });
});

describe('DELETE /api/contacts/{contact_id}', () => {
  test('forgets the person: a new contact of the address is subscribed, and in no channel', () => {
    const platform = withAnn();
    platform.dashboard.unsubscribe('con_ann');
    platform.ask('DELETE /api/contacts/con_ann');
    const { json } = platform.ask('POST /api/contacts/channel/ch_product', {
      email: 'ann@example.org',
    });
    expect(json.contact.id).not.toBe('con_ann');
    expect(json.contact).toMatchObject({
      status: 'subscribed',
      firstName: '',
      channels: [{ id: 'ch_product', name: 'Product updates', subscription: 'opt_in' }],
    });
  });
});
