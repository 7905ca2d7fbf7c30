/** The log of requests, and the command that shows it. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const logOf = ({ path }: Mirrored): string => `${path}-memory`;

/** Every byte of the memory and of the log that SQLite keeps beside it. */
function bytesOf(world: Mirrored): Buffer {
  const folder = join(world.folder, 'cli');
  const names = readdirSync(folder).filter(
    (name) => name.endsWith('-memory') || name.endsWith('-memory-wal'),
  );
  return Buffer.concat(names.map((name) => readFileSync(join(folder, name))));
}

/** Every byte of the rows. */
function rowsOf(world: Mirrored): string {
  const db = new Database(logOf(world), { readonly: true });
  const rows = db.prepare<[], Record<string, unknown>>('select * from request').all();
  db.close();
  const texts = rows.flatMap((row) => Object.values(row));
  return texts
    .map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value)))
    .join('\n');
}

describe('requests', () => {
  test('shows what a run sent and what was answered, with hashes for people', async () => {
    const world = await mirrored({ hides: ['key_live_world'] });
    const { json: run } = await world.call('sync', '--json');
    const { code, json } = await world.call('audit', 'requests', '--json', '--limit', '100');
    expect(code).toBe(0);
    expect(json).toMatchObject({ mirror: 'world', more: 0 });
    expect(json.requests).toHaveLength(run.requests.total);
    expect(new Set(json.requests.map((one: { run: string }) => one.run))).toEqual(
      new Set([run.run]),
    );
    const enrolment = json.requests.find(
      (one: { route: string }) => one.route === 'contacts.enrol',
    );
    expect(enrolment).toEqual({
      at: expect.stringMatching(/Z$/),
      run: run.run,
      route: 'contacts.enrol',
      method: 'POST',
      path: expect.stringMatching(/^\/api\/contacts\/channel\/ch_/),
      status: 201,
      failure: null,
      ms: expect.any(Number),
      attempt: 1,
      person: expect.stringMatching(/^#[0-9a-f]{12}$/),
      requestId: null,
      size: expect.any(Number),
      rows: null,
      request: expect.stringMatching(/^\{"email":"#[0-9a-f]{12}","subscription":"opt_in"\}$/),
      answer: expect.stringContaining('"status":"subscribed"'),
    });
    const listed = json.requests.find((one: { route: string }) => one.route === 'contacts.list');
    expect(listed).toMatchObject({ method: 'GET', rows: 0, request: null, answer: null });
    expect(JSON.stringify(json)).not.toContain('@example.com');
  });

  test('names a person by the hash of the other commands, and by the address on demand', async () => {
    const world = await mirrored();
    await world.call('sync');
    const byAddress = await world.call(
      'audit',
      'requests',
      '--json',
      '--person',
      ann.toUpperCase(),
    );
    expect(byAddress.json.requests).toHaveLength(1);
    const [{ person }] = byAddress.json.requests;
    const byHash = await world.call('audit', 'requests', '--json', '--person', person);
    expect(byHash.json.requests).toEqual(byAddress.json.requests);
    const plain = await world.call(
      'audit',
      'requests',
      '--verbose',
      '--addresses',
      '--person',
      person,
    );
    expect(plain.out).toContain(`{"email":"${ann}","subscription":"opt_in"}`);
    expect(plain.out).not.toContain(bob);
    expect((await world.seen('audit', 'requests', '--person', ann)).out).toContain(ann);
    expect((await world.call('audit', 'requests', '--person', 'cyd@example.com')).out).toContain(
      'No such',
    );
  });

  test('shows each attempt, the refusal and the request id of the platform', async () => {
    const world = await mirrored();
    const isAnn = ({ body }: { body: { email?: string } }) => body.email === ann;
    const headers = { 'x-request-id': 'req-1' };
    world.server.fail(isAnn, { is: 'answer', status: 500, body: { message: 'x' }, headers }, 1);
    const body = { message: `${ann} and eva@example.org are taken.` };
    world.server.fail(isAnn, { is: 'answer', status: 400, body }, 1);
    await world.call('sync');
    const { json } = await world.call('audit', 'requests', '--failed', '--json');
    const shown = json.requests.map((one: object) => Object.entries(one));
    expect(shown).toHaveLength(2);
    expect(json.requests).toMatchObject([
      { status: 400, attempt: 2, requestId: null },
      { status: 500, attempt: 1, requestId: 'req-1', answer: '{"message":"x"}' },
    ]);
    const [{ person, answer }] = json.requests;
    expect(answer).toMatch(/^\{"message":"#[0-9a-f]{12} and #[0-9a-f]{12} are taken\."\}$/);
    expect(answer).toContain(`"${person} and`);
    const { out } = await world.call('audit', 'requests', '--failed');
    expect(out.split('\n')).toEqual([
      expect.stringMatching(/^Sent +Route +Status +ms +Try +Person/),
      expect.stringMatching(/contacts\.enrol +400 .* 2 {2}#/),
      expect.stringContaining('    answered  {"message":"#'),
      expect.stringMatching(/contacts\.enrol +500 .* 1 {2}#/),
      '    answered  {"message":"x"}',
    ]);
  });

  test('selects by run, route and time', async () => {
    const world = await mirrored();
    const { json: first } = await world.call('sync', '--json');
    const { json: second } = await world.call('sync', '--json');
    const listed = async (...argv: string[]): Promise<number> =>
      (await world.call('audit', 'requests', '--json', '--limit', '100', ...argv)).json.requests
        .length;
    expect(await listed('--run', first.run)).toBe(first.requests.total);
    expect(await listed('--run', second.run)).toBe(second.requests.total);
    expect(await listed('--route', 'contacts.enrol')).toBe(2);
    expect(await listed('--route', 'contacts')).toBe(await listed());
    expect(await listed('--since', '1h')).toBe(await listed());
    expect(await listed('--since', '2099-01-01')).toBe(0);
    const one = await world.call('audit', 'requests', '--limit', '1');
    expect(one.out).toMatch(/… and \d+ more \(--limit \d+ shows all\)$/);
  });

  test('says that nothing is logged before the first run, and creates nothing', async () => {
    const world = await mirrored();
    const { code, out } = await world.call('audit', 'requests');
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('logged yet') });
    await world.call('plan');
    expect(existsSync(logOf(world))).toBe(false);
  });
});

describe('the log', () => {
  test('is private and contains no address, name or key', async () => {
    const world = await mirrored();
    await world.call('sync');
    expect(statSync(logOf(world)).mode & 0o777).toBe(0o600);
    const bytes = bytesOf(world).toString('latin1');
    for (const text of [ann, bob, '@example', 'key_live']) expect(bytes).not.toContain(text);
    for (const text of ['ann', 'ch_news', 'subscribed']) expect(rowsOf(world)).not.toContain(text);
  });

  test('is deleted when the log is switched off', async () => {
    const world = await mirrored();
    await world.call('sync');
    const db = new Database(logOf(world), { readonly: true });
    const sealed = db.prepare<[], Buffer>('select content from request').pluck().all();
    db.close();
    expect(sealed.every((one) => bytesOf(world).includes(one))).toBe(true);
    world.config({ requests: { log: 'off' } });
    await world.call('sync');
    expect(rowsOf(world)).toBe('');
    expect(sealed.some((one) => bytesOf(world).includes(one))).toBe(false);
    expect((await world.call('audit', 'requests')).out).toContain('requests.log is off');
  });
});
