/** The titles of the changes that a plan or a run names. */
import { expect, test } from 'vitest';
import { sampleSection } from '../../../src/views/run/change-groups.ts';
import { changesWords } from '../../../src/views/status/run-sections.ts';

const optOut = { kind: 'contact', op: 'opt_out', held: false, n: 42, own: 42 } as const;

/** The title of so many people with so many subscriptions. */
function titled(people: number, parts: number): unknown {
  const records = Array.from({ length: people }, (_, at) => {
    const n = Math.floor(parts / people) + Number(at < parts % people);
    const channels = Array.from({ length: n }, (__, channel) => `ch_${channel}`);
    return { key: `p${at}@example.com`, parts: channels, reason: '' };
  });
  const shown = { who: ({ key }: { key: string }) => key, isDone: false };
  return sampleSection({ ...optOut, records }, shown).title;
}

test('a title counts subscriptions, and the people in the lines below', () => {
  expect(titled(10, 17)).toBe('Opt out (17 of 42 subscriptions, of 10 people)');
  expect(titled(20, 42)).toBe('Opt out (42 subscriptions, of 20 people)');
  expect(titled(10, 10)).toBe('Opt out (10 of 42)');
});

test.each([
  // Some templates are created in two steps.
  [{ create: { acked: 4 }, complete: { acked: 4 } }, '4 templates created'],
  [{ create: { acked: 1 }, complete: { acked: 3 } }, '1 template created, 2 templates completed'],
  [{ create: { acked: 1 }, update: { acked: 3 } }, '1 template created, 3 templates updated'],
])('the list of runs counts a template that was created once: %j', (templates, words) => {
  expect(changesWords({ contacts: {}, templates }, 'done')).toBe(words);
});

test.each([
  ['done', '3 opted in; not sent: 2 opt in; no longer right and not sent: 20 opt in'],
  ['running', '3 opted in; still to send: 2 opt in; no longer right and not sent: 20 opt in'],
  // What a run has left is planned, and stale from the next run on, which plans it again.
  ['interrupted', '3 opted in; left to the next run: 22 opt in'],
  ['failed', '3 opted in; left to the next run: 22 opt in'],
])('the list of runs names what was not sent by how the run ended: %s', (status, words) => {
  const contacts = { opt_in: { acked: 3, planned: 2, stale: 20 } };
  expect(changesWords({ contacts, templates: {} }, status)).toBe(words);
});
