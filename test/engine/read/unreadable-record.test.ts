/** A record that its source cannot read by itself: it says nothing, and the run goes on. */
import { expect, test } from 'vitest';
import { alone, sent, stageOf } from '../../support/engine/engine-stage.ts';

test('an event about a record that cannot be read leaves the person as they are', async () => {
  const unreadable = new Set<string>();
  const stage = stageOf({ unreadable });
  await stage.sync();
  sent(stage);
  unreadable.add('1');
  const summary = await alone(stage, '1');
  expect(summary).toMatchObject({
    status: 'rejected',
    contacts: { invalid: 1, changes: { opt_out: 0 } },
  });
  expect(summary.problems).toMatchObject([
    { class: 'invalid', reason: 'record 1: cannot be read' },
  ]);
  expect(sent(stage)).toEqual([]);
});
