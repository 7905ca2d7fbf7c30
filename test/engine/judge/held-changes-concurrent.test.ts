/** What a run writes, and lets go, in turns: what other runs do between two of them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { Stage, StageOptions } from '../../support/engine/engine-stage.ts';
import {
  approve,
  approving,
  deletes,
  exportOf,
  flag,
  mirrored,
  range,
} from '../../support/engine/change-volume.ts';

async function onDisk(options: StageOptions = {}): Promise<{ stage: Stage; path: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-held-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 's.sqlite');
  return { stage: await mirrored({ ...options, path }), path };
}

/** Once, in the `nth` turn in which this holds. */
function meanwhile(stage: Stage, holds: () => boolean, nth: number, act: () => Promise<unknown>) {
  const { sleep } = stage.clock;
  let left = nth;
  let isOver = false;
  stage.clock.sleep = async (ms, signal) => {
    await sleep(ms, signal);
    if (isOver || !holds() || left-- > 0) return;
    isOver = true;
    await act();
  };
}

/** Flags five people of twenty as deleted, where the guard lets three pass. */
const leaving = (stage: Stage): void =>
  exportOf(stage, [...[0, 1, 2, 3, 4].map(flag), ...range(5, 21)]);
const isHolding = (stage: Stage) => () => stage.snapshot.guarded.countChanges() > 0;

/** How many rows of the snapshot have this text in them, by table. */
function traces(path: string, text: string): [string, number][] {
  const db = new Database(path, { readonly: true });
  const tables = db.prepare<[], { name: string }>(
    `select name from sqlite_schema where type = 'table'`,
  );
  const found = tables.all().map(({ name }): [string, number] => {
    const rows = db.prepare(`select * from ${name}`).all();
    return [name, rows.filter((row) => JSON.stringify(row).includes(text)).length];
  });
  db.close();
  return found.filter(([, n]) => n > 0);
}

test.each([0, 3, 6, 9])(
  'a plan always shows the same changes, with a person taken in step %d of its writing',
  async (nth) => {
    const { stage } = await onDisk();
    leaving(stage);
    meanwhile(stage, isHolding(stage), nth, async () => stage.one('1000'));
    const { plan } = await stage.sync();
    const counts = () => stage.snapshot.holds.counts({ list: plan, approvals: [] }).held;
    const shown = counts();
    stage.people.push(...range(21, 22));
    await stage.sync();
    expect(counts()).toEqual(shown);
    approve(stage, plan);
    stage.writes();
    await stage.sync();
    expect(deletes(stage)).toBe(shown?.delete);
  },
);

test.each([true, false])(
  'a person erased while the guards run is not written again: approved %s',
  async (isApproved) => {
    const { stage, path } = await onDisk();
    leaving(stage);
    const plan = isApproved ? (await stage.sync({ writes: false })).plan : undefined;
    meanwhile(stage, isHolding(stage), 0, async () => stage.erase('1000'));
    await stage.sync({ approve: plan === undefined ? undefined : approving(plan) });
    expect(traces(path, 'p0@example.com')).toEqual([]);
  },
);

test('a person erased while a run applies other changes is not written again', async () => {
  const erasing = { isDue: false };
  const { stage, path } = await onDisk({
    wire: (send) => async (request, signal) => {
      if (erasing.isDue && request.method === 'POST') {
        erasing.isDue = false;
        await stage.erase('1000');
      }
      return send(request, signal);
    },
  });
  leaving(stage);
  erasing.isDue = true;
  expect((await stage.sync()).contacts.held.delete).toBe(4);
  expect(erasing.isDue).toBe(false);
  expect(traces(path, 'p0@example.com')).toEqual([]);
});

test('a change that another run holds during an approval stays held afterwards', async () => {
  const { stage } = await onDisk();
  stage.people.push(...range(20, 24));
  const { plan } = await stage.sync();
  approve(stage, plan);
  const held: number[] = [];
  const areMade = () => stage.emulator.world.contacts().length === 24;
  meanwhile(stage, areMade, 0, async () => {
    Object.assign(stage.people[20] ?? {}, { ch_product: 'yes' });
    held.push((await stage.one('1020')).contacts.held.opt_in);
  });
  expect((await stage.sync()).contacts.applied['create']).toBe(4);
  expect(held).toEqual([1]);
  expect(stage.snapshot.holds.approvals(0)).toEqual([]);
  stage.writes();
  expect((await stage.sync({ mode: 'fast' })).contacts.held.opt_in).toBe(1);
  expect(stage.writes()).toEqual([]);
});

test('an approval keeps its content when the plan holds another change by then', async () => {
  const { stage } = await onDisk();
  stage.people.push(...range(20, 24));
  // So the plan does not show this person, and the next run holds them besides the approved ones.
  meanwhile(stage, isHolding(stage), 11, async () => stage.one('1020'));
  const { plan } = await stage.sync();
  const shown = stage.snapshot.holds.rows(plan, []).map(({ key }) => key);
  expect(shown).not.toContain('p20@example.com');
  approve(stage, plan);
  stage.snapshot.holds.endUnwanted = () => {
    throw new Error('killed');
  };
  await expect(stage.sync()).rejects.toThrow('killed');
  expect(stage.snapshot.holds.rows(plan, []).map(({ key }) => key)).toEqual(shown);
  stage.snapshot.holds.endUnwanted = () => 0;
  expect((await stage.sync()).contacts.held.opt_in).toBe(1);
  expect(stage.emulator.world.contacts().map(({ email }) => email)).not.toContain(
    'p20@example.com',
  );
});
