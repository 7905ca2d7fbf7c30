/** What people read of a plan and of a run. */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored } from '../../support/commands/mirrored-contacts.ts';

const many = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    email: `p${String(at).padStart(2, '0')}@example.com`,
    news: 'yes',
    product: at < 3 ? 'yes' : '',
  }));

describe('a plan', () => {
  test('counts the changes first, then names ten records of each with the reason', async () => {
    const world = await mirrored();
    world.people(many(12));
    const { out } = await world.seen('plan');
    const lines = out.split('\n');
    expect(lines.slice(0, 8)).toEqual([
      'Plan for world (full comparison): 15 changes. Nothing is sent.',
      '',
      '  +  create  12  people, in 15 subscriptions',
      '',
      '  CRM 12 people · platform 0',
      '',
      expect.any(String),
      expect.any(String),
    ]);
    expect(out).toContain(
      [
        'Create (10 of 12)',
        '  +  p00@example.com  ch_news, ch_product  opt-in wanted; not on the platform',
      ].join('\n'),
    );
    expect(out.match(/^ {2}\+ {2}p/gm)).toHaveLength(10);
    expect(out).toContain(`All of them: \`crm-mirror plan --all -c ${world.file}\``);
  });

  test('names all records with --all', async () => {
    const world = await mirrored();
    world.people(many(12));
    const { out } = await world.call('plan', '--all');
    expect(out.match(/^ {2}\+ {2}#/gm)).toHaveLength(12);
    expect(out).toContain('\nCreate (12)\n');
    expect(out).not.toContain('--all');
  });

  test('tells an opt-in of a known person from the further channels of a new one', async () => {
    const world = await mirrored();
    world.people([{ email: ann, news: 'yes' }]);
    await world.call('sync');
    world.people([
      { email: ann, news: 'no', product: 'yes' },
      { email: bob, news: 'yes', product: 'yes' },
    ]);
    const counts = ['create   1', 'opt in   1', 'opt out  1'].map((text) => `  ${text}`);
    const { out } = await world.seen('plan');
    for (const text of counts) expect(out).toContain(text);
    expect(out).toContain(`-  ${ann}  ch_news  opt-out wanted; subscribed`);
    const done = await world.seen('sync');
    for (const text of ['created    1', 'opted in   1', 'opted out  1'])
      expect(done.out).toContain(`  ${text}`);
    expect(done.out).toContain('Opted out (1)');
    expect(done.out).toContain('Run for world (full comparison): 4 changes in ');
    expect((await world.seen('plan')).out).toBe(
      'Plan for world (full comparison): nothing to do. Nothing is sent.\n\n' +
        '  CRM 2 people · platform 2',
    );
  });

  test('shows requests, ids and readings with --verbose only', async () => {
    const world = await mirrored();
    const internals = /delayed by a rate limit|readings|run \d{8}T|plan [0-9a-f]{16}/;
    expect((await world.call('plan')).out).not.toMatch(internals);
    const { out } = await world.call('plan', '--verbose');
    expect(out).toMatch(/run \d{8}T\w+-\w+, plan [0-9a-f]{16}/);
    expect(out).toContain('complete readings: source yes, platform yes');
  });

  test('names a command for what awaits approval that will be accepted', async () => {
    const world = await mirrored();
    world.config({ guards: { optIns: { percent: 0, floor: 1 } } });
    await world.call('sync');
    world.people(many(3));
    const before = await world.call('plan');
    expect(before.code).toBe(3);
    expect(before.out).toContain(
      '! 3 people await approval (opt-ins): a run will ask for approval',
    );
    expect(before.out + before.err).not.toContain('crm-mirror approve');
    await world.call('sync');
    const { out } = await world.call('plan');
    const [, hash = ''] =
      /await approval \(opt-ins\): `crm-mirror approve (\w+) -c/.exec(out) ?? [];
    expect((await world.call('approve', hash)).code).toBe(0);
    expect((await world.call('sync')).out).toContain('created  3');
  });

  test('names the settings that prevent changes, with their counts', async () => {
    const lines = { policy: { optIns: 'off' } };
    const world = await mirrored({ lines });
    const { out, err } = await world.call('plan');
    expect(out).toContain('  optIns is off: 2 people would have been opted in');
    expect(err).toBe('');
    const { json } = await world.call('plan', '--json');
    expect(json.contacts.prevented).toEqual({ optIns: 2, protect: 0, sample: 0 });
  });
});

describe('what is printed on stderr', () => {
  test('is no log line by a plan, unless one is asked for', async () => {
    const world = await mirrored();
    expect((await world.call('plan')).err).toBe('');
    expect((await world.call('plan', '--log-level', 'info')).err).toContain('"msg":"plan done"');
  });

  test('is a log line by a run, unless --quiet or a level forbids it', async () => {
    const world = await mirrored();
    expect((await world.call('sync')).err).toContain('"msg":"run done"');
    world.people([{ email: 'new@example.com', news: 'perhaps' }]);
    const { err } = await world.call('sync');
    expect(err).not.toContain('"status"');
    expect(err).toContain('"msg":"run done, some records have problems"');
    expect((await world.call('sync', '--quiet')).err).toBe('');
    expect((await world.call('sync', '--log-level', 'error')).err).toBe('');
    expect((await world.call('sync', '--log-level', 'loud')).code).toBe(2);
  });
});

test('a run names what a later round did, and counts all that the platform listed', async () => {
  const world = await mirrored();
  const csv = (...rows: string[]) =>
    world.csv(['id,email,news,product,lost', ...rows.map((row) => `${row},,`), ''].join('\n'));
  csv('1,p1@example.com,yes', '2,p2@example.com,yes', '3,p3@example.com,yes');
  await world.call('sync');
  csv('1,q1@example.com,yes', '2,q2@example.com,yes', '3,p3@example.com,no');
  const { out } = await world.seen('sync');
  expect(out).toContain('CRM 3 people · platform 3\n');
  expect(out).toContain('Opted out (3)\n');
  for (const name of ['p1', 'p2', 'p3']) expect(out).toContain(`-  ${name}@example.com  ch_news`);
});

test('a run with --quiet prints nothing when all is well, and what it newly found', async () => {
  const world = await mirrored();
  world.people([{ email: ann, news: 'yes' }]);
  const nothing = { code: 0, said: '' };
  expect(await world.call('sync', '--quiet')).toMatchObject(nothing);
  expect((await world.call('plan', '--quiet')).out).toContain('nothing to do');
  expect((await world.call('sync', '--quiet', '--json')).json.status).toBe('done');
  world.emulator.dashboard.leave(world.emulator.world.contact(ann)?.id ?? '', 'ch_news');
  expect((await world.call('sync', '--quiet')).out).toContain('1 × conflict');
  expect(await world.call('sync', '--quiet')).toMatchObject(nothing);
  world.people([{ email: ann, news: 'perhaps' }]);
  const { code, out } = await world.call('sync', '--quiet');
  expect(code).toBe(4);
  expect(out).toContain('is no known word');
});

test('a file in the folder of templates that is no template is named by plan and check', async () => {
  const world = await mirrored({ kinds: ['contact', 'template'] });
  world.template('welcome', { subject: 'Hi' });
  expect((await world.call('plan')).out).not.toContain('ignored');
  const config = JSON.parse(readFileSync(world.file, 'utf8'));
  const folder = resolve(dirname(world.file), config.templates.source.path);
  writeFileSync(join(folder, 'invoice.html'), '<p>');
  const note = '1 file in the folder of templates ignored (invoice.html)';
  expect((await world.call('plan')).out).toContain(note);
  expect((await world.call('check')).out).toContain(note);
});
