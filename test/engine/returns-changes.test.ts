/** Who left, told to a CRM of which fast runs read only what changed. */
import { expect, onTestFinished, test } from 'vitest';
import { hearing } from '../support/engine/event-hearing.ts';
import type { Stage } from '../support/engine/engine-stage.ts';
import { ann, record, stageOf } from '../support/engine/two-mirrors.ts';

const bob = 'bob@example.com';
const look = async (stage: Stage) => stage.clock.run(stage.look());

/** Two people who are on the platform, and a CRM that was read wholly. */
async function settled(): Promise<{ stage: Stage; told: () => string[] }> {
  const { heard, returns } = hearing();
  const stage = stageOf({ tellsChanges: true, returns });
  onTestFinished(() => stage.close());
  expect(await stage.sync()).toMatchObject({ status: 'done' });
  await look(stage);
  const told = () => heard.map(({ crmId, channel }) => `${crmId} ${channel}`);
  return { stage, told };
}

test('whom the sentinel saw leave is told, though nothing was read of her', async () => {
  const { stage, told } = await settled();
  stage.emulator.dashboard.unsubscribe(ann);
  await look(stage);
  expect(await stage.sync({ mode: 'fast' })).toMatchObject({ returns: { told: 1 } });
  expect(stage.asked.at(-1)).toBe('since 0');
  await stage.sync({ mode: 'fast' });
  await stage.sync();
  expect(told()).toEqual(['1 *']);
});

test('of whom the CRM said so itself, nothing is told by a run that does not read her', async () => {
  const { stage, told } = await settled();
  stage.emulator.dashboard.leave(ann, 'ch_news');
  const [first] = stage.people;
  if (first) first['ch_news'] = 'no';
  stage.people.pop();
  stage.emulator.dashboard.leave(bob, 'ch_news');
  await stage.sync();
  expect(await stage.sync({ mode: 'fast' })).toMatchObject({ returns: { told: 0, waiting: 0 } });
  expect(told()).toEqual([]);
  // Read again, and wanted in: then she is told of.
  if (first) first['ch_news'] = 'yes';
  stage.changed.push('1');
  expect(await stage.sync({ mode: 'fast' })).toMatchObject({ returns: { told: 1 } });
  expect(told()).toEqual(['1 ch_news']);
});

test('a reading that failed concludes nothing, and nobody is told of for it', async () => {
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

test('an address that bounced tells nothing of the next one, whoever left does', async () => {
  const { stage, told } = await settled();
  stage.emulator.dashboard.suppress(ann, 'bounce');
  stage.emulator.dashboard.leave(bob, 'ch_news');
  await stage.sync();
  expect(told().toSorted()).toEqual(['1 *', '2 ch_news']);
});

test('who left and has another address by now is told of by the same id', async () => {
  const { stage, told } = await settled();
  stage.emulator.dashboard.suppress(ann, 'bounce');
  stage.emulator.dashboard.leave(bob, 'ch_news');
  for (const person of stage.people) person['email'] = `new-${String(person['email'])}`;
  await stage.sync();
  await stage.sync();
  expect(told()).toEqual(['2 ch_news']);
});
