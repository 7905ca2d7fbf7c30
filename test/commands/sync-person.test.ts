import { describe, expect, onTestFinished, test } from 'vitest';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

/** The hash of a record as a plan lists it. */
async function hashOf(world: Mirrored, line: RegExp): Promise<string> {
  const { out } = await world.call('plan');
  return line.exec(out)?.[1] ?? 'none';
}

describe('sync --person', () => {
  test('brings one person in line, and leaves others and templates alone', async () => {
    const world = await mirrored({ kinds: ['contact', 'template'] });
    world.template('welcome', { subject: 'Hi' });
    const { code, json } = await world.call('sync', '--person', ` ${ann.toUpperCase()}`, '--json');
    expect({ code, json }).toMatchObject({
      code: 0,
      json: {
        mirror: 'world',
        status: 'done',
        mode: 'single',
        only: 'contacts',
        certificate: { source: true, platform: false },
        contacts: { desired: 1, changes: { create: 1 }, applied: { create: 1 } },
        templates: { changes: { create: 0 } },
      },
    });
    expect(world.writes().map(({ body }) => body.email)).toEqual([ann]);
    expect(world.shown(bob)).toBeUndefined();
    const [run] = (await world.call('runs', '--json')).json.runs;
    expect(run).toMatchObject({ mode: 'single', status: 'done', plan: json.plan });
    expect(json.plan).toMatch(/^[0-9a-f]{16}$/);
  });

  test('prints no address: neither in the document nor on the lines', async () => {
    const world = await mirrored();
    world.emulator.seed.contact({ email: ann, status: 'blocked' });
    for (const flags of [['--json'], []]) {
      const { code, out, err } = await world.call('sync', '--person', ann, ...flags);
      expect({ code, said: out + err }).toEqual({
        code: 0,
        said: expect.not.stringContaining(ann),
      });
    }
    expect((await world.seen('sync', '--person', ann)).out).toContain(`conflict`);
  });

  test('takes the hash of a person who is in the CRM only', async () => {
    const world = await mirrored();
    await world.call('sync', '--person', ann);
    const hash = await hashOf(world, /\+ {2}(#\w+) {2}ch_news/);
    expect((await world.call('sync', '--person', hash)).code).toBe(0);
    expect(world.shown(bob)).toMatchObject({ ch_news: 'opt_in' });
  });

  test('does nothing for a person who is unknown or not in the CRM, and says so', async () => {
    const world = await mirrored();
    const unknown = await world.call('sync', '--person', 'zoe@example.com');
    expect(unknown).toMatchObject({ code: 0, out: expect.stringContaining('Neither the CRM nor') });
    world.emulator.seed.contact({ email: 'zoe@example.com', channels: { ch_news: 'opt_in' } });
    const foreign = await world.call('sync', '--person', 'zoe@example.com', '--json');
    expect(foreign).toMatchObject({
      code: 0,
      err: expect.stringContaining('The CRM does not name this person'),
      json: { status: 'done', contacts: { desired: 0, observed: 1 } },
    });
    expect(world.writes()).toEqual([]);
  });

  test('exits as sync does: rejected 4 and then 0, unreadable CRM, held mirror', async () => {
    const world = await mirrored();
    world.server.fail(({ method }) => method === 'POST', { is: 'answer', status: 422 });
    expect((await world.call('sync', '--person', ann)).code).toBe(4);
    expect((await world.call('sync', '--person', ann)).code).toBe(0);
    expect((await world.call('sync', '--person', ann, '--strict')).code).toBe(4);
    world.csv(`id,email,news,product,lost\n1,${ann},yes,,`);
    const { code, err } = await world.call('sync', '--person', ann);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('only opt-outs') });
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    expect((await world.call('sync', '--person', ann)).code).toBe(75);
  });
});
