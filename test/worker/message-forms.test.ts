/** What a message looks like if it is long, and where its link leads. */
import { slackSink, type Item, itemOf, pageOf } from '../../src/worker/notifications/sinks.ts';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { receiver, refusing, reporting } from '../support/commands/notice-receivers.ts';

const failed = (subject: string): Item =>
  itemOf({
    type: 'mirror.failed',
    trouble: 'failed',
    subject,
    reason: `${subject} is so`,
    fix: '',
  });

test.each([
  [47, 49, undefined],
  [48, 50, 'and 1 more'],
  [120, 50, 'and 73 more'],
])('Slack gets at most 50 blocks: %i problems are %i blocks', async (problems, blocks, more) => {
  const { heard, url } = await receiver();
  const sink = slackSink({ url }, systemClock);
  const [first = failed('p'), ...others] = Array.from({ length: problems }, (_, at) =>
    failed(`channel_lost c${at}`),
  );
  const message = { id: 'm', at: 0, mirror: 'acme', run: null, link: 'https://x.org/m/acme' };
  const { signal } = new AbortController();
  await sink.deliver({ ...message, items: [first, ...others] }, signal);
  await sink.close();
  const sent = JSON.parse(heard[0]?.body ?? '').blocks;
  expect(sent).toHaveLength(blocks);
  expect(sent.at(-1).text.text).toContain('Open the console');
  if (more !== undefined) expect(sent.at(-2).text.text).toBe(more);
});

test('the link leads to the page that mends what is reported, if it is one', async () => {
  const { heard, url } = await receiver();
  const server = { publicUrl: 'https://mirror.example' };
  const mirror = await reporting({ to: [{ ntfy: { url } }] }, server);
  const fault = refusing(mirror.world, 403);
  await mirror.run();
  fault.undo();
  await mirror.run();
  expect(heard.map(({ headers }) => headers['click'])).toEqual([
    'https://mirror.example/m/world/runs',
    'https://mirror.example/m/world',
  ]);
});

test('problems of different pages, and those without one, lead to the overview', () => {
  const over = itemOf({
    type: 'mirror.recovered',
    trouble: 'held',
    subject: 'held',
    reason: 'over',
    fix: '',
  });
  expect(pageOf([failed('opt_outs_refused')])).toBe('problems');
  expect(pageOf([failed('opt_outs_refused'), over])).toBe('problems');
  expect(pageOf([failed('opt_outs_refused'), failed('run_failed')])).toBe('');
  expect(pageOf([failed('redis_away')])).toBe('');
  expect(pageOf([over])).toBe('');
});
