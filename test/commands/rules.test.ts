/** Rules of the configuration, from the command line to the platform and back. */
import { expect, test } from 'vitest';
import { mirrored } from '../support/commands/mirrored-contacts.ts';

test('a rule asks, says why, and an approval releases what it withheld', async () => {
  // oxlint-disable-next-line unicorn/no-thenable
  const rule = { when: 'plan.create > 1', then: 'ask', say: 'Look first', for: ['opt_in'] };
  const { call } = await mirrored({ lines: { rules: [rule] } });
  const shown = await call('plan');
  expect(shown.said).toContain('Look first (the rule `plan.create > 1`)');
  const run = await call('sync', '--json');
  expect(run.code).toBe(3);
  expect(run.json).toMatchObject({ status: 'held', contacts: { held: { opt_in: 2 } } });
  expect(run.json.problems[0].reason).toContain('Look first');
  expect((await call('problems')).out).toContain('Look first');
  expect((await call('approve', run.json.plan)).code).toBe(0);
  const after = await call('sync', '--json');
  expect(after.code).toBe(0);
  expect(after.json).toMatchObject({ contacts: { applied: { create: 2 }, held: { opt_in: 0 } } });
});
