/** What the files still say of somebody who was forgotten: nothing, wherever it stood. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const zoe = 'zoe@example.com';
const many = (name: string, count: number) =>
  Array.from({ length: count }, (_, at) => ({ email: `${name}${at}@example.com`, news: 'yes' }));

function bytesOf({ folder }: Mirrored): string {
  const at = join(folder, 'cli');
  const bytes = readdirSync(at).map((name) => readFileSync(join(at, name), 'latin1'));
  return bytes.join('\n');
}

async function forgets(world: Mirrored, who: string): Promise<Record<string, number>> {
  expect(bytesOf(world)).toContain(who);
  const { code, json } = await world.call('forget', who, '--yes', '--json');
  expect(code).toBe(0);
  expect(bytesOf(world)).not.toContain(who);
  return json.purged;
}

describe('after forget, the files hold no address of a person', () => {
  test('with changes that a guard holds, recorded or not', async () => {
    const world = await mirrored();
    world.people([{ email: ann, news: 'yes' }, ...many('p', 30)]);
    await world.call('sync');
    world.config({ guards: { optIns: { percent: 1, floor: 1 } } });
    world.people([
      { email: ann, news: 'yes', product: 'yes' },
      { email: zoe, news: 'yes' },
      ...many('p', 30),
      ...many('q', 2),
    ]);
    const { code, json } = await world.call('sync', '--json');
    expect(code).toBe(3);
    expect(await forgets(world, ann)).toMatchObject({ recorded: 1, held: 1 });
    expect(await forgets(world, zoe)).toMatchObject({ recorded: 0, held: 1 });
    const approved = await world.call('approve', json.plan, '--json');
    expect(approved).toMatchObject({ code: 0, json: { held: { opt_in: 2 } } });
  });

  test('missing in the CRM', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.people([{ email: bob, news: 'yes' }]);
    await world.call('sync');
    expect(await forgets(world, ann)).toMatchObject({ recorded: 1, absences: 1 });
  });

  test('with another address now', async () => {
    const world = await mirrored();
    world.csv(`id,email,news,product\nann-1,${ann},yes,\n`);
    await world.call('sync');
    world.csv(`id,email,news,product\nann-1,new@example.com,yes,\n`);
    await world.call('sync');
    await forgets(world, ann);
    expect(bytesOf(world)).toContain('new@example.com');
  });

  test('never created, whose record had another address before, and is gone now', async () => {
    const world = await mirrored();
    const [before, others] = ['zoe@before.example', `2,${bob},yes,\n`];
    for (const record of [`1,${before},no,\n`, `1,${zoe},no,\n`, '']) {
      world.csv(`id,email,news,product\n${record}${others}`);
      await world.call('sync');
    }
    expect(bytesOf(world)).toContain(before);
    expect(await forgets(world, zoe)).toMatchObject({ recorded: 0 });
    expect(bytesOf(world)).not.toContain(before);
  });

  test('with a record in the CRM that becomes invalid afterwards', async () => {
    const world = await mirrored();
    await world.call('sync');
    await forgets(world, ann);
    world.people([{ email: ann, news: 'maybe' }]);
    const { code, json } = await world.call('sync', '--json', '--addresses');
    expect({ code, json }).toMatchObject({ code: 4, json: { contacts: { invalid: 1 } } });
    expect(json.problems).toMatchObject([{ class: 'invalid' }]);
    expect(JSON.stringify(json.problems)).not.toContain(ann);
    world.csv(`id,email,news,product\nid-${ann},no address,yes,\n`);
    expect((await world.call('sync', '--json')).json.contacts.invalid).toBe(1);
    expect(bytesOf(world)).not.toContain(ann);
  });
});

describe('the hash of an erased person that a run prints', () => {
  async function shown(): Promise<{ world: Mirrored; hash: string }> {
    const world = await mirrored();
    await world.call('sync');
    await world.call('forget', ann, '--yes');
    const { json } = await world.call('sync', '--json');
    world.writes();
    return { world, hash: json.problems[0].key };
  }

  test('is resolved by explain and by one through the CRM', async () => {
    const { world, hash } = await shown();
    const { code, json } = await world.call('explain', hash, '--json', '--addresses');
    expect({ code, json }).toMatchObject({ code: 0, json: { person: ann } });
    const { json: one } = await world.call('one', hash, '--json');
    expect(one.contacts).toMatchObject({ desired: 1, conflicts: 1 });
    expect(world.writes()).toEqual([]);
  });

  test.each([[['forget', '--yes']], [['allow', '--reason', 'asked']]])(
    'is accepted by %s',
    async (argv) => {
      const { world, hash } = await shown();
      const { code, json } = await world.seen(...argv, hash, '--json');
      expect({ code, json }).toMatchObject({ code: 0, json: { person: hash } });
    },
  );
});
