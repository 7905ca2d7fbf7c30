/** Who leaves on the platform is told to the CRM: by the command line, from end to end. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { serve } from '../support/http/test-server.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const head = 'return,email,crm id,channel,cause,after,by';
const annLeft = `${ann},id-${ann},ch_news,opt_out`;
const bobLeft = `${bob},id-${bob},*,unsubscribed`;

interface Returning extends Mirrored {
  back: string;
  /** The rows of the file, without their header: email, crm id, channel, cause. */
  told(): string[];
  /** Their ids. */
  ids(): string[];
  /** What a command says of it. */
  returned(...words: string[]): Promise<unknown>;
}

/** Both have been seen subscribed; the file is not there yet. */
async function returning(returns: object = { type: 'csv', path: './back.csv' }) {
  const world = await mirrored();
  world.config({ contacts: { returns } });
  await world.call('sync');
  return withFile(world);
}

function withFile(world: Mirrored): Returning {
  const back = join(world.folder, 'back.csv');
  const rows = (): string[][] => {
    if (!existsSync(back)) return [];
    const [first, ...lines] = readFileSync(back, 'utf8').trimEnd().split('\n');
    expect(first).toBe(head);
    return lines.map((line) => line.split(','));
  };
  return {
    ...world,
    back,
    told: () => rows().map((cells) => cells.slice(1, 5).join(',')),
    ids: () => rows().map(([id = '']) => id),
    returned: async (...words) => (await world.call(...words, '--json')).json.returns,
  };
}

describe('an opt-out on the platform', () => {
  test('from a channel, or from all mail, is reported once, whatever runs follow', async () => {
    const { call, emulator, told, back, returned } = await returning();
    expect(existsSync(back)).toBe(false);
    emulator.dashboard.leave(ann, 'ch_news');
    expect(await returned('sync')).toEqual({
      told: 1,
      rejected: 0,
      waiting: 0,
      leftOut: 0,
      doubtful: 0,
    });
    expect(told()).toEqual([annLeft]);
    emulator.dashboard.unsubscribe(bob);
    expect((await call('sync', '--person', bob)).out).toContain('1 reported to the CRM');
    expect(told()).toEqual([annLeft, bobLeft]);
    for (const words of [
      ['sync'],
      ['sync', '--fast'],
      ['sync', '--person', ann],
      ['sync', '--person', bob],
    ]) {
      expect(await returned(...words)).toMatchObject({ told: 0, waiting: 0 });
    }
    expect(told()).toEqual([annLeft, bobLeft]);
  });

  test('is reported again when the person has joined and left once more', async () => {
    const { call, emulator, told, ids } = await returning();
    emulator.dashboard.unsubscribe(bob);
    await call('sync');
    emulator.dashboard.resubscribe(bob);
    await call('sync');
    expect(told()).toEqual([bobLeft]);
    emulator.dashboard.unsubscribe(bob);
    await call('sync');
    expect(told()).toEqual([bobLeft, bobLeft]);
    expect(new Set(ids())).toHaveLength(2);
  });

  test('from before the configuration is reported by the first run, also a fast one', async () => {
    const world = withFile(await mirrored());
    await world.call('sync');
    world.emulator.dashboard.leave(ann, 'ch_news');
    await world.call('sync');
    world.config({ contacts: { returns: { type: 'csv', path: './back.csv' } } });
    expect(await world.returned('sync', '--fast')).toMatchObject({ told: 1 });
    expect(world.told()).toEqual([annLeft]);
  });

  test('is reported from the list when we deleted the person and the CRM wants them again', async () => {
    const world = await returning();
    const { call, csv, emulator, told, config } = world;
    const returns = { type: 'csv', path: './back.csv' };
    config({ contacts: { returns, deleted: 'lost' }, policy: { deletes: 'owned' } });
    const say = (gone: string): void =>
      csv(`id,email,news,product,lost\nid-${ann},${ann},yes,,${gone}\nid-${bob},${bob},yes,,\n`);
    emulator.dashboard.leave(ann, 'ch_news');
    say('yes');
    await call('sync');
    expect(told()).toEqual([]);
    say('');
    await call('sync');
    await call('sync');
    expect(told()).toEqual([annLeft]);
  });
});

describe('a plan, with write-back', () => {
  test('counts the opt-outs to report, and reports none', async () => {
    const { call, emulator, told, returned } = await returning();
    emulator.dashboard.leave(ann, 'ch_news');
    expect(await returned('plan')).toEqual({
      told: 0,
      rejected: 0,
      waiting: 1,
      leftOut: 0,
      doubtful: 0,
    });
    expect((await call('plan')).out).toContain('1 to be reported to the CRM');
    expect(told()).toEqual([]);
    await call('sync');
    expect(await returned('plan')).toMatchObject({ waiting: 0 });
  });
});

describe('write-back over HTTP', () => {
  interface Crm {
    status: number;
    asked: { method: string; path: string; key: unknown; body: unknown }[];
    returns: object;
  }

  async function crm(): Promise<Crm> {
    const it: Crm = { status: 204, asked: [], returns: {} };
    const url = await serve(({ method = '', url: path = '', headers, text }, response) => {
      const body: unknown = JSON.parse(text);
      it.asked.push({ method, path, key: headers['idempotency-key'], body });
      response.writeHead(it.status, { 'retry-after': '3600' }).end();
    });
    const body = { newsletter: false, of: '{channel}', why: ['{cause}', '{email}'] };
    it.returns = { type: 'http', url: `${url}/people/{id}`, method: 'PATCH', body };
    return it;
  }

  test('exits with 4 once when the CRM does not have the person; `retry` reports it again', async () => {
    const it = await crm();
    const { call, emulator } = await returning(it.returns);
    it.status = 404;
    emulator.dashboard.leave(ann, 'ch_news');
    const { code, json, err } = await call('sync', '--json');
    expect(code).toBe(4);
    expect(json).toMatchObject({
      status: 'rejected',
      returns: { told: 0, rejected: 1, waiting: 0 },
      problems: [{ class: 'conflict' }, { class: 'rejected', new: true, fix: expect.any(String) }],
    });
    expect(err).not.toContain(ann);
    const next = await call('sync', '--json');
    expect(next).toMatchObject({ code: 0, json: { returns: { rejected: 1 } } });
    expect((await call('sync', '--strict')).code).toBe(4);
    expect(it.asked).toHaveLength(1);
    const standing = await call('status', '--json');
    expect(standing.json).toMatchObject({
      ok: false,
      attention: [{ code: 'returns_rejected', fix: expect.stringContaining('retry') }],
      returns: {
        waiting: 0,
        stuck: null,
        rejected: { count: 1, people: [{ channel: 'ch_news' }] },
      },
    });
    expect((await call('status')).out).toContain('the CRM does not have this person (404)');
    it.status = 200;
    expect((await call('retry', ann, '--json')).json).toMatchObject({ records: 0, returns: 1 });
    expect((await call('sync', '--json')).json.returns).toMatchObject({ told: 1, rejected: 0 });
    expect((await call('status', '--json')).json.attention).toEqual([]);
    expect(new Set(it.asked.map(({ key }) => key))).toHaveLength(1);
  });

  test('does not hinder other changes when it is refused, and says so in every run', async () => {
    const it = await crm();
    const { call, emulator, people, shown } = await returning(it.returns);
    it.status = 401;
    emulator.dashboard.leave(ann, 'ch_news');
    emulator.dashboard.unsubscribe(bob);
    const cid = 'cid@example.com';
    people([
      { email: ann, news: 'yes' },
      { email: bob, news: 'yes', product: 'no' },
      { email: cid, news: 'yes' },
    ]);
    const { code, json } = await call('sync', '--json');
    expect({ code, json }).toMatchObject({
      code: 4,
      json: {
        status: 'rejected',
        contacts: { applied: { create: 1 } },
        returns: { told: 0, rejected: 0, waiting: 2 },
        reasons: [expect.stringMatching(/2 opt-outs could not be reported.*→ correct the headers/)],
      },
    });
    expect(shown(cid)).toMatchObject({ ch_news: 'opt_in' });
    expect(it.asked).toHaveLength(1);
    // Each time, as long as it lasts.
    expect((await call('sync', '--fast')).code).toBe(4);
    const { attention, returns } = (await call('status', '--json')).json;
    expect(attention).toMatchObject([
      { code: 'returns_stuck', fix: expect.stringContaining('headers') },
    ]);
    expect(returns).toMatchObject({
      waiting: 2,
      since: expect.any(String),
      rejected: { count: 0 },
    });
    it.status = 200;
    expect((await call('sync', '--json')).json.returns).toMatchObject({ told: 2, waiting: 0 });
    expect((await call('status', '--json')).json).toMatchObject({
      attention: [],
      returns: { stuck: null },
    });
  });

  test('is named by check without a request', async () => {
    const { asked, returns } = await crm();
    const { call } = await returning(returns);
    const { json } = await call('check', '--json');
    expect(json.findings).toContainEqual(
      expect.objectContaining({
        what: 'opt-outs on the platform',
        ok: true,
        found: expect.stringContaining('PATCH'),
      }),
    );
    expect(asked).toEqual([]);
  });
});
