/** Opt-outs that the mirror made, end to end: who may take them back, and who may not. */
import { describe, expect, test } from 'vitest';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';
import { NEW, sent } from '../../support/engine/sample-people.ts';

const lea = 'lea@example.com';
const first = { id: '1', email: lea, ch_news: 'yes' };
const second = { id: '2', email: lea, ch_news: 'no' };

/** The second of two records of one address has stated an opt-out, which was sent. */
async function optedOut(options: StageOptions = {}): Promise<Stage> {
  const stage = openStage(options);
  stage.people.push({ ...first });
  await stage.sync();
  stage.people.push({ ...second });
  await stage.sync();
  expect(sent(stage)).toEqual([`opt_in ${lea} ch_news`, `opt_out ${lea} ch_news`]);
  return stage;
}

describe('a duplicate record that stated an opt-out', () => {
  test.each(['full', 'fast'] as const)(
    'does not let the other record opt in once it is deleted: %s',
    async (mode) => {
      const stage = await optedOut();
      stage.people.length = 1;
      for (let times = 0; times < 2; times += 1) {
        const summary = await stage.sync({ mode });
        expect(summary.contacts.conflicts).toBe(1);
      }
      expect(sent(stage)).toEqual([]);
    },
  );

  test.each(['full', 'fast'] as const)(
    'opts the person in when it states so itself: %s',
    async (mode) => {
      const stage = await optedOut();
      stage.people[1] = { ...second, ch_news: 'yes' };
      await stage.sync({ mode });
      expect(sent(stage)).toEqual([`opt_in ${lea} ch_news`]);
    },
  );

  test('lets the other record opt in after its deletion with a later consent', async () => {
    const stage = await optedOut();
    const at = (ms: number) => new Date(stage.clock.now() + ms).toISOString();
    stage.people.length = 1;
    stage.people[0] = { ...first, consent_at: at(-3_600_000) };
    expect((await stage.sync()).contacts.conflicts).toBe(1);
    stage.people[0] = { ...first, consent_at: at(3_600_000) };
    expect((await stage.sync()).contacts.conflicts).toBe(1);
    // It was in the future when it was first read, so it does not count when it has passed either.
    await stage.clock.advance(3_700_000);
    expect((await stage.sync()).contacts.conflicts).toBe(1);
    expect(sent(stage)).toEqual([]);
    stage.people[0] = { ...first, consent_at: at(-1000) };
    await stage.sync();
    expect(sent(stage)).toEqual([`opt_in ${lea} ch_news`]);
  });

  test('has its opt-out carried to a new address of the other record', async () => {
    const stage = await optedOut();
    stage.people.splice(0, 2, { ...first, email: NEW });
    for (const mode of ['fast', 'full'] as const)
      expect((await stage.sync({ mode })).contacts.conflicts).toBe(1);
    expect(sent(stage)).toEqual([]);
  });
});
