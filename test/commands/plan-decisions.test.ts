/** Approving a part of a plan, from a plan file too, and rejecting, as the command line does it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { heldNewcomers } from '../support/commands/mirrored-contacts.ts';

const eve = 'eve@example.com';

/** Two newcomers await approval in both channels. */
async function held() {
  const world = await heldNewcomers({}, { product: 'yes' });
  const write = (name: string, text: string) => {
    const path = join(world.folder, name);
    writeFileSync(path, text);
    return path;
  };
  return { ...world, write };
}

test('a part of a plan is approved, and the rest still awaits approval', async () => {
  const world = await held();
  const few = world.write('few.txt', `# the pilot\n${eve}\nnobody@example.com\n`);
  const { code, out } = await world.call('approve', world.plan, '--people', few, '--by', 'Anna');
  expect({ code, out }).toEqual({
    code: 0,
    out: expect.stringMatching(/^Approved: 1 person to be created or opted in\./),
  });
  expect(out).toContain(`Still awaiting approval under the plan ${world.plan}: 3 people to be`);
  expect(out).toContain('nobody who waits has the address or id of line 3.');
  const { json } = await world.call('status', '--json');
  expect(json).toMatchObject({
    ok: false,
    held: [{ plan: world.plan, opt_in: 4, undecided: { opt_in: 3 }, approved: false }],
    approvals: [{ plan: world.plan, part: expect.stringMatching(/^[0-9a-f]{16}$/), by: 'Anna' }],
  });
  expect(json.attention[0].text).toMatch(/^3 people to be created or opted in: awaiting/);
  expect((await world.call('sync')).code).toBe(3);
  const { length } = world.emulator.world.contacts();
  expect(length).toBe(3);
});

test('approve is refused with a part that nobody can mean', async () => {
  const world = await held();
  for (const [flags, why] of [
    [['--channel', 'ch_nws'], 'the configuration has no such channel'],
    [['--op', 'optin'], 'Allowed choices are delete, opt_out, create, opt_in, update, archive'],
    [['--guard', 'opt_in'], 'Allowed choices are deletes, optOuts, optIns, templates'],
    [['--op', 'delete'], 'no change that awaits approval under'],
    [['--people', 'missing.txt'], '--people missing.txt: the file cannot be read'],
    [['--by', ''], '--by: it is empty'],
    [['--reason', 'as eve@example.com asked'], 'an address is in it'],
    [['--plan', 'plan.json'], 'only one of them'],
  ] as const) {
    const { code, err } = await world.call('approve', world.plan, ...flags);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(why) });
  }
  expect((await world.call('status', '--json')).json.approvals).toEqual([]);
});

test('a plan file is approved, with its hash, its mirror and all of its text', async () => {
  const world = await held();
  const path = join(world.folder, 'plan.json');
  await world.call('plan', '--out', path);
  const { code, json } = await world.call('approve', '--plan', path, '--op', 'create', '--json');
  expect({ code, json }).toMatchObject({ code: 0, json: { approved: world.plan } });
  const text = JSON.stringify({
    version: 1,
    mirror: 'other',
    run: 'x',
    plan: world.plan,
    mode: 'full',
    only: null,
    madeAt: '2026-01-01T00:00:00Z',
  });
  const other = await world.call('approve', '--plan', world.write('other.json', text));
  expect(other).toMatchObject({ code: 2, err: expect.stringContaining('a plan for other, not') });
  const cut = await world.call('approve', '--plan', world.write('cut.json', text.slice(0, -9)));
  expect(cut).toMatchObject({ code: 2, err: expect.stringContaining('it is not JSON') });
  expect((await world.call('approve')).code).toBe(2);
});

test('rejected changes are not made and not reported, until they are approved after all', async () => {
  const world = await held();
  const why = ['--reason', 'wrong export', '--by', 'Anna'];
  const { code, out } = await world.call('reject', world.plan, ...why);
  expect({ code, out }).toEqual({
    code: 0,
    out: expect.stringMatching(/^Rejected: 4 people to be created or opted in\.\nNo run does it/),
  });
  const part = /approve ([0-9a-f]{16})/.exec(out)?.[1] ?? '';
  const { json } = await world.call('status', '--json');
  expect(json).toMatchObject({
    ok: true,
    held: [],
    rejections: [{ plan: world.plan, part, opt_in: 4, by: 'Anna', reason: 'wrong export' }],
  });
  expect((await world.call('status')).out).toMatch(
    /rejected by hand +4 people .*, by Anna \(wrong export\): `crm-mirror approve \w+ -c \S+` takes it back/,
  );
  expect((await world.call('explain', eve)).out).toContain('rejected by Anna (wrong export)');
  expect((await world.call('sync')).code).toBe(0);
  expect((await world.call('sync', '--fast')).code).toBe(0);
  expect((await world.call('plan', '--exit-code')).code).toBe(0);
  expect(world.writes()).toEqual([]);
  expect((await world.call('approve', part)).code).toBe(0);
  expect((await world.call('sync')).code).toBe(0);
  expect(world.emulator.world.contacts()).toHaveLength(4);
});

test('rejecting again says that nothing is left, and needs a reason', async () => {
  const world = await held();
  await world.call('reject', world.plan, '--reason', 'wrong export');
  const again = await world.call('reject', world.plan, '--reason', 'wrong export', '--json');
  expect(again).toMatchObject({ code: 0, json: { rejected: null, part: null } });
  expect((await world.call('reject', world.plan)).code).toBe(2);
  expect((await world.call('reject', world.plan, '--reason', ' ')).code).toBe(2);
  expect(await world.call('reject', 'cafe', '--reason', 'none')).toMatchObject({
    code: 2,
    err: expect.stringContaining('no change awaits approval under cafe'),
  });
});
