/** Our clock is slow, or was set back: a will of before an opt-out is not a newer one. */
import { expect, test } from 'vitest';
import {
  alone,
  openStage,
  stageOf,
  type StageOptions,
  shown,
} from '../../support/engine/engine-stage.ts';

const hour = 3_600_000;
const ANN = 'ann@example.com';
const policy = { resubscribe: 'newer' } as const;

/** Ann is in, by one record or two; two days later one of them states that again. */
async function stated(ids: readonly string[], options: StageOptions) {
  const stage = openStage(options);
  const says = (id: string, ch_news: string, more: object = {}): void => {
    const others = stage.people.filter((one) => one['id'] !== id);
    stage.people = [...others, { id, email: ANN, ch_news, ...more }];
  };
  for (const id of ids) says(id, 'yes');
  await stage.sync();
  await stage.clock.advance(48 * hour);
  const consent_at = new Date(stage.clock.now()).toISOString();
  const wants = (id: string): void => says(id, 'yes', { consent_at });
  await stage.clock.advance(2 * hour);
  return { stage, says, wants };
}

test.each([
  ['it is always slow', -24],
  ['it is mended later', 0],
])(
  'an opt-in stated before the unsubscribe is not newer, with a slow clock: %s',
  async (_what, mended) => {
    let ahead = -24;
    const { stage, wants } = await stated(['1'], { policy, ahead: () => ahead * hour });
    stage.emulator.dashboard.leave(ANN, 'ch_news');
    wants('1');
    await stage.sync();
    ahead = mended;
    await stage.clock.advance(25 * hour);
    await stage.sync();
    expect(shown(stage, ANN)).toBe('opt_out');
    // A consent after that opts the person in.
    wants('1');
    stage.people[0] = { ...stage.people[0], consent_at: new Date(stage.clock.now()).toISOString() };
    await stage.clock.advance(25 * hour);
    await stage.sync();
    expect(shown(stage, ANN)).toBe('opt_in');
  },
);

test.each(['full', 'fast'] as const)(
  'a consent that only a fast clock has passed opts nobody in, in a %s run',
  async (mode) => {
    let ahead = 0;
    const { stage, wants } = await stated(['1'], { policy, ahead: () => ahead * hour });
    stage.emulator.dashboard.leave(ANN, 'ch_news');
    await stage.sync();
    ahead = 72;
    wants('1');
    const at = stage.clock.now() + 48 * hour;
    stage.people[0] = { ...stage.people[0], consent_at: new Date(at).toISOString() };
    await stage.sync({ mode });
    expect(shown(stage, ANN)).toBe('opt_out');
    ahead = 0;
    await stage.clock.advance(49 * hour);
    await stage.sync();
    expect(shown(stage, ANN)).toBe('opt_out');
  },
);

test('a consent that only a fast clock has passed opts nobody in, by an event', async () => {
  let ahead = 0;
  const stage = stageOf({ policy, ahead: () => ahead * hour });
  await stage.sync();
  stage.emulator.dashboard.leave(ANN, 'ch_news');
  await stage.sync();
  ahead = 72;
  const at = stage.clock.now() + 48 * hour;
  stage.people[0] = { ...stage.people[0], consent_at: new Date(at).toISOString() };
  await alone(stage, '1');
  expect(shown(stage, ANN)).toBe('opt_out');
});

test('an opt-out of now applies although the clock of the platform is slow', async () => {
  let ahead = 0;
  const { stage, says } = await stated(['1'], { policy, ahead: () => ahead * hour });
  ahead = 2;
  const at = stage.clock.now() + 2 * hour - 60_000;
  says('1', 'yes', { unsubscribed: new Date(at).toISOString() });
  expect((await stage.sync()).contacts.invalid).toBe(0);
  expect(shown(stage, ANN)).toBe('opt_out');
});

test('a consent of now counts once a platform that was ten minutes slow is right', async () => {
  let ahead = 0;
  const { stage, wants } = await stated(['1'], { policy, ahead: () => ahead * hour });
  stage.emulator.dashboard.leave(ANN, 'ch_news');
  await stage.sync();
  await stage.clock.advance(hour);
  ahead = 1 / 6;
  wants('1');
  const at = stage.clock.now() + ahead * hour;
  stage.people[0] = { ...stage.people[0], consent_at: new Date(at).toISOString() };
  await stage.sync();
  ahead = 0;
  await stage.clock.advance(24 * hour);
  await stage.sync();
  expect(shown(stage, ANN)).toBe('opt_in');
});

test('a consent that a slow clock takes for the future counts once that is mended', async () => {
  let ahead = 0;
  const { stage, wants } = await stated(['1'], { policy, ahead: () => ahead * hour });
  stage.emulator.dashboard.leave(ANN, 'ch_news');
  await stage.sync();
  await stage.clock.advance(hour);
  ahead = -3;
  wants('1');
  stage.people[0] = { ...stage.people[0], consent_at: new Date(stage.clock.now()).toISOString() };
  await stage.sync();
  ahead = 0;
  await stage.sync();
  expect(shown(stage, ANN)).toBe('opt_in');
});

test('an opt-in stated before the unsubscribe is not newer after a run about that person alone', async () => {
  let ahead = -24;
  const { stage, wants } = await stated(['1'], { policy, ahead: () => ahead * hour });
  stage.emulator.dashboard.leave(ANN, 'ch_news');
  wants('1');
  await stage.sync({ mode: { single: ANN } });
  ahead = 0;
  await stage.sync();
  expect(shown(stage, ANN)).toBe('opt_out');
});

test('an opt-in stated before the opt-out of another record does not take it back', async () => {
  let ahead = -24;
  const { stage, says, wants } = await stated(['1', '2'], { ahead: () => ahead * hour });
  wants('2');
  says('1', 'no');
  await stage.sync();
  expect(shown(stage, ANN)).toBe('opt_out');
  ahead = 0;
  stage.people = stage.people.filter(({ id }) => id === '2');
  await stage.sync();
  expect(shown(stage, ANN)).toBe('opt_out');
});

test('an opt-in is not newer when our clock was set back and the platform sends no time', async () => {
  let ahead = 0;
  const { stage, wants } = await stated(['1'], {
    policy,
    ahead: () => ahead * hour,
    wire: (send) => async (request, signal) => {
      const {
        headers: { date: _, ...headers },
        ...answer
      } = await send(request, signal);
      return { ...answer, headers };
    },
  });
  wants('1');
  await stage.sync();
  stage.emulator.dashboard.leave(ANN, 'ch_news');
  ahead = -240;
  await stage.sync();
  ahead = 0;
  await stage.sync();
  expect(shown(stage, ANN)).toBe('opt_out');
});
