/** Approvals that several approvers sign, as the command line and the runs see them. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { ann, bob, calling, mirrored } from '../support/commands/mirrored-contacts.ts';

const eve = 'eve@example.com';
const kim = 'kim@example.com';
const week = 7 * 86_400_000;

/** Two newcomers await approval, and two of three approvers have to sign it. */
async function held() {
  const world = await mirrored();
  const file = (name: string) => join(world.folder, name);
  const keys: Record<string, string> = {};
  for (const name of ['ada', 'ben', 'cleo', 'dan']) {
    const { code, json } = await world.call('approve', '--new-key', file(name), '--json');
    expect(code).toBe(0);
    keys[name] = json.publicKey;
  }
  const { ada = '', ben = '', cleo = '' } = keys;
  const configured = (own: Record<string, string>, need = 2) =>
    world.config({
      guards: { optIns: { percent: 0, floor: 1 } },
      policy: { approvers: { need, keys: own } },
    });
  configured({ ada, ben, cleo });
  expect((await world.call('sync')).code).toBe(0);
  world.people([ann, bob, eve, kim].map((email) => ({ email, news: 'yes', product: 'yes' })));
  const { code, json } = await world.call('sync', '--json');
  expect(code).toBe(3);
  world.writes();
  const sign = async (plan: string, name: string, ...more: string[]) =>
    world.call('approve', plan, '--sign', file(name), ...more);
  const sql = (text: string, ...values: unknown[]) => {
    const db = new Database(world.path);
    try {
      return db.prepare(text).run(...values).changes;
    } finally {
      db.close();
    }
  };
  /** Runs, and expects that nothing is released. */
  const releasesNothing = async () => {
    expect((await world.call('sync')).code).toBe(3);
    expect((await world.call('sync', '--fast')).code).toBe(3);
    expect(world.writes()).toEqual([]);
  };
  return {
    ...world,
    plan: String(json.plan),
    at: file,
    ada,
    ben,
    cleo,
    configured,
    sign,
    sql,
    releasesNothing,
  };
}

test('what two of three approvers sign takes effect, and only then', async () => {
  const world = await held();
  const { plan } = world;
  const plain = await world.call('approve', plan);
  expect(plain).toMatchObject({ code: 2, err: expect.stringContaining('needs 2 signatures') });
  expect(plain.err).toContain(`approve ${plan} --sign KEYFILE`);
  expect((await world.call('sync', '--approve', plan)).code).toBe(2);
  const first = await world.sign(plan, 'ada', '--reason', 'looked at it');
  expect(first.code).toBe(0);
  expect(first.out).toContain('1 of 2 approvals (ada), needs one more');
  const part = /approve ([0-9a-f]{16}) --sign/.exec(first.out)?.[1] ?? '';
  const status = await world.call('status', '--json');
  expect(status.json).toMatchObject({
    ok: false,
    approvals: [],
    signatures: { need: 2, pending: [{ plan, part, by: ['ada'], need: 2 }] },
  });
  expect(status.json.attention[0].text).toContain('1 of 2 approvals (ada), needs one more');
  expect((await world.call('plan')).out).toContain(
    `1 of 2 approvals (ada), needs one more: \`crm-mirror approve ${part} --sign KEYFILE`,
  );
  await world.releasesNothing();
  const second = await world.sign(part, 'ben', '--json');
  expect(second.json).toMatchObject({ approved: part, by: 'ada, ben', signatures: { need: 2 } });
  expect((await world.call('status', '--json')).json).toMatchObject({
    ok: true,
    approvals: [{ plan, part, by: 'ada, ben', reason: 'looked at it' }],
  });
  expect((await world.call('explain', eve)).out).toContain('approved by ada, ben');
  expect((await world.call('sync')).code).toBe(0);
  expect(world.emulator.world.contacts()).toHaveLength(4);
  expect((await world.call('status', '--json')).json.approvals).toEqual([]);
  const log = await world.call('audit', 'export');
  const signed = log.out.split('\n').filter((line) => line.includes('"approve"'));
  expect(signed).toHaveLength(2);
  expect(signed[0]).toMatch(/"ada".*looked at it.*ed25519 /);
  expect((await world.call('audit', 'show', part)).out).toMatch(
    /signature +valid, by the key \w{16}/,
  );
  expect((await world.call('audit', 'verify')).code).toBe(0);
});

test('the same key counts once, and a key of nobody is refused', async () => {
  const world = await held();
  await world.sign(world.plan, 'ada');
  const again = await world.sign(world.plan, 'ada');
  expect(again.out).toContain('has signed it before');
  expect(again.out).toContain('1 of 2 approvals (ada)');
  const dan = await world.sign(world.plan, 'dan');
  expect(dan).toMatchObject({ code: 2, err: expect.stringContaining('belongs to no approver') });
  expect((await world.sign(world.plan, 'mirror.csv')).code).toBe(2);
  expect((await world.sign(world.plan, 'ben', '--by', 'cleo')).code).toBe(2);
  await world.releasesNothing();
});

test('a part is approved by those who sign the very same part', async () => {
  const world = await held();
  const few = world.at('few.txt');
  writeFileSync(few, `${eve}\n`);
  await world.sign(world.plan, 'ada', '--people', few);
  const other = await world.sign(world.plan, 'ben');
  expect(other.out).toContain('1 of 2 approvals (ben)');
  await world.releasesNothing();
  const { json } = await world.sign(world.plan, 'cleo', '--people', few, '--json');
  expect(json).toMatchObject({ by: 'ada, cleo', held: { opt_in: 1 } });
  expect((await world.call('sync')).code).toBe(3);
  expect(world.emulator.world.contacts()).toHaveLength(3);
});

test('a plan file is signed like its hash', async () => {
  const world = await held();
  const path = world.at('plan.json');
  await world.call('plan', '--out', path);
  for (const name of ['ada', 'ben']) {
    const { code } = await world.call('approve', '--plan', path, '--sign', world.at(name));
    expect(code).toBe(0);
  }
  expect((await world.call('sync', '--plan', path)).code).toBe(0);
  expect(world.emulator.world.contacts()).toHaveLength(4);
});

test('rows that somebody writes into the snapshot release nothing, and a run says so', async () => {
  const world = await held();
  const approves = `insert or replace into decision (id, plan, verdict, at, decided_by, number)
    select id, id, 'approved', at, 'ada, ben', 1 from (select ? id, ? at)`;
  const points = 'update hold set decision = ?';
  world.sql(approves, world.plan, Date.now());
  world.sql(points, world.plan);
  await world.sign(world.plan, 'ada');
  const { json } = await world.call('status', '--json');
  const { part } = json.signatures.pending[0];
  world.sql(approves, part, Date.now());
  world.sql(points, part);
  world.sql(`insert into approval_signature (decision, name, at, reason, signature, number)
    select decision, 'ben', at, reason, signature, number from approval_signature`);
  expect((await world.call('status', '--json')).json).toMatchObject({ ok: false, approvals: [] });
  const { err, out } = await world.call('sync');
  expect(err + out).toContain(`the approval of ${world.plan} lacks valid signatures`);
  await world.releasesNothing();
});

test('changes that are altered after the signatures are not released', async () => {
  const world = await held();
  const few = world.at('few.txt');
  writeFileSync(few, `${eve}\n`);
  await world.sign(world.plan, 'ada', '--people', few);
  const { json } = await world.sign(world.plan, 'ben', '--people', few, '--json');
  expect((await world.call('status', '--json')).json.approvals).toHaveLength(1);
  const { part } = json;
  // What a decision points to and was not signed is not covered.
  expect(world.sql('update hold set decision = ? where key = ?', part, kim)).toBeGreaterThan(0);
  const added = 'insert or ignore into listed (list, hold) select ?, id from hold where key = ?';
  expect(world.sql(added, part, kim)).toBeGreaterThan(0);
  await world.releasesNothing();
});

test('a key that the configuration no longer has does not count', async () => {
  const world = await held();
  const { ada, ben, cleo } = world;
  await world.sign(world.plan, 'ada');
  await world.sign(world.plan, 'ben');
  world.configured({ ada, cleo });
  expect((await world.call('status', '--json')).json).toMatchObject({ ok: false, approvals: [] });
  await world.releasesNothing();
  world.configured({ ada, ben: cleo });
  await world.releasesNothing();
  world.configured({ ada, cleo, ben }, 3);
  await world.releasesNothing();
});

test('a signature that is too old does not count', async () => {
  const world = await held();
  const realNow = Date.now;
  Date.now = () => realNow() - week - 60_000;
  try {
    await world.sign(world.plan, 'ada');
    await world.sign(world.plan, 'cleo', '--channel', 'ch_news');
    await world.sign(world.plan, 'ada', '--channel', 'ch_news');
  } finally {
    Date.now = realNow;
  }
  expect((await world.sign(world.plan, 'ben')).out).toContain('1 of 2 approvals (ben)');
  await world.releasesNothing();
  const approvals = "update decision set at = ? where verdict = 'approved'";
  expect(world.sql(approvals, Date.now())).toBe(1);
  await world.releasesNothing();
  world.sql('update approval_signature set at = ?', Date.now());
  expect((await world.call('status', '--json')).json.approvals).toEqual([]);
  await world.releasesNothing();
});

test('signatures for another mirror or account do not count', async () => {
  const world = await held();
  await world.sign(world.plan, 'ada');
  await world.sign(world.plan, 'ben');
  const other = world.at('other.yaml');
  const text = readFileSync(world.file, 'utf8').replace(
    /"?mirror"?: ?"?[a-z0-9-]+"?/,
    '"mirror": "other"',
  );
  writeFileSync(other, text);
  const { json } = await calling(['status', '--json', '-c', other]);
  expect(json).toMatchObject({ mirror: 'other', approvals: [] });
  world.sql(`insert or replace into meta values ('platform-organization', 'org-2')`);
  expect((await world.call('status', '--json')).json.approvals).toEqual([]);
});

test('rejecting needs no signature, and drops those that were given', async () => {
  const world = await held();
  const first = await world.sign(world.plan, 'ada', '--json');
  const { json, code } = await world.call('reject', world.plan, '--reason', 'wrong', '--json');
  expect(code).toBe(0);
  expect((await world.call('status', '--json')).json.signatures.pending).toEqual([]);
  expect((await world.sign(first.json.part, 'ben')).out).toContain('nothing of the plan');
  expect((await world.sign(json.part, 'ada')).out).toContain(`approve ${json.part} --sign`);
  expect((await world.call('sync')).code).toBe(0);
  expect(world.writes()).toEqual([]);
  await world.sign(json.part, 'cleo');
  expect((await world.call('sync')).code).toBe(0);
  expect(world.emulator.world.contacts()).toHaveLength(4);
});

test('a key file is for its owner only, and is never overwritten', async () => {
  const world = await mirrored();
  const file = join(world.folder, 'key');
  const made = await world.call('approve', '--new-key', file);
  expect(made.out).toMatch(/policy\.approvers\.keys:\nMCowBQYDK2VwAyEA[\w+/]+=$/);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const text = readFileSync(file, 'utf8');
  const again = await world.call('approve', '--new-key', file);
  expect(again).toMatchObject({ code: 2, err: expect.stringContaining('there is a file already') });
  expect(readFileSync(file, 'utf8')).toBe(text);
  const needless = await world.call('approve', '0123456789abcdef', '--sign', file);
  expect(needless).toMatchObject({ code: 2, err: expect.stringContaining('names no approvers') });
});
