/** Which opt-outs are ours to take back, and which only look like it. */
import { expect, test } from 'vitest';
import { createStage, type Stage } from './process.ts';

const lea = 'lea@example.com';
const says = (stage: Stage, word: 'yes' | 'no'): void => {
  stage.people[0] = { id: 'lea', email: lea, ch_news: word };
};

/** Lea was opted in, and out again, both on the CRM's word. */
async function optedOut(): Promise<{ stage: Stage; id: string }> {
  const stage = createStage();
  for (const word of ['yes', 'no'] as const) {
    says(stage, word);
    await stage.sync();
  }
  return { stage, id: stage.emulator.world.contact(lea)?.id ?? '' };
}

/** What comes of it when the CRM takes its opt-out back. */
async function takenBack(stage: Stage): Promise<{ writes: number; conflicts: number }> {
  says(stage, 'yes');
  stage.writes();
  const { contacts } = await stage.sync();
  const writes = stage.writes().length;
  stage.close();
  return { writes, conflicts: contacts.conflicts };
}

test('the CRM takes its own opt-out back', async () => {
  const { stage } = await optedOut();
  expect(await takenBack(stage)).toEqual({ writes: 1, conflicts: 0 });
});

test('one that came after the subscription had been taken away is the person’s', async () => {
  const { stage, id } = await optedOut();
  stage.emulator.dashboard.removeFromChannel(id, 'ch_news');
  await stage.sync();
  stage.emulator.dashboard.signUp({ email: lea, channels: ['ch_news'] });
  stage.emulator.dashboard.leave(id, 'ch_news');
  await stage.sync();
  expect(await takenBack(stage)).toEqual({ writes: 0, conflicts: 1 });
});

test('one on a second contact, which had none before, is the person’s', async () => {
  const { stage, id } = await optedOut();
  const second = stage.emulator.seed.contact({ email: lea.toUpperCase() });
  await stage.sync();
  stage.emulator.dashboard.leave(second, 'ch_news');
  await stage.sync();
  stage.emulator.dashboard.deleteContact(id);
  expect(await takenBack(stage)).toEqual({ writes: 0, conflicts: 1 });
});
