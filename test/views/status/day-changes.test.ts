import { expect, onTestFinished, test } from 'vitest';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';
import { readDays } from '../../../src/views/status/day-changes.ts';

const noon = Date.parse('2031-05-03T12:00:00Z');
const hourMs = 3_600_000;

test('the runs of a day are counted from the same time on as their changes', () => {
  const snapshot = openSnapshot(':memory:', { inMemory: true });
  onTestFinished(() => snapshot.close());
  const figures = { mode: 'full', ms: 1, requests: 1, refused: 0, used: null, proofMs: null };
  const tally = { kind: 'contact', op: 'create', state: 'acked', n: 3 } as const;
  for (const at of [noon - hourMs, noon + hourMs]) {
    const run = { run: `run ${at}`, at, changed: 3, changes: [tally], people: null };
    snapshot.figures.add({ ...figures, ...run });
  }
  const [day, ...others] = readDays(snapshot, 'acme', noon);
  expect(day).toMatchObject({
    day: '2031-05-03',
    runs: 1,
    changes: { contacts: { create: { acked: 3 } } },
  });
  expect(others).toEqual([]);
});
