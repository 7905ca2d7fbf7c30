/**
 * What version 0.1.0 had written before the consent guards is opened and used. In the folder
 * earlier-version are its snapshot, its do-not-contact list with the key, the platform as it was
 * then, the export, the templates and the configuration. On the platform and in the export:
 *
 *   ada, bea     in, one made by the mirror, the other adopted
 *   dan          opted out by the CRM's word
 *   cleo, eve    left on the platform: a channel, and all mail
 *   finn, oskar  their contacts vanished; oskar had left before
 *   hal          erased
 *   gus          was refused by the platform, and is parked
 *   ivy          is missing in the export
 *   jon, kim     are flagged as deleted there: held
 *   lea to ned   are new there: held
 *   zoe          is on the platform alone
 */
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { migrations } from '../../src/snapshot/database/migrations.ts';
import {
  earlierMirror,
  movedMirror,
  type EarlierMirror,
} from '../support/engine/earlier-mirror.ts';

/** The plan that was held when the earlier version ran last, and the second in which it did. */
const heldBefore = { plan: '629b8cae042ecf06', since: '2026-11-23T09:25:15Z' };
const newcomers = [
  'opt_in lea ch_news',
  'opt_in max ch_news',
  'opt_in ned ch_product',
  'opt_in max ch_product',
];
const outOfReach = ['cleo', 'eve', 'finn', 'hal', 'oskar'];

function versionOf({ path }: EarlierMirror): unknown {
  const db = new Database(path, { readonly: true });
  try {
    return db.pragma('user_version', { simple: true });
  } finally {
    db.close();
  }
}

describe('a snapshot of an earlier version', () => {
  test('is of this version once it was opened', async () => {
    const world = await earlierMirror();
    expect(versionOf(world)).toBe(11);
    expect(await world.call('status', '--json')).toMatchObject({ code: 0 });
    await world.call('rebind');
    expect(versionOf(world)).toBe(migrations.length);
  });

  test('knows its platform, and moves after proof', async () => {
    const world = await earlierMirror();
    const { code, said } = await world.call('sync');
    expect({ code, said }).toEqual({ code: 2, said: expect.stringContaining('crm-mirror rebind') });
    expect(await world.call('rebind', '--json')).toMatchObject({
      code: 0,
      json: { moved: true, proof: { same: true, by: 'organization' } },
    });
    expect(world.writes()).toEqual([]);
  });

  test('shows what is held and parked, and since when', async () => {
    const world = await movedMirror();
    expect((await world.call('status', '--json')).json).toMatchObject({
      recorded: { contacts: 10, templates: 2 },
      conflicts: { contacts: 5 },
      rejected: { contacts: 1 },
      held: [{ ...heldBefore, delete: 2, opt_in: 3, opt_out: 0 }],
    });
    expect((await world.call('status', '--addresses')).said).toMatch(
      /delete jon@.*\n.*delete kim@.*\n.*create lea@.*\n.*create max@.*\n.*opt in max@.*\n.*create ned@/,
    );
  });
});

describe('runs with it', () => {
  test('send nothing in any mode: held changes stay held', async () => {
    const world = await movedMirror();
    const before = world.shown();
    const counts = { conflicts: 5, rejected: 1, invalid: 0 };
    const templates = { desired: 2, observed: 2, changes: { create: 0, update: 0, archive: 0 } };
    const first = { ...counts, held: { delete: 0, opt_in: 3, opt_out: 0 } };
    const later = { ...counts, held: { delete: 2, opt_in: 3, opt_out: 0 } };
    for (const [command, contacts] of [
      ['plan', first],
      ['sync', first],
      ['sync', later],
      ['plan', later],
    ] as const) {
      const { json } = await world.call(command, '--json');
      expect({ command, json }).toMatchObject({
        command,
        json: { status: 'held', contacts, templates },
      });
    }
    await world.call('sync', '--fast');
    expect(world.writes()).toEqual([]);
    expect(world.shown()).toEqual(before);
  });

  test('announce once what the new default of policy.absent does', async () => {
    const world = await movedMirror();
    const words = /policy\.absent is opt_out by default .*: 1 person who is missing .* 2 people/;
    expect((await world.call('sync')).said).toMatch(words);
    expect((await world.call('sync')).said).not.toMatch(words);
  });

  test.each(outOfReach)('do not opt in %s alone', async (name) => {
    const world = await movedMirror();
    const { json } = await world.call('one', `${name}@example.com`, '--json');
    expect(json).toMatchObject({ contacts: { desired: 1, conflicts: 1 } });
    expect(world.writes()).toEqual([]);
  });

  test('retry what was parked where `retry` was called', async () => {
    const world = await movedMirror();
    expect((await world.call('sync', '--json')).json.contacts).toMatchObject({
      rejected: 1,
      held: { opt_in: 3 },
    });
    expect((await world.call('retry', 'gus@example.com')).code).toBe(0);
    expect((await world.call('sync', '--json')).json.contacts.held.opt_in).toBe(4);
  });
});

describe('an approval after the upgrade', () => {
  test('releases once what the earlier version held and is still wanted', async () => {
    const world = await movedMirror();
    expect((await world.call('approve', heldBefore.plan, '--json')).json).toMatchObject({
      approved: heldBefore.plan,
      held: { delete: 2, opt_in: 3 },
    });
    expect(await world.call('sync', '--json')).toMatchObject({ code: 0, json: { status: 'done' } });
    expect(world.writes().toSorted()).toEqual(newcomers.toSorted());
    // Since the default of policy.absent was announced, the flagged ones are held anew.
    expect((await world.call('sync', '--json')).json.contacts.held.delete).toBe(2);
    expect(world.writes()).toEqual([]);
  });

  test('releases the current plan: people are opted out first, then deleted', async () => {
    const world = await movedMirror('  absent: keep\n');
    const { plan } = (await world.call('sync', '--json')).json;
    const { held } = (await world.call('status', '--json')).json;
    expect(held).toMatchObject([{ plan, since: heldBefore.since, delete: 2, opt_in: 3 }]);
    expect(world.writes()).toEqual([]);
    expect((await world.call('approve', plan)).code).toBe(0);
    expect((await world.call('sync')).code).toBe(0);
    const sent = world.writes();
    expect(sent.slice(-2).toSorted()).toEqual(['DELETE jon', 'DELETE kim']);
    expect(sent.slice(0, -2).toSorted()).toEqual(
      ['opt_out jon ch_news', 'opt_out kim ch_news', ...newcomers].toSorted(),
    );
    expect((await world.call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);
  });
});

describe('explain, after the upgrade', () => {
  const { since } = heldBefore;
  const recorded = (is: string, by: string | null) => ({ ch_news: { is, by, doubtful: false } });
  const fine = { decision: 'nothing', problem: null };
  const conflict = (reason: string) => ({
    decision: 'conflict',
    problem: { reason: expect.stringContaining(reason) },
  });
  const created = { at: since, op: 'create', channel: 'ch_news', outcome: 'acked' };
  const both = { ...created, op: 'opt_in', channel: 'ch_product' };
  const optedOut = { ...created, op: 'opt_out' };
  const departed = { channel: 'ch_news', cause: 'opt_out', after: since, until: since };
  const vanished = { channel: '*', cause: 'vanished', until: since };

  test.each([
    [
      'ada',
      {
        snapshot: { ownership: 'created', crmIds: ['1'], channels: recorded('opt_in', null) },
        channels: [fine, fine],
        history: [both, { ...both, outcome: 'stale' }, created],
      },
    ],
    ['bea', { snapshot: { ownership: 'adopted', id: 'con_bea' }, channels: [fine, fine] }],
    [
      'dan',
      {
        snapshot: { ownership: 'created', channels: recorded('opt_out', 'us') },
        ledger: [],
        channels: [fine, fine],
        history: [optedOut, created],
      },
    ],
    [
      'cleo',
      {
        snapshot: { channels: recorded('opt_out', 'platform') },
        ledger: [departed],
        channels: [conflict('opted out of this channel'), fine],
      },
    ],
    ['eve', { snapshot: { left: expect.anything() }, ledger: [{ channel: '*' }] }],
    ['finn', { ledger: [vanished], channels: [conflict('vanished'), fine] }],
    [
      'gus',
      {
        snapshot: null,
        parked: [{ channel: 'ch_news', since, attempts: 1, retryAt: null }],
        history: [{ ...created, outcome: 'rejected' }],
      },
    ],
    [
      'hal',
      {
        snapshot: null,
        ledger: [{ channel: '*', cause: 'erasure', until: since }],
        channels: [conflict('erased'), fine],
        history: [],
      },
    ],
    ['oskar', { ledger: [departed, vanished], channels: [conflict('vanished'), fine] }],
  ])('%s', async (name, told) => {
    const world = await movedMirror();
    const { code, json } = await world.call('explain', `${name}@example.com`, '--json');
    expect({ code, json }).toMatchObject({ code: 0, json: { ...told, sends: [] } });
  });

  test('optouts lists those who unsubscribed', async () => {
    const { optOuts } = (await (await movedMirror()).call('optouts', '--json')).json;
    expect(optOuts).toMatchObject([
      { email: 'cleo@example.com', crmIds: ['3'], channel: 'ch_news', cause: 'opt_out' },
      { email: 'eve@example.com', crmIds: ['5'], channel: '*', cause: 'unsubscribed' },
      { email: 'oskar@example.com', crmIds: ['12'], channel: 'ch_news', cause: 'opt_out' },
    ]);
  });
});

describe('the do-not-contact list of an earlier version', () => {
  test('keeps people out when the snapshot is lost', async () => {
    const world = await earlierMirror();
    world.remove('');
    expect((await world.call('sync')).code).toBe(0);
    const sent = world.writes();
    expect(sent.toSorted()).toEqual(['opt_in gus ch_news', ...newcomers].toSorted());
    expect(Object.keys(world.shown())).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(finn|hal|oskar)$/)]),
    );
    expect((await world.call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);
  });

  test.each(['-ledger', '-ledger-key'])('is required: nothing runs without %s', async (ending) => {
    const world = await movedMirror();
    world.remove(ending);
    const { code, said } = await world.call('sync');
    expect({ code, said }).toEqual({ code: 2, said: expect.stringContaining(ending) });
    expect(world.writes()).toEqual([]);
  });
});
