/** A real Tryton as a source; skipped where there is none. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Source } from '../../src/sources/source.ts';
import { anyTryton, type TestTryton } from '../support/tryton.ts';
import { allOf, errorOf, readAll } from '../support/sources/source-reading.ts';
import { partiesOf, person, sourceIn, type Parties } from '../support/sources/tryton-parties.ts';

const MANY = 2_000;
const fields = ['id', 'email', 'emails', 'name', 'lang', 'categories', 'inactive', 'write_date'];
const signal = new AbortController().signal;
const tryton = await anyTryton();
/** Stands there where all is skipped. */
const absent: TestTryton = {
  access: { url: 'http://127.0.0.1', database: 'none', username: 'nobody', password: 'none' },
  call: async () => Promise.reject(new Error('there is no Tryton')),
  close: async () => undefined,
};

const read = async (source: Source) => {
  const { values, certificate } = await readAll(source, fields);
  if (!certificate.complete) throw new Error(certificate.why);
  const byId = new Map(values.map((value) => [Number(value['id']), value]));
  return { values, byId, certificate, cursor: certificate.cursor ?? '' };
};
/** Who changed since that moment; undefined: that cannot be told any more. */
const changed = async (source: Required<Source>, cursor: string, since: string) => {
  const at = cursor.replace(/^\S+/, since);
  const { values, certificate } = await allOf(source.changes(at, { fields, signal }));
  if (certificate === 'lost') return undefined;
  expect(certificate.complete).toBe(true);
  return new Map(values.map((value) => [Number(value['id']), value]));
};
const one = async (source: Required<Source>, id: number) => {
  const record = await source.one(String(id), { fields, signal });
  return record && ('value' in record ? record.value : record);
};

describe.skipIf(!tryton)('a Tryton', () => {
  const { access, call, close } = tryton ?? absent;
  const parties: Parties = partiesOf({ access, call, close });
  const source = sourceIn(access, { overlap: '1h' });
  let newsletter: number;
  let many: number[];
  let others: number;

  beforeAll(async () => {
    others = await call('model.party.party.search_count', []);
    const [first = 0] = await parties.categories('Newsletter', 'Mail, by post');
    newsletter = first;
    many = await parties.create(
      Array.from({ length: MANY }, (_, at) =>
        person(`Person ${at}`, `p${at}@example.com`, {
          categories: at % 2 === 0 ? [['add', [newsletter]]] : [],
        }),
      ),
    );
  });
  afterAll(close);

  test('lists all its parties, also those never changed', async () => {
    const { batches, certificate } = await readAll(source, fields);
    expect(certificate).toMatchObject({ complete: true });
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(500);
    const { values } = await read(source);
    expect(values).toHaveLength(others + MANY);
    const ours = values.slice(others);
    expect(new Set(ours.map(({ write_date }) => write_date))).toEqual(new Set([null]));
    expect(ours.slice(0, 2)).toMatchObject([
      { id: String(many[0]), email: 'p0@example.com', categories: 'Newsletter', inactive: false },
      { id: String(many[1]), email: 'p1@example.com', categories: '', inactive: false },
    ]);
  });

  test('lists a party whose address was edited, which does not change the party', async () => {
    const { cursor } = await read(source);
    const [id = 0] = await parties.create([person('Ann', 'ann@example.com')]);
    await parties.readdress('ann@example.com', { value: 'ann@example.org' });
    const { changed: touched, mechanism } = await parties.times(id);
    expect(touched).toBeNull();
    const found = await changed(source, cursor, mechanism ?? '');
    expect(found?.get(id)).toMatchObject({ email: 'ann@example.org' });
    expect(found?.size).toBe(1);
  });

  test('lists new parties, with the requested fields', async () => {
    const { cursor } = await read(source);
    const [post = 0] = await call('model.party.category.search', [['name', '=', 'Mail, by post']]);
    const [german] = await call('model.ir.lang.search', [['code', '=', 'de']]);
    const bob = person('Bob', ['bob@example.com', 'bob@example.org'], {
      lang: german,
      categories: [['add', [post, newsletter]]],
    });
    const [id = 0] = await parties.create([bob]);
    const { made } = await parties.times(id);
    const found = await changed(source, cursor, made);
    expect(found?.get(id)).toEqual({
      id: String(id),
      name: 'Bob',
      active: true,
      inactive: false,
      email: 'bob@example.com',
      emails: 'bob@example.com,bob@example.org',
      lang: 'de',
      // A comma within a name would make two of it.
      categories: 'Mail; by post,Newsletter',
      write_date: null,
    });
    expect(await one(source, id)).toEqual(found?.get(id));
  });

  test('lists inactive parties too, by an inactive address where there is no other', async () => {
    const { cursor } = await read(source);
    const [cid = 0] = await parties.create([person('Cid', ['cid@example.com', 'cid@example.org'])]);
    await parties.readdress('cid@example.com', { active: false });
    const { mechanism } = await parties.times(cid);
    const other = { active: true, email: 'cid@example.org', emails: 'cid@example.org' };
    expect((await changed(source, cursor, mechanism ?? ''))?.get(cid)).toMatchObject(other);
    expect(await one(source, cid)).toMatchObject(other);
    await parties.readdress('cid@example.org', { active: false });
    expect(await one(source, cid)).toMatchObject({ email: null, emails: '' });
    await parties.write(cid, { active: false });
    const gone = { id: String(cid), active: false, inactive: true, email: 'cid@example.com' };
    expect((await read(source)).byId.get(cid)).toMatchObject(gone);
    const { changed: since } = await parties.times(cid);
    expect((await changed(source, cursor, since ?? ''))?.get(cid)).toMatchObject(gone);
    expect(await one(source, cid)).toMatchObject(gone);
  });

  test('lists a replaced party as the one that replaced it, and so on', async () => {
    const dan = (n: number) => person('Dan', `dan${n}@example.com`);
    const [first = 0, second = 0, third = 0] = await parties.create([dan(1), dan(2), dan(3)]);
    const { cursor } = await read(source);
    await parties.merge(third, second);
    await parties.merge(second, first);
    const { byId } = await read(source);
    for (const id of [first, second, third]) {
      const kept = { id: String(id), email: 'dan1@example.com', inactive: false };
      expect(byId.get(id)).toMatchObject(kept);
      expect(await one(source, id)).toMatchObject(kept);
    }
    // Of the kept one alone something changes.
    await parties.readdress('dan1@example.com', { value: 'dan@example.org' });
    const { mechanism } = await parties.times(first);
    const found = await changed(source, cursor, mechanism ?? '');
    expect([...(found?.keys() ?? [])]).toEqual([first, second, third]);
    expect(found?.get(third)).toMatchObject({ email: 'dan@example.org' });
  });

  test('ends where two parties have replaced each other', async () => {
    const eve = person('Eve', ['eve@example.com']);
    const [a = 0, b = 0] = await parties.create([eve, eve]);
    await parties.merge(a, b);
    await parties.merge(b, a);
    const { byId } = await read(source);
    // All addresses have come to the first of them.
    expect(byId.get(a)).toMatchObject({ inactive: true, email: 'eve@example.com' });
    expect(byId.has(b)).toBe(false);
  });

  test('omits erased and deleted parties', async () => {
    const fay = (n: number) => person('Fay', `fay${n}@example.com`);
    const [erased = 0, deleted = 0] = await parties.create([fay(1), fay(2)]);
    await parties.write(erased, { active: false });
    await parties.erase(erased);
    await parties.remove(deleted);
    const { byId } = await read(source);
    expect([byId.has(erased), byId.has(deleted)]).toEqual([false, false]);
    expect([await one(source, erased), await one(source, deleted)]).toEqual([undefined, undefined]);
  });

  test('is read to its end while parties come and go', async () => {
    const reading = source.read({ fields, signal });
    await reading.next();
    const [late = 0] = await parties.create([person('Gil', 'gil@example.com')]);
    await parties.remove(many.pop() ?? 0);
    await parties.remove(many.pop() ?? 0);
    const { values, certificate } = await allOf(reading);
    expect(certificate.complete).toBe(true);
    expect(values.map(({ id }) => id)).toContain(String(late));
  });

  test('drops the cursor when a category was renamed, or others are configured', async () => {
    const { cursor } = await read(source);
    const now = new Date().toISOString();
    expect(await changed(source, cursor, now)).toBeDefined();
    const other = await allOf(source.changes(cursor, { fields: ['email'], signal }));
    expect(other.certificate).toBe('lost');
    await call('model.party.category.write', [newsletter], { name: 'News' });
    expect(await changed(source, cursor, now)).toBeUndefined();
    await call('model.party.category.write', [newsletter], { name: 'Newsletter' });
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    expect(await changed(source, cursor, ahead)).toBeUndefined();
  });

  test('is logged into again when the session has ended', async () => {
    const username = 'mirror';
    const password = 'only reading 7';
    const [user] = await call('model.res.user.create', [{ name: 'M', login: username, password }]);
    const reader = sourceIn({ ...access, username, password });
    const known = await one(reader, many[0] ?? 0);
    expect(known).toMatchObject({ email: 'p0@example.com' });
    // This ends them all.
    await call('model.res.user.write', [user], { password });
    expect(await one(reader, many[0] ?? 0)).toEqual(known);
  });

  test.each([
    [{ password: 'wrong' }, fields, 'refused the credentials (401)'],
    [{ database: 'none' }, fields, 'opens no database "none"'],
    [
      {},
      ['e_mail'],
      'a party has no field "e_mail" that this user may read; did you mean "email"?',
    ],
    [{}, ['addresses'], 'the field "addresses" of a party is no single value (one2many)'],
  ])('reports what is wrong with %j', async (wrong, names, what) => {
    const error = await errorOf(readAll(sourceIn(access, wrong), names));
    expect(error.name).toBe('Invalid');
    expect(error.message).toContain(what);
    expect(error.message).not.toContain(access.password);
  });
});
