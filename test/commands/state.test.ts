/** state list, show and export: what the snapshot has recorded, read only. */
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const carl = 'carl@example.com';

/** Ann left a channel, the opt-out of Bob is refused, Carl left all mail; there is a template. */
async function used(): Promise<Mirrored> {
  const world = await mirrored({ kinds: ['contact', 'template'] });
  world.template('welcome', { name: 'Welcome', subject: 'Hi' });
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'yes', product: 'no' },
    { email: carl, news: 'yes' },
  ]);
  await world.call('sync');
  world.emulator.dashboard.leave(ann, 'ch_news');
  world.emulator.dashboard.unsubscribe(carl);
  world.server.fail(({ body }) => body.subscription === 'opt_out', { is: 'answer', status: 422 });
  world.people([
    { email: ann, news: 'yes' },
    { email: bob, news: 'no', product: 'no' },
    { email: carl, news: 'yes' },
  ]);
  await world.call('sync');
  return world;
}

const keysOf = (said: { json: { records: { key: string }[] } }): string[] =>
  said.json.records.map(({ key }) => key);

describe('state list', () => {
  test('lists people as hashes into a pipe, and by address at a terminal', async () => {
    const world = await used();
    const { out, code } = await world.call('state', 'list');
    expect(code).toBe(0);
    expect(out).toMatch(/^RECORD +OWNERSHIP +STATE +LAST SEEN\n/);
    expect(out).toMatch(/#[0-9a-f]{12} +created by us +ch_news opted out on the platform/);
    expect(out).toContain('template welcome');
    expect(out).not.toContain('@');
    expect((await world.seen('state', 'list')).out).toContain(ann);
    expect((await world.call('state', 'list', '--addresses')).out).toContain(bob);
  });

  test('selects by kind, status, channel and ownership', async () => {
    const world = await used();
    for (const [flags, keys] of [
      ['--kind template', ['welcome']],
      ['--status subscribed', [bob, carl]],
      ['--status unsubscribed', [ann]],
      ['--status all_mail', [carl]],
      ['--status vanished', []],
      ['--channel ch_news --status unsubscribed', [ann]],
      ['--channel ch_product', []],
      ['--ownership noted', []],
      ['--ownership created --kind contact', [ann, bob, carl]],
    ] as const) {
      const words = ['state', 'list', '--addresses', '--json', ...flags.split(' ')];
      expect([flags, keysOf(await world.call(...words))]).toEqual([flags, keys]);
    }
  });

  test('prints no more than --limit, and that there is more', async () => {
    const world = await used();
    const { json } = await world.call('state', 'list', '--limit', '2', '--json');
    expect(json).toMatchObject({ records: [{}, {}], more: true });
    const all = await world.call('state', 'list', '--limit', '4');
    expect(all.out).not.toContain('more');
    expect((await world.call('state', 'list', '--limit', '0')).code).toBe(2);
  });

  test('refuses a channel that is not configured, and says so without a snapshot', async () => {
    const world = await mirrored();
    const { code, err } = await world.call('state', 'list', '--channel', 'ch_nwes');
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('give one of') });
    expect(await world.call('state', 'list')).toMatchObject({
      code: 0,
      out: 'Nothing is recorded.',
      err: expect.stringContaining('there is no snapshot yet'),
    });
  });
});

describe('state show', () => {
  test('shows the channels, the refused change and the stored row of a person', async () => {
    const world = await used();
    const { json } = await world.call('state', 'show', bob, '--json');
    expect(json).toMatchObject({
      kind: 'contact',
      recorded: { ownership: 'created', settled: false, channels: { ch_news: { is: 'opt_in' } } },
      problems: [{ class: 'rejected', part: 'ch_news' }],
      refused: [{ part: 'ch_news', attempts: 1 }],
      open: [],
      raw: { ownership: 'created', body: { channels: { ch_news: { is: 'opt_in' } } } },
    });
    const { out } = await world.seen('state', 'show', bob);
    expect(out).toMatch(/Recorded\n {2}ours: a run created it\n {2}id \S+ on the platform/);
    expect(out).toContain('ch_news: opt in');
    expect(out).toMatch(
      /Refused by the platform\n {2}ch_news, contact \S+: tried 1 time, again from /,
    );
    expect(out).toContain('As it is stored');
  });

  test('hides each address in a pipe, ids of the CRM among them', async () => {
    const world = await used();
    for (const flags of [[], ['--json']]) {
      const { out } = await world.call('state', 'show', ann, ...flags);
      expect(out).not.toContain('@');
    }
  });

  test('finds a person by hash and by CRM id, and a template by key and by name', async () => {
    const world = await used();
    const [hash] = keysOf(await world.call('state', 'list', '--json'));
    for (const who of [hash ?? '', ann]) {
      const { json } = await world.call('state', 'show', who, '--json', '--addresses');
      expect(json.key).toBe(ann);
    }
    for (const name of ['welcome', 'Welcome']) {
      const { json } = await world.call('state', 'show', name, '--json');
      expect(json).toMatchObject({
        kind: 'template',
        key: 'welcome',
        recorded: { name: 'Welcome' },
      });
    }
  });

  test('says that nothing is recorded of a stranger, and refuses an unknown name', async () => {
    const world = await used();
    const { json } = await world.call('state', 'show', 'dora@example.com', '--json');
    expect(json).toMatchObject({ recorded: null, raw: null, problems: [] });
    expect(await world.call('state', 'show', 'nobody')).toMatchObject({ code: 2 });
  });
});

describe('state export', () => {
  test('prints a document a line, with hashes also at a terminal', async () => {
    const world = await used();
    const { out } = await world.seen('state', 'export');
    const lines = out.split('\n').map((line): unknown => JSON.parse(line));
    expect(lines).toMatchObject([
      { kind: 'contact' },
      { kind: 'contact' },
      { kind: 'contact' },
      { kind: 'template', key: 'welcome' },
    ]);
    expect(out).not.toContain('@');
    expect((await world.call('state', 'export', '--addresses')).out).toContain(ann);
  });

  test('writes a line a channel as CSV to a file of its own', async () => {
    const world = await used();
    const file = join(world.folder, 'state.csv');
    const flags = ['--format', 'csv', '--output', file, '--addresses'];
    const { json } = await world.call('state', 'export', ...flags, '--json');
    expect(json).toMatchObject({ file, records: 4 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const [head, first, ...rest] = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(head).toMatch(/^kind,key,ownership,id,crm_ids,channel,is,by/);
    expect(first).toMatch(new RegExp(`^contact,${ann},created,[^,]+,id-${ann},ch_news,opt_out,`));
    expect(rest.at(-1)).toMatch(/^template,welcome,created,/);
    expect(await world.call('state', 'export', ...flags)).toMatchObject({
      code: 2,
      err: expect.stringContaining('nothing is overwritten'),
    });
  });

  test('selects as `state list` does, and refuses a missing folder', async () => {
    const world = await used();
    const { out } = await world.call('state', 'export', '--status', 'unsubscribed');
    expect(out.split('\n')).toHaveLength(1);
    const file = join(world.folder, 'none', 'state.jsonl');
    expect(await world.call('state', 'export', '--output', file)).toMatchObject({ code: 2 });
    mkdirSync(join(world.folder, 'none'));
    expect(await world.call('state', 'export', '--output', file)).toMatchObject({ code: 0 });
  });
});
