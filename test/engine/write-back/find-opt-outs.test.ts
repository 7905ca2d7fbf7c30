/** Who left, told to a CRM of which fast runs read only what changed. */
import { expect, test } from 'vitest';
import type { WriteBack } from '../../../src/sources/source.ts';
import { begun, keep } from '../../../src/engine/erasure/pending/unfinished-erasures.ts';
import {
  hearing,
  type Stage,
  ann,
  record,
  stageOf,
  wish,
} from '../../support/engine/engine-stage.ts';

const bob = 'bob@example.com';
const look = async (stage: Stage) => stage.clock.run(stage.look());

/** Two people who are on the platform, and a CRM that was read wholly. */
async function settled(way: Partial<WriteBack> = {}) {
  const { heard, returns } = hearing(way);
  const stage = stageOf({ tellsChanges: true, returns });
  expect(await stage.sync()).toMatchObject({ status: 'done' });
  await look(stage);
  const told = () => heard.map(({ crmId, channel }) => `${crmId} ${channel}`);
  return { stage, told };
}

test('an unsubscribe found by the sentinel is reported although no record was read', async () => {
  const { stage, told } = await settled();
  stage.emulator.dashboard.unsubscribe(ann);
  await look(stage);
  expect(await stage.sync({ mode: 'fast' })).toMatchObject({ returns: { told: 1 } });
  expect(stage.asked.at(-1)).toBe('since 0');
  await stage.sync({ mode: 'fast' });
  await stage.sync();
  expect(told()).toEqual(['1 *']);
});

test('an opt-out that the CRM stated itself is not reported by a run without its record', async () => {
  const { stage, told } = await settled();
  stage.emulator.dashboard.leave(ann, 'ch_news');
  const [first] = stage.people;
  if (first) first['ch_news'] = 'no';
  stage.people.pop();
  stage.emulator.dashboard.leave(bob, 'ch_news');
  await stage.sync();
  expect(await stage.sync({ mode: 'fast' })).toMatchObject({ returns: { told: 0, waiting: 0 } });
  expect(told()).toEqual([]);
  // Read again, and wanted in: now the opt-out is reported.
  if (first) first['ch_news'] = 'yes';
  stage.changed.push('1');
  expect(await stage.sync({ mode: 'fast' })).toMatchObject({ returns: { told: 1 } });
  expect(told()).toEqual(['1 ch_news']);
});

test('an opt-out of an erasure that has not ended is not reported', async () => {
  const { stage, told } = await settled();
  const { snapshot, clock } = stage;
  snapshot.transaction(() => keep(snapshot, begun(snapshot, ann, clock.now())));
  stage.emulator.dashboard.leave(ann, 'ch_news');
  await stage.sync();
  expect(told()).toEqual([]);
});

test('an opt-out that the CRM refused is needless once the CRM states it', async () => {
  const { stage } = await settled({
    async *tell(batch) {
      for (const _ of batch) yield { is: 'rejected', reason: 'no such field', fix: 'add it' };
    },
  });
  stage.emulator.dashboard.leave(ann, 'ch_news');
  expect((await stage.sync()).returns).toMatchObject({ rejected: 1 });
  wish(stage, '1', 'no');
  expect((await stage.sync()).returns).toMatchObject({ rejected: 0, waiting: 0 });
});

test('a failed reading concludes nothing, and nothing is reported for it', async () => {
  const { stage, told } = await settled();
  stage.emulator.dashboard.leave(ann, 'ch_news');
  stage.emulator.dashboard.leave(bob, 'ch_news');
  stage.certificate = { complete: false, reading: 'half', why: 'half of it', fix: 'read again' };
  stage.people.pop();
  await stage.sync();
  expect(told()).toEqual(['1 ch_news']);
  stage.people.push(record('2', bob));
  stage.certificate = { complete: true, reading: 'all' };
  await stage.sync();
  expect(told()).toEqual(['1 ch_news', '2 ch_news']);
});

test('an unsubscribe is reported by the same id after a change of address', async () => {
  const { stage, told } = await settled();
  stage.emulator.dashboard.suppress(ann, 'bounce');
  stage.emulator.dashboard.leave(bob, 'ch_news');
  for (const person of stage.people) person['email'] = `new-${String(person['email'])}`;
  await stage.sync();
  await stage.sync();
  expect(told()).toEqual(['2 ch_news']);
});

test('an opt-out is reported under each id of the person, and by address without one', async () => {
  const { stage, told } = await settled();
  stage.people.push(record('7', ann));
  Object.assign(stage.people[1] ?? {}, { id: '' });
  stage.emulator.dashboard.leave(ann, 'ch_news');
  stage.emulator.dashboard.leave(bob, 'ch_news');
  await stage.sync();
  expect(told().toSorted()).toEqual([' ch_news', '1 ch_news', '7 ch_news']);
});

test('an opt-out that cannot be reported in the configured way is left out, and counted', async () => {
  const { stage, told } = await settled({ takes: ({ crmId }) => crmId !== '1' });
  stage.emulator.dashboard.leave(ann, 'ch_news');
  expect(await stage.sync()).toMatchObject({ returns: { told: 0, waiting: 0, leftOut: 1 } });
  expect(told()).toEqual([]);
});
