/** What a guard holds, as the command line tells it and lets it pass. */
import { expect, test } from 'vitest';
import { operatorName } from '../../src/compose/process-shell.ts';
import { mirrored, heldNewcomers } from '../support/commands/mirrored-contacts.ts';

const nobody = { delete: 0, opt_in: 0, opt_out: 0, template: 0 };

test('a run that holds changes says which, why, and how to approve them', async () => {
  const world = await heldNewcomers();
  expect(world.held).toEqual({ delete: 0, opt_in: 2, opt_out: 0 });
  const { code, err, out } = await world.call('sync');
  expect(code).toBe(3);
  expect(err).toContain('2 people would be created or opted in, and this awaits approval');
  expect(err).toContain(`crm-mirror approve ${world.plan}`);
  expect(out).toContain('Done, except for what awaits approval.');
  expect(out).toContain(
    `2 people await approval (opt-ins): \`crm-mirror approve ${world.plan} -c `,
  );
  expect(`${out}${err}`).not.toContain('@');
  const planned = await world.call('plan', '--exit-code', '--json');
  expect(planned).toMatchObject({ code: 3, json: { plan: world.plan, status: 'held' } });
  expect((await world.call('plan')).out).toMatch(/^ {2}! {2}#\w+ {2}ch_news/m);
  expect(world.writes()).toEqual([]);
});

test('the reason of a hold, and the hour at which held opt-outs are applied, stay in view', async () => {
  const world = await mirrored();
  const everybody = (says: string) =>
    Array.from({ length: 6 }, (_, at) => ({ email: `p${at}@example.com`, news: says }));
  world.people(everybody('yes'));
  expect((await world.call('sync')).code).toBe(0);
  world.config({ guards: { optOuts: { percent: 1, floor: 1 } } });
  world.people(everybody('no').with(0, { email: 'p0@example.com', news: 'yes' }));
  const first = await world.call('sync');
  const applied = /from (\S+) on, what the CRM still states is applied without approval/;
  const hourIn = (text: string): number => Date.parse(applied.exec(text)?.[1] ?? '');
  // The platform tells its time in whole seconds.
  const isSameHour = (text: string): boolean => Math.abs(hourIn(text) - hourIn(first.out)) <= 1_000;
  const why = 'more than 1 in one run (the greater of 1 and 1 % of 6 people subscribed)';
  expect(first.err).toContain(why);
  for (const [command, ...more] of [['sync'], ['plan'], ['status'], ['problems']]) {
    const { said } = await world.call(command ?? '', ...more);
    expect(said).toSatisfy(isSameHour, command);
    if (command === 'status') continue;
    expect({ command, said }).toEqual({ command, said: expect.stringContaining(why) });
  }
  const { json } = await world.call('status', '--json');
  expect(json.attention[0].text).toSatisfy(isSameHour);
});

test('approve records the approval and runs nothing; the next run applies it', async () => {
  const world = await heldNewcomers();
  const since = expect.stringMatching(/^\d{4}-\d\d-\d\dT/);
  const before = (await world.call('status', '--json')).json;
  expect(before).toMatchObject({
    ok: false,
    attention: [{ code: 'held', text: expect.stringContaining('2 people to be created') }],
    held: [{ plan: world.plan, since, delete: 0, opt_in: 2, changes: [{ op: 'create' }, {}] }],
    approvals: [],
  });
  expect((await world.call('status')).out).toMatch(/create #\w{12} in ch_news/);
  const why = ['--by', 'Anna', '--reason', 'two new branches'];
  const { code, json } = await world.call('approve', world.plan.toUpperCase(), '--json', ...why);
  const who = { by: 'Anna', reason: 'two new branches' };
  expect({ code, json }).toEqual({
    code: 0,
    json: {
      mirror: 'world',
      approved: world.plan,
      part: null,
      held: { delete: 0, opt_in: 2, opt_out: 0, template: 0 },
      rest: nobody,
      ...who,
      until: since,
    },
  });
  expect(world.writes()).toEqual([]);
  expect((await world.call('status', '--json')).json).toMatchObject({
    ok: true,
    approvals: [{ plan: world.plan, part: null, at: since, until: since, ...who }],
  });
  expect((await world.call('status')).out).toMatch(
    /approved +[0-9a-f]{16}, until the next full .*, by Anna \(two new branches\)/,
  );
  expect((await world.call('explain', 'eve@example.com')).out).toContain(
    'create in ch_news approved by Anna (two new branches)',
  );
  expect((await world.call('sync')).code).toBe(0);
  expect(world.writes()).toHaveLength(2);
  const [{ run }] = (await world.call('runs', '--json')).json.runs;
  const approval = { plan: world.plan, ...who };
  expect((await world.call('runs', run, '--json')).json.listed).toMatchObject([
    { op: 'create', approval },
    { op: 'create', approval },
  ]);
  expect((await world.call('runs', run)).out).toContain('approved by Anna (two new branches)');
  expect((await world.call('explain', 'eve@example.com')).out).toContain('approved by Anna');
  expect((await world.call('status', '--json')).json).toMatchObject({
    ok: true,
    held: [],
    approvals: [],
  });
});

test('sync --approve approves and applies, also a plan that only `plan` has shown', async () => {
  const world = await heldNewcomers();
  world.people(
    ['eve', 'kim', 'lea'].map((name) => ({ email: `${name}@example.com`, news: 'yes' })),
  );
  const { plan } = (await world.call('plan', '--json')).json;
  expect(plan).not.toBe(world.plan);
  const { code, json } = await world.call('sync', '--approve', plan, '--by', 'Anna', '--json');
  expect({ code, applied: json.contacts.applied.create }).toEqual({ code: 0, applied: 3 });
  expect((await world.call('runs', json.run)).out).toContain('approved by Anna');
  const decision = (await world.call('audit', 'export')).out.match(/.*"what":"approve".*/)?.[0];
  expect(JSON.parse(decision ?? '')).toMatchObject({ name: 'Anna', as: operatorName() });
  expect((await world.call('sync', '--by', 'Anna')).code).toBe(2);
});

test.each(['approve', 'sync --approve'])(
  '%s of an unknown plan names the plan that is held',
  async (how) => {
    const world = await heldNewcomers();
    const { code, err } = await world.call(...how.split(' '), '0123456789abcdef');
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringContaining(`one of these: ${world.plan}`),
    });
    expect(world.writes()).toEqual([]);
  },
);
