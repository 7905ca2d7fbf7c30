/** What is known of a change that the platform refused: when it is sent again, and is over. */
import { describe, expect, test } from 'vitest';
import { retrySchedules } from '../../../src/domain/retry-schedules.ts';
import {
  ann,
  edit,
  failing,
  fast,
  settled,
  type Stage,
} from '../../support/engine/engine-stage.ts';

const parked = ({ snapshot }: Stage, key = ann) => snapshot.problems.parked('contact', key);

/** The platform has refused the opt-out of Ann once. */
async function refused() {
  const { state, wire } = failing();
  const stage = await settled({ wire });
  state.how = 'refuses';
  edit(stage, '1', { ch_news: 'no' });
  expect(await stage.sync()).toMatchObject({ status: 'rejected', contacts: { refused: 1 } });
  state.how = 'well';
  stage.writes();
  const [first] = parked(stage);
  if (!first?.retryAt) throw new Error('nothing is parked');
  return { stage, state, first };
}

describe('a refused opt-out', () => {
  test('waits for its delay, keeps since when it waits, and is over once it is accepted', async () => {
    const { stage, state, first } = await refused();
    expect(first).toMatchObject({ attempts: 1 });
    await stage.sync();
    expect(stage.writes()).toEqual([]);
    await stage.clock.advance((first.retryAt ?? 0) - stage.clock.now());
    state.how = 'refuses';
    await stage.sync();
    const [second] = parked(stage);
    expect(second).toMatchObject({ attempts: 2, since: first.since });
    expect((second?.retryAt ?? 0) - stage.clock.now()).toBeGreaterThan(
      (first.retryAt ?? 0) - first.since,
    );
    state.how = 'well';
    await stage.clock.advance((second?.retryAt ?? 0) - stage.clock.now());
    const { contacts } = await stage.sync();
    expect(contacts).toMatchObject({ applied: { opt_out: 1 }, rejected: 0 });
    expect(parked(stage)).toEqual([]);
  });

  test('is over once the person has left without it', async () => {
    const { stage } = await refused();
    stage.emulator.dashboard.leave(ann, 'ch_news');
    expect(await stage.sync()).toMatchObject({ status: 'done', contacts: { rejected: 0 } });
    expect(parked(stage)).toEqual([]);
  });

  test('does not wait for a time that only a wrong clock can have written', async () => {
    const { stage, first } = await refused();
    const { longestMs } = retrySchedules.rejectedOptOut;
    const retryAt = stage.clock.now() + longestMs + 3_600_000;
    stage.snapshot.problems.put({ ...first, retryAt, run: 'other' });
    expect((await stage.sync()).contacts.applied).toMatchObject({ opt_out: 1 });
  });
});

test('a refused creation keeps back the further channels of the person, too', async () => {
  const { state, wire } = failing();
  const stage = await settled({ wire });
  edit(stage, '3', { email: 'cid@example.com', ch_news: 'yes', ch_product: 'yes' });
  state.how = 'refuses';
  await fast(stage);
  state.how = 'well';
  const { contacts } = await stage.sync({ writes: false });
  expect(contacts.changes).toMatchObject({ create: 0, opt_in: 0 });
});
