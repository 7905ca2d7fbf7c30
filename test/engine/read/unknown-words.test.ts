/** Words that nobody knows are listed by word, rows that name nobody are skipped. */
import { describe, expect, test } from 'vitest';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const person = (id: number, rest: object = {}) => {
  return { id: `${id}`, email: `p${id}@example.com`, ch_news: 'yes', ...rest };
};
const many = (count: number, rest: object = {}) =>
  Array.from({ length: count }, (_, at) => person(at, rest));
const listed = ({ problems }: Summary) =>
  problems.map(({ key, reason, isNew }) => [key, reason, isNew]);
const sent = (stage: Stage) =>
  stage.writes().map(({ subscription, channelId }) => `${subscription} ${channelId}`);

describe('an unknown word', () => {
  test('is one line for any number of records, and nobody is opted out or removed', async () => {
    const stage = openStage();
    stage.people.push(...many(400));
    await stage.sync();
    stage.writes();
    stage.people.splice(0, 400, ...many(400, { unsubscribed: 'Nein' }));
    const summary = await stage.sync();
    expect(summary).toMatchObject({ status: 'rejected', contacts: { invalid: 400 } });
    expect(listed(summary)).toEqual([
      [
        'contacts.unsubscribed',
        '400 records hold "Nein", which is no known word (the first: record 1); ' +
          'it concerns people who are subscribed and may want no mail',
        true,
      ],
    ]);
    expect(summary.problems[0]).toMatchObject({
      class: 'invalid',
      fix: 'name it: unsubscribed: { field: "unsubscribed", yes: ["…"], no: ["…"] }',
    });
    expect(sent(stage)).toEqual([]);
    const next = await stage.sync();
    // All of them are subscribed: their opt-out may be waiting.
    expect([next.status, next.known, listed(next)[0]?.[2]]).toEqual(['rejected', 400, false]);
  });

  test('opts nobody in; opt-outs in other fields are sent', async () => {
    const stage = openStage();
    stage.people.push(person(1, { ch_product: 'yes' }));
    await stage.sync();
    stage.writes();
    stage.people.splice(
      0,
      1,
      person(1, { deleted: 'Nein', ch_news: 'no' }),
      person(2, { deleted: '-' }),
    );
    await stage.sync();
    expect(sent(stage)).toEqual(['opt_out ch_news']);
  });

  test.each(['full', 'fast'] as const)(
    'in one field is in one line with its others: %s',
    async (mode) => {
      const stage = openStage();
      const words = ['Nein', 'nein ', 'NEIN', 'ann@example.com', 'Str. 5', '2999-01-01', {}];
      stage.people.push(...words.map((deleted, at) => person(at, { deleted })));
      const { problems } = await stage.sync({ mode });
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatchObject({
        key: 'contacts.deleted',
        reason:
          '3 records hold "Nein", 1 holds "a…@…", 1 holds "aaa. 9", 1 holds "9999-99-99" (in the future), ' +
          '1 holds a list or an object, which are no known words (the first: record 1); ' +
          'here letters are shown as a and digits as 9, the values on a terminal and with --addresses',
        shown:
          '3 records hold "Nein", 1 holds "ann@example.com", 1 holds "Str. 5", ' +
          '1 holds "2999-01-01" (in the future), 1 holds a list or an object, ' +
          'which are no known words (the first: record 1)',
      });
    },
  );

  test('is reported for the person when that one is read alone', async () => {
    const stage = openStage();
    stage.people.push(person(1, { deleted: 'Nein' }));
    await stage.sync({ writes: false });
    const { problems } = await stage.sync({ mode: { single: 'p1@example.com' } });
    expect(problems).toMatchObject([
      { key: 'p1@example.com', reason: expect.stringContaining('"deleted" holds no known word') },
    ]);
  });

  test('is reported by a reading of changes, too', async () => {
    const stage = openStage({ tellsChanges: true });
    stage.people.push(person(1), person(2));
    await stage.sync();
    stage.people.splice(1, 1, person(2, { unsubscribed: 'Nein' }));
    stage.changed.push('2');
    const summary = await stage.sync({ mode: 'fast' });
    expect(stage.asked.at(-1)).toMatch(/since|one/);
    expect(listed(summary).map(([key]) => key)).toEqual(['contacts.unsubscribed']);
  });

  test('in a long list is cut off, and the rest is counted', async () => {
    const stage = openStage();
    const words = Array.from({ length: 30 }, (_, at) => 'x'.repeat(at + 1));
    stage.people.push(...words.map((ch_news, at) => person(at, { ch_news })));
    const { problems } = await stage.sync();
    expect(problems[0]?.shown).toMatch(/1 holds "xxxxxxxx", 22 hold other values, which are/);
  });
});

describe('a row without a person', () => {
  const empty = { id: '', email: '', ch_news: '', ch_product: '', deleted: '', unsubscribed: '' };
  test.each(['full', 'fast'] as const)('is skipped, and no problem: %s', async (mode) => {
    const stage = openStage();
    stage.people.push(
      person(1),
      empty,
      { ...person(9), email: ' ' },
      { ...empty, ch_news: 'Nein' },
    );
    const summary = await stage.sync({ mode });
    expect(summary).toMatchObject({
      status: 'done',
      problems: [],
      contacts: { desired: 1, invalid: 0, skipped: 3 },
    });
  });

  test('is skipped in a reading of changes and in an event, too', async () => {
    const stage = openStage({ tellsChanges: true });
    stage.people.push(person(1));
    await stage.sync();
    stage.people.push({ ...person(9), email: '' });
    stage.changed.push('9');
    const fast = await stage.sync({ mode: 'fast' });
    expect(fast).toMatchObject({ status: 'done', problems: [], contacts: { skipped: 1 } });
  });

  test.each(['full', 'fast'] as const)(
    'is invalid when its id is recorded: the person is present, and opt-outs apply: %s',
    async (mode) => {
      const stage = openStage({ policy: { absent: 'opt_out' } });
      stage.people.push(person(1), person(2), person(3));
      await stage.sync();
      stage.writes();
      stage.people.splice(0, 1, { ...person(1), email: '', ch_news: 'no' });
      const summary = await stage.sync({ mode });
      expect(summary).toMatchObject({ status: 'rejected', contacts: { invalid: 1, skipped: 0 } });
      expect(summary.certificate.source).toBe(true);
      expect(sent(stage)).toEqual(['opt_out ch_news']);
      expect(listed(summary)).toEqual([['p1@example.com', 'record 1: "email" is empty', true]]);
    },
  );
});

describe('lost addresses', () => {
  const lose = async (lost: number, of: number) => {
    const stage = openStage();
    stage.people.push(...many(of));
    await stage.sync();
    stage.writes();
    stage.people.splice(0, lost, ...many(lost, { email: '', ch_product: 'yes' }));
    stage.people.push(person(99));
    return { stage, summary: await stage.sync() };
  };

  test('make the reading incomplete for more than half of the people', async () => {
    const { stage, summary } = await lose(3, 5);
    expect(summary).toMatchObject({ status: 'failed', certificate: { source: false } });
    expect(summary.reasons.join()).toContain(
      '3 of 5 recorded people have no valid address any more, so only opt-outs are applied ' +
        '→ check that contacts.email names the column with the addresses, and export it again',
    );
    expect(sent(stage)).toEqual([]);
  });

  test.each(['full', 'fast'] as const)('count where another column is read: %s', async (mode) => {
    const stage = openStage({ policy: { absent: 'opt_out' } });
    stage.people.push(...many(5));
    await stage.sync();
    stage.writes();
    stage.people.splice(0, 3, ...many(3, { email: '030 1234567', ch_product: 'yes' }));
    stage.people.splice(3, 1, { ...person(4), ch_news: 'no' });
    const summary = await stage.sync({ mode });
    expect(summary).toMatchObject({ status: 'failed', certificate: { source: false } });
    expect(summary.reasons.join()).toContain('3 of 5 recorded people have no valid address');
    expect(sent(stage)).toEqual(['opt_out ch_news']);
  });

  test('apply an opt-out that is stated beside an invalid address', async () => {
    const stage = openStage();
    stage.people.push(...many(3));
    await stage.sync();
    stage.writes();
    stage.people.splice(0, 3, ...many(3, { email: 'none' }));
    stage.people.splice(0, 1, { ...person(1), email: 'none', ch_news: 'no' });
    await stage.sync();
    expect(sent(stage)).toEqual(['opt_out ch_news']);
  });

  test.each([
    [2, 4],
    [1, 1],
  ])('of %i of %i people leave it complete', async (lost, of) => {
    const { stage, summary } = await lose(lost, of);
    expect(summary).toMatchObject({
      status: 'rejected',
      certificate: { source: true },
      contacts: { invalid: lost },
    });
    expect(sent(stage)).toEqual(['opt_in ch_news']);
  });

  test('do not count for a person with another record of the address', async () => {
    const stage = openStage();
    stage.people.push(...many(3));
    await stage.sync();
    const twins = many(3).map((one) => ({ ...one, id: `twin ${one.id}` }));
    stage.people.splice(0, 3, ...many(3, { email: '' }), ...twins);
    expect((await stage.sync()).certificate.source).toBe(true);
  });
});

// A serial number of Excel is a date where its column holds nothing but dates.

/** Subscribes six people, and then sets their values of one column in the CRM. */
async function subscribed(column: string, values: unknown[], options: StageOptions = {}) {
  const stage = openStage(options);
  const all = many(6);
  stage.people.push(...all);
  await stage.sync();
  stage.writes();
  stage.people.splice(0, 6, ...all.map((one, at) => ({ ...one, [column]: values[at] ?? '' })));
  return stage;
}

const us = '03/01/2025 9:05 AM';
test.each<[string, string, unknown[], number]>([
  ['unsubscribed', 'among dates', ['2025-03-01', '45900'], 2],
  ['unsubscribed', 'before the first date', ['45900', '', us], 2],
  ['unsubscribed', 'of a time', [us, 45900.5, '01.03.2025'], 3],
  ['unsubscribed', 'beside the date that means none', ['0000-00-00', '2025-03-01', '45900'], 2],
  ['unsubscribed', 'with no other value', ['45900'], 0],
  ['unsubscribed', 'with other serials only', ['45900', '45901'], 0],
  ['unsubscribed', 'among words', ['yes', '45900'], 1],
  ['unsubscribed', 'among dates and a word', ['2025-03-01', '45900', 'no'], 1],
  ['unsubscribed', 'among dates and an unknown word', ['2025-03-01', '45900', 'x'], 1],
  ['unsubscribed', 'of the future', ['2025-03-01', '46999'], 1],
  ['deleted', 'among dates', ['2025-03-01', '45900'], 2],
  ['deleted', 'with no other value', ['45900'], 0],
  ['deleted', 'among dates and a word', ['2025-03-01', '45900', 'no'], 1],
])('in %s, a serial %s', async (column, _, values, people) => {
  const policy = { absent: 'opt_out' } as const;
  const absence = { absentReadings: 1, absentForMs: 0 };
  const stage = await subscribed(column, values, { policy, absence });
  const summary = await stage.sync();
  expect(sent(stage).filter((one) => one.startsWith('opt_out'))).toHaveLength(people);
  const dates = values.filter((value) => value !== '' && !/^(no|0000.*)$/.test(String(value)));
  expect(summary.contacts.invalid).toBe(dates.length - people);
  expect(summary.problems).toHaveLength(dates.length > people ? 1 : 0);
});

test('a serial number is remembered for a reading of what has changed, until a word appears', async () => {
  const stage = await subscribed('unsubscribed', ['2025-03-01'], { tellsChanges: true });
  await stage.sync();
  stage.writes();
  stage.people[1] = person(1, { unsubscribed: '45900' });
  stage.changed.push('1');
  const fast = await stage.sync({ mode: 'fast' });
  expect(fast.contacts).toMatchObject({ invalid: 0, applied: { opt_out: 1 } });
  stage.people[2] = person(2, { unsubscribed: 'no' });
  await stage.sync();
  stage.people[3] = person(3, { unsubscribed: '45901' });
  stage.changed.push('3');
  const next = await stage.sync({ mode: 'fast' });
  expect(next.contacts).toMatchObject({ invalid: 2, applied: { opt_out: 0 } });
});

test('a serial number costs no order: the places of all records stay theirs', async () => {
  const stage = await subscribed('unsubscribed', ['45900', 'x', '45901']);
  const { groups } = await stage.sync();
  expect(groups.map(({ count, samples }) => [count, samples.map(({ place }) => place)])).toEqual([
    [3, ['record 1', 'record 2', 'record 3']],
  ]);
});
