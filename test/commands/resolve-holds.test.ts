/** How long a settlement by `resolve` holds, and for which person. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ann, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const ben = 'ben@example.com';
const said = ['--reason', 'by letter', '--evidence', 'ticket 7', '--by', 'eva'] as const;
const settle = (world: Mirrored, who: string, as: 'in' | 'out') =>
  world.call('resolve', who, '--channel', 'ch_news', `--${as}`, ...said);
/** Writes the records of the CRM. One more person keeps it from being empty. */
const crm = (world: Mirrored, ...rows: string[]) =>
  world.csv(['id,email,news,product', ...rows, '9,x@example.com,yes,', ''].join('\n'));
const contactOf = (world: Mirrored): string => world.emulator.world.contact(ann)?.id ?? '';
const listed = async (world: Mirrored): Promise<{ cause: string }[]> =>
  (await world.call('explain', ann, '--json')).json.ledger;

const saysIn = `1,${ann},yes,`;
const saysOut = `2,${ann},no,`;

/** A person whom the mirror opted out as a second record said, which is gone. */
async function optedOut(): Promise<Mirrored> {
  const world = await mirrored();
  for (const rows of [[saysIn], [saysIn, saysOut], [saysIn]]) {
    crm(world, ...rows);
    await world.call('sync');
  }
  return world;
}

describe('resolve --in', () => {
  test.each([
    ['counts while the record that stated the opt-in states it', [saysIn, `3,${ann},,`], 'opt_in'],
    ['ends when another record states it instead', [`3,${ann},yes,`], 'opt_out'],
    ['ends when its record has no opinion any more', [`1,${ann},,`, `3,${ann},yes,`], 'opt_out'],
    ['ends when the record has another address', [`1,${ben},yes,`, `3,${ann},yes,`], 'opt_out'],
    ['goes along with the record to another address', [`1,${ben},yes,`], undefined],
  ] as const)('%s', async (_, rows, shows) => {
    const world = await optedOut();
    expect((await settle(world, ann, 'in')).code).toBe(0);
    crm(world, ...rows);
    await world.call('sync');
    expect(world.shown(ann)?.['ch_news']).toBe(shows ?? 'opt_out');
    if (shows === undefined) expect(world.shown(ben)).toEqual({ ch_news: 'opt_in' });
    if (shows !== 'opt_out') return;
    crm(world, saysIn);
    await world.call('sync');
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_out' });
  });

  test('leaves the opt-out that was resolved for another address of the CRM record', async () => {
    const world = await mirrored();
    crm(world, saysIn, saysOut);
    await world.call('sync');
    expect((await settle(world, ann, 'out')).code).toBe(0);
    crm(world, saysIn, `2,${ben},yes,`);
    await world.call('sync');
    expect((await settle(world, ben, 'in')).code).toBe(0);
    await world.call('sync');
    expect(world.shown(ben)).toMatchObject({ ch_news: 'opt_in' });
    expect(world.shown(ann)).not.toMatchObject({ ch_news: 'opt_in' });
    expect(await listed(world)).toMatchObject([{ cause: 'operator' }]);
    expect((await world.call('explain', ann)).out).toContain('by letter (evidence: ticket 7)');
  });

  test('is refused for an opt-out that a person made while the runs were limited to others', async () => {
    const world = await mirrored({ platform: { quirks: ['all-channels=opt_out'] } });
    const others = join(world.folder, 'others.txt');
    writeFileSync(others, '9\n');
    crm(world, saysIn);
    world.emulator.seed.contact({ email: ann, channels: { ch_news: 'opt_in' } });
    await world.call('sync', '--people', others);
    world.emulator.dashboard.leave(contactOf(world), 'ch_news');
    await world.call('sync', '--people', others);
    await world.call('sync');
    expect((await settle(world, ann, 'in')).code).toBe(2);
    await world.call('sync');
    expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_out' });
  });
});

describe('resolve --out', () => {
  test.each([
    ['missing from the CRM', []],
    ['flagged as deleted', [`1,${ann},yes,,yes`]],
  ])('is applied to a person who is %s by the next run', async (_, rows) => {
    const world = await mirrored();
    const source = { type: 'csv', path: './people.csv' };
    const channels = [{ id: 'ch_news', subscription: 'news' }];
    world.config({
      policy: { absent: 'keep' },
      contacts: { source, id: 'id', email: 'email', deleted: 'gone', channels },
    });
    const write = (...lines: string[]) =>
      world.csv(['id,email,news,product,gone', ...lines, '9,x@example.com,yes,,', ''].join('\n'));
    write(`1,${ann},yes,,`);
    await world.call('sync');
    write(`1,${ann},yes,,`, `2,${ann},no,,`);
    expect((await settle(world, ann, 'out')).code).toBe(0);
    write(...rows);
    await world.call('sync');
    expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_out' });
    expect((await world.call('sync', '--json')).json.contacts.applied).toMatchObject({
      opt_out: 0,
    });
  });
});
