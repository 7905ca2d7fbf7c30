/** The summary tells why a run compared everything, or read the whole source. */
import { whole } from '../../../src/store/database/key-range.ts';
import { expect, test } from 'vitest';
import {
  type Stage,
  edit,
  failing,
  fast,
  settled,
  ann,
} from '../../support/engine/engine-stage.ts';

const codesOf = async (running: ReturnType<Stage['sync']>): Promise<string[]> =>
  (await running).fullBecause.map(({ code }) => code);

test('a fast run that reads the changes has no reason', async () => {
  const stage = await settled();
  expect(await codesOf(fast(stage))).toEqual([]);
});

test('a fast run names the work that a full run, or a run about one person, left', async () => {
  const { state, wire } = failing();
  const stage = await settled({ wire });
  await fast(stage);
  edit(stage, '1', { ch_news: 'no' });
  state.how = 'is away';
  await stage.sync({ mode: { single: ann } });
  state.how = 'well';
  expect(await codesOf(fast(stage))).toEqual(['person-open']);
  edit(stage, '2', { ch_news: 'no' });
  state.how = 'is away';
  await stage.sync();
  state.how = 'well';
  expect(await codesOf(fast(stage))).toEqual(['no-cursor']);
});

test('a fast run names the changes that a dead run planned', async () => {
  const stage = await settled();
  const { staging, journal, stage: staged } = stage.snapshot;
  staged(() => {
    staging.clear();
    staging.addPlanned({
      kind: 'contact',
      key: ann,
      op: 'opt_out',
      part: 'ch_news',
      target: undefined,
      body: '{}',
      phase: 0,
      guard: undefined,
    });
  });
  journal.adopt({ ...whole, run: 'dead run', at: 0 });
  expect(await codesOf(fast(stage))).toEqual(['run-died']);
});

test('a full run names who wanted it', async () => {
  const stage = await settled();
  const { fullBecause } = await stage.sync({ because: ['schedule'] });
  expect(fullBecause).toEqual([{ code: 'schedule', reason: 'the schedule has a full run' }]);
});
