/** What is read of an organization when all goes well, and what the certificate depends on. */
import { describe, expect, test } from 'vitest';
import { errorOf, readAll } from '../../support/sources/source-reading.ts';
import {
  createOrg,
  NOW,
  onNet,
  changesOf,
  contact,
  contactId,
  cursorIn,
  lead,
  leadId,
  one,
  readFrom,
  sourceOf,
  fields,
} from '../../support/sources/salesforce-org.ts';

const people = (count: number) => Array.from({ length: count }, (_, at) => contact(at + 1));
const minute = 60_000;

describe('a reading', () => {
  test('follows all pages, in batches of 500, and is certified by the count', async () => {
    const org = createOrg({ Contact: people(4_500) });
    const { values, batches, certificate } = await readFrom(org);
    expect(new Set(values.map(({ Id }) => Id))).toHaveLength(4_500);
    expect(batches.map(({ length }) => length).slice(0, 5)).toEqual([500, 500, 500, 500, 500]);
    expect(certificate).toMatchObject({
      complete: true,
      reading: expect.stringMatching(/^salesforce-/),
    });
    expect(org.queries()).toEqual([
      'SELECT Id, IsDeleted, MasterRecordId, Email, HasOptedOutOfEmail FROM Contact ORDER BY Id',
    ]);
    expect(org.asked.map(({ path }) => path).filter((path) => path.includes('/query/'))).toEqual([
      '/services/data/v62.0/query/01g0-2000',
      '/services/data/v62.0/query/01g0-4000',
    ]);
  });

  test('gives the requested fields by name, times as ISO 8601, paths as written', async () => {
    const org = createOrg({
      Contact: [
        contact(1, {
          Account: { Name: 'Acme' },
          Stated__c: '2026-01-02T03:04:05.000+0000',
          Score__c: 4,
        }),
        contact(2, { Account: null }),
      ],
    });
    org.fields.Contact = ['Stated__c:datetime', 'Score__c:double'];
    const asked = ['Id', 'Email', 'Account.Name', 'Stated__c', 'Score__c', 'attributes.type'];
    const { values } = await readFrom(org, {}, asked);
    expect(values).toEqual([
      {
        attributes: { type: 'Contact' },
        Id: contactId(1),
        Email: 'c1@example.com',
        'Account.Name': 'Acme',
        Stated__c: '2026-01-02T03:04:05.000Z',
        Score__c: 4,
      },
      {
        attributes: { type: 'Contact' },
        Id: contactId(2),
        Email: 'c2@example.com',
        'Account.Name': null,
        Stated__c: null,
        Score__c: null,
      },
    ]);
  });

  test('does not ask one object for fields that only the other has', async () => {
    const org = createOrg({
      Contact: [contact(1, { Vip__c: true })],
      Lead: [lead(1, { Rating: 'Hot' })],
    });
    org.fields = { Contact: ['Vip__c:boolean'], Lead: ['Rating'] };
    const options = { objects: ['Contact', 'Lead'], where: "LastName != 'Hidden'" };
    const { values } = await readFrom(org, options, ['Id', 'Vip__c', 'Rating']);
    expect(values).toMatchObject([
      { Id: contactId(1), Vip__c: true, Rating: null },
      { Id: leadId(1), Vip__c: null, Rating: 'Hot', attributes: { type: 'Lead' } },
    ]);
    expect(org.queries()).toEqual([
      "SELECT Id, IsDeleted, MasterRecordId, Vip__c FROM Contact WHERE (LastName != 'Hidden') ORDER BY Id",
      "SELECT Id, IsDeleted, MasterRecordId, IsConverted, ConvertedContactId, Rating FROM Lead WHERE (LastName != 'Hidden') ORDER BY Id",
    ]);
  });

  test('is not certified when fewer come than are counted', async () => {
    const org = createOrg({ Contact: [contact(1), contact(2), contact(2)] });
    const { certificate } = await readFrom(org);
    expect(certificate).toMatchObject({
      complete: false,
      why: '2 different Contacts were read, and Salesforce counts 3',
    });
  });

  test('shows deleted records where a field tells, and otherwise omits them', async () => {
    const org = createOrg({ Contact: [contact(1), contact(2, { IsDeleted: true })] });
    const flagged = await readFrom(org);
    expect(flagged.values.map(({ IsDeleted }) => IsDeleted)).toEqual([false, true]);
    const { values, certificate } = await readAll(sourceOf().source, ['Id', 'Email']);
    expect(values.map(({ Id }) => Id)).toEqual([contactId(1)]);
    expect(certificate.complete).toBe(true);
  });

  test('may be empty, and holds for a quarter of an hour', async () => {
    const { source, clock, certificate } = await readFrom(createOrg());
    expect(certificate.complete).toBe(true);
    expect([certificate.reading, 'other'].map((name) => source.still(name))).toEqual([true, false]);
    await clock.sleep(15 * minute);
    expect(source.still(certificate.reading)).toBe(false);
  });
});

describe('fields', () => {
  test.each([
    ["Id FROM User WHERE Name != 'x", 'is no name of a Salesforce field'],
    ['Email)', 'is no name of a Salesforce field'],
    ['Emaill', 'Contact has no field "Emaill"; did you mean "Email" for "Emaill"? →'],
    ['hasoptedoutofemail', 'did you mean "HasOptedOutOfEmail"'],
    ['Acount.Name', 'did you mean "Account.Name" for "Acount.Name"?'],
    ['Zzzzzz__c', 'fields found: "Id", "Email"'],
  ])('with the name %s are never sent', async (field, words) => {
    const org = createOrg({ Contact: [contact(1)] });
    onNet(org);
    const error = await errorOf(readAll(sourceOf().source, ['Id', field]));
    expect(error.name).toBe('Invalid');
    expect(error.message).toContain(words);
    expect(org.queries()).toEqual([]);
  });
});

describe('changes', () => {
  test('start where the last reading began, by the clock of the organization', async () => {
    const org = createOrg({ Contact: people(3) });
    org.instead = ({ path }) => {
      if (path.includes('/queryAll')) org.nowMs = NOW + 30 * minute;
      return undefined;
    };
    const { source, certificate } = await readFrom(org);
    const cursor = cursorIn(certificate);
    expect(cursor).toMatch(/^2026-01-15T11:58:00Z [0-9a-f]{12}$/);
    org.records.Contact[1] = contact(2, {
      SystemModstamp: '2026-01-15T11:58:00.000+0000',
      HasOptedOutOfEmail: true,
    });
    org.records.Contact[2] = contact(3, {
      SystemModstamp: '2026-01-15T12:01:00.000+0000',
      IsDeleted: true,
    });
    const next = await changesOf(source, cursor);
    expect(next.values).toMatchObject([
      { Id: contactId(2), HasOptedOutOfEmail: true },
      { Id: contactId(3), IsDeleted: true },
    ]);
    expect(cursorIn(next.certificate)).toMatch(/^2026-01-15T12:28:00Z /);
    expect(org.queries()[1]).toMatch(
      / FROM Contact WHERE \(SystemModstamp >= 2026-01-15T11:58:00Z\) ORDER BY SystemModstamp, Id$/,
    );
  });

  test('never go back, whatever the overlap is', async () => {
    const org = createOrg({ Contact: [] });
    const { certificate } = await readFrom(org, { overlap: '30s' });
    const { source } = sourceOf({ overlap: '1h' });
    const cursor = cursorIn(certificate);
    expect(cursorIn((await changesOf(source, cursor)).certificate)).toBe(cursor);
  });

  test('take as many requests as there are pages', async () => {
    const org = createOrg({ Contact: people(5) });
    org.pageSize = 2;
    const { source, certificate } = await readFrom(org);
    org.asked.length = 0;
    const cursor = cursorIn(certificate);
    expect((await changesOf(source, cursor)).values).toEqual([]);
    expect(org.asked.map(({ path }) => path.replace(/\?.*/, ''))).toEqual([
      '/services/data/v62.0/sobjects/Contact/describe',
      '/services/data/v62.0/queryAll',
    ]);
  });

  test.each([
    ['a word', 'x'],
    ['something else', '2026-01-15T11:58:00Z 000000000000'],
    ['nothing', ''],
  ])('since %s are lost', async (_, cursor) => {
    onNet(createOrg());
    expect((await changesOf(sourceOf().source, cursor)).certificate).toBe('lost');
  });

  test('are lost with other fields, objects or conditions, and after two weeks', async () => {
    const org = createOrg({ Contact: [contact(1)] });
    const { source, certificate } = await readFrom(org);
    const cursor = cursorIn(certificate);
    const lost = async (options: object, asked = fields) =>
      (await changesOf(sourceOf(options).source, cursor, asked)).certificate;
    expect(await lost({})).toMatchObject({ complete: true });
    expect(await lost({}, ['Id'])).toBe('lost');
    expect(await lost({ objects: ['Contact', 'Lead'] })).toBe('lost');
    expect(await lost({ where: "LastName != 'Hidden'" })).toBe('lost');
    org.nowMs += 15 * 24 * 60 * minute;
    expect((await changesOf(source, cursor)).certificate).toBe('lost');
  });
});

describe('a single record', () => {
  test('is read by either form of its id, and its object is described once', async () => {
    const org = createOrg({ Contact: [contact(1), contact(2)] });
    onNet(org);
    const { source } = sourceOf();
    const long = contactId(2);
    for (const id of [long, long.slice(0, 15)]) {
      expect(await one(source, id)).toMatchObject({ value: { Id: long, Email: 'c2@example.com' } });
    }
    expect(org.asked).toHaveLength(4);
    expect(org.queries()[1]).toMatch(new RegExp(`FROM Contact WHERE \\(Id IN \\('${long}'\\)\\)$`));
  });

  test('describes its object again for other fields, and after ten minutes', async () => {
    const org = createOrg({ Contact: [contact(1)] });
    onNet(org);
    const { source, clock } = sourceOf();
    const described = () => org.asked.filter(({ path }) => path.endsWith('/describe')).length;
    await one(source, contactId(1));
    await one(source, contactId(1), ['Id']);
    expect(described()).toBe(2);
    await clock.sleep(10 * minute);
    await one(source, contactId(1), ['Id']);
    expect(described()).toBe(3);
  });

  test('is nobody for an invalid id, another object, or a record outside `where`', async () => {
    const org = createOrg({ Contact: [contact(1, { LastName: 'Hidden' })], Lead: [lead(1)] });
    onNet(org);
    const { source } = sourceOf({ where: "LastName != 'Hidden'" });
    const swapped = contactId(1).toLowerCase();
    const ids = [
      '',
      '..',
      "003' OR Id != '",
      swapped,
      leadId(1),
      '0015g00000AAAA1',
      contactId(1),
      contactId(9),
    ];
    for (const id of ids) expect(await one(source, id)).toBeUndefined();
    expect(org.queries()).toHaveLength(2);
  });

  test('is shown as deleted where a field tells', async () => {
    onNet(createOrg({ Contact: [contact(1, { IsDeleted: true })] }));
    const { source } = sourceOf();
    expect(await one(source, contactId(1))).toMatchObject({ value: { IsDeleted: true } });
    expect(await one(source, contactId(1), ['Id', 'Email'])).toBeUndefined();
  });
});
