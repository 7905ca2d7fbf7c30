/** What the end of a run keeps, and what it forgets. */
import { expect, test } from 'vitest';
import {
  ann,
  cid,
  edit,
  fast,
  openStage,
  record,
  settled,
} from '../support/engine/engine-stage.ts';

const day = 86_400_000;

test('what a run changed is kept for as long as runs are', async () => {
  const stage = await settled();
  const keeps = () => stage.snapshot.runChanges.lastAt('contact', ann) !== undefined;
  await stage.clock.advance(80 * day);
  await stage.sync();
  expect(keeps()).toBe(true);
  await stage.clock.advance(11 * day);
  await stage.sync();
  expect(keeps()).toBe(false);
});

test('an incomplete reading ends no problem of a record that it does not have', async () => {
  const stage = openStage();
  stage.people.push(record('1', ann), { id: '2', email: 'bob@example.com', ch_news: 'perhaps' });
  const known = () => stage.snapshot.retryLater.counts().map(({ kind, n }) => [kind, n]);
  await stage.sync();
  expect(known()).toEqual([['contact', 1]]);
  stage.people.pop();
  stage.certificate = { complete: false, reading: 'half', why: 'half of it', fix: 'again' };
  await stage.sync();
  expect(known()).toEqual([['contact', 1]]);
  stage.certificate = { complete: true, reading: 'whole' };
  await stage.sync();
  expect(known()).toEqual([]);
});

test('a fast run that changed somebody counts the people subscribed again', async () => {
  const stage = await settled();
  const counts = () => stage.snapshot.figures.people({ since: 0, stepMs: 1 });
  const people = () => counts().map((one) => one.people);
  await stage.clock.advance(1_000);
  await fast(stage);
  expect(people()).toEqual([{ ch_news: 2 }]);
  edit(stage, '3', { email: cid, ch_news: 'yes' });
  await stage.clock.advance(1_000);
  await fast(stage);
  expect(people()).toEqual([{ ch_news: 2 }, { ch_news: 3 }]);
});

test('runs are news that changed something, or began or ended a wait; only what is new counts', async () => {
  const stage = await settled({ guards: { opt_out: { percent: 0, floor: 0, holdForMs: day } } });
  const runs: string[] = [];
  const next = async (...wishes: [id: string, news: string][]) => {
    for (const [id, news] of wishes) edit(stage, id, { ch_news: news });
    await stage.clock.advance(1_000);
    const { run, status } = await stage.sync();
    runs.push(run);
    return status;
  };
  expect(await next()).toBe('done');
  expect(await next(['1', 'no'])).toBe('held');
  expect(await next()).toBe('held');
  expect(await next(['2', 'no'])).toBe('held');
  expect(await next(['1', 'yes'], ['2', 'yes'])).toBe('done');
  expect(await next()).toBe('done');
  const { runs: kept } = stage.snapshot;
  const [, first, , second, last] = runs;
  const load = kept.newest(9).at(-1)?.id;
  const listed = kept.newest(9, { isNews: true, mode: 'full' }).map(({ id }) => id);
  expect(listed).toEqual([last, second, first, load]);
  const since = { since: 0, before: Number.MAX_SAFE_INTEGER, ids: '[]', count: 9 };
  const held = kept.news(since).filter((one) => one.held > 0);
  expect(held.map((one) => [one.id, one.held])).toEqual([
    [second, 1],
    [first, 1],
  ]);
});
