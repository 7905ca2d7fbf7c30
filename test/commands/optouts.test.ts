import { existsSync, rmSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const head = 'email,crm id,channel,cause,after,by';

/** Ann left a channel, Bob all mail, each after a run has seen them subscribed. */
async function left(): Promise<Mirrored & { between: number }> {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.dashboard.leave(ann, 'ch_news');
  await world.call('sync');
  const between = Date.now();
  world.emulator.dashboard.unsubscribe(bob);
  await world.call('sync');
  return { ...world, between };
}

describe('optouts', () => {
  test('lists people who left a channel or all mail, and what is known of the time', async () => {
    const { call, between } = await left();
    const { code, json } = await call('optouts', '--json');
    expect({ code, json }).toMatchObject({
      code: 0,
      json: {
        mirror: 'world',
        since: null,
        optOuts: [
          { email: ann, crmIds: [`id-${ann}`], channel: 'ch_news', cause: 'opt_out' },
          { email: bob, crmIds: [`id-${bob}`], channel: '*', cause: 'unsubscribed' },
        ],
      },
    });
    const [first, second] = json.optOuts;
    for (const { after, by } of [first, second]) {
      expect(Date.parse(after)).toBeLessThan(Date.parse(by));
    }
    expect(Date.parse(first.by)).toBeLessThanOrEqual(between);
    expect(Date.parse(second.by)).toBeGreaterThanOrEqual(between);
    const { out } = await call('optouts');
    expect(out.split('\n')).toEqual([
      head,
      `${ann},id-${ann},ch_news,opt_out,${first.after},${first.by}`,
      `${bob},id-${bob},*,unsubscribed,${second.after},${second.by}`,
    ]);
  });

  test('--since lists possible opt-outs since a time or a duration ago', async () => {
    const { call, between } = await left();
    const emails = async (since: string): Promise<string[]> => {
      const { json } = await call('optouts', '--json', '--since', since);
      return json.optOuts.map(({ email }: { email: string }) => email);
    };
    expect(await emails(new Date(between).toISOString())).toEqual([bob]);
    expect(await emails('1h')).toEqual([ann, bob]);
    expect(await emails('2020-02-29')).toEqual([ann, bob]);
    expect(await emails('2099-01-01T00:00:00+02:00')).toEqual([]);
  });

  test('lists people apart, with the reason, where the platform opts out by default', async () => {
    const platform = { quirks: ['all-channels=opt_out'] };
    const world = await mirrored({ kinds: ['contact'], platform });
    world.emulator.seed.contact({ email: ann, channels: { ch_product: 'opt_in' } });
    const { json } = await world.call('sync', '--json');
    expect(json.problems[0].reason).toContain('no opt-out is known');
    const { optOuts } = (await world.call('optouts', '--json')).json;
    expect(optOuts).toMatchObject([{ email: ann, channel: 'ch_news', cause: 'doubtful' }]);
    expect((await world.call('explain', ann)).out).toContain('doubtful: no opt-out is known');
  });

  test('lists a person we deleted who is wanted again, from the do-not-contact list', async () => {
    const world = await left();
    world.config({ contacts: { deleted: 'lost' }, policy: { deletes: 'owned' } });
    const before = (await world.call('optouts', '--json')).json.optOuts;
    const say = (gone: string): void =>
      world.csv(
        `id,email,news,product,lost\nid-${ann},${ann},yes,,${gone}\nid-${bob},${bob},yes,,${gone}\n`,
      );
    say('yes');
    expect((await world.call('sync', '--json')).json.contacts.applied.delete).toBe(2);
    expect((await world.call('optouts')).out).toBe(head);
    say('');
    expect((await world.call('sync', '--json')).json.contacts.conflicts).toBe(2);
    const { json, err } = await world.call('optouts', '--json');
    expect({ optOuts: json.optOuts, err }).toEqual({
      // Of all mail the ledger knows since when it was seen, and not how long it may have been so.
      optOuts: [before[0], { ...before[1], after: null, by: expect.any(String) }],
      err: '',
    });
    expect((await world.call('optouts', '--since', '2099-01-01')).out).toBe(head);
    rmSync(`${world.path}-memory`);
    const { code, out, err: said } = await world.call('optouts');
    expect({ code, out, said }).toMatchObject({
      code: 0,
      out: head,
      said: expect.stringContaining('only on the do-not-contact list are left out'),
    });
  });

  test('quotes what would break a line, and gives each CRM id its own', async () => {
    const world = await mirrored();
    world.csv(`id,email,news,product,lost\n"a,""1""",${ann},yes,,\n2,${ann},yes,,\n`);
    await world.call('sync');
    world.emulator.dashboard.leave(ann, 'ch_news');
    await world.call('sync');
    const { out } = await world.call('optouts');
    expect(out.split('\n').map((line) => line.split(',ch_news')[0])).toEqual([
      head,
      `${ann},2`,
      `${ann},"a,""1"""`,
    ]);
  });

  test('runs beside a process that holds the mirror, and makes no snapshot', async () => {
    const world = await mirrored();
    const none = await world.call('optouts');
    expect(none).toMatchObject({ code: 0, out: head, err: expect.stringContaining('no snapshot') });
    expect(existsSync(world.path)).toBe(false);
    await world.call('sync');
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    expect(await world.call('optouts')).toMatchObject({ code: 0, out: head });
  });
});
