/** An opt-out of a subscribed person that cannot be read fails every run until it can. */
import { describe, expect, test } from 'vitest';
import type { RunOptions } from '../../../src/engine/context/mirror-context.ts';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const person = (id: number, rest: object = {}) => {
  return { id: `${id}`, email: `p${id}@example.com`, ch_news: 'yes', ...rest };
};
const told = ({ status, problems }: Summary) => [status, problems[0]?.cause];
const waiting = ['rejected', 'opt-out-unreadable'];

/** Three subscribed people, of whom the CRM states something unreadable about the first. */
async function begin(stated: object, options: StageOptions = {}): Promise<Stage> {
  const stage = openStage(options);
  stage.people.push(person(1), person(2), person(3));
  await stage.sync();
  stage.people[0] = person(1, stated);
  return stage;
}

const single: RunOptions['mode'] = { single: 'p1@example.com' };
test.each<[RunOptions['mode'], string, unknown]>([
  ['full', 'unsubscribed', 'Nein'],
  ['full', 'unsubscribed', '45900'],
  ['full', 'unsubscribed', '2999-01-01'],
  ['full', 'unsubscribed', ['yes']],
  ['full', 'deleted', 'wants none'],
  ['fast', 'unsubscribed', 'Nein'],
  ['fast', 'deleted', '2999-01-01'],
  [single, 'unsubscribed', '45900'],
  [single, 'deleted', 'Nein'],
  ['full', 'ch_news', 'wants none'],
  ['fast', 'ch_news', 'Nein, danke'],
])('a run of mode %j fails each time: %s: %j', async (mode, column, value) => {
  const stage = await begin({ [column]: value });
  for (let nth = 0; nth < 3; nth += 1) expect(told(await stage.sync({ mode }))).toEqual(waiting);
  expect(stage.snapshot.unreadableOptOuts.list(9)).toMatchObject([{ key: 'p1@example.com' }]);
  const [group] = (await stage.sync()).groups;
  expect(group).toMatchObject({ cause: 'opt-out-unreadable', count: 1 });
  stage.people[0] = person(1, { [column]: 'no' });
  expect((await stage.sync({ mode })).status).toBe('done');
  expect(stage.snapshot.unreadableOptOuts.count()).toBe(0);
});

test('fails runs that did not read the record, too, but not those about somebody else', async () => {
  const stage = await begin({ unsubscribed: '?' }, { tellsChanges: true });
  await stage.sync();
  for (let nth = 0; nth < 2; nth += 1) {
    const fast = await stage.sync({ mode: 'fast' });
    expect(told(fast)).toEqual(waiting);
    expect(fast.groups[0]).toMatchObject({ cause: 'opt-out-unreadable', count: 1 });
  }
  expect((await stage.sync({ mode: { single: 'p2@example.com' } })).status).toBe('done');
});

test('is listed before an opt-out that the platform refused, and before other words', async () => {
  const stage = await begin({ unsubscribed: '?' });
  stage.people.push(person(4, { unsubscribed: '?' }), person(5, { ch_news: '?' }));
  const { problems, groups } = await stage.sync();
  expect(problems.map(({ key, cause }) => [key, cause])).toEqual([
    ['contacts.unsubscribed', 'opt-out-unreadable'],
    ['contacts.channels[0].subscription', 'unknown-word'],
  ]);
  expect(groups.map(({ cause, count, samples }) => [cause, count, samples[0]?.key])).toEqual([
    ['opt-out-unreadable', 1, 'p1@example.com'],
    ['unknown-word', 1, 'p4@example.com'],
    ['unknown-word', 1, 'p5@example.com'],
  ]);
});

describe('ends when', () => {
  const state = (stage: Stage) => stage.snapshot.unreadableOptOuts.count();
  test('the record is gone', async () => {
    const stage = await begin({ unsubscribed: '?' });
    await stage.sync();
    stage.people.shift();
    expect([(await stage.sync()).status, state(stage)]).toEqual(['done', 0]);
  });
  test('the person unsubscribes on the platform', async () => {
    const stage = await begin({ unsubscribed: '?' });
    await stage.sync();
    stage.emulator.dashboard.unsubscribe('p1@example.com');
    expect([(await stage.sync()).status, state(stage)]).toEqual(['done', 0]);
  });
  test('another record of the person states an opt-out', async () => {
    const stage = await begin({ unsubscribed: '?' });
    await stage.sync();
    stage.people.push({ ...person(1), id: '9', unsubscribed: 'yes' });
    await stage.sync();
    expect([(await stage.sync()).status, state(stage)]).toEqual(['done', 0]);
  });
});

test.each<[string, object]>([
  ['of a person who was never created', { id: '7', email: 'p7@example.com', unsubscribed: '?' }],
  ['of a channel without a subscription', person(1, { ch_product: '?' })],
])('an unknown word %s is only invalid', async (_, record) => {
  const stage = await begin({});
  stage.people.splice(0, 1, { ...record }, person(1));
  expect(told(await stage.sync())).toEqual(['rejected', 'unknown-word']);
  expect((await stage.sync()).status).toBe('done');
});

/** Two records of one person: the first says yes. */
const beside = async (record: object): Promise<Stage> => {
  const stage = openStage();
  stage.people.push(person(1), { id: '9', ch_news: 'no', ...record });
  return stage;
};
const isIn = ({ emulator }: Stage) => emulator.world.contact('p1@example.com') !== undefined;

describe('an opt-out in a record whose address cannot be read', () => {
  test.each([
    'p1@example.com, p2@example.com',
    'p1 @example.com',
    'p1(at)example.com',
    'no-name(at)example.com',
    'p1 at example.com',
    'p1.example.com',
    'no.example.com',
    'Ann',
    '"p1"@x.com',
    ['p1@example.com'],
    ['p1@example.com', 'p2@example.com'],
    { v: 'p1@example.com' },
    { of: [] },
  ])('fails every run, and is listed first, until it can: %j', async (email) => {
    const stage = await beside({ email });
    for (const mode of ['full', 'fast', 'full'] as const) {
      const summary = await stage.sync({ mode });
      expect(told(summary)).toEqual(waiting);
      expect(summary.groups[0]).toMatchObject({ cause: 'opt-out-unreadable', count: 1 });
    }
    expect(stage.snapshot.unreadableOptOuts.list(9)).toMatchObject([{ key: 'id 9' }]);
    stage.people[1] = { id: '9', ch_news: 'no', email: 'p1@example.com' };
    const { contacts } = await stage.sync();
    expect([contacts.applied['opt_out'], stage.snapshot.unreadableOptOuts.count()]).toEqual([1, 0]);
  });

  test.each(['n/a', 'unknown', 'no e-mail', '—', [], { v: null }])(
    'fails no later run where the field says that there is none: %j',
    async (email) => {
      const stage = await beside({ email });
      await stage.sync();
      expect((await stage.sync()).status).toBe('done');
    },
  );

  test('counts for the address that is found in the text', async () => {
    for (const stated of [{}, { ch_news: '', unsubscribed: 'maybe' }]) {
      const stage = await beside({ email: 'Ann <p1@example.com>', ...stated });
      await stage.sync();
      expect(isIn(stage)).toBe(false);
      expect(told(await stage.sync())[0]).toBe('done');
      stage.close();
    }
  });

  test('opts out who is subscribed, also by the id of a known record', async () => {
    for (const record of [
      { id: '9', email: 'mailto:p1@example.com' },
      { id: '1', email: '@' },
    ]) {
      const stage = openStage();
      stage.people.push(person(1));
      await stage.sync();
      stage.people.push({ ch_news: 'no', ...record });
      if (record.id === '1') stage.people.shift();
      expect((await stage.sync()).contacts.applied['opt_out']).toBe(1);
      expect(told(await stage.sync())[0]).toBe('done');
      stage.close();
    }
  });

  test('that says yes keeps nobody away', async () => {
    const stage = await beside({ email: 'Ann <p1@example.com>', ch_news: 'yes' });
    await stage.sync();
    expect(isIn(stage)).toBe(true);
  });
});

test('counts under a new address of the record, and without any', async () => {
  for (const email of ['new@example.com', 'no address', '']) {
    const stage = await begin({ unsubscribed: '?', email });
    for (let nth = 0; nth < 2; nth += 1) expect(told(await stage.sync())).toEqual(waiting);
    expect(stage.snapshot.unreadableOptOuts.count()).toBe(1);
    stage.close();
  }
});
