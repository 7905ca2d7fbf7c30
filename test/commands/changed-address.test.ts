/** A person whose address changes in the CRM, by the command line: what becomes of the old one. */
import { describe, expect, test } from 'vitest';
import { mirrored } from '../support/commands/mirrored-contacts.ts';

const old = 'old@example.com';
const fresh = 'new@example.com';
const other = 'other@example.com';

async function moving() {
  const world = await mirrored();
  world.config({ policy: { deletes: 'owned', deleteAfter: '0s' } });
  const crm = (...rows: string[]) =>
    world.csv(`${['id,email,news,product,lost', ...rows.map((row) => `${row},`)].join('\n')}\n`);
  const run = async () => (await world.call('sync', '--json')).json;
  return { ...world, crm, run };
}

describe('an old address whose new one is barred from a channel', () => {
  test('is deleted if the person left the channel under the old one, who stays out of it', async () => {
    const { crm, run, call, emulator, shown } = await moving();
    crm(`7,${old},yes,yes`);
    await run();
    emulator.dashboard.leave(old, 'ch_news');
    await run();
    crm(`7,${fresh},yes,yes`);
    await run();
    expect((await run()).contacts.held).toMatchObject({ delete: 0 });
    expect(shown(old)).toBeUndefined();
    expect(shown(fresh)).toEqual({ ch_product: 'opt_in' });
    expect((await run()).contacts.applied).toMatchObject({ create: 0, opt_in: 0, delete: 0 });
    expect(shown(fresh)).toEqual({ ch_product: 'opt_in' });
    const { json } = await call('explain', fresh, '--json');
    expect(JSON.stringify(json)).toContain('left-before');
  });

  test('is deleted if the person left all mail, and the new address is never created', async () => {
    const { crm, run, emulator, shown } = await moving();
    crm(`7,${old},yes,yes`);
    await run();
    emulator.dashboard.unsubscribe(old);
    await run();
    crm(`7,${fresh},yes,yes`);
    await run();
    await run();
    expect([shown(old), shown(fresh)]).toEqual([undefined, undefined]);
    expect((await run()).contacts).toMatchObject({ conflicts: 1, applied: { create: 0 } });
    expect(shown(fresh)).toBeUndefined();
  });

  test('is deleted if an opt-out of another record carries over, which stays in force', async () => {
    const { crm, run, shown } = await moving();
    crm(`1,${old},yes,yes`, `2,${old},yes,yes`);
    await run();
    crm(`1,${old},yes,yes`, `2,${old},no,yes`);
    await run();
    expect(shown(old)).toEqual({ ch_news: 'opt_out', ch_product: 'opt_in' });
    crm(`1,${fresh},yes,yes`, `2,${other},no,yes`);
    await run();
    await run();
    expect(shown(old)).toBeUndefined();
    await run();
    expect([shown(fresh), shown(other)]).toEqual([
      { ch_product: 'opt_in' },
      { ch_product: 'opt_in' },
    ]);
  });

  test('stays while the creation of the new one is refused', async () => {
    const { crm, run, call, server, shown, config } = await moving();
    const atOnce = { absentReadings: 1, absentFor: '0s' };
    config({ policy: { absent: 'keep', deletes: 'owned', deleteAfter: '0s' }, guards: atOnce });
    crm(`7,${old},yes,yes`);
    await run();
    const isNew = ({ body }: { body: { email?: string } }) => body.email === fresh;
    server.fail(isNew, { is: 'answer', status: 400, body: { message: 'no', why: 'w', fix: 'f' } });
    crm(`7,${fresh},yes,yes`);
    await run();
    await run();
    expect(shown(old)).toEqual({ ch_news: 'opt_in', ch_product: 'opt_in' });
    const { out } = await call('explain', old);
    expect(out).toContain('once that is in place: subscribed or barred');
    expect(out).not.toContain('deleted by the next full run');
  });
});
