import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { makePeople } from '../../config/demo/make.ts';
import { type Claim, claims } from '../../src/trials/demo/sample-people.ts';
import { checkClaims, lookBefore } from '../../src/trials/demo/claim-check.ts';
import { contactKey } from '../../src/domain/values/contact-key.ts';
import { contactDesire } from '../../src/records/contact/observe/desired-contact.ts';
import type { DesiredRow } from '../../src/domain/record.ts';
import { nothingDone } from '../../src/engine/report/run-summary.ts';
import { stage } from '../support/emulator/emulator-stage.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-demo-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the sample export', () => {
  it('is what its script generates, every time', () => {
    const made = makePeople();
    expect(makePeople()).toBe(made);
    expect(readFileSync(join(root, 'config/demo/people.csv'), 'utf8')).toBe(made);
  });

  it('contains everybody in the stories, except those who come later', () => {
    const keys = new Set(
      makePeople()
        .split('\n')
        .map((row) => contactKey(row.split(',')[3] ?? '')),
    );
    const told = [...claims.one.people, ...claims.two.people].map(({ who }) => who);
    expect(told.filter((who) => !keys.has(who))).toEqual(['zoe.laurent@example.com']);
  });

  it('has addresses in reserved domains only', () => {
    const domains = makePeople().match(/@\s?[\w.-]+/g) ?? [];
    const foreign = domains.filter((domain) => !/@ ?example(\.(com|org|net))?$/i.test(domain));
    expect(foreign).toEqual([]);
  });
});

describe('the demo command', () => {
  it('runs to its end, leaves its files in the folder, and tells the truth', async () => {
    const dir = join(folder, 'played');
    const demo = await play(dir);
    expect(demo.errors).not.toMatch(/bug|Error/);
    expect(demo.output).not.toContain('NOT AS DESCRIBED');
    expect(demo.code).toBe(0);
    expect(demo.output).toMatch(/clara\.fischer@example\.com\n.*not\s+opted\s+in\s+again/);
    expect(demo.output).toMatch(/Act 3[^]*, 0 of them to change anything/);
    const files = ['mirror.yaml', 'people.csv', 'templates', 'after-the-demo.sqlite'];
    expect(files.filter((file) => !existsSync(join(dir, file)))).toEqual([]);
    const state = JSON.parse(readFileSync(join(dir, 'platform.json'), 'utf8'));
    expect(state.totals.contacts).toBe(state.contacts.length);
  });

  it('refuses a folder that is not empty, and leaves it as it is', async () => {
    writeFileSync(join(folder, 'mine.txt'), 'mine');
    const demo = await play(folder);
    expect(demo).toMatchObject({ code: 2, output: '' });
    expect(demo.errors).toMatch(/not empty; name a new one\n$/);
    expect(existsSync(join(folder, 'mirror.yaml'))).toBe(false);
  });
});

describe('what the demo says', () => {
  const news = '/api/contacts/channel/ch_news';
  const ann = { id: '1', email: 'ann@example.com', news: 'yes' };
  const claim: Claim = { who: 'ann@example.com', says: '', sent: [], shows: 'ch_news out' };

  it('is contradicted by the requests, even where the platform looks right', () => {
    const { emulator, ask, facts } = scene();
    emulator.seed.contact({ email: ann.email, channels: { ch_news: 'opt_in' } });
    ask(`POST ${news}`, { email: ann.email, subscription: 'opt_out' });
    const [told] = checkClaims({ people: [claim], templates: [] }, facts());
    expect(told?.truth).toMatch(/^sent: opt_out ch_news;/);
  });

  it('names everybody who had unsubscribed and was opted in again', () => {
    const { emulator, ask, facts } = scene();
    emulator.seed.contact({ email: ann.email, channels: { ch_news: 'opt_out' } });
    const before = lookBefore(emulator, []);
    ask(`POST ${news}`, { email: ann.email, subscription: 'opt_in' });
    const people = [desired(ann)];
    const told = checkClaims({ people: [], templates: [] }, { ...facts(), people, before });
    expect(told.map(({ truth }) => truth)).toEqual([
      'opened again: ann@example.com ch_news',
      undefined,
      undefined,
    ]);
  });
});

function scene() {
  const emulator = stage();
  const { world, ask } = emulator;
  const before = lookBefore(emulator, []);
  const facts = () => ({
    emulator,
    before,
    people: [],
    foreign: [],
    requests: world.requests(),
    summary,
  });
  return { emulator, ask, facts };
}

function desired(record: Record<string, string>): DesiredRow {
  const channels = [{ id: 'ch_news', subscription: 'news' }];
  return contactDesire({ id: 'id', email: 'email', channels }, Date.now)(record, 'line 2');
}

const summary = nothingDone({ mirror: 'acme', mode: 'full', reasons: [] });

async function play(dir: string) {
  const child = spawn(process.execPath, ['bin/crm-mirror.mjs', 'demo', '--dir', dir], {
    cwd: root,
  });
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code, output, errors };
}
