/** The titles of the changes that a plan or a run names. */
import { expect, test } from 'vitest';
import { sampleTitle } from '../../../src/compose/output/change-groups.ts';
import { changesWords } from '../../../src/views/status/run-sections.ts';
import { renderLine } from '../../../src/compose/output/text-style.ts';

const optOut = { kind: 'contact', op: 'opt_out', held: false, n: 42, own: 42 } as const;
const titled = (records: number, parts: number): string =>
  renderLine(sampleTitle(optOut, { records, parts }), false);

test('a title counts subscriptions, and the people in the lines below', () => {
  expect(titled(10, 17)).toBe('- opt out (17 of 42 subscriptions, of 10 people)');
  expect(titled(20, 42)).toBe('- opt out (42 subscriptions, of 20 people)');
  expect(titled(10, 10)).toBe('- opt out (10 of 42)');
});

test('the list of runs says that a change was not sent, because it was no longer right', () => {
  const contacts = { opt_in: { acked: 3, stale: 20 } };
  expect(changesWords({ contacts, templates: {} }, 'done')).toBe(
    '3 opted in; no longer right and not sent: 20 opt in',
  );
});
