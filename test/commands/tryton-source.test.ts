/** A real Tryton, mirrored by the command line; skipped where there is none. */
import { afterAll, describe, expect, test } from 'vitest';
import { partiesOf, person } from '../support/sources/tryton-parties.ts';
import { anyTryton, type TestTryton } from '../support/tryton.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';

const MANY = 2_000;
/** Tryton warns of a merge of two names. */
const NAME = 'Mirrored';
const email = (n: number) => `m${n}@example.com`;
const other = 'other@example.com';
const tryton = await anyTryton();

async function mirroredTryton({ access }: TestTryton) {
  const lines = {
    contacts: {
      source: { type: 'tryton', ...access, password: '${TRYTON_PASSWORD}', overlap: '1s' },
      deleted: 'inactive',
      include: `record.name == "${NAME}" && record.email != ""`,
      channels: [
        {
          id: 'ch_news',
          subscription: {
            when: 'record.categories.split(",").exists(name, name == "Monthly")',
          },
        },
      ],
    },
    policy: { deletes: 'owned' },
  };
  const env = { TRYTON_PASSWORD: access.password };
  const { call, ...world } = await mirrored({ lines, env, hides: [access.password, '@example'] });
  return { world, call };
}

describe.skipIf(!tryton)('a Tryton', () => {
  afterAll(async () => tryton?.close());

  test('is mirrored from the first load to the last opt-out, and by changes in between', async () => {
    if (!tryton) throw new Error('skipped without one');
    const parties = partiesOf(tryton);
    const [monthly, notMonthly] = await parties.categories('Monthly', 'Not Monthly');
    const wants = { categories: [['add', [monthly]]] };
    const silent = { categories: [['add', [notMonthly]]] };
    const ids = await parties.create([
      ...Array.from({ length: MANY }, (_, at) =>
        person(NAME, at === 7 ? [email(7), other] : email(at), at === 1 ? silent : wants),
      ),
      { name: 'Nobody to write to' },
    ]);
    const [, , third = 0, fourth = 0, fifth = 0, sixth = 0, seventh = 0] = ids;
    const { world, call } = await mirroredTryton(tryton);

    const checked = await call('check');
    expect(checked.said).toContain(
      ' records, 0 of them invalid, and one of them was read by its id',
    );
    expect(checked.code).toBe(0);
    expect((await call('sync')).code).toBe(0);
    expect(world.shown(email(0))).toMatchObject({ ch_news: 'opt_in' });
    expect(world.shown(email(1))).toBeUndefined();
    expect(world.writes()).toHaveLength(MANY - 1);
    expect((await call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);

    // The first does not touch its party, and the last leaves no trace at all.
    await parties.readdress(email(0), { value: 'new@example.com' });
    await parties.write(third, { categories: [['remove', [monthly]]] });
    await parties.merge(fifth, fourth);
    await parties.unaddress(email(7));
    const fast = await call('sync', '--fast', '--json');
    expect(fast.code).toBe(0);
    expect(world.shown('new@example.com')).toMatchObject({ ch_news: 'opt_in' });
    expect(world.shown(email(2))).toMatchObject({ ch_news: 'opt_out' });
    expect(world.shown(email(3))).toMatchObject({ ch_news: 'opt_in' });

    expect(world.shown(other)).toBeUndefined();

    await parties.write(sixth, { active: false });
    await parties.remove(seventh);
    expect((await call('sync')).code).toBe(0);
    expect(world.shown(other)).toMatchObject({ ch_news: 'opt_in' });
    // Deactivated: gone at once. Deleted: one reading concludes nothing.
    expect(world.shown(email(5))).toBeUndefined();
    expect(world.shown(email(6))).toMatchObject({ ch_news: 'opt_in' });
    // The former addresses of the merged person and of the one with a new address.
    expect(world.shown(email(0))).toBeUndefined();
    expect(world.shown(email(4))).toBeUndefined();
  });
});
