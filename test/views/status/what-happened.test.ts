import { expect, onTestFinished, test } from 'vitest';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';
import { changedSince, sumWords } from '../../../src/views/status/what-happened.ts';

const noon = Date.parse('2031-05-03T12:00:00Z');
const hourMs = 3_600_000;

test('the sum has what runs have changed from that time on, and no more', () => {
  const snapshot = openSnapshot(':memory:', { inMemory: true });
  onTestFinished(() => snapshot.close());
  const figures = { mode: 'full', ms: 1, requests: 1, refused: 0, used: null, proofMs: null };
  const tally = { kind: 'contact', op: 'create', state: 'acked', n: 3 } as const;
  for (const at of [noon - hourMs, noon + hourMs]) {
    const run = { run: `run ${at}`, at, changed: 3, changes: [tally], people: null };
    snapshot.figures.add({ ...figures, ...run });
  }
  const changes = changedSince(snapshot, noon);
  expect(changes).toEqual({ contacts: { create: { acked: 3 } }, templates: {} });
  expect(sumWords([changes, changedSince(snapshot, 0)])).toBe('9 created');
});
