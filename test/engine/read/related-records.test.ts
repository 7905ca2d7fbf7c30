/** Fast runs over a CRM that tells what changed: what has to be known besides. */
import { expect, test } from 'vitest';
import { Unavailable } from '../../../src/domain/errors.ts';
import {
  openStage,
  type Stage,
  type StageOptions,
  cid,
  edit,
  failing,
  fast,
  settled,
  shown,
  alone,
  ann,
  record,
  stageOf,
} from '../../support/engine/engine-stage.ts';

/** On disk, for runs side by side. */
async function settledOnDisk(options: StageOptions = {}): Promise<Stage> {
  const stage = stageOf({ tellsChanges: true, ...options });
  expect(await stage.sync()).toMatchObject({ status: 'done' });
  stage.asked.length = 0;
  return stage;
}

const dan = 'dan@example.com';

test('a record whose creation was refused counts when another record has its address', async () => {
  const { state, wire } = failing();
  const stage = await settled({ wire });
  state.how = 'refuses';
  edit(stage, '3', { email: cid, ch_news: 'no', ch_product: 'yes' });
  expect(await fast(stage)).toMatchObject({ status: 'rejected' });
  state.how = 'well';
  edit(stage, '4', { email: cid, ch_news: 'yes' });
  await fast(stage);
  expect(shown(stage, cid)).not.toBe('opt_in');
});

test('a record read in a later slice of a long run counts for another one of its address', async () => {
  let enrolments = 0;
  const stage: Stage = openStage({
    tellsChanges: true,
    limits: ['contacts.enrol=1/60', '*=1000000/1'],
    wire: (send) => async (request, signal) => {
      if (request.path.startsWith('/api/contacts/channel/')) enrolments += 1;
      if (enrolments === 5 && stage.certificate.reading === 'all') {
        edit(stage, '900', { email: cid, ch_news: 'no' });
        stage.certificate = { complete: true, reading: 'second' };
      }
      return send(request, signal);
    },
  });
  for (let at = 0; at < 20; at += 1) stage.people.push(record(`${at}`, `p${at}@example.com`));
  expect(await stage.sync()).toMatchObject({ status: 'done' });
  edit(stage, '901', { email: cid, ch_news: 'yes' });
  await fast(stage);
  expect(shown(stage, cid)).toBeUndefined();
});

test('a change is not lost when an event took the person from the run and failed to read it', async () => {
  let fails = false;
  let single: Promise<unknown> | undefined;
  const stage = await settledOnDisk({
    heard: async () => {
      if (fails) throw new Unavailable('the CRM is away', { acted: 'no' });
    },
  });
  edit(stage, '1', { ch_news: 'no' });
  fails = true;
  await stage.sync({
    mode: 'fast',
    progress(at) {
      if (at.stage === 'deciding') single ??= stage.one('1').catch(() => undefined);
    },
  });
  await single;
  fails = false;
  await fast(stage);
  expect(shown(stage, ann)).toBe('opt_out');
});

test('a change is not lost when an event had read the person before the run and still runs', async () => {
  const gate = Promise.withResolvers<void>();
  const met = Promise.withResolvers<void>();
  let first = true;
  const stage = await settledOnDisk({
    heard: async (id) => {
      if (id !== '1' || !first) return;
      first = false;
      met.resolve();
      await gate.promise;
    },
  });
  const single = stage.one('1');
  await met.promise;
  edit(stage, '1', { ch_news: 'no' });
  await fast(stage);
  gate.resolve();
  await stage.clock.run(single);
  await fast(stage);
  expect(shown(stage, ann)).toBe('opt_out');
});

test('a change is not lost when an event was killed between request and answer', async () => {
  const { state, wire } = failing();
  const stage = await settledOnDisk({ wire });
  edit(stage, '1', { ch_news: 'no' });
  await fast(stage);
  stage.emulator.dashboard.signUp({ email: ann, channels: ['ch_news'] });
  state.how = 'breaks';
  await expect(alone(stage, '1')).rejects.toThrow('a bug');
  state.how = 'well';
  await fast(stage);
  await fast(stage);
  expect(shown(stage, ann)).toBe('opt_out');
});

test('the guard for opt-ins counts people the CRM wants in, not people recorded', async () => {
  const stage = await settled({ guards: { opt_in: { percent: 20, floor: 5 } } });
  for (let at = 10; at < 210; at += 1)
    edit(stage, `${at}`, { email: `p${at}@example.com`, ch_news: 'yes' });
  await stage.sync({ firstLoad: true });
  for (let at = 20; at < 210; at += 1) edit(stage, `${at}`, { ch_news: 'no' });
  await stage.sync();
  await stage.clock.advance(8 * 86_400_000);
  await stage.sync();
  for (let at = 20; at < 50; at += 1) edit(stage, `${at}`, { ch_news: 'yes' });
  expect(await fast(stage)).toMatchObject({ status: 'held', contacts: { held: { opt_in: 30 } } });
});

test('a record that was told twice and is gone by now opts nobody in', async () => {
  const options: StageOptions = { tellsChanges: true };
  const stage = openStage(options);
  stage.people.push(record('1', ann));
  await stage.sync();
  stage.writes();
  edit(stage, '1', { ch_product: 'yes' });
  edit(stage, '1', { ch_product: 'yes' });
  options.hasNoOne = true;
  await fast(stage);
  expect(stage.writes()).toEqual([]);
});

test('an event about one of very many records of an address opts nobody in', async () => {
  const stage = stageOf({ tellsChanges: true });
  for (let at = 10; at < 70; at += 1) stage.people.push(record(`${at}`, cid, ''));
  await stage.sync();
  for (const id of ['10', '11']) edit(stage, id, { ch_news: 'yes' });
  expect(await alone(stage, '10')).toMatchObject({ contacts: { applied: { create: 0 } } });
  expect(shown(stage, cid)).toBeUndefined();
});

test('a broken address is no problem any more once it is corrected', async () => {
  const stage = await settled();
  edit(stage, '3', { email: `${cid},`, ch_news: 'yes' });
  expect(await fast(stage)).toMatchObject({ status: 'rejected' });
  edit(stage, '3', { email: cid });
  expect(await fast(stage)).toMatchObject({ status: 'done' });
  expect(stage.snapshot.retryLater.counts()).toEqual([]);
});

test('a refusal for an address without a record does not bind its next owner', async () => {
  const { state, wire } = failing();
  const stage = await settled({ wire });
  edit(stage, '3', { email: cid, ch_news: 'yes' });
  state.how = 'refuses';
  expect(await fast(stage)).toMatchObject({ status: 'rejected' });
  state.how = 'well';
  edit(stage, '3', { email: dan });
  await fast(stage);
  edit(stage, '4', { email: cid, ch_news: 'yes' });
  await fast(stage);
  expect(shown(stage, cid)).toBe('opt_in');
});

test('many records of one address make the run read everything', async () => {
  const stage = openStage({ tellsChanges: true });
  for (let at = 0; at < 2_000; at += 1) {
    stage.people.push(record(`${at}`, 'none@example.com', ''));
  }
  await stage.sync();
  stage.asked.length = 0;
  edit(stage, '7', { ch_product: 'no' });
  await fast(stage);
  expect(stage.asked).toEqual(['since 0', 'all']);
});

test('a record that shared the address of an erased person makes the run read everything', async () => {
  const stage = await settledOnDisk();
  edit(stage, '3', { email: ann, ch_news: 'no' });
  await fast(stage);
  stage.people = stage.people.filter(({ id }) => id !== '1' && id !== '3');
  await stage.clock.run(stage.erase('1'));
  stage.asked.length = 0;
  await fast(stage);
  expect(stage.asked).toEqual(['all']);
});
