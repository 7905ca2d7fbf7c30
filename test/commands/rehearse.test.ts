/** A rehearsal shows how a run would go, and sends nothing. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { contentOf } from '../simulation/world/snapshot-files.ts';
import { launch } from '../support/engine/engine-world.ts';
import {
  ann,
  bob,
  type Mirrored,
  copyFolders,
  foretold,
  rehearsable,
} from '../support/commands/mirrored-contacts.ts';
import { untilHolds } from '../support/waiting.ts';

const carl = 'carl@example.com';
const dora = 'dora@example.com';

/** Ann and Bob are mirrored; then the CRM changes its mind, and Dora signs up by herself. */
async function changed(): Promise<Mirrored> {
  const world = await rehearsable();
  expect((await world.call('sync')).code).toBe(0);
  world.people([
    { email: ann, news: 'no' },
    { email: bob, news: 'yes', product: 'yes' },
    { email: carl, news: 'yes' },
  ]);
  world.emulator.seed.contact({ email: dora, channels: { ch_news: 'opt_in' } });
  world.writes();
  return world;
}

const methods = ({ server }: Mirrored): string[] => [
  ...new Set(server.arrived.map(({ method }) => method)),
];

describe('a rehearsal', () => {
  test('foretells for each person what the next sync does, and only reads the platform', async () => {
    const world = await changed();
    world.server.arrived.length = 0;
    const told = await world.call('rehearse', '--json', '--addresses');
    expect(told).toMatchObject({ code: 0, err: '' });
    expect(methods(world)).toEqual(['GET']);
    expect(told.json).toMatchObject({ sent: 0, reads: world.server.arrived.length });
    expect(foretold(told)).toEqual({
      [ann]: { ch_news: 'opt_out' },
      [bob]: { ch_news: 'opt_in', ch_product: 'opt_in' },
      [carl]: { ch_news: 'opt_in' },
    });
    expect(told.json.end).toMatchObject({
      contacts: { before: 3, after: 4 },
      channels: [
        { id: 'ch_news', before: 3, after: 3 },
        { id: 'ch_product', before: 0, after: 1 },
      ],
    });

    const { json } = await world.call('sync', '--json');
    for (const [email, channels] of Object.entries(foretold(told)))
      expect(world.shown(email)).toEqual(channels);
    expect(world.shown(dora)).toEqual({ ch_news: 'opt_in' });
    expect(told.json.requests).toEqual(json.requests);
    expect(told.json.contacts).toEqual(json.contacts);
    expect(told.json.plan).toBe(json.plan);
  });

  test('names as many people as --most says, and counts all', async () => {
    const world = await changed();
    const few = await world.call('rehearse', '--json', '--addresses', '--most', '1');
    expect(few.json).toMatchObject({ peopleCount: 3, people: [{ key: ann }] });
    expect(few.json.people[0].changes).toHaveLength(1);
    const lines = await world.call('rehearse', '--addresses', '--most', '1');
    expect(lines.out).toContain('1 of 3');
    expect(await world.call('rehearse', '--most', '1', '--all')).toMatchObject({ code: 2 });
    expect(await world.call('rehearse', '--most', 'x')).toMatchObject({ code: 2 });
  });

  test('says in words how long it takes, how it ends, and that nothing was sent', async () => {
    const world = await changed();
    const { out, code } = await world.seen('rehearse', '--limit', 'contacts.enrol=1/60');
    expect(code).toBe(0);
    for (const words of [
      'Rehearsal for world (full comparison): 3 changes, in 2 min',
      'It would end well.',
      /contacts\.enrol +3 +1 every 60 s +given for this rehearsal/,
      /contacts\.list +1 +1,000,000 every 1 s +stated by the platform/,
      /contacts on the platform +3 +4/,
      /subscribed to ch_product +0 +1/,
      /ann@example\.com +ch_news in +→ +ch_news out +opt-out wanted; subscribed/,
      /carl@example\.com +not there +→ +ch_news in/,
      'Nothing: the platform was read with 1 request, and neither it, nor the CRM, nor a file of ' +
        'the mirror was changed.',
    ])
      expect(out).toMatch(words);
  });

  test('says what would await approval, and how to approve it after the run', async () => {
    const world = await rehearsable({ lines: { guards: { optOuts: { percent: 0, floor: 0 } } } });
    await world.call('sync');
    world.people([
      { email: ann, news: 'no' },
      { email: bob, news: 'yes' },
    ]);
    const { code, out } = await world.call('rehearse');
    expect(code).toBe(3);
    expect(out).toContain('nothing done, in ');
    expect(out).toContain('It would end; changes of 1 record would await approval.');
    const [, plan] =
      /1 person would await approval .*: after the run, `crm-mirror approve (\w+)/.exec(out) ?? [
        '',
      ];
    const next = await world.call('sync', '--json');
    expect(next).toMatchObject({ code: 3, json: { plan } });
    expect((await world.call('approve', plan ?? '')).code).toBe(0);
  });
});

describe('the files of the mirror', () => {
  test('stay as they are, and their copies exist for this user only while it works', async () => {
    const world = await changed();
    const before = [contentOf(world.path), contentOf(`${world.path}-memory`)];
    const modes: Record<string, number> = {};
    world.server.watch.arrived = () => {
      for (const folder of copyFolders()) {
        modes['.'] = statSync(folder).mode & 0o777;
        for (const name of readdirSync(folder))
          modes[name] = statSync(join(folder, name)).mode & 0o777;
      }
    };
    expect((await world.call('rehearse')).code).toBe(0);
    expect(modes).toEqual({
      '.': 0o700,
      'snapshot.sqlite': 0o600,
      'snapshot.sqlite-memory': 0o600,
      'snapshot.sqlite-memory-key': 0o600,
    });
    expect(copyFolders()).toEqual([]);
    expect([contentOf(world.path), contentOf(`${world.path}-memory`)]).toEqual(before);
  });

  test('are read beside a run that has the lease, and in a pause', async () => {
    const world = await changed();
    const lease = takeLease(world.path);
    try {
      expect((await world.call('rehearse')).code).toBe(0);
    } finally {
      lease.release();
    }
    await world.call('pause');
    expect((await world.call('rehearse', '--json')).json).toMatchObject({ status: 'done' });
    expect((await world.call('sync')).code).toBe(75);
  });

  test('are gone if an earlier rehearsal was killed', async () => {
    const world = await changed();
    const dead = launch(['--version']);
    await dead.ended;
    const abandoned = join(tmpdir(), `crm-mirror-rehearsal-${dead.child.pid}-abc123`);
    const inUse = join(tmpdir(), `crm-mirror-rehearsal-${process.pid}-abc123`);
    for (const folder of [abandoned, inUse]) mkdirSync(folder);
    expect((await world.call('rehearse')).code).toBe(0);
    expect(copyFolders()).toEqual([inUse]);
  });

  test.each(['SIGTERM'] as const)('have no copy after %s: it ends with 143', async (signal) => {
    const world = await changed();
    world.server.fail(() => true, { is: 'hang' });
    world.server.arrived.length = 0;
    const { child, ended } = launch(['rehearse', '-c', world.file]);
    // The copy is in use, and what is read hangs: the signal gives it up.
    await untilHolds(() => expect(world.server.arrived).not.toEqual([]));
    expect(copyFolders()).toHaveLength(1);
    child.kill(signal);
    expect((await ended).code).toBe(143);
    expect(copyFolders()).toEqual([]);
  });

  test('are not changed by write-back, which reports nothing', async () => {
    const world = await changed();
    world.config({ contacts: { returns: { type: 'csv', path: './back.csv' } } });
    world.emulator.dashboard.leave(bob, 'ch_news');
    expect((await world.call('rehearse')).code).toBe(0);
    expect(existsSync(join(world.folder, 'back.csv'))).toBe(false);
    await world.call('sync');
    expect(readFileSync(join(world.folder, 'back.csv'), 'utf8')).toContain('ch_news');
  });
});

describe('what cannot be read', () => {
  test('a platform that refuses the key fails it, in text and in JSON', async () => {
    const world = await changed();
    world.server.fail(() => true, { is: 'answer', status: 401 });
    const told = await world.call('rehearse', '--json');
    expect(told).toMatchObject({ code: 1, json: { mirror: 'world', status: 'failed', sent: 0 } });
    expect(told.err).toContain('platform.apiKey');
    expect(copyFolders()).toEqual([]);
  });

  test.each([
    [['--limit', 'contacts.enrol=many'], 'cannot be read'],
    [['--fault', 'flood'], 'fault "flood" is not known'],
    [['--quirk', 'odd'], 'quirk "odd"'],
    [['--seed', 'x'], '--seed "x"'],
    [['--only', 'people'], '--only people'],
  ])('%s is refused before anything is read', async (words, why) => {
    const world = await rehearsable();
    const { code, err } = await world.call('rehearse', ...words);
    expect([code, world.server.arrived]).toEqual([2, []]);
    expect(err).toContain(why);
  });
});
