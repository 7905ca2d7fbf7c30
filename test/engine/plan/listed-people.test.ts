/** People whose record is gone on one side or the other, and who are remembered all the same. */
import { describe, expect, test } from 'vitest';
import { openStage, type Stage } from '../../support/engine/engine-stage.ts';

const lea = 'lea@example.com';
const wants = { id: 'lea', email: lea, ch_news: 'yes' };

/** Lea is ours, and then `happens`; the run after it sees that. */
async function leaving(
  happens: (stage: Stage) => void,
  options: Parameters<typeof openStage>[0] = {},
): Promise<Stage> {
  const stage = openStage(options);
  stage.people.push({ ...wants });
  await stage.sync();
  happens(stage);
  await stage.sync();
  stage.writes();
  return stage;
}

const vanishes = ({ emulator }: Stage) => void emulator.dashboard.deleteContact(lea);

async function expectOut(stage: Stage): Promise<void> {
  const summary = await stage.sync();
  expect(stage.writes()).toEqual([]);
  expect(summary).toMatchObject({ status: 'done', contacts: { conflicts: 1 } });
}

describe('after the contact and the snapshot were lost', () => {
  test('a bounce belongs to the address', async () => {
    const stage = await leaving(({ emulator }) => void emulator.dashboard.suppress(lea, 'bounce'));
    vanishes(stage);
    stage.loseSnapshot();
    await expectOut(stage);
    stage.people[0] = { ...wants, email: 'other@example.com' };
    await stage.sync();
    expect(stage.emulator.world.contact('other@example.com')?.channels).toHaveLength(1);
  });
});

test('an entry made in the list during a run counts before the next request', async () => {
  const stage = openStage();
  stage.people.push({ ...wants });
  const { ledger } = stage;
  const erasure = { part: '*', cause: 'erasure' as const, contact: null, after: null, by: 0 };
  let asked = 0;
  // Known from the second question on: the first is asked when it is decided.
  stage.ledger = {
    ...ledger,
    concerning: (who) => {
      asked += 1;
      if (asked === 2) ledger.write([{ ...who, adds: [erasure], ends: [] }], 0);
      return ledger.concerning(who);
    },
  };
  const summary = await stage.sync();
  expect(asked).toBeGreaterThan(2);
  expect(stage.writes()).toEqual([]);
  expect(summary).toMatchObject({ status: 'done', reasons: [], contacts: { conflicts: 1 } });
});
