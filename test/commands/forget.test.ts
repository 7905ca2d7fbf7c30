/** forget and allow, and what a lost ledger means to the commands. */
import { writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  storedBytes,
} from '../support/commands/mirrored-contacts.ts';
import { inTerminal, keys } from '../support/commands/terminal-session.ts';

/** Both are on the platform, and ours. */
async function synced(): Promise<Mirrored> {
  const world = await mirrored();
  world.people([
    { email: ann, news: 'yes', product: 'yes' },
    { email: bob, news: 'yes' },
  ]);
  expect((await world.call('sync')).code).toBe(0);
  world.writes();
  return world;
}

interface List {
  contacts: unknown[];
  total: number;
}

/** Changes what the platform answers to the searches whose path matches. */
function rewriteLists({ server }: Mirrored, path: RegExp, change: (list: List) => List): void {
  server.fail((arrival) => path.test(arrival.path), {
    is: 'rewrite',
    by: (answer) => ({ ...answer, body: JSON.stringify(change(JSON.parse(answer.body))) }),
  });
}

/** The platform finds nobody by less than a whole address. */
const findsNoParts = (world: Mirrored): void =>
  rewriteLists(world, /search=[^&]*%40(?:&|$)/, (list) => ({ ...list, contacts: [], total: 0 }));

const allow = (world: Mirrored, who = ann) =>
  world.call('allow', who, '--reason', 'asked', '--json');

describe('forget', () => {
  test('opts out, deletes, verifies and purges, and prints each step', async () => {
    const world = await synced();
    world.emulator.seed.contact({
      email: ` ${ann.toUpperCase()}`,
      channels: { ch_news: 'opt_in' },
    });
    expect(storedBytes(world)).toContain(ann);
    const { code, json } = await world.call('forget', ann, '--yes', '--json');
    expect({ code, json }).toEqual({
      code: 0,
      json: {
        mirror: 'world',
        person: expect.stringMatching(/^#[0-9a-f]{12}$/),
        at: expect.stringMatching(/Z$/),
        found: 2,
        optedOut: 3,
        deleted: 2,
        verified: true,
        purged: {
          recorded: 1,
          origins: 1,
          problems: 0,
          changes: 3,
          absences: 0,
          held: 0,
          returned: 0,
        },
        scrubbed: true,
        entry: { ledger: expect.any(String), seq: 1, since: json.at },
        crm: { read: true, certified: true, why: null },
        also: [],
        copies: [],
        reason: null,
      },
    });
    expect(world.emulator.world.contacts().map(({ email }) => email)).toEqual([bob]);
    const sent = world
      .writes()
      .map(({ method, body }) => `${method} ${body['subscription'] ?? ''}`);
    expect(sent.filter((line) => line.startsWith('POST'))).toEqual(Array(3).fill('POST opt_out'));
    expect(storedBytes(world)).not.toContain(ann);
    expect(storedBytes(world)).toContain(bob);
  });

  test.each([
    ['full-width letters', 'ann@ｅｘａｍｐｌｅ.com', ann],
    ['a full stop of another script', 'ann@example\u3002com', ann],
    [
      'letters composed only in part',
      'J\u00f6rge\u0301n@example.com',
      'j\u00f6rg\u00e9n@example.com',
    ],
  ])('finds a contact whose address is stored with %s, by any search', async (_, stored, key) => {
    for (const searched of ['by parts', 'by whole addresses']) {
      const world = await synced();
      world.emulator.seed.contact({ email: stored, channels: { ch_news: 'opt_in' } });
      if (searched === 'by whole addresses') findsNoParts(world);
      const { code, json } = await world.call('forget', key, '--yes', '--json');
      expect({ code, json }).toMatchObject({ code: 0, json: { verified: true } });
      const left = world.emulator.world.contacts().map(({ email }) => email);
      expect({ searched, left }).toEqual({ searched, left: key === ann ? [bob] : [bob, ann] });
    }
  });

  test('claims nothing about a list that shows fewer contacts than it counts', async () => {
    const world = await synced();
    rewriteLists(world, /search=ann%40&?/, (list) => ({ ...list, total: list.total + 1 }));
    const { code, out } = await world.call('forget', ann, '--yes');
    expect({ code, out }).toMatchObject({ code: 1, out: expect.stringContaining('not wholly') });
    expect(out).toContain('none found');
    expect(out).not.toContain('none remains');
    const { json } = await world.call('forget', ann, '--yes', '--json');
    expect(json).toMatchObject({ verified: false, scrubbed: true, reason: null });
  });

  test('needs --yes, and an address in place of a hash, where nobody can be asked', async () => {
    const world = await synced();
    const { json } = await world.call('explain', ann, '--json');
    const refused = [
      { argv: [ann], says: '--yes' },
      { argv: [json.person, '--yes'], says: 'give the address' },
      { argv: [json.person.slice(1), '--yes'], says: 'give the address' },
    ];
    for (const { argv, says } of refused) {
      const { code, err } = await world.call('forget', ...argv);
      expect({ argv, code, err }).toEqual({ argv, code: 2, err: expect.stringContaining(says) });
    }
    expect(world.writes()).toEqual([]);
    expect((await world.call('sync', '--json')).json.contacts).toMatchObject({ conflicts: 0 });
  });

  test.each([
    { typed: 'n', code: 130, left: true },
    { typed: keys.interrupt, code: 130, left: true },
    { typed: 'y', code: 0, left: false },
  ])('asks on a terminal who is forgotten, and where ($typed)', async ({ typed, code, left }) => {
    const world = await synced();
    const { person } = (await world.call('explain', ann, '--json')).json;
    const argv = ['forget', person, '-c', world.file];
    const { answer, shown, ended } = inTerminal(argv, { cwd: world.folder, columns: 300 });
    await answer(`Forget ${ann} for good?`, typed);
    expect(await ended).toBe(code);
    expect(shown()).toContain(world.server.url);
    expect(shown()).toContain('the mirror world');
    expect(world.shown(ann) !== undefined).toBe(left);
  });
});

describe('allow', () => {
  test('takes an erasure back, and records a date and a reason', async () => {
    const world = await synced();
    await world.call('forget', ann, '--yes');
    const { code, json } = await allow(world);
    expect({ code, json }).toEqual({
      code: 0,
      json: {
        mirror: 'world',
        person: expect.stringMatching(/^#/),
        at: expect.any(String),
        reason: 'asked',
        taken: [{ cause: 'erasure', part: '*', since: expect.any(String) }],
        freed: [],
        released: [],
        dropped: false,
        crm: { read: true, certified: true, why: null },
      },
    });
    await world.call('sync');
    expect(world.shown(ann)).toEqual({ ch_news: 'opt_in', ch_product: 'opt_in' });
    expect((await allow(world)).json.taken).toEqual([]);
  });
});

test('after forget, the files hold no address of a person whose record becomes invalid', async () => {
  const world = await mirrored();
  await world.call('sync');
  expect((await world.call('forget', ann, '--yes')).code).toBe(0);
  world.people([{ email: ann, news: 'maybe' }]);
  const { code, json } = await world.call('sync', '--json', '--addresses');
  expect({ code, json }).toMatchObject({ code: 4, json: { contacts: { invalid: 1 } } });
  expect(json.problems).toMatchObject([{ class: 'invalid' }]);
  expect(JSON.stringify(json.problems)).not.toContain(ann);
  world.csv(`id,email,news,product\nid-${ann},no address,yes,\n`);
  expect((await world.call('sync', '--json')).json.contacts.invalid).toBe(1);
  expect(storedBytes(world)).not.toContain(ann);
});

// What a forgotten person leaves elsewhere, and the certificate names.

const before = 'ann@before.example';
const head = 'id,email,news,product\n';

/** The CRM has given Ann another address, and both are on the platform. */
async function moved(): Promise<Mirrored> {
  const world = await mirrored();
  for (const email of [before, ann]) {
    world.csv(`${head}1,${email},yes,\n2,${bob},yes,\n`);
    expect((await world.call('sync')).code).toBe(0);
  }
  world.writes();
  return world;
}

describe('another address of the same CRM record', () => {
  test.each([
    ['a former one', ann, before],
    ['a later one', before, ann],
  ])('%s is printed with the command to run, and left alone', async (_what, key, other) => {
    const world = await moved();
    const { code, json, err } = await world.call('forget', key, '--yes', '--json');
    expect({ code, also: json.also }).toEqual({
      code: 0,
      also: [expect.stringMatching(/^#[0-9a-f]{12}$/)],
    });
    expect(err).not.toContain('@');
    expect(JSON.stringify(json)).not.toContain('@');
    expect(world.shown(key)).toBeUndefined();
    expect(world.shown(other)).toBeDefined();
    // The hash is all it takes; then nobody of that name is known any more.
    const next = await world.seen('forget', json.also[0], '--yes', '--json');
    expect(next).toMatchObject({ code: 0, json: { person: json.also[0], deleted: 1, also: [] } });
    expect(world.shown(other)).toBeUndefined();
    expect(storedBytes(world).includes(other)).toBe(false);
    expect(world.shown(bob)).toBeDefined();
  });

  test('is printed in plain at a terminal, and elsewhere with --addresses', async () => {
    const world = await moved();
    const { out } = await world.seen('forget', ann, '--yes');
    expect(out).toContain('another address');
    expect(out).toContain(`crm-mirror forget ${before} -c ${world.file}`);
    const shown = await (await moved()).call('forget', ann, '--yes', '--addresses', '--json');
    expect(shown.json.also).toEqual([before]);
  });
});

test('forget names snapshots that were set aside, because it does not purge them', async () => {
  const world = await moved();
  const aside = `${world.path}.broken-20260101T000000Z`;
  for (const end of ['', '-wal']) writeFileSync(aside + end, ann);
  const { json } = await world.call('forget', ann, '--yes', '--json');
  expect(json.copies).toEqual([aside, `${aside}-wal`]);
  const { out } = await world.call('forget', ann, '--yes');
  expect(out).toContain(`${aside} was set aside`);
  expect(out).toMatch(/backups .* restoring one/);
});
