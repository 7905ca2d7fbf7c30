/** export people and templates, and explain --offline: what is recorded, read only. */
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

const entriesOf = (out: string): { key: string }[] =>
  out === '' ? [] : out.split('\n').map((line) => JSON.parse(line));
const keysOf = (out: string): string[] => entriesOf(out).map(({ key }) => key);

describe('export people', () => {
  test('prints a table to read, with hashes into a pipe and addresses at a terminal', async () => {
    const world = await used();
    const table = ['export', 'people', '--format', 'text'];
    const { out, code } = await world.call(...table);
    expect(code).toBe(0);
    expect(out).toMatch(/^Record +Ownership +Last seen +State\n/);
    expect(out).toMatch(
      /#[0-9a-f]{12} +created by us +[-\dT:]+Z +ch_news opted out on the platform/,
    );
    expect(out).not.toContain('@');
    expect((await world.seen(...table)).out).toContain(ann);
    expect((await world.call(...table, '--addresses')).out).toContain(bob);
    const templates = await world.call('export', 'templates', '--format', 'text');
    expect(templates.out).toContain('template welcome');
  });

  test('selects by status, channel and ownership', async () => {
    const world = await used();
    for (const [flags, keys] of [
      ['templates', ['welcome']],
      ['people --status subscribed', [bob, carl]],
      ['people --status unsubscribed', [ann]],
      ['people --status all_mail', [carl]],
      ['people --status vanished', []],
      ['people --channel ch_news --status unsubscribed', [ann]],
      ['people --channel ch_product', []],
      ['people --ownership noted', []],
      ['people --ownership created', [ann, bob, carl]],
    ] as const) {
      const named = flags.startsWith('people') ? ['--addresses'] : [];
      const { out } = await world.call('export', ...flags.split(' '), ...named);
      expect([flags, keysOf(out)]).toEqual([flags, keys]);
    }
  });

  test('writes no more than --limit, and says that there is more', async () => {
    const world = await used();
    const few = await world.call('export', 'people', '--limit', '2');
    expect(entriesOf(few.out)).toHaveLength(2);
    expect(few.err).toContain('there are more than the 2 of --limit');
    expect((await world.call('export', 'people', '--limit', '3')).err).toBe('');
    expect((await world.call('export', 'people', '--limit', '0')).code).toBe(2);
  });

  test('refuses a channel that is not configured, and says so without a snapshot', async () => {
    const world = await mirrored();
    const { code, err } = await world.call('export', 'people', '--channel', 'ch_nwes');
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('give one of') });
    expect(await world.call('export', 'people', '--format', 'text')).toMatchObject({
      code: 0,
      out: 'Nothing is recorded.',
      err: expect.stringContaining('there is no snapshot yet'),
    });
  });

  test('prints a document a line, with hashes also at a terminal', async () => {
    const world = await used();
    const { out } = await world.seen('export', 'people');
    const lines = out.split('\n').map((line): unknown => JSON.parse(line));
    expect(lines).toMatchObject([{ kind: 'contact' }, { kind: 'contact' }, { kind: 'contact' }]);
    expect(out).not.toContain('@');
    expect((await world.call('export', 'people', '--addresses')).out).toContain(ann);
  });

  test('writes a line a channel as CSV to a file of its own', async () => {
    const world = await used();
    const file = join(world.folder, 'export.csv');
    const flags = ['--format', 'csv', '--output', file, '--addresses'];
    const { json } = await world.call('export', 'people', ...flags, '--json');
    expect(json).toMatchObject({ file, records: 3 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const [head, first, ...rest] = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(head).toMatch(/^kind,key,ownership,id,crm_ids,channel,is,by/);
    expect(first).toMatch(new RegExp(`^contact,${ann},created,[^,]+,id-${ann},ch_news,opt_out,`));
    expect(rest).toHaveLength(2);
    const templates = await world.call('export', 'templates', '--format', 'csv');
    expect(templates.out.split('\n').at(-1)).toMatch(/^template,welcome,created,/);
    expect(await world.call('export', 'people', ...flags)).toMatchObject({
      code: 2,
      err: expect.stringContaining('nothing is overwritten'),
    });
  });

  test('selects alike in each format, and refuses a missing folder', async () => {
    const world = await used();
    const { out } = await world.call('export', 'people', '--status', 'unsubscribed');
    expect(out.split('\n')).toHaveLength(1);
    const file = join(world.folder, 'none', 'people.jsonl');
    expect(await world.call('export', 'people', '--output', file)).toMatchObject({ code: 2 });
    mkdirSync(join(world.folder, 'none'));
    expect(await world.call('export', 'people', '--output', file)).toMatchObject({ code: 0 });
  });
});

describe('explain --offline', () => {
  test('shows the channels, the refused change and the stored row of a person', async () => {
    const world = await used();
    const arrived = world.server.arrived.length;
    const { json } = await world.call('explain', bob, '--offline', '--json');
    expect(world.server.arrived).toHaveLength(arrived);
    expect(json).toMatchObject({
      snapshot: {
        ownership: 'created',
        settled: false,
        channels: { ch_news: { is: 'opt_in' } },
        raw: { ownership: 'created', body: { channels: { ch_news: { is: 'opt_in' } } } },
      },
      problems: [{ class: 'rejected', part: 'ch_news' }],
      parked: [{ channel: 'ch_news', attempts: 1 }],
    });
    const { out } = await world.seen('explain', bob, '--offline', '--verbose');
    expect(out).toMatch(/Recorded\n {2}created by us, contact \S+, CRM id/);
    expect(out).toContain('ch_news: opt in');
    expect(out).toContain('ch_news: refused by the platform; tried again from ');
    expect(out).toMatch(
      /Refused, and skipped until it changes\n {2}ch_news, contact \S+: since \S+, tried 1×, until /,
    );
    expect(out).toContain('As it is stored');
  });

  test('hides each address in a pipe, ids of the CRM among them', async () => {
    const world = await used();
    for (const flags of [[], ['--json']]) {
      const { out } = await world.call('explain', ann, '--offline', '--verbose', ...flags);
      expect(out).not.toContain('@');
    }
  });

  test('finds a person by hash and by address, and refuses a template', async () => {
    const world = await used();
    const [hash = ''] = keysOf((await world.call('export', 'people')).out);
    for (const who of [hash, ann]) {
      const { json } = await world.call('explain', who, '--offline', '--json', '--addresses');
      expect(json.person).toBe(ann);
    }
    const { code, err } = await world.call('explain', 'welcome', '--offline');
    expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining('is a template') });
  });

  test('says that nothing is recorded of a stranger, and refuses an unknown name', async () => {
    const world = await used();
    const { json } = await world.call('explain', 'dora@example.com', '--offline', '--json');
    expect(json).toMatchObject({ known: false, snapshot: null, problems: [], answers: [] });
    expect(await world.call('explain', 'nobody', '--offline')).toMatchObject({ code: 2 });
    const fresh = await mirrored();
    expect(await fresh.call('explain', ann, '--offline')).toMatchObject({ code: 2 });
  });
});
