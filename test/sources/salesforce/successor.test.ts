/** The successor of a record that was merged into another, or of a lead that was converted. */
import { describe, expect, test } from 'vitest';
import { compile } from '../../../src/config/schema/cel-condition.ts';
import { readAll } from '../../support/sources/source-reading.ts';
import {
  createOrg,
  onNet,
  changesOf,
  contact,
  contactId,
  cursorIn,
  fields,
  lead,
  leadId,
  one,
  readFrom,
  sourceOf,
} from '../../support/sources/salesforce-org.ts';

/** The nth contact, merged into another. */
const merged = (n: number, into: number, rest: object = {}) =>
  contact(n, { IsDeleted: true, MasterRecordId: contactId(into), ...rest });
const converted = (n: number, into: number, rest: object = {}) =>
  lead(n, { IsConverted: true, ConvertedContactId: contactId(into), ...rest });
const both = { objects: ['Contact', 'Lead'] };
const out = { HasOptedOutOfEmail: true };

/** Lists each record: person, address, opted out of all mail, deleted. */
function said(values: Record<string, unknown>[]) {
  return values.map(({ Id, Email, HasOptedOutOfEmail, IsDeleted }) => {
    return [Id, Email, HasOptedOutOfEmail && 'out', IsDeleted && 'gone'].filter(Boolean).join(' ');
  });
}

describe('a merged record', () => {
  test('comes as the one that was kept, with the opt-out of either', async () => {
    const Contact = [
      contact(1),
      contact(2, out),
      merged(3, 1),
      merged(4, 1, out),
      merged(5, 2),
      merged(6, 6_000),
    ];
    const { values, certificate } = await readFrom(createOrg({ Contact }));
    expect(said(values)).toEqual([
      `${contactId(1)} c1@example.com`,
      `${contactId(2)} c2@example.com out`,
      `${contactId(3)} c1@example.com`,
      `${contactId(4)} c1@example.com out`,
      `${contactId(5)} c2@example.com out`,
      `${contactId(6)} c6@example.com gone`,
    ]);
    expect(certificate.complete).toBe(true);
  });

  test('is followed through further merges, and an opt-out on the way counts', async () => {
    const Contact = [merged(1, 2), merged(2, 3, out), merged(3, 4), contact(4)];
    const { values } = await readFrom(createOrg({ Contact }));
    expect(said(values)).toEqual([
      `${contactId(1)} c4@example.com out`,
      `${contactId(2)} c4@example.com out`,
      `${contactId(3)} c4@example.com`,
      `${contactId(4)} c4@example.com`,
    ]);
  });

  test('is deleted when its successor is deleted', async () => {
    const Contact = [merged(1, 2, out), contact(2, { IsDeleted: true })];
    const org = createOrg({ Contact });
    const { source, values } = await readFrom(org);
    expect(said(values)).toEqual([
      `${contactId(1)} c2@example.com out gone`,
      `${contactId(2)} c2@example.com gone`,
    ]);
    expect((await readAll(source, ['Id', 'Email'])).values).toEqual([]);
  });

  test('in a circle, or through too many merges, is deleted', async () => {
    const chain = Array.from({ length: 15 }, (_, at) => merged(10 + at, 11 + at));
    const Contact = [merged(1, 2), merged(2, 1), merged(3, 3), ...chain, contact(25)];
    const org = createOrg({ Contact });
    const { source, values } = await readFrom(org);
    const lines = said(values);
    expect(lines.slice(0, 3)).toEqual(
      [1, 2, 3].map((n) => `${contactId(n)} c${n}@example.com gone`),
    );
    expect(lines[3]).toBe(`${contactId(10)} c10@example.com gone`);
    expect(lines.at(-2)).toBe(`${contactId(24)} c25@example.com`);
    expect(await one(source, contactId(1))).toMatchObject({ value: { IsDeleted: true } });
  });

  test('has its successors on other pages looked up together', async () => {
    const Contact = [
      contact(1),
      contact(2),
      merged(3, 1),
      merged(4, 2),
      merged(5, 4),
      merged(6, 7),
      contact(7),
    ];
    const org = createOrg({ Contact });
    org.pageSize = 2;
    const { values } = await readFrom(org);
    expect(said(values).map((line) => line.split(' ')[1])).toEqual(
      [1, 2, 1, 2, 2, 7, 7].map((n) => `c${n}@example.com`),
    );
    const asked = org.queries().filter((query) => query.includes('Id IN'));
    expect(asked.map((query) => query.match(/'/g)?.length)).toEqual([4, 4, 2]);
  });

  test('is read singly in the same way, and only within `where`', async () => {
    const org = createOrg({ Contact: [merged(1, 2, out), contact(2, { LastName: 'Hidden' })] });
    onNet(org);
    const { value } = (await one(sourceOf().source, contactId(1))) as { value: object };
    expect(value).toMatchObject({
      Id: contactId(1),
      Email: 'c2@example.com',
      HasOptedOutOfEmail: true,
    });
    const { source } = sourceOf({ where: "LastName != 'Hidden'" });
    expect(await one(source, contactId(1))).toMatchObject({
      value: { Id: contactId(1), Email: 'c1@example.com', IsDeleted: true },
    });
  });

  test('keeps the opt-out of a field of one’s own', async () => {
    const Contact = [contact(1, { No_Mail__c: 'no' }), merged(2, 1, { No_Mail__c: 'yes' })];
    const org = createOrg({ Contact });
    org.fields.Contact = ['No_Mail__c'];
    onNet(org);
    const noMail = async (field?: string) => {
      const says = (value: unknown) => (value === 'yes' ? 'yes' : 'no');
      const { source } = sourceOf({}, ...(field === undefined ? [] : [{ field, says } as const]));
      return (await readAll(source, ['Id', 'No_Mail__c'])).values.map(
        (value) => value['No_Mail__c'],
      );
    };
    expect(await noMail('No_Mail__c')).toEqual(['no', 'yes']);
    expect(await noMail()).toEqual(['no', 'no']);
  });

  test('keeps the opt-out of each of several fields and conditions', async () => {
    const names = ['No_Mail__c', 'Left__c', 'Mood__c', 'Group__c'];
    const none = { No_Mail__c: 'no', Left__c: 'no', Mood__c: 'fine', Group__c: '1' };
    const Contact = [
      contact(1, none),
      merged(2, 1, { ...none, Left__c: 'yes' }),
      merged(3, 1, { ...none, Group__c: '2' }),
      merged(4, 1, none),
      // Whether this one is out cannot be read, so it speaks for itself.
      merged(5, 1, { ...none, Group__c: '?' }),
    ];
    const org = createOrg({ Contact });
    org.fields.Contact = names;
    onNet(org);
    const says = (value: unknown) => (value === 'yes' ? 'yes' : 'no');
    const whens = ['record.Mood__c == "angry"', 'int(record.Group__c) > 1'].flatMap((text) => {
      const when = compile(text, { nullable: false });
      return 'judge' in when ? [{ when }] : [];
    });
    const fields = [
      { field: 'No_Mail__c', says },
      { field: 'Left__c', says },
    ] as const;
    const { source } = sourceOf({}, ...fields, ...whens);
    const { values } = await readAll(source, ['Id', ...names]);
    const seen = values.map((value) => names.map((name) => value[name]).join(' '));
    expect(seen).toEqual([
      'no no fine 1',
      'no yes fine 1',
      'no no fine 2',
      'no no fine 1',
      'no no fine ?',
    ]);
  });

  test('prefers an opt-out to an unknown word, and that to a no', async () => {
    const words = ['no', 'Nein', 'yes'];
    const Contact = [
      contact(1, { No_Mail__c: 'no' }),
      merged(2, 1, { No_Mail__c: 'Nein' }),
      merged(3, 2, { No_Mail__c: 'yes' }),
      contact(4, { No_Mail__c: 'no' }),
      merged(5, 4, { No_Mail__c: 'Nein' }),
    ];
    const org = createOrg({ Contact });
    org.fields.Contact = ['No_Mail__c'];
    onNet(org);
    const says = (value: unknown) =>
      (['no', 'unknown', 'yes'] as const)[words.indexOf(`${value}`)]!;
    const { source } = sourceOf({}, { field: 'No_Mail__c', says });
    const { values } = await readAll(source, ['Id', 'No_Mail__c']);
    expect(values.map((value) => value['No_Mail__c'])).toEqual(['no', 'Nein', 'yes', 'no', 'Nein']);
  });

  test('keeps the opt-out that a condition finds in either, by all its fields', async () => {
    const stay = { Mood__c: 'fine', Group__c: 'a' };
    const left = { Mood__c: 'angry', Group__c: 'b' };
    const Contact = [
      contact(1, left),
      merged(2, 1, stay),
      contact(3, stay),
      merged(4, 3, left),
      merged(5, 3, stay),
    ];
    const org = createOrg({ Contact });
    org.fields.Contact = ['Mood__c', 'Group__c'];
    onNet(org);
    const when = compile('record.Mood__c == "angry" && record.Group__c == "b"', {
      nullable: false,
    });
    if (!('judge' in when)) throw new Error(when.reason);
    const { source } = sourceOf({}, { when });
    const { values } = await readAll(source, ['Id', ...when.fields]);
    expect(values.map((value) => when.judge(value))).toEqual(
      [true, true, false, true, false].map((gives) => ({ gives })),
    );
    expect(values.map((value) => value['Mood__c'])[4]).toBe('fine');
  });
});

describe('a converted lead', () => {
  test('comes as the contact, with the opt-out of either', async () => {
    const org = createOrg({
      Contact: [contact(1), contact(2, out), merged(3, 1), contact(4, { IsDeleted: true })],
      Lead: [
        lead(1),
        converted(2, 1, out),
        converted(3, 2),
        converted(4, 3),
        converted(5, 4),
        converted(6, 99),
      ],
    });
    const { values, certificate } = await readFrom(org, both);
    expect(said(values).slice(4)).toEqual([
      `${leadId(1)} l1@example.com`,
      `${leadId(2)} c1@example.com out`,
      `${leadId(3)} c2@example.com out`,
      `${leadId(4)} c1@example.com`,
      `${leadId(5)} c4@example.com gone`,
    ]);
    expect(certificate.complete).toBe(true);
  });

  test('does not come where contacts are not read', async () => {
    const org = createOrg({ Contact: [contact(1)], Lead: [lead(1), converted(2, 1)] });
    const { source, values } = await readFrom(org, { objects: ['Lead'] });
    expect(said(values)).toEqual([`${leadId(1)} l1@example.com`]);
    expect(await one(source, leadId(2))).toBeUndefined();
  });
});

describe('changes', () => {
  const later = { SystemModstamp: '2026-01-15T12:30:00.000+0000' };

  test('show the records that a changed one replaced, at any distance', async () => {
    const org = createOrg({
      Contact: [contact(1), contact(2), merged(3, 1), merged(4, 3)],
      Lead: [lead(1), converted(2, 1), converted(3, 4)],
    });
    const { source, certificate } = await readFrom(org, both);
    Object.assign(org.records.Contact[0]!, later, { Email: 'new@example.com' });
    const { values, certificate: next } = await changesOf(source, cursorIn(certificate));
    expect(said(values).toSorted()).toEqual(
      [contactId(1), contactId(3), contactId(4), leadId(2), leadId(3)].map(
        (id) => `${id} new@example.com`,
      ),
    );
    cursorIn(next);
  });

  test('show a merge and a conversion by the change of the loser and the lead', async () => {
    const org = createOrg({ Contact: [contact(1), contact(2)], Lead: [lead(1, out)] });
    const { source, certificate } = await readFrom(org, both);
    Object.assign(org.records.Contact[1]!, later, {
      IsDeleted: true,
      MasterRecordId: contactId(1),
    });
    Object.assign(org.records.Lead[0]!, later, {
      IsConverted: true,
      ConvertedContactId: contactId(1),
    });
    const { values } = await changesOf(source, cursorIn(certificate), fields);
    expect(said(values)).toEqual([
      `${contactId(2)} c1@example.com`,
      `${leadId(1)} c1@example.com out`,
    ]);
  });
});
