/** A serial number of Excel is a date where its column holds nothing but dates. */
import { expect, test } from 'vitest';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const person = (id: number, rest: object = {}) => {
  return { id: `${id}`, email: `p${id}@example.com`, ch_news: 'yes', ...rest };
};
const sent = (stage: Stage) =>
  stage
    .writes()
    .filter(({ subscription }) => subscription === 'opt_out')
    .map(({ email }) => email);

/** Subscribes six people, and then sets their values of one column in the CRM. */
async function subscribed(column: string, values: unknown[], options: StageOptions = {}) {
  const stage = openStage(options);
  const all = Array.from({ length: 6 }, (_, at) => person(at));
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
  expect(sent(stage)).toHaveLength(people);
  const dates = values.filter((value) => value !== '' && !/^(no|0000.*)$/.test(String(value)));
  expect(summary.contacts.invalid).toBe(dates.length - people);
  expect(summary.problems).toHaveLength(dates.length > people ? 1 : 0);
});

test('is remembered for a reading of what has changed, until a word appears', async () => {
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

test('costs no order: the places of all records stay theirs', async () => {
  const stage = await subscribed('unsubscribed', ['45900', 'x', '45901']);
  const { groups } = await stage.sync();
  expect(groups.map(({ count, samples }) => [count, samples.map(({ place }) => place)])).toEqual([
    [3, ['record 1', 'record 2', 'record 3']],
  ]);
});
