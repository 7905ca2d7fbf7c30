/** The command `problems`: what the last runs recorded, grouped, and as a file for the CRM. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { groupProblems } from '../../src/engine/report/problem-groups.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

/** A mirror with one problem of each class, and 120 records with the same unknown word. */
async function troubled(): Promise<Mirrored> {
  const world = await mirrored();
  await world.call('sync');
  world.emulator.dashboard.leave(ann, 'ch_news');
  world.server.fail(({ body }) => body.subscription === 'opt_out', { is: 'answer', status: 422 });
  world.csv(
    [
      'id,email,news,product',
      `1,${ann},yes,`,
      `2,${bob},no,`,
      '=cmd(),eve@example.com,Privat 0815,',
      ...Array.from({ length: 120 }, (_, at) => `x${at},p${at}@example.com,unbekannt,`),
      '',
    ].join('\n'),
  );
  await world.call('sync');
  return world;
}

const causesOf = (json: { groups: { class: string; cause: string; count: number }[] }) =>
  json.groups.map((group) => [group.class, group.cause, group.count]);

describe('problems', () => {
  test('groups what the last run recorded, and ends with 0', async () => {
    const world = await troubled();
    const { code, json } = await world.call('problems', '--json');
    expect(code).toBe(0);
    expect(causesOf(json)).toEqual([
      ['rejected', 'opt-out-refused', 1],
      ['invalid', 'unknown-word', 121],
      ['conflict', 'left-channel', 1],
    ]);
    expect(json.groups[1].values).toEqual([
      { value: 'unbekannt', count: 120 },
      { value: 'aaaaaa 9999', count: 1 },
    ]);
    expect(json.problems).toHaveLength(100);
    expect((await world.call('problems', '--json', '--all')).json.problems).toHaveLength(123);
    expect((await world.call('problems')).out).toContain('Problems (3 causes, 123 records)');
  });

  test('lists one class, and refuses a class that does not exist', async () => {
    const world = await troubled();
    const { json } = await world.call('problems', '--json', '--class', 'conflict', '--all');
    expect(json.problems).toMatchObject([
      { class: 'conflict', cause: 'left-channel', crmIds: ['1'], part: 'ch_news' },
    ]);
    const { code, err } = await world.call('problems', '--class', 'bad');
    expect([code, err]).toEqual([2, expect.stringContaining('invalid, conflict, rejected, held')]);
  });

  test('shows the same on a mirror that never ran, and when nothing is wrong', async () => {
    const world = await mirrored();
    expect(await world.call('problems')).toMatchObject({
      code: 0,
      out: 'No problems are recorded.',
      err: expect.stringContaining('there is no snapshot yet'),
    });
    await world.call('sync');
    expect(await world.call('problems')).toMatchObject({ code: 0, err: '' });
  });

  test('writes a CSV for the CRM: private, without addresses, and safe in a spreadsheet', async () => {
    const world = await troubled();
    const file = join(world.folder, 'problems.csv');
    // On a terminal, addresses are shown on the screen, and not written to the file.
    const { code, out } = await world.seen('problems', '--output', file);
    expect([code, out]).toEqual([0, expect.stringContaining(`123 records written to ${file}`)]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const text = readFileSync(file, 'utf8');
    const lines = text.split('\r\n');
    expect(lines[0]).toBe('class,kind,cause,key,crm_ids,place,part,value,reason,fix,since');
    expect(lines).toHaveLength(125);
    expect(text).not.toMatch(/@example|Privat/);
    expect(text).toContain(`,'=cmd(),line 4,,aaaaaa 9999,`);
    expect(text).toMatch(/conflict,contact,left-channel,#[0-9a-f]{12},1,,ch_news,/);

    expect(await world.call('problems', '--output', file)).toMatchObject({
      code: 2,
      err: expect.stringContaining('nothing is overwritten'),
    });
    expect(readFileSync(file, 'utf8')).toBe(text);
    const other = join(world.folder, 'with-addresses.csv');
    await world.call('problems', '--output', other, '--addresses', '--class', 'invalid');
    expect(readFileSync(other, 'utf8')).toContain(`eve@example.com,'=cmd(),line 4,,Privat 0815,`);
    const nowhere = join(world.folder, 'none/problems.csv');
    expect((await world.call('problems', '--output', nowhere)).code).toBe(2);
  });

  test('lists the people whose changes await approval', async () => {
    const world = await mirrored();
    await world.call('sync');
    world.config({ guards: { optOuts: { percent: 1, floor: 0 } } });
    world.people([
      { email: ann, news: 'no' },
      { email: bob, news: 'no' },
    ]);
    await world.call('sync');
    const { json } = await world.call('problems', '--json', '--class', 'held');
    expect(causesOf(json)).toEqual([['held', 'awaiting-approval', 2]]);
    expect(json.groups[0].fix).toContain('crm-mirror approve');
    expect(json.problems).toMatchObject([{ part: 'opt_out ch_news' }, { part: 'opt_out ch_news' }]);
    const { out } = await world.call('problems', '--all');
    expect(out).toMatch(/ 2 × awaiting approval {2}2 people would be opted out /);
    expect(out).toMatch(/^ +awaiting approval +awaiting-approval .* opt out ch_news /m);
  });
});

const one = (about: string) => ({
  class: 'rejected' as const,
  cause: 'platform-refused' as const,
  about,
  option: null,
  value: null,
  fix: 'mend it',
  n: 2,
  samples: [{ key: about, place: null }],
});

test('grouping never loses a record, however many reasons there are', () => {
  const found = groupProblems();
  found.add(
    'contact',
    Array.from({ length: 500 }, (_, at) => one(`reason ${at}`)),
  );
  const groups = found.groups();
  expect(groups.length).toBe(21);
  expect(groups.reduce((sum, { count }) => sum + count, 0)).toBe(1_000);
  expect(groups[0]).toMatchObject({ reason: 'other reasons', count: 960 });
});
