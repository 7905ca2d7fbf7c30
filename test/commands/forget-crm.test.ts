/** By which ids of the CRM a forgotten person stays out, and comes back. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const next = 'ann@next.example';
const head = 'id,email,news,product\n';
const others = `2,${bob},yes,\n`;

/** Ann is in the CRM, and no run has read it yet. */
async function unseen(): Promise<Mirrored> {
  const world = await mirrored();
  world.csv(head + others);
  expect((await world.call('sync')).code).toBe(0);
  world.csv(`${head}1,${ann},yes,\n${others}`);
  return world;
}

/** Gives Ann's record another address; returns the number of conflicts in the next run. */
async function changed(world: Mirrored, key = next): Promise<number> {
  world.csv(`${head}1,${key},yes,\n${others}`);
  return (await world.call('sync', '--json')).json.contacts.conflicts;
}

const allow = (world: Mirrored, who: string, ...more: string[]) =>
  world.call('allow', who, '--reason', 'asked', ...more);

describe('after forget, another address in the CRM does not bring back', () => {
  test('a person who was never recorded', async () => {
    const world = await unseen();
    expect((await world.call('forget', ann, '--yes')).code).toBe(0);
    expect(await changed(world)).toBe(1);
    expect(world.shown(next)).toBeUndefined();
  });

  test('a person whose id another record had since: nobody knows whose it is', async () => {
    const world = await unseen();
    await world.call('forget', ann, '--yes');
    world.csv(`${head}2,${ann},yes,\n${others}`);
    expect((await world.call('sync', '--json')).json.contacts).toMatchObject({ invalid: 2 });
    world.csv(`${head}2,${next},yes,\n`);
    expect((await world.call('sync', '--json')).json.contacts).toMatchObject({ conflicts: 1 });
    expect(world.shown(next)).toBeUndefined();
    await allow(world, next);
    await world.call('sync');
    expect(world.shown(next)).toEqual({ ch_news: 'opt_in' });
  });

  test('a person with a second address in the CRM: forget names that address', async () => {
    const world = await unseen();
    world.csv(`${head}1,${ann},yes,\n1,${next},yes,\n${others}`);
    const { json } = await world.call('forget', ann, '--yes', '--addresses', '--json');
    expect(json.also).toEqual([next]);
    // Of the two each names the other only as long as that is not forgotten.
    expect((await world.call('forget', next, '--yes', '--json')).json.also).toEqual([]);
  });
});

describe('forget, with a CRM that cannot be read', () => {
  test.each([
    ['is not there', (world: Mirrored) => rmSync(join(world.folder, 'people.csv')), false],
    ['has a ragged row', (world: Mirrored) => world.csv(`${head}1,${ann},yes,\n3,x\n`), true],
  ])(
    'erases the person, and says in the certificate what is missing: %s',
    async (_w, spoil, read) => {
      const world = await unseen();
      await world.call('sync');
      spoil(world);
      const { code, json } = await world.call('forget', ann, '--yes', '--json');
      expect({ code, json }).toMatchObject({
        code: 1,
        json: {
          deleted: 1,
          verified: true,
          scrubbed: true,
          crm: { read, certified: false, why: expect.any(String) },
          reason: null,
        },
      });
      expect(world.shown(ann)).toBeUndefined();
      const { code: again, out } = await world.call('forget', ann, '--yes');
      expect({ again, out }).toMatchObject({
        again: 1,
        out: expect.stringContaining('ids of the'),
      });
      world.csv(`${head}1,${ann},yes,\n${others}`);
      expect((await world.call('forget', ann, '--yes')).code).toBe(0);
      expect(await changed(world)).toBe(1);
    },
  );

  test('makes `allow` say that it does not know', async () => {
    const world = await unseen();
    await world.call('forget', ann, '--yes');
    rmSync(join(world.folder, 'people.csv'));
    expect(await allow(world, next)).toMatchObject({
      code: 1,
      out: expect.stringContaining('Run it again when the CRM can be read'),
    });
  });
});

describe('allow, of a new address of an erased record', () => {
  const erased = async (): Promise<Mirrored> => {
    const world = await unseen();
    await world.call('forget', ann, '--yes');
    expect(await changed(world)).toBe(1);
    return world;
  };

  test('takes back the entry for the CRM id', async () => {
    const world = await erased();
    const { code, json } = await allow(world, next, '--json');
    expect({ code, json }).toMatchObject({
      code: 0,
      json: { taken: [], freed: [{ cause: 'erasure', part: '*' }] },
    });
    expect(await changed(world)).toBe(0);
    expect(world.shown(next)).toEqual({ ch_news: 'opt_in' });
    expect((await allow(world, next)).out).toContain('has no entry for');
  });

  test('stores no reason that `forget` of the new address would not find', async () => {
    const world = await erased();
    await world.call('allow', next, '--reason', 'a very private reason');
    await changed(world);
    await world.call('allow', next, '--reason', 'another private reason');
    expect((await world.call('forget', next, '--yes')).code).toBe(0);
    const db = new Database(`${world.path}-memory`, { readonly: true });
    const ended = db.prepare('select ended from do_not_contact').pluck().all().join();
    db.close();
    expect(ended).toMatch(/freed from the CRM ids/);
    expect(ended).not.toMatch(/private reason/);
  });

  test('keeps the old address out, under any id', async () => {
    const world = await erased();
    expect((await allow(world, next)).out).toMatch(/Removed for .*:\n {2}erasure.*by the CRM id/);
    world.csv(`${head}1,${next},yes,\n9,${ann},yes,\n${others}`);
    const { json } = await world.call('sync', '--json');
    expect(json.contacts.conflicts).toBe(1);
    expect(world.shown(ann)).toBeUndefined();
    expect(world.shown(next)).toBeDefined();
  });

  test('takes back this id only', async () => {
    const world = await unseen();
    world.csv(`${head}1,${ann},yes,\n7,${ann},yes,\n${others}`);
    await world.call('forget', ann, '--yes');
    await changed(world);
    await allow(world, next);
    const other = 'ann@third.example';
    world.csv(`${head}1,${next},yes,\n7,${other},yes,\n${others}`);
    await world.call('sync');
    expect(world.shown(next)).toBeDefined();
    expect(world.shown(other)).toBeUndefined();
  });
});
