/** Rules and windows of the configuration, from the command line to the platform and back. */
import { expect, test } from 'vitest';
import { localTime, weekdays } from '../../src/domain/values/local-time.ts';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';

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

test('a closed window leaves opt-ins to a later run, and the run says until when', async () => {
  const today = weekdays.indexOf(localTime(Date.now(), 'UTC').weekday);
  const day = weekdays[(today + 3) % 7];
  const windows = [{ allow: `${day} 10:00-11:00`, for: ['opt_in'] }];
  const { call, config, people } = await mirrored();
  await call('sync');
  people(
    [ann, bob, 'carl@example.com', 'dora@example.com'].map((email) => ({ email, news: 'yes' })),
  );
  config({ windows });
  const run = await call('sync', '--json');
  expect(run.code).toBe(0);
  expect(run.json).toMatchObject({
    status: 'done',
    deferred: { delete: 0, opt_in: 2, template: 0 },
    contacts: { applied: { create: 0 }, held: { opt_in: 0 } },
  });
  const said = `2 people to be created or opted in wait for ${day} 10:00 UTC (windows)`;
  expect((await call('sync')).said).toContain(said);
  expect((await call('plan')).said).toContain(said);
  const status = await call('status');
  const waits = `2 people to be created or opted in wait for ${day} 10:00 UTC`;
  expect(status.out).toContain(`nothing needs attention; ${waits} (windows)`);
  expect(status.out).toMatch(new RegExp(`^ +windows +${waits}$`, 'm'));
  const opensAt = expect.stringMatching(/T10:00:00Z$/);
  const waiting = [{ class: 'opt_in', records: 2, opens: `${day} 10:00 UTC`, opensAt }];
  expect((await call('status', '--json')).json).toMatchObject({ ok: true, waiting });
  const dora = ['explain', 'dora@example.com'];
  expect((await call(...dora)).out).toContain(
    `1 person to be created or opted in waits for ${day} 10:00 UTC`,
  );
  const closed = [{ class: 'opt_in', opens: `${day} 10:00 UTC`, opensAt }];
  expect((await call(...dora, '--json')).json).toMatchObject({ closed });
  config({ windows: [{ allow: '00:00-24:00' }] });
  expect((await call('status')).out).toContain(
    '2 people to be created or opted in wait for the next run',
  );
  expect((await call('sync', '--json')).json.contacts.applied).toMatchObject({ create: 2 });
  expect((await call('status', '--json')).json.waiting).toEqual([]);
});
