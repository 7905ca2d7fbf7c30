/** The signed file about one person: its content, as of when, and that its signature is checked. */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  ann,
  bob,
  calling,
  mirrored,
  type Mirrored,
  tamper,
} from '../support/commands/mirrored-contacts.ts';

const old = 'old-ann@example.com';

/** A mirror that has subscribed Ann, who changed her address before, and Bob. */
async function written(): Promise<Mirrored> {
  const world = await mirrored();
  world.csv(`id,email,news,product\nid-1,${old},yes,\nid-2,${bob},yes,no\n`);
  await world.call('sync');
  world.csv(`id,email,news,product\nid-1,${ann},yes,\nid-2,${bob},yes,no\n`);
  await world.call('sync');
  return world;
}

async function file(world: Mirrored, name: string): Promise<string> {
  const path = join(world.folder, name);
  const { code } = await world.call('explain', ann, '--output', path);
  expect(code).toBe(0);
  return path;
}

/** Writes the document of a person, and returns it with what the command said. */
async function signed(world: Mirrored, who = ann, ...flags: string[]) {
  const path = join(world.folder, `${randomUUID()}.json`);
  const { code, err, out } = await world.call('explain', who, '--output', path, ...flags);
  return { code, err, out, json: JSON.parse(readFileSync(path, 'utf8')) };
}

describe('the document', () => {
  test('contains what every place knows, and answers first why a mail was sent', async () => {
    const world = await written();
    const { code, json } = await signed(world);
    expect(code).toBe(0);
    expect(json).toMatchObject({
      person: ann,
      known: true,
      missing: [],
      crm: { read: true, records: [{ id: 'id-1', wants: { ch_news: 'opt_in' } }] },
      snapshot: { ownership: 'created', crmIds: ['id-1'], raw: { ownership: 'created' } },
      platform: { read: true, contacts: [{ status: 'subscribed' }], raw: [{ email: ann }] },
      audit: { entries: [{ op: 'create', part: 'ch_news', outcome: 'acked' }] },
      requests: expect.arrayContaining([expect.objectContaining({ person: ann, status: 201 })]),
      history: [{ op: 'create', outcome: 'acked' }],
      version: 1,
    });
    const [answer] = json.answers;
    const [entry] = json.audit.entries;
    expect(answer).toMatchObject({ channel: 'ch_news', state: 'opt_in', from: 'platform' });
    expect(answer).toMatchObject({ since: entry.at, entry: entry.seq });
    expect(answer.sentence).toMatch(
      /^subscribed, because the CRM said so: opted in by this mirror on/,
    );
    const evidence = answer.evidence.join(' ');
    expect(evidence).toContain('opt-in wanted; not on the platform (not-on-platform');
    expect(evidence).toContain('CRM said: opt_in');
    expect(evidence).toContain('none was needed');
  });

  test('names nobody else, and its own person by a hash in a text that is no terminal', async () => {
    const world = await written();
    const out = readFileSync(await file(world, 'ann.json'), 'utf8');
    expect(out).toContain(ann);
    expect(out).not.toContain(bob);
    expect(out).not.toContain(old);
    expect(JSON.parse(out).snapshot.former).toEqual([expect.stringMatching(/^#[0-9a-f]{12}$/)]);
    const page = readFileSync(await file(world, 'ann.html'), 'utf8');
    expect(page).not.toContain(bob);
    expect(page).not.toContain(old);
    const text = await world.call('explain', ann, '--verbose');
    expect(text.out).not.toContain('@example.com');
    expect((await world.seen('explain', 'id-2')).out).toContain(bob);
  });
});

describe('a part that cannot be read', () => {
  test('is named with exit code 1, and the rest is there', async () => {
    const world = await written();
    const offline = await signed(world, ann, '--offline');
    expect(offline).toMatchObject({ code: 0, json: { missing: [], platform: { read: false } } });
    expect(offline.json.answers[0]).toMatchObject({ state: 'opt_in', from: 'snapshot' });
    world.csv('');
    tamper(`${world.path}-memory`, 'drop table audit');
    const { code, json } = await signed(world);
    expect(code).toBe(1);
    expect(json.missing.map(({ part }: { part: string }) => part)).toEqual(['crm', 'audit']);
    expect(json.platform.contacts).toHaveLength(1);
  });
});

describe('an audit log that was changed', () => {
  test('is named in the document and on the page before they are signed, with exit code 1', async () => {
    const world = await written();
    tamper(
      `${world.path}-memory`,
      `update audit set body = replace(body, 'none', 'opt_in') where body like '["w"%none%'`,
    );
    const said = 'the audit log is not as it was written: entry ';
    for (const name of ['ann.json', 'ann.html']) {
      const path = join(world.folder, name);
      const { code, err } = await world.call('explain', ann, '--output', path);
      expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining(said) });
      expect(readFileSync(path, 'utf8')).toContain(said);
      expect((await world.call('explain', '--verify', path)).code).toBe(0);
    }
    const { json } = await signed(world);
    const fault = { seq: expect.any(Number), what: 'this entry was changed' };
    expect(json.audit).toMatchObject({ whole: false, faults: expect.arrayContaining([fault]) });
    const page = readFileSync(join(world.folder, 'ann.html'), 'utf8');
    expect(page).toContain('The audit log was changed');
  });
});

describe('--as-of', () => {
  test('leaves out what came later, and derives the state from the log', async () => {
    const world = await written();
    const [{ at }] = (await world.call('audit', 'show', ann, '--json')).json.entries;
    const then = new Date().toISOString();
    world.csv(`id,email,news,product\nid-1,${ann},no,\nid-2,${bob},yes,no\n`);
    await world.call('sync');
    const now = (await signed(world)).json;
    expect(now.answers[0]).toMatchObject({ state: 'opt_out', from: 'platform' });
    const { code, json } = await signed(world, ann, '--as-of', then);
    expect(code).toBe(0);
    const unread = { read: false, why: 'not asked' };
    expect(json).toMatchObject({ crm: unread, platform: unread, snapshot: null, sends: null });
    expect(json.history).toHaveLength(1);
    expect(Date.parse(json.asOf)).toBeLessThanOrEqual(Date.parse(then));
    expect(json.audit.entries).toMatchObject([{ op: 'create', at }]);
    expect(json.answers[0]).toMatchObject({ channel: 'ch_news', state: 'opt_in', from: 'log' });
    expect(json.answers[0].sentence).toContain(
      `subscribed at ${json.asOf}, because the CRM said so`,
    );
    const none = (await signed(world, ann, '--as-of', '2019-01-01')).json;
    expect(none).toMatchObject({ known: false, answers: [], requests: [], audit: { entries: [] } });
  });
});

/** Changes one byte of a file, after the first place where `text` stands. */
function flip(path: string, text: string): void {
  const bytes = readFileSync(path);
  const at = bytes.indexOf(text) + text.length;
  bytes[at] = bytes[at] === 0x41 ? 0x42 : 0x41;
  writeFileSync(path, bytes);
}

describe('the signature', () => {
  test('fits both forms, which are new files that only their owner reads', async () => {
    const world = await written();
    for (const name of ['ann.json', 'ann.html']) {
      const path = await file(world, name);
      for (const one of [path, `${path}.sig`]) expect(statSync(one).mode & 0o777).toBe(0o600);
      const { code, json } = await world.call('explain', '--verify', path, '--json');
      expect({ code, json }).toMatchObject({ code: 0, json: { fits: true, trusted: true } });
      expect(json.key).toMatch(/^[0-9a-f]{16}$/);
      const again = await world.call('explain', ann, '--output', path);
      expect(again).toMatchObject({
        code: 2,
        err: expect.stringContaining('nothing is overwritten'),
      });
    }
  });

  test('is checked by openssl alone, over the exact bytes', async () => {
    const world = await written();
    const path = await file(world, 'ann.json');
    const { publicKey } = JSON.parse(readFileSync(path, 'utf8')).signedBy;
    const at = (name: string) => join(world.folder, name);
    writeFileSync(at('key.pub'), publicKey);
    writeFileSync(at('raw.sig'), Buffer.from(readFileSync(`${path}.sig`, 'utf8'), 'base64'));
    const how = ['-verify', '-pubin', '-inkey', at('key.pub'), '-rawin'];
    const what = ['-in', path, '-sigfile', at('raw.sig')];
    expect(execFileSync('openssl', ['pkeyutl', ...how, ...what]).toString()).toContain('Success');
  });

  test('does not fit if one byte of the document or of the page is another', async () => {
    const world = await written();
    const document = '&quot;answers&quot;: [\n    {\n      &quot;channel&quot;: &quot;';
    for (const [name, text] of [
      ['ann.json', '"person": "'],
      ['title.html', '<h1>'],
      ['answer.html', 'subscribed, because the CRM '],
      ['document.html', document],
      ['signature-of-document.html', 'signature of the document</th><td>'],
      ['signature-of-page.html', 'up to here</th><td>'],
      ['key.html', '<pre>-----BEGIN PUBLIC KEY-----\nMCow'],
    ] as const) {
      const path = await file(world, name);
      // A page needs no file beside it.
      if (name.endsWith('html')) rmSync(`${path}.sig`);
      flip(path, text);
      const { code, out } = await world.call('explain', '--verify', path);
      const says = expect.stringContaining('The signature does not fit');
      expect({ name, code, out }).toEqual({ name, code: 1, out: says });
    }
  });

  test('needs a key that is known', async () => {
    const world = await written();
    const path = await file(world, 'ann.html');
    const other = join(world.folder, 'other.pub');
    const key = execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519']);
    writeFileSync(other, execFileSync('openssl', ['pkey', '-pubout'], { input: key }));
    const { code, out } = await world.call('explain', '--verify', path, '--public-key', other);
    expect(code).toBe(1);
    expect(out).toContain('this key is none of those that are accepted');
    const own = join(world.folder, 'own.pub');
    const pem = ['pkey', '-in', `${world.path}-memory-key`, '-pubout'];
    writeFileSync(own, execFileSync('openssl', pem));
    const alone = await calling(['explain', '--verify', path, '--public-key', own]);
    expect(alone.code).toBe(0);
  });

  test('is missing if there is no key, and none is made', async () => {
    const world = await mirrored();
    const path = join(world.folder, 'ann.json');
    const { code, out } = await world.call('explain', ann, '--output', path);
    expect(code).toBe(1);
    expect(out).toContain('not signed');
    expect(existsSync(`${world.path}-memory-key`)).toBe(false);
    expect((await world.call('explain', '--verify', path)).out).toContain('it is not signed');
  });
});

describe('a person of whom nothing is known', () => {
  test('after forget, only the erasure is', async () => {
    const world = await written();
    world.csv(`id,email,news,product\nid-2,${bob},yes,no\n`);
    expect((await world.call('forget', ann, '--yes')).code).toBe(0);
    const { code, json } = await signed(world);
    expect(code).toBe(0);
    expect(json).toMatchObject({ known: false, answers: [], requests: [], snapshot: null });
    expect(json).toMatchObject({ audit: { entries: [] }, erased: expect.stringMatching(/Z$/) });
    const { out } = await world.call('explain', ann);
    expect(out).toContain('erased on request. Nothing is known but that');
    const stranger = await world.call('explain', 'eve@example.com');
    expect(stranger).toMatchObject({ code: 0 });
    expect(stranger.out).toContain('unknown to the CRM, the snapshot and the do-not-contact list');
    expect(stranger.out).not.toContain('erased');
  });
});

describe('the page', () => {
  test('has no script, loads nothing, and shows values as text', async () => {
    const world = await written();
    const evil = `<script src="https://evil.example/x.js">alert('1')</script></pre>&amp;`;
    world.csv(`id,email,news,product\n"${evil.replaceAll('"', '""')}",${ann},yes,\n`);
    const path = await file(world, 'ann.html');
    const page = readFileSync(path, 'utf8');
    expect(page).toContain('&lt;script src=');
    expect(page).not.toMatch(/<script|<link|<img|<iframe|@import|url\(|\son\w+=/i);
    expect(page).not.toMatch(/(src|href)=["']?http/i);
    expect(page).toContain('prefers-color-scheme: dark');
    expect(page).toContain('@media print');
    expect((await world.call('explain', '--verify', path)).code).toBe(0);
  });
});
