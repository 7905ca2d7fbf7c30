/** The audit log by its commands: what a write was asked for by, and whether the log is whole. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { operatorName } from '../../src/compose/process-shell.ts';
import { type StoredEntry, hashOf } from '../../src/store/memory/audit-entry.ts';
import {
  ann,
  bob,
  mirrored,
  type Mirrored,
  tamper,
  inAndOut,
} from '../support/commands/mirrored-contacts.ts';

const logOf = (world: Mirrored): string => `${world.path}-memory`;
const shown = async (world: Mirrored, who = ann) =>
  (await world.call('audit', 'show', who, '--json')).json.entries;

/** Lets no entry into the log. */
const failing = `create trigger failing before insert on audit
  begin select raise(fail, 'the disk is full'); end`;

describe('audit show', () => {
  test('tells each write about a person: the rule, who asked, before and after, the answer', async () => {
    const world = await inAndOut();
    const by = { id: expect.any(String), mode: 'full', by: 'command', name: expect.any(String) };
    expect(await shown(world)).toMatchObject([
      {
        op: 'create',
        part: 'ch_news',
        rule: 'not-on-platform',
        says: 'opt_in',
        before: 'none',
        after: 'opt_in',
        outcome: 'acked',
        status: 201,
        run: by,
      },
      { op: 'opt_out', rule: 'stated-out', says: 'opt_out', before: 'opt_in', after: 'opt_out' },
    ]);
    const { out } = await world.call('audit', 'show', ann);
    expect(out).toContain('opt-out wanted; subscribed (stated-out)');
    expect(out).not.toContain(ann);
  });

  test('tells who gave the command, whatever --by says, and what allow lifted', async () => {
    const world = await inAndOut();
    world.people([{ email: bob, news: 'yes' }]);
    await world.call('forget', ann, '--yes');
    await world.call('allow', ann, '--reason', 'by letter', '--by', 'the board');
    const [entry] = await shown(world);
    expect(entry).toMatchObject({ what: 'allow', name: 'the board', as: operatorName() });
    expect(entry.about).toMatch(/^erasure, listed 20\d\d-\S+Z$/);
    const { out } = await world.call('audit', 'show', ann);
    expect(out).toContain('the board released a person: ');
    expect(out).toContain(`command of  ${operatorName()}`);
    await world.call('retry', ann, '--read-again', '--reason', 'x', '--by', 'eva');
    expect((await shown(world)).at(-1)).toMatchObject({ name: 'eva', as: operatorName() });
  });

  test('points out an opt-in whose stated time is that of an earlier opt-out', async () => {
    const world = await mirrored({ lines: { contacts: { consentAt: 'at' } } });
    const csv = (news: string) => world.csv(`id,email,news,product,at\n1,${ann},${news},,${at}\n`);
    const at = '2025-10-01T08:12:00Z';
    csv('yes');
    await world.call('sync');
    csv('no');
    await world.call('sync');
    csv('yes');
    await world.call('sync');
    const entries = await shown(world);
    expect(entries.map(({ says }: { says: string }) => says)).toEqual([
      'opt_in',
      'opt_out',
      'opt_in',
    ]);
    expect(entries[2].sameStatedAt).toBe(entries[1].seq);
    expect(entries[0].sameStatedAt).toBeUndefined();
    const said = `entry ${entries[1].seq} opted out by the same stated time`;
    expect((await world.call('audit', 'show', ann)).out).toContain(said);
    expect((await world.call('explain', ann, '--verbose')).out).toContain(said);
  });

  test('takes the mark of a person, and the hash of a plan', async () => {
    const world = await mirrored({ lines: { guards: { optIns: { percent: 0, floor: 0 } } } });
    await world.call('backfill');
    world.people([
      { email: ann, news: 'yes', product: 'yes' },
      { email: bob, news: 'yes', product: 'yes' },
    ]);
    const { plan } = (await world.call('sync', '--json')).json;
    await world.call('approve', plan, '--by', 'ben');
    await world.call('sync');
    const found = await shown(world, plan);
    expect(found).toMatchObject([
      { what: 'approve', about: plan, name: 'ben' },
      { op: 'opt_in', approval: plan },
      { op: 'opt_in', approval: plan },
    ]);
    const [, { person }] = found;
    expect((await world.call('audit', 'show', plan)).out).toMatch(new RegExp(`person +${person}`));
    const [his, hers] = [await shown(world, person), await shown(world, ann)];
    expect([hers, await shown(world, bob)]).toContainEqual(his);
  });
});

test('forget fails while the log cannot be written, or is read, because it has the key', async () => {
  const world = await inAndOut();
  tamper(logOf(world), failing);
  const refused = await world.call('forget', ann, '--yes');
  expect(refused).toMatchObject({ code: 1, out: expect.stringContaining('memory cannot be') });
  tamper(logOf(world), 'drop trigger failing');
  const reader = new Database(logOf(world), { readonly: true });
  reader.exec('begin');
  reader.prepare('select count(*) from audit').get();
  expect((await world.call('forget', ann, '--yes')).code).toBe(75);
  reader.exec('commit');
  reader.close();
  expect((await world.call('forget', ann, '--yes')).code).toBe(0);
});

test.each([
  ['', false],
  [', nor a run since then', true],
])('forget leaves an entry of a change whose outcome nobody has found out%s', async (_, runs) => {
  const world = await inAndOut();
  const config = readFileSync(world.file, 'utf8').replace(/("?timeoutMs"?: ?)\d+/, '$150');
  tamper(world.path, "update change set state = 'sent', ended_at = null where op = 'opt_out'");
  writeFileSync(world.file, config.replace(/("?apiKey"?: ?"?)\w/, '$1other'));
  if (runs) expect((await world.call('sync')).code).toBe(1);
  writeFileSync(world.file, config);
  world.people([{ email: bob, news: 'no' }]);
  expect((await world.call('forget', ann, '--yes')).code).toBe(0);
  const { out } = await world.call('audit', 'export');
  const entries = out.split('\n').map((line) => JSON.parse(line));
  expect(entries.filter(({ outcome }) => outcome === 'unknown')).toHaveLength(1);
});

describe('audit verify', () => {
  test('one loss is noted once, by the next run, and stays found', async () => {
    const world = await inAndOut();
    tamper(logOf(world), 'delete from checkpoint; delete from audit where seq > 1');
    const runs = [await world.call('sync'), await world.call('sync'), await world.call('sync')];
    expect(runs.map(({ err }) => err.includes('entries are lost'))).toEqual([true, false, false]);
    const { code, json } = await world.call('audit', 'verify', '--json');
    expect([code, json.faults.length]).toEqual([1, 1]);
  });

  test('an end that was replaced, with a chain that fits, stays found after runs that write', async () => {
    const world = await inAndOut();
    const db = new Database(logOf(world));
    const [before, last] = db
      .prepare<[], StoredEntry>(
        `select seq, mark person, body, hash from audit
         left join person on person.id = audit.person order by seq desc limit 2`,
      )
      .all()
      .toReversed();
    const body = last?.body.replace('opt_out', 'opt_in') ?? '';
    const hash = before && last && hashOf(before.hash, { ...last, body });
    db.prepare('update audit set body = ?, hash = ? where seq = ?').run(body, hash, last?.seq);
    db.exec('delete from checkpoint where seq = (select max(seq) from audit)');
    db.close();
    expect((await world.call('status', '--json')).json.memory.auditFault).toContain('missing');
    world.people([
      { email: ann, news: 'no' },
      { email: bob, news: 'yes' },
    ]);
    expect((await world.call('sync')).err).toContain('entries are lost');
    const { code, json } = await world.call('audit', 'verify', '--json');
    const { faults, signedUpTo, last: end, provenUpTo } = json;
    expect([code, faults.map(({ seq }: { seq: number }) => seq)]).toEqual([1, [4, 5]]);
    // What the run has signed since proves nothing of what came before.
    expect([signedUpTo === end, provenUpTo]).toEqual([true, 2]);
  });

  test('finds a log that was written anew with another key, if the key is known', async () => {
    const world = await inAndOut();
    const trusted = join(world.folder, 'trusted.pub');
    const key = `${logOf(world)}-key`;
    const pem = execFileSync('openssl', ['pkey', '-in', key, '-pubout']);
    writeFileSync(trusted, pem);
    expect((await world.call('audit', 'verify', '--public-key', trusted)).code).toBe(0);
    for (const file of [key, logOf(world), `${logOf(world)}-wal`]) rmSync(file, { force: true });
    world.people([{ email: bob, news: 'yes' }]);
    await world.call('sync', '--accept-lost-ledger');
    const { code, out } = await world.call('audit', 'verify', '--public-key', trusted);
    expect(code).toBe(1);
    expect(out).toContain('which is none of the given ones');
    expect(out).toContain('entries before this one are lost');
  });

  test('says what to do if there is no log', async () => {
    const world = await mirrored();
    const { code, err } = await world.call('audit', 'verify');
    expect(code).toBe(2);
    expect(err).toContain('there is no audit log yet');
  });
});

describe('a log that was changed', () => {
  test('is shown and exported with a warning and exit code 1', async () => {
    const world = await inAndOut();
    tamper(logOf(world), `update audit set body = replace(body, 'none', 'opt_in') where seq = 2`);
    for (const args of [['show', ann], ['export']]) {
      const { code, err, out } = await world.call('audit', ...args);
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringContaining('is not as it was written: entry 2: this entry was changed'),
      });
      expect(out).toContain('opt_out');
    }
  });

  test('is named even if an entry can no longer be read', async () => {
    const world = await inAndOut();
    tamper(logOf(world), `update audit set body = '["w",1' where seq = 2`);
    expect((await world.call('audit', 'verify')).code).toBe(1);
    const { code, err } = await world.call('audit', 'show', ann);
    expect(code).toBe(2);
    expect(err).toContain('an entry of the audit log cannot be read: it was changed');
  });
});

test('commands that read leave no files beside what they read', async () => {
  const world = await inAndOut();
  const folder = dirname(world.path);
  const before = readdirSync(folder);
  expect(before.filter((name) => /-(wal|shm)$/.test(name))).toEqual([]);
  for (const args of [['audit', 'verify'], ['audit', 'show', ann], ['explain', ann], ['status']]) {
    await world.call(...args);
    expect(readdirSync(folder)).toEqual(before);
  }
});

describe('a log that cannot be written', () => {
  test('stops no run: its entries wait, and the next run writes them', async () => {
    const world = await inAndOut();
    tamper(logOf(world), failing);
    world.people([{ email: bob, news: 'yes' }]);
    const waiting = await world.call('sync');
    expect(waiting).toMatchObject({ code: 4, err: expect.stringContaining('the audit log') });
    expect(world.shown(bob)).toEqual({ ch_news: 'opt_in' });
    const { json } = await world.call('status', '--json');
    expect(json.memory.auditFault).toContain('cannot be written (the disk is full)');
    const verified = await world.call('audit', 'verify', '--json');
    expect(verified).toMatchObject({ code: 0, json: { whole: true, entries: 4, awaiting: 1 } });
    const { out } = await world.call('audit', 'verify');
    expect(out).toContain('4 entries, 1 to 4. 1 entry awaits being written by the next run.');
    tamper(logOf(world), 'drop trigger failing');
    await world.call('sync');
    expect((await world.call('status', '--json')).json.memory.auditFault).toBeNull();
    expect(await shown(world, bob)).toMatchObject([{ op: 'create', outcome: 'acked' }]);
    const { json: drained } = await world.call('audit', 'verify', '--json');
    expect(drained).toMatchObject({ whole: true, entries: 6, awaiting: 0 });
  });
});
