/** Each kind of CRM, mirrored by the command line: a first load, no changes, an opt-out. */
import Database from 'better-sqlite3';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { hubspotMirror, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
import { serve } from '../support/http/test-server.ts';
import { contact, createOrg } from '../support/sources/salesforce-org.ts';

/** A mirror of two people who want the newsletter, and one without an opinion. */
interface Crm {
  world: Pick<Mirrored, 'call' | 'shown' | 'writes'>;
  /** Has the CRM state that Bob does not want the newsletter any more. */
  optOut(): void;
}

const hides = ['sk_secret', '00Dx', '@example'];
const env = { CRM_SECRET: 'sk_secret' };
const email = (id: number) => `p${id}@example.com`;
const channel = (subscription: string) => [{ id: 'ch_news', subscription }];

async function overHttp(): Promise<Crm> {
  const people = ['yes', 'yes', null].map((news, at) => {
    return { id: at + 1, contact: { email: email(at + 1) }, consents: { news } };
  });
  const url = await serve(({ url: path = '', headers }, response) => {
    const { pathname, searchParams } = new URL(path, 'http://crm');
    const from = Number(searchParams.get('page')) * 2 - 2;
    const one = people.find(({ id }) => pathname === `/people/${id}`);
    const list = { items: people.slice(from, from + 2), total: people.length };
    response.writeHead(headers.authorization === 'Bearer sk_secret' ? 200 : 401);
    response.end(JSON.stringify(one ?? list));
  });
  const source = {
    type: 'http',
    url: `${url}/people`,
    headers: { Authorization: 'Bearer ${CRM_SECRET}' },
    records: 'items',
    total: 'total',
    page: { number: 'page' },
    one: `${url}/people/{id}`,
  };
  const contacts = { source, email: 'contact.email', channels: channel('consents.news') };
  const world = await mirrored({ lines: { contacts }, env, hides });
  return { world, optOut: () => void (people[1]!.consents.news = 'no') };
}

async function inDatabase(): Promise<Crm> {
  const world = await mirrored({ hides });
  const path = join(world.folder, 'crm.sqlite');
  const db = new Database(path);
  onTestFinished(() => void db.close());
  db.exec(`
    create table contacts (id integer primary key, email text, news boolean);
    insert into contacts values (1, '${email(1)}', true), (2, '${email(2)}', 1), (3, '${email(3)}', null);
  `);
  const source = { type: 'sql', url: `sqlite:${path}`, table: 'contacts', pageSize: 1 };
  world.config({ contacts: { source, channels: channel('news') } });
  return { world, optOut: () => void db.exec('update contacts set news = 0 where id = 2') };
}

async function inHubspot(): Promise<Crm> {
  const { hubspot, ...world } = await hubspotMirror();
  for (const id of [1, 2]) hubspot.put(id, email(id));
  hubspot.put(3, email(3), null);
  return { world, optOut: () => void hubspot.put(2, email(2), 'false') };
}

async function inSalesforce(): Promise<Crm> {
  const people = [true, true, null].map((news, at) =>
    contact(at + 1, { Newsletter__c: news, Email: email(at + 1) }),
  );
  const org = createOrg({ Contact: people });
  org.fields = { Contact: ['Newsletter__c:boolean'], Lead: [] };
  org.pageSize = 2;
  org.origin = await serve(({ method = '', url: path = '', headers, text }, response) => {
    const { status, body, headers: told } = org.answer({ method, path, headers, body: text });
    response.writeHead(status, told).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  const auth = { clientId: '3MVG9.id', clientSecret: '${CRM_SECRET}' };
  const contacts = {
    source: { type: 'salesforce', url: org.origin, auth },
    id: 'Id',
    email: 'Email',
    unsubscribed: 'HasOptedOutOfEmail',
    channels: channel('Newsletter__c'),
    webhook: { format: 'standard', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
  };
  const world = await mirrored({ lines: { contacts }, env, hides });
  return { world, optOut: () => void Object.assign(people[1]!, { HasOptedOutOfEmail: true }) };
}

test.each([
  ['behind HTTP', overHttp],
  ['in a database', inDatabase],
  ['in HubSpot', inHubspot],
  ['in Salesforce', inSalesforce],
])('a CRM %s is mirrored, repeatedly', async (_, begin) => {
  const { world, optOut } = await begin();
  const { call, shown, writes } = world;
  const checked = await call('check');
  expect(checked.out).toContain('3 records, 0 of them invalid, and one of them was read by its id');
  expect(checked.code).toBe(0);
  expect((await call('sync')).code).toBe(0);
  for (const id of [1, 2]) expect(shown(email(id))).toMatchObject({ ch_news: 'opt_in' });
  expect(shown(email(3))).toBeUndefined();
  expect(writes()).toHaveLength(2);

  expect((await call('sync')).code).toBe(0);
  expect(writes()).toEqual([]);

  optOut();
  expect((await call('sync')).code).toBe(0);
  expect(shown(email(2))).toMatchObject({ ch_news: 'opt_out' });
});

test('no driver of a database is loaded before it is needed', async () => {
  const script = `
    await import('./src/sources/sql/sql-source.ts');
    const { createRequire } = await import('node:module');
    const loaded = Object.keys(createRequire(process.cwd() + '/x.js').cache);
    console.log(JSON.stringify(loaded.filter((path) => /node_modules.(pg|mysql2)\\b/.test(path))));
    await import('pg');
    const later = Object.keys(createRequire(process.cwd() + '/x.js').cache);
    console.log(later.some((path) => /node_modules.pg\\b/.test(path)));
  `;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script]);
  expect(stdout.trim().split('\n')).toEqual(['[]', 'true']);
});
