/** Ids of runs in `status`, only for those who ask for internals; and who is counted as ours. */
import { expect, test } from 'vitest';
import { progressWords } from '../../src/views/status/status-sections.ts';
import { bob, mirrored } from '../support/commands/mirrored-contacts.ts';

test('names runs by their ids with --verbose only', async () => {
  const world = await mirrored();
  await world.call('sync');
  expect((await world.call('status', '--verbose')).out).toMatch(
    /last complete run +\d s ago \(\d{8}T\d{6}Z-\w+, began .*\n *last full run +done \(\d{8}T\w+-/,
  );
  expect((await world.call('status')).out).toMatch(/last full run +done \(began \S+, took \S+ s\)/);
  expect((await world.call('status')).out).not.toMatch(/\d{8}T\d{6}Z-/);
});

test('names the process of a run with --verbose only', () => {
  const at = '2026-11-23T03:00:00Z';
  const about = { mode: 'full', command: 'sync', pid: 4711, since: at, at } as const;
  const measured = { phase: 'applying', kind: 'contact', done: 1, total: 2 } as const;
  const rest = { share: 0.5, perSecond: null, leftMs: null, limit: null };
  const running = { ...about, ...measured, ...rest };
  const line = `since ${at}: applying: 1 of 2 contact changes`;
  expect(progressWords({ at, running }, true)).toBe(
    `a full run by \`sync\` (process 4711) ${line}`,
  );
  expect(progressWords({ at, running })).toBe(`a full run by \`sync\` ${line}`);
});

test('people are counted as ours whatever became of them', async () => {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.seed.contact({ email: 'foreign@example.com', channels: { ch_news: 'opt_in' } });
  world.people([{ email: bob, news: 'yes' }]);
  await world.call('sync');
  expect((await world.call('status', '--json')).json.recorded.contacts).toBe(2);
});
