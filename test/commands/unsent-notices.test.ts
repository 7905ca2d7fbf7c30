/** What ended while its receiver was away is told once the receiver answers again. */
import { expect, test } from 'vitest';
import type { Notice } from '../../src/views/status/trouble-notice.ts';
import { afterAttempt, solvedNotices, type Told } from '../../src/worker/notifications/notifier.ts';
import { receiver, refusing, reporting } from '../support/commands/notice-receivers.ts';
import { untilHolds } from '../support/waiting.ts';

const away = Array.from({ length: 4 }, () => 500);

/** A mirror whose run failed while its receiver was away, and whose next run was well. */
async function missed(form: 'slack' | 'webhook' = 'slack') {
  const { heard, url } = await receiver(...away);
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const to = form === 'slack' ? [{ slack: { url } }] : [{ webhook: { url, secret } }];
  const mirror = await reporting({ to });
  await mirror.world.call('sync');
  const fault = refusing(mirror.world, 403);
  expect(await mirror.run()).toBe(1);
  expect(heard.splice(0)).toHaveLength(4);
  fault.undo();
  return { ...mirror, heard };
}

test('the next run tells it, with its times, and once', async () => {
  const { heard, run } = await missed();
  expect(await run()).toBe(0);
  expect(heard).toHaveLength(1);
  const { text } = JSON.parse(heard[0]?.body ?? '');
  expect(text).toMatch(
    /world: runs end well again\nfrom \S+Z to \S+Z, solved since: the last full run .* failed/,
  );
  expect(await run()).toBe(0);
  expect(heard).toHaveLength(1);
});

test('the timer of a worker tells it without another run', async () => {
  const { heard, world, begin } = await missed();
  expect((await world.call('sync')).code).toBe(0);
  begin().watch();
  await untilHolds(() => expect(heard).toHaveLength(1));
  expect(heard[0]?.body).toContain('solved since');
});

test('the timer waits longer after each failure, and stops with the notifier', async () => {
  const late = Promise.withResolvers<void>();
  const times: number[] = [];
  const noted = {
    get status() {
      times.push(clock.now());
      return 500;
    },
  };
  const fourth = { status: 500, after: late.promise };
  const rest = Array.from({ length: 400 }, () => noted);
  const { heard, url } = await receiver(noted, 500, 500, fourth, ...rest);
  const { world, clock, begin } = await reporting({ to: [{ slack: { url } }] });
  refusing(world, 403);
  await world.call('sync');
  const notifier = begin();
  notifier.watch();
  // While the fourth waits for its answer, the timer finds the same again.
  await untilHolds(() => expect(heard).toHaveLength(4));
  await untilHolds(() => expect(clock.now() - (times[0] ?? 0)).toBeGreaterThan(5 * 60_000));
  const answered = clock.now();
  late.resolve();
  await untilHolds(() => expect(times.length).toBeGreaterThanOrEqual(4));
  const [, fifth = 0, sixth = 0, seventh = 0] = times;
  const waited = [fifth - answered, sixth - fifth, seventh - sixth].map((ms) => ms / 60_000);
  expect(waited[0]).toBeGreaterThan(1.9);
  expect(waited[1]).toBeGreaterThan(9.9);
  expect(waited[2]).toBeGreaterThan(49);
  await notifier.close();
  const { length } = heard;
  await new Promise((resolve) => void setTimeout(resolve, 200));
  expect(heard).toHaveLength(length);
});

const failed = (subject: string): Notice => ({
  type: 'mirror.failed',
  trouble: 'failed',
  subject,
  reason: subject,
  fix: '',
});

test('twenty are kept, for a week', () => {
  const day = 86_400_000;
  const start: Told = { lines: {}, unsent: [] };
  const tried = Array.from({ length: 30 }, (_, at) => ({
    notice: failed(`p${at}`),
    at: at * 1_000,
    isSent: false,
  }));
  const { unsent, lines } = tried.reduce(afterAttempt, start);
  expect(unsent.map(({ subject }) => subject)).toEqual(
    Array.from({ length: 20 }, (_, at) => `p${at + 10}`),
  );
  expect(solvedNotices({ lines, unsent }, [], 6 * day)).toHaveLength(20);
  expect(solvedNotices({ lines, unsent }, [], 8 * day)).toEqual([]);
  const late = { notice: failed('late'), at: 8 * day, isSent: false };
  expect(afterAttempt({ lines, unsent }, late).unsent).toHaveLength(1);
});

test('the times are those of the first attempt, and of the first look without the problem', () => {
  const start: Told = { lines: {}, unsent: [] };
  const first = afterAttempt(start, { notice: failed('p'), at: 1_000, isSent: false });
  const again = afterAttempt(first, { notice: failed('p'), at: 2_000, isSent: false });
  expect(again.unsent).toMatchObject([{ from: 1_000 }]);
  const [solved] = solvedNotices(again, [], 3_000);
  if (!solved) throw new Error('it is over');
  const later = afterAttempt(again, { notice: solved, at: 4_000, isSent: false });
  expect(solvedNotices(later, [], 9_000)[0]?.reason).toContain('to 1970-01-01T00:00:03Z');
  expect(afterAttempt(later, { notice: solved, at: 9_500, isSent: true })).toEqual(start);
});
