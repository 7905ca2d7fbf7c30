import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openFile } from '../../src/emulator/store/sqlite-file.ts';
import { twoOrganizations, stage } from '../support/emulator/emulator-stage.ts';

let folder: string;
let path: string;
const open: { close(): void }[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'emulator-data-'));
  path = join(folder, 'deep', 'world.sqlite');
});
afterEach(() => {
  for (const one of open.splice(0)) one.close();
  rmSync(folder, { recursive: true });
});

function started() {
  const platform = twoOrganizations({ storage: openFile(path) });
  open.push(platform);
  return platform;
}

/** Ends the one that runs, and starts another on the same file. */
function restarted() {
  open.pop()?.close();
  return started();
}

function worldOf(platform: ReturnType<typeof started>) {
  return platform
    .organizations()
    .map((id) => ({ ...platform.player(id).world.state(1000), requests: 0 }));
}

const story: [line: string, body?: unknown][] = [
  ['POST /api/contacts/channel/ch_a', { email: 'new@example.org' }],
  ['POST /api/contacts/channel/ch_a', { email: 'ann@example.org', subscription: 'opt_out' }],
  ['PUT /api/template/v1/tpl_a', { name: 'Changed', content: [{ a: [1, null] }] }],
  ['POST /api/template/v1/create', { name: 'New' }],
  ['POST /api/template/v1/tpl_a/test', { to: 'x', html: '<b>{{x}}</b>' }],
  ['POST /api/domain/v1/create', { domain: 'new.example.org', click_tracking: true }],
  ['POST /api/domain/v1/verify/dom_a'],
  ['POST /api/api-key/v1/enable/key_off'],
  ['POST /_emulator/suppress', { contact: 'con_a', reason: 'bounce' }],
  ['POST /_emulator/edit-contact', { contact: 'con_a', email: 'zoe@example.org', firstName: 'Z' }],
  ['POST /api/contacts/channel/ch_a', { email: 'ann@example.org' }],
  ['POST /_emulator/remove-from-channel', { contact: 'zoe@example.org', channel: 'ch_a' }],
  ['POST /_emulator/create-channel', { id: 'ch_2', name: 'Two' }],
  ['POST /_emulator/delete-domain', { domain: 'dom_a' }],
  ['POST /_emulator/rotate-key', { key: 'key_read' }],
  ['DELETE /api/contacts/con_a'],
  ['GET /api/contacts/list'],
];

describe('a data file', () => {
  test('restores the same world after any number of restarts', () => {
    let platform = started();
    const straight = twoOrganizations();
    for (const [line, body] of story) {
      const answer = platform.ask(line, body);
      expect(answer.json).toEqual(straight.ask(line, body).json);
      platform = restarted();
      expect(worldOf(platform)).toEqual(worldOf(straight));
    }
    expect(platform.apiKey).toBe(straight.apiKey);
    expect(platform.organizations()).toEqual(['org_a', 'org_b']);
  });

  test('holds every change before it is answered', () => {
    const platform = started();
    for (const [line, body] of story) platform.ask(line, body);
    const before = worldOf(platform);
    // Nobody closes it: what a killed process leaves is a copy of the files as they are now.
    const copy = join(folder, 'copy.sqlite');
    for (const end of ['', '-wal']) writeFileSync(copy + end, readFileSync(path + end));
    const other = twoOrganizations({ storage: openFile(copy) });
    open.push(other);
    expect(worldOf(other)).toEqual(before);
  });

  test('is reset to its first beginning, also after a restart', () => {
    let platform = started();
    const beginning = worldOf(platform);
    platform.ask('DELETE /api/contacts/con_a');
    platform = restarted();
    platform.ask('POST /api/contacts/channel/ch_a', { email: 'new@example.org' });
    platform.ask('POST /_emulator/reset');
    expect(worldOf(platform)).toEqual(beginning);
    platform = restarted();
    expect(worldOf(platform)).toEqual(beginning);
  });

  test('is not opened with a key it does not have', () => {
    started();
    open.pop()?.close();
    const storage = openFile(path);
    open.push(storage);
    expect(() => twoOrganizations({ storage, apiKey: 'k_other' })).toThrow(
      'the data file has no such API key: use one of its own, or a new file',
    );
    expect(twoOrganizations({ storage, apiKey: 'k_read' }).apiKey).not.toBe('k_read');
  });

  test('keeps what a program seeds, from the next request or the end', () => {
    const platform = started();
    platform.seed.contact({ id: 'con_late', email: 'late@example.org' });
    expect(restarted().world.contact('con_late')).toBeDefined();
  });

  test('is readable by its owner alone', () => {
    started();
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('is used by one emulator at a time', () => {
    started();
    expect(() => openFile(path)).toThrow(
      `--data ${path}: another emulator uses it → stop that one`,
    );
  });

  test('is left alone when it belongs to another program', () => {
    path = join(folder, 'other.sqlite');
    const db = new Database(path);
    db.exec('CREATE TABLE mine (a)');
    db.close();
    expect(() => openFile(path)).toThrow('is not a file of the emulator → name another file');
    writeFileSync(path, 'no database at all, and long enough to be looked at'.repeat(100));
    expect(() => openFile(path)).toThrow('cannot be opened (file is not a database)');
    expect(() => openFile(folder)).toThrow('cannot be opened');
  });

  test('is refused after it was tampered with', () => {
    started();
    open.pop()?.close();
    const db = new Database(path);
    db.exec(`UPDATE world SET body = '{"id":1}' WHERE kind = 'contact'`);
    db.close();
    expect(() => started()).toThrow('a contact in it cannot be read');
    open.push({ close() {} });
  });

  test('answers 500 with the reason while it cannot be written, and is written later', () => {
    let full = false;
    const storage = openFile(path);
    const save = () => {
      if (full) throw new Error('database or disk is full');
      storage.save();
    };
    const platform = stage({ storage: { ...storage, save } });
    platform.ask('GET /api/template/v1/list');
    full = true;
    const { status, json } = platform.ask('POST /api/template/v1/create', { name: 'a' });
    expect(status).toBe(500);
    expect(json.why).toBe('The data file could not be written: database or disk is full');
    full = false;
    platform.ask('GET /api/template/v1/list');
    platform.close();
    expect(started().world.templates()).toMatchObject([{ name: 'a' }]);
  });

  test('drops the oldest test emails', () => {
    const platform = started();
    const send = () => platform.ask('POST /api/template/v1/tpl_a/test', { to: 'x' });
    for (let index = 0; index < 2100; index += 1) send();
    const kept = restarted().world.outbox().length;
    expect(kept).toBeGreaterThanOrEqual(1000);
    expect(kept).toBeLessThanOrEqual(2000);
  });
});

test('a killed process loses nothing that it answered', async () => {
  const launcher = join(import.meta.dirname, '..', '..', 'bin', 'crm-mirror.mjs');
  const run = async () => {
    const args = [
      launcher,
      'emulator',
      '--port',
      '0',
      '--json',
      '--data',
      path,
      '--limit',
      '*=100000/1',
    ];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    open.push({ close: () => void child.kill('SIGKILL') });
    const [line] = await once(createInterface(child.stdout), 'line');
    const { url, apiKey } = JSON.parse(String(line));
    const ask = async (method: string, target: string, body?: object) => {
      const init = { method, headers: { 'x-api-key': apiKey }, body: JSON.stringify(body) ?? null };
      const response = await fetch(url + target, init);
      return JSON.parse(await response.text());
    };
    return { child, ask, apiKey };
  };
  const first = await run();
  const acked: string[] = [];
  for (let index = 0; index < 100; index += 1) {
    const email = `p${index}@example.org`;
    await first.ask('POST', '/api/contacts/channel/ch_news', { email });
    acked.push(email);
  }
  const gone = once(first.child, 'exit');
  first.child.kill('SIGKILL');
  await gone;
  const second = await run();
  expect(second.apiKey).toBe(first.apiKey);
  const list = await second.ask('GET', '/api/contacts/list');
  expect(list.contacts.map(({ email }: { email: string }) => email).toSorted()).toEqual(
    acked.toSorted(),
  );
});
