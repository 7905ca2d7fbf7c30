/** Which record an opt-out is reported for when others have its address, or get it meanwhile. */
import { expect, test } from 'vitest';
import { Invalid } from '../../../src/domain/errors.ts';
import type { WriteBack } from '../../../src/sources/source.ts';
import {
  hearing,
  told,
  type Stage,
  ann,
  record,
  stageOf,
} from '../../support/engine/engine-stage.ts';

const bob = 'bob@example.com';
const dayMs = 86_400_000;

/** It names who it was told of, by both names. */
function crm(over: Partial<WriteBack> = {}) {
  const { heard, returns } = hearing(over);
  return { heard, returns, names: () => heard.map(({ crmId, email }) => `${crmId} ${email}`) };
}

function edit(stage: Stage, id: string, news: Record<string, unknown>): void {
  for (const person of stage.people) if (person['id'] === id) Object.assign(person, news);
}
const drop = (stage: Stage, id: string): void =>
  void (stage.people = stage.people.filter((one) => one['id'] !== id));

test('write-back names the record that has the address now, and not the one before', async () => {
  const { returns, names } = crm();
  const stage = stageOf({ returns });
  await stage.sync();
  edit(stage, '1', { email: 'anna@example.com' });
  stage.people.push(record('3', ann));
  await stage.sync();
  stage.emulator.dashboard.leave(ann, 'ch_news');
  await stage.sync();
  expect(names()).toEqual([`3 ${ann}`]);
});

test('write-back names nobody once the last record of the address is gone', async () => {
  const { returns, names } = crm();
  const stage = stageOf({ returns });
  await stage.sync();
  edit(stage, '1', { email: 'anna@example.com' });
  await stage.sync();
  stage.people.push(record('3', ann));
  await stage.sync();
  stage.emulator.dashboard.leave(ann, 'ch_news');
  await stage.sync();
  drop(stage, '3');
  await stage.sync();
  await stage.sync({ mode: 'fast' });
  expect(names()).toEqual([`3 ${ann}`]);
});

test('write-back names the right record when two have exchanged addresses', async () => {
  const { returns, names } = crm();
  const stage = stageOf({ returns });
  await stage.sync();
  edit(stage, '1', { email: bob });
  edit(stage, '2', { email: ann });
  await stage.sync();
  stage.emulator.dashboard.leave(ann, 'ch_news');
  await stage.sync();
  expect(names()).toEqual([`2 ${ann}`]);
});

test('write-back names a person before their erasure, or not at all', async () => {
  const order: string[] = [];
  let erasing: Promise<unknown> | undefined;
  const { returns } = crm({
    async *tell(batch) {
      for (const { crmId } of batch) {
        erasing ??= stage.erase('2').then(() => order.push('erased'));
        await stage.clock.sleep(1_000);
        order.push(`told ${crmId}`);
        yield told;
      }
    },
  });
  const stage = stageOf({ returns });
  await stage.sync();
  stage.emulator.dashboard.leave(ann, 'ch_news');
  stage.emulator.dashboard.leave(bob, 'ch_news');
  drop(stage, '2');
  await stage.sync();
  await stage.clock.run(erasing ?? Promise.reject(new Error('nobody was erased')));
  expect(order.indexOf('erased')).toBeGreaterThan(order.lastIndexOf('told 2'));
  expect(stage.emulator.world.contact(bob)).toBeUndefined();
});

test('write-back omits a person with a newer consent in the CRM, and a held opt-in', async () => {
  const { returns, names } = crm();
  const none = { percent: 0, floor: 0 };
  const policy = { resubscribe: 'newer' } as const;
  const stage = stageOf({ returns, policy, guards: { delete: none, opt_in: none } });
  await stage.sync({ firstLoad: true });
  stage.emulator.dashboard.leave(ann, 'ch_news');
  edit(stage, '1', { ch_news: 'no' });
  await stage.sync();
  await stage.clock.advance(dayMs);
  const now = new Date(stage.clock.now()).toISOString();
  edit(stage, '1', { ch_news: 'yes', consent_at: now });
  await stage.clock.advance(60_000);
  expect(await stage.sync()).toMatchObject({ status: 'held' });
  expect(names()).toEqual([]);
});

test.each([
  ['was created', true],
  ['had left', false],
])(
  'write-back names a person whose consent was in the future when it was read before they %s',
  async (_, isFirst) => {
    const { returns, names } = crm();
    const stage = stageOf({ returns, policy: { resubscribe: 'newer' } });
    const wrong = { consent_at: new Date(stage.clock.now() + 10 * dayMs).toISOString() };
    if (isFirst) edit(stage, '1', wrong);
    await stage.sync({ firstLoad: true });
    stage.emulator.dashboard.leave(ann, 'ch_news');
    edit(stage, '1', wrong);
    for (let day = 0; day < 30; day += 6) {
      await stage.sync();
      await stage.clock.advance(6 * dayMs);
    }
    expect(stage.emulator.world.contact(ann)?.channels).toMatchObject([
      { subscription: 'opt_out' },
    ]);
    expect(names()).toEqual([`1 ${ann}`]);
  },
);

test('one record that a database refuses keeps no other from being reported', async () => {
  const { returns, heard, names } = crm({
    most: 3,
    reportsTogether: true,
    async *tell(batch) {
      if (batch.some(({ crmId }) => crmId === '15')) throw new Invalid('no such thing');
      heard.push(...batch);
      for (const _ of batch) yield told;
    },
  });
  const stage = stageOf({ returns });
  for (let at = 10; at < 19; at += 1) stage.people.push(record(`${at}`, `p${at}@example.com`));
  await stage.sync();
  for (const at of [14, 15, 16]) stage.emulator.dashboard.leave(`p${at}@example.com`, 'ch_news');
  await stage.sync();
  expect(names()).toEqual(['14 p14@example.com', '16 p16@example.com']);
});

test('a person deleted after leaving the CRM, and erased later, is not brought back', async () => {
  const stage = stageOf({ policy: { deletes: 'owned' } });
  await stage.sync();
  edit(stage, '1', { deleted: 'yes' });
  await stage.sync();
  expect(stage.emulator.world.contact(ann)).toBeUndefined();
  drop(stage, '1');
  expect((await stage.clock.run(stage.erase('1'))).people).toMatchObject([{ is: 'forgotten' }]);
  stage.people.push(record('9', ann));
  await stage.sync();
  expect(stage.emulator.world.contact(ann)).toBeUndefined();
});
