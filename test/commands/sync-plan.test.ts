import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

interface Planned extends Mirrored {
  plan: string;
  apply(...flags: string[]): ReturnType<Mirrored['call']>;
}

/** A mirror, and a plan of it in a file. */
async function planned(...flags: string[]): Promise<Planned> {
  const world = await mirrored({ kinds: ['contact', 'template'] });
  world.template('welcome', { subject: 'Hi' });
  const plan = join(world.folder, 'plan.json');
  expect((await world.call('plan', '--out', plan, ...flags)).code).toBe(0);
  return { ...world, plan, apply: async (...more) => world.call('sync', '--plan', plan, ...more) };
}

function rewrite({ plan }: Planned, fields: object): void {
  writeFileSync(plan, JSON.stringify({ ...JSON.parse(readFileSync(plan, 'utf8')), ...fields }));
}

const hourMs = 3_600_000;
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();

describe('sync --plan', () => {
  test('does what was planned, from a file without any address', async () => {
    const world = await planned();
    const text = readFileSync(world.plan, 'utf8');
    expect(text).not.toContain('@');
    const file = JSON.parse(text);
    expect(file).toMatchObject({ version: 1, mirror: 'world', mode: 'full', only: null });
    const { code, json } = await world.apply('--json');
    expect({ code, json }).toMatchObject({
      code: 0,
      json: { status: 'done', mode: 'full', plan: file.plan, contacts: { applied: { create: 2 } } },
    });
    expect(json.contacts.changes).toEqual(file.contacts.changes);
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in' });
    expect((await world.call('sync', '--json')).json.contacts.applied).toMatchObject({ create: 0 });
  });

  test('runs in the mode and for the record types of the plan', async () => {
    const world = await planned('--fast', '--only', 'contacts');
    const { code, json } = await world.apply('--json');
    expect({ code, json }).toMatchObject({ code: 0, json: { mode: 'fast', only: 'contacts' } });
    expect(world.emulator.world.templates()).toEqual([]);
  });

  test('refuses a plan that was applied before, even one without changes', async () => {
    const world = await planned();
    expect((await world.apply()).code).toBe(0);
    const again = await world.apply();
    expect(again).toMatchObject({ code: 2, err: expect.stringMatching(/applied at .*used up/) });
    const runs = (await world.call('runs', '--json')).json.runs;
    expect(runs).toHaveLength(1);
    expect((await world.call('plan', '--out', world.plan)).code).toBe(0);
    expect((await world.apply('--json')).json.contacts.changes).toMatchObject({ create: 0 });
    expect(await world.apply()).toMatchObject({ code: 2, err: expect.stringContaining('used up') });
    expect((await world.call('status', '--json')).json.ok).toBe(true);
  });

  test.each<[string, (world: Planned) => void]>([
    ['the CRM changed', (world) => world.people([{ email: ann, news: 'yes' }])],
    ['the file names another plan', (world) => rewrite(world, { plan: '0123456789abcdef' })],
  ])('is refused when planning again gives another plan: %s', async (_, change) => {
    const world = await planned();
    change(world);
    const { code, err, json } = await world.apply('--json');
    expect({ code, err }).toEqual({
      code: 2,
      err: expect.stringMatching(/has changed.*plan again/),
    });
    expect(json).toMatchObject({ status: 'failed', mode: 'full' });
    expect(world.writes()).toEqual([]);
    // What was refused was not applied.
    expect((await world.call('plan', '--out', world.plan)).code).toBe(0);
    expect((await world.apply()).code).toBe(0);
  });

  test('is refused when it is old, of somebody else, or no plan', async () => {
    const world = await planned();
    const text = readFileSync(world.plan, 'utf8');
    for (const [fields, why] of [
      [{ madeAt: ago(25 * hourMs) }, /1 d 1 h old|25 h old/],
      [{ madeAt: ago(-hourMs) }, /yet to come/],
      [{ mirror: 'acme' }, /a plan for acme, not for world/],
      [{ version: 2 }, /version is not as/],
      [{ plan: '' }, /plan is not as/],
      [{ mode: 'single' }, /mode is not as/],
      [{ madeAt: 'yesterday' }, /madeAt is not as/],
      [undefined, /there is no such file/],
      ['plan', /it is not JSON/],
      ['[]', /the document is not as/],
    ] as const) {
      rmSync(world.plan, { force: true });
      if (typeof fields === 'string') writeFileSync(world.plan, fields);
      else if (fields)
        writeFileSync(world.plan, JSON.stringify({ ...JSON.parse(text), ...fields }));
      const { code, err } = await world.apply();
      expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(why) });
      expect(err.trim().split('\n')).toHaveLength(1);
    }
    expect(world.writes()).toEqual([]);
    expect((await world.call('runs', '--json')).json.runs).toEqual([]);
  });

  test('exits with 75 and keeps the plan while another process runs or the mirror is paused', async () => {
    const world = await planned();
    await world.call('pause');
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    expect((await world.apply()).err).toContain('holds this mirror');
    lease.release();
    expect((await world.apply()).code).toBe(75);
    await world.call('resume');
    expect((await world.apply()).code).toBe(0);
  });
});

test('plan writes no file when there is no plan', async () => {
  const world = await mirrored();
  world.server.fail(() => true, { is: 'answer', status: 401 });
  const plan = join(world.folder, 'plan.json');
  expect((await world.call('plan', '--out', plan)).code).toBe(1);
  expect(() => readFileSync(plan)).toThrow(/ENOENT/);
});

describe('plan --out', () => {
  test.each([
    ['the snapshot', 'cli/snapshot.sqlite'],
    ['the export', 'people.csv'],
    ['the configuration', 'mirror.yaml'],
    ['a folder', 'templates'],
  ])('does not overwrite a file that is no plan: %s', async (_, name) => {
    const world = await mirrored();
    expect((await world.call('sync')).code).toBe(0);
    const file = join(world.folder, name);
    const asked = world.server.arrived.length;
    const { code, err } = await world.call('plan', '--out', file);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('it is there and is') });
    expect(world.server.arrived).toHaveLength(asked);
    expect((await world.call('sync')).code).toBe(0);
  });

  test('requires an existing folder, and prints the reason for a refused run', async () => {
    const world = await mirrored();
    const file = join(world.folder, 'nowhere/plan.json');
    const { code, err, json } = await world.call('plan', '--out', file, '--json');
    const reason = expect.stringMatching(/^\/.*: there is no folder .*nowhere → make it/);
    expect({ code, reasons: json.reasons }).toEqual({ code: 2, reasons: [reason] });
    expect(err).toMatch(/^crm-mirror: \//);
  });
});
