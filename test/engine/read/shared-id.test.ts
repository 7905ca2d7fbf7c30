/** One CRM id with several addresses, and broken records of somebody known: present too. */
import { expect, test } from 'vitest';
import { openStage, type Stage } from '../../support/engine/engine-stage.ts';

const KNOWN = 'known@example.com';

/** Somebody known by id 1, in both channels; after that the CRM has these records instead. */
async function then(records: Record<string, unknown>[]): Promise<Stage> {
  const stage = openStage();
  stage.people.push({ id: '1', email: KNOWN, ch_news: 'yes', ch_product: 'yes' });
  await stage.sync();
  stage.people.splice(0, 1, ...records);
  stage.writes();
  return stage;
}

const sent = (stage: Stage) =>
  stage.writes().map(({ subscription, channelId }) => `${subscription} ${channelId}`);

/** Whether the known address counts as present in the reading of the last run. */
const isPresent = (stage: Stage): boolean =>
  stage.snapshot.staging.desired('contact', KNOWN).length > 0;

const two = [
  { id: '1', email: 'b@example.com', ch_news: 'yes' },
  { id: '1', email: 'c@example.com', ch_news: 'yes' },
];

test.each(['full', 'fast'] as const)(
  'two other addresses under one id: all are invalid, the known one is present: %s',
  async (mode) => {
    const stage = await then(two);
    const summary = await stage.sync({ mode });
    expect(isPresent(stage)).toBe(true);
    expect(sent(stage)).toEqual([]);
    expect(summary.contacts.invalid).toBe(2);
    expect(summary.problems.map(({ key }) => key).toSorted()).toEqual([
      'b@example.com',
      'c@example.com',
    ]);
  },
);

test.each(['full', 'fast'] as const)(
  'opt-outs of records with a shared id apply to the known address: %s',
  async (mode) => {
    const stage = await then([{ ...two[0], ch_news: 'no' }, two[1] ?? {}]);
    await stage.sync({ mode });
    expect(sent(stage)).toEqual(['opt_out ch_news']);
  },
);

test('a broken record with a new address is present under the known one', async () => {
  const stage = await then([{ ...two[0], consent_at: 'soon', ch_product: 'no' }]);
  const summary = await stage.sync();
  expect(isPresent(stage)).toBe(true);
  expect(sent(stage)).toEqual(['opt_out ch_product']);
  expect(summary.problems.map(({ key }) => key)).toEqual(['b@example.com']);
});

test('a record of its own decides for the known address', async () => {
  const own = { id: '2', email: KNOWN, ch_news: 'yes', ch_product: 'yes' };
  const stage = await then([{ ...two[0], ch_news: 'no' }, two[1] ?? {}, own]);
  const summary = await stage.sync();
  expect(sent(stage)).toEqual([]);
  expect(summary.contacts.conflicts).toBe(0);
});

test('a record without an address counts for the known one, and is listed once', async () => {
  const stage = await then([{ id: '1', email: '', ch_news: 'no' }]);
  const summary = await stage.sync();
  expect(isPresent(stage)).toBe(true);
  expect(sent(stage)).toEqual(['opt_out ch_news']);
  expect(summary.problems).toHaveLength(1);
});

test('a record without an address is one of those that share an id, and is listed', async () => {
  const stage = openStage();
  stage.people.push(
    { id: '1', email: '', ch_news: 'yes' },
    { id: '1', email: KNOWN, ch_news: 'yes' },
  );
  const { contacts } = await stage.sync();
  expect(contacts).toMatchObject({ invalid: 2, skipped: 0, applied: { create: 0 } });
});
