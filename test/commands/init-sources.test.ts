/** `init` from a file, an API, a database, HubSpot and Salesforce: what it finds and writes. */
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import nock from 'nock';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load-config.ts';
import { calling } from '../support/commands/mirrored-contacts.ts';
import { serve } from '../support/http/test-server.ts';
import { Account, TOKEN } from '../support/sources/hubspot-account.ts';
import { createOrg, contact } from '../support/sources/salesforce-org.ts';
import { stands } from '../support/databases.ts';
import { SHEET, sheetOf, workbook } from '../support/sources/workbook.ts';
import { scratch } from '../support/sources/source-reading.ts';

const news = (column: string) => ['--channel', `ch_news=${column}`];

async function init(flags: string[], env: Record<string, string> = {}) {
  const output = join(await scratch(), 'mirror.yaml');
  const result = await calling(['init', '--yes', '--output', output, ...flags], { env });
  const written = existsSync(output) ? readFileSync(output, 'utf8') : '';
  const set = { PLATFORM_API_KEY: 'key', DATABASE_URL: 'postgres://a@127.0.0.1/b' };
  if (written !== '') loadConfig(output, { ...set, ...env });
  return { ...result, written, contacts: written === '' ? {} : parse(written).contacts };
}

const people = Array.from({ length: 45 }, (_, at) => ({
  id: at + 1,
  email: `p${at + 1}@example.com`,
  consent: { news: at % 2 === 0 },
}));

describe('a file', () => {
  async function initFile(name: string, content: string | Buffer) {
    const path = join(await scratch(), name);
    writeFileSync(path, content);
    utimesSync(path, new Date(0), new Date(0));
    return init([path, ...news('News')]);
  }
  const rows = ['id,Email,News', '1,ann@example.com,yes', '2,bob@example.com,no', '3,,no'];

  test.each([
    ['titles', ['A list, of 3 March', 'by,help@example.com', ...rows], 3],
    ['titles with as many delimiters', ['A list,,', ',,', ...rows], 3],
    ['groups of columns', ['Person,,Consent', ...rows], 2],
    ['repeated groups', ['Person,Person,Consent', ...rows], 2],
    ['nothing', rows, undefined],
    ['nothing, with a second row of names', [rows[0], 'No.,To,none', ...rows.slice(1)], undefined],
  ])('is read from the row with the column names, under %s', async (_, lines, headerRow) => {
    const { code, contacts, out } = await initFile('people.csv', `${lines.join('\n')}\n`);
    expect([code, contacts.source.headerRow]).toEqual([0, headerRow]);
    expect(contacts).toMatchObject({ id: 'id', email: 'Email' });
    expect(out.includes('headerRow: ')).toBe(headerRow !== undefined);
  });

  const person = ['1,,yes,no', '2,ann@example.com,yes,no'];
  test.each([
    ['groups', ['A list', 'Person,,Consent', ...rows], 3],
    ['merged cells', ['A list', 'id,Email,Consent', ',,News,Tips', ...person], 3],
    ['a column without a name', ['id,Email,News', ...person], undefined],
  ])('may be a workbook with %s', async (_, lines, headerRow) => {
    const cells = (row: string) =>
      row.split(',').map((cell) => (cell === '' ? '<c/>' : `<c t="str"><v>${cell}</v></c>`));
    const xml = lines.map((row) => `<row>${cells(row).join('')}</row>`).join('');
    const { contacts } = await initFile('people.xlsx', workbook({ [SHEET]: sheetOf(xml) }));
    expect(contacts).toMatchObject({ id: 'id', email: 'Email' });
    expect(contacts.source.headerRow).toBe(headerRow);
  });

  test.each([
    [
      'most lines are short',
      'people.csv',
      ['id,Email,News', '1,a@b.example,yes', '2,b@b.example', '3,c@b.example'],
      '2 of 3 records cannot be read, the first at line 3: it has 2 fields where the header has 3',
    ],
    [
      'the reading ends above its last line',
      'people.csv',
      [...rows, '4,"eve@example.com,yes', '5,"fay@example.com",no'],
      'reading stopped: line 5 holds a quote where none may stand → put quotes around the whole',
    ],
    [
      'it is a JSON array',
      'people.json',
      ['[', '{"id":1},', '{"id":2}', ']'],
      "3 of 4 records cannot be read, the first at line 1: it begins a JSON array → write one object a line, without the array: jq -c '.[]'",
    ],
  ])('is refused if %s', async (_, name, lines, message) => {
    const { code, err, written } = await initFile(name, `${lines.join('\n')}\n`);
    expect([code, err, written]).toEqual([2, expect.stringContaining(message), '']);
  });
});

describe('an HTTP API', () => {
  type Answer = (params: URLSearchParams, headers: IncomingHttpHeaders) => [number, unknown];

  async function api(answer: Answer): Promise<string> {
    const url = await serve(({ url: path = '', headers }, response) => {
      const [status, body] = answer(new URL(path, 'http://x').searchParams, headers);
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    return `${url}/api/contacts`;
  }

  test('is read by its cursor, with the header from the environment', async () => {
    const url = await api((params, { authorization }) => {
      if (authorization !== 'Bearer sk_secret') return [401, {}];
      const from = Number(params.get('after') ?? 0);
      const next = from + 20 < people.length ? String(from + 20) : null;
      return [200, { data: { people: people.slice(from, from + 20) }, meta: { total: 45, next } }];
    });
    const flags = [url, '--header', 'Authorization: Bearer ${CRM_TOKEN}', ...news('consent.news')];
    const { code, out, contacts, written } = await init(flags, { CRM_TOKEN: 'sk_secret' });
    expect(code).toBe(0);
    expect(out).toMatch(/^http: 45 records, 3 columns/);
    expect(out).toContain('the list is data.people; its pages follow by meta.next');
    expect(contacts).toMatchObject({
      source: {
        type: 'http',
        url,
        headers: { Authorization: 'Bearer ${CRM_TOKEN}' },
        records: 'data.people',
        total: 'meta.total',
        page: { cursor: 'meta.next', param: 'after' },
      },
      id: 'id',
      email: 'email',
    });
    expect(written).not.toContain('sk_secret');
  });

  test.each([1, 0])('is read by page numbers from %i', async (first) => {
    const url = await api((params) => {
      const from = (Number(params.get('page') ?? first) - first) * 20;
      return [200, people.slice(from, from + 20)];
    });
    const { code, contacts } = await init([
      `${url}?page=${first}&sort=id`,
      ...news('consent.news'),
    ]);
    expect(code).toBe(0);
    const page = { number: 'page', ...(first === 0 && { first }) };
    expect(contacts.source).toEqual({ type: 'http', url: `${url}?sort=id`, page });
  });

  test('that names a next page in a way that is not recognized is reported as incomplete', async () => {
    const url = await api(() => [200, { contacts: people, next: 'https://crm.example/rest/77' }]);
    const { out } = await init([url, ...news('consent.news')]);
    expect(out).toContain(
      'more pages follow (next names one), and how to come to further pages is not recognized: add page',
    );
  });

  const bodies: [string, object, string][] = [
    ['a flag', { has_more: true }, '(has_more is true)'],
    ['a flag in reverse', { last: false }, '(last is false)'],
    ['a total', { total_items: 90 }, '(total_items is 90)'],
    ['a total in a text', { meta: { total: '90' } }, '(meta.total is 90)'],
    ['a number of pages', { total_pages: 2 }, '(total_pages is 2)'],
  ];
  test.each(bodies)('that says by %s that there is more is not complete', async (_, more, sign) => {
    const url = await api(() => [200, { contacts: people, ...more }]);
    const { out, written } = await init([url, ...news('consent.news')]);
    const note = `the answer says that more pages follow ${sign}, and how to come to further pages is not recognized: add page`;
    expect(out).toContain(note);
    expect(out).toMatch(/^ {2}not complete: /m);
    expect(written.replaceAll(/\n +# /g, ' ')).toContain(note);
  });

  test.each([
    ['a secret in a header', ['--header', 'X-Api-Key: abc'], "write 'X-Api-Key: ${CRM_TOKEN}'"],
    ['a variable that is not set', ['--header', 'X-Api-Key: ${NONE}'], 'NONE is not set'],
    ['a header without a name', ['--header', 'abc'], "write 'NAME: VALUE'"],
  ])('is refused with %s', async (_, flags, fix) => {
    const url = await api(() => [200, people]);
    const { code, err, written } = await init([url, ...flags, ...news('consent.news')]);
    expect(err).toContain(fix);
    expect([code, written]).toEqual([2, '']);
  });

  test.each([
    ['a secret in the address', '?api_key=abc', 'write api_key=${CRM_TOKEN}, in single quotes'],
    ['no list', '?none', 'the answer holds no list of records'],
    ['refused credentials', '?refuse', 'correct --header of init'],
  ])('is refused with %s', async (_, query, fix) => {
    const url = await api((params) => {
      if (params.has('none')) return [200, { contacts: [] }];
      return params.has('refuse') ? [401, {}] : [200, people];
    });
    const { code, err, written } = await init([`${url}${query}`, ...news('consent.news')]);
    expect(err).toContain(fix);
    expect(err).not.toContain('abc');
    expect([code, written]).toEqual([2, '']);
  });
});

describe.each(await stands())('%s', (name, { url, run }) => {
  test('is read by its table, and a password is not written', async () => {
    await run('create table people (id integer primary key, email varchar(50), news varchar(9))');
    await run("insert into people values (1, 'ann@example.com', 'yes')");
    await run("insert into people values (2, 'bob@example.com', 'no')");
    const refused = await init([url, ...news('news')]);
    expect(refused.err).toContain('add --table "people", or another one; tables found: "people"');
    expect(refused.code).toBe(2);
    const { code, contacts, said, written } = await init([
      url,
      '--table',
      'people',
      ...news('news'),
    ]);
    expect(code).toBe(0);
    expect(contacts).toMatchObject({
      source: { type: 'sql', table: 'people' },
      id: 'id',
      email: 'email',
    });
    if (name === 'SQLite') return;
    expect(contacts.source.url).toBe('${DATABASE_URL}');
    expect(said).toContain('Keep DATABASE_URL in the environment');
    expect(said + written).not.toContain(new URL(url).password);
    const named = ['${DATABASE_URL}', '--table', 'people', ...news('news')];
    const again = await init(named, { DATABASE_URL: url });
    expect(again.contacts.source).toEqual(contacts.source);
  });
});

test('a table is named for a file of SQLite, too, and for nothing but a database', async () => {
  const folder = await scratch();
  const path = join(folder, 'crm.db');
  const db = new Database(path);
  db.exec(`create table old (id integer, email text, news text);
    insert into old values (1, 'ann@example.com', 'yes');
    create table people (id integer, email text, news text);
    insert into people select * from old; insert into people select 2, 'bob@example.com', 'no'`);
  db.close();
  const { contacts } = await init([path, '--table', 'old', ...news('news')]);
  expect(contacts.source).toMatchObject({ type: 'sql', table: 'old' });
  expect(contacts.source.url).toMatch(/^sqlite:\..*crm\.db$/);
  const csv = await init(['people.csv', '--table', 'old', ...news('news')]);
  expect([csv.code, csv.err]).toEqual([
    2,
    expect.stringContaining('--table belongs to a database'),
  ]);
  const header = await init([path, '--header', 'A: b', ...news('news')]);
  expect(header.err).toContain('--header belongs to an HTTP API');
});

/** An account that answers in place of HubSpot itself. */
async function hubspotAccount(): Promise<Account> {
  const account = await new Account().open();
  if (!nock.isActive()) nock.activate();
  onTestFinished(() => {
    nock.cleanAll();
    nock.restore();
  });
  const real = nock('https://api.hubapi.com').persist();
  real.intercept(/.*/, 'GET').reply(async (request: Request) => {
    const { pathname, search } = new URL(request.url);
    const authorization = request.headers.get('authorization') ?? '';
    const answer = await fetch(`${account.url}${pathname}${search}`, {
      headers: { authorization },
    });
    return [answer.status, await answer.text(), Object.fromEntries(answer.headers)];
  });
  return account;
}

test('HubSpot is read by its properties, with the token of the environment', async () => {
  const account = await hubspotAccount();
  account.names.push('hs_email_optout', 'hs_internal_score');
  account.put(1, 'ann@example.com').put(2, 'bob@example.com', 'false');
  const flags = ['hubspot', ...news('properties.newsletter')];
  const refused = await init(flags);
  expect([refused.code, refused.err]).toEqual([
    2,
    expect.stringContaining('HUBSPOT_TOKEN is not set'),
  ]);
  const { code, contacts, written } = await init(flags, { HUBSPOT_TOKEN: TOKEN });
  expect(code).toBe(0);
  expect(contacts).toMatchObject({
    source: { type: 'hubspot', token: '${HUBSPOT_TOKEN}' },
    id: 'id',
    email: 'properties.email',
    deleted: 'archived',
    unsubscribed: 'properties.hs_email_optout',
  });
  expect(written).not.toContain(TOKEN);
});

test("HubSpot's opt-outs of a subscription type are proposed as opt-outs of a channel", async () => {
  const account = await hubspotAccount();
  const name = 'hs_email_optout_987';
  account.names.push('hs_email_optout', name);
  for (const [id, optOut] of Object.entries({ 1: 'true', 2: 'false', 3: '' })) {
    account.put(id, `p${id}@example.com`, null);
    Object.assign(account.contacts.get(id)?.properties ?? {}, { [name]: optOut });
  }
  const env = { HUBSPOT_TOKEN: TOKEN };
  const open = await init(['hubspot'], env);
  expect(open.err).toContain(`add --channel "ID=properties.${name}"`);
  const { code, out, contacts } = await init(['hubspot', ...news(`properties.${name}`)], env);
  expect(code).toBe(0);
  expect(out).toContain(
    "it is HubSpot's own opt-out: a yes opts out, everything else is no opinion",
  );
  expect(contacts.channels[0].subscription).toEqual({ optOut: `properties.${name}` });
  expect(contacts.unsubscribed).toBe('properties.hs_email_optout');
  const flags = [...news(`properties.${name}`), '--else-in', `properties.${name}`];
  const { channels } = (await init(['hubspot', ...flags], env)).contacts;
  expect(channels[0].subscription).toEqual({ optOut: `properties.${name}`, else: 'in' });
  const all = await init(['hubspot', ...news('properties.hs_email_optout')], env);
  expect(all.contacts).toMatchObject({
    unsubscribed: 'properties.hs_email_optout',
    channels: [{ subscription: { optOut: 'properties.hs_email_optout' } }],
  });
});

test('Salesforce is read by the fields of its contacts, with the access of the environment', async () => {
  const org = createOrg({ Contact: [1, 2, 3].map((n) => contact(n, { Newsletter__c: n > 1 })) });
  org.fields = { Contact: ['Newsletter__c:boolean', 'MailingAddress:address'], Lead: [] };
  org.origin = await serve(({ method = '', url: path = '', headers, text }, response) => {
    const { status, body, headers: told } = org.answer({ method, path, headers, body: text });
    response.writeHead(status, told).end(JSON.stringify(body));
  });
  const env = { SALESFORCE_URL: org.origin, SALESFORCE_CLIENT_ID: 'id' };
  const flags = ['salesforce', ...news('Newsletter__c')];
  const refused = await init(flags, env);
  expect(refused.err).toContain('SALESFORCE_CLIENT_SECRET is not set');
  const { code, contacts, written } = await init(flags, {
    ...env,
    SALESFORCE_CLIENT_SECRET: 'sk_secret',
  });
  expect(code).toBe(0);
  expect(contacts).toMatchObject({
    source: {
      type: 'salesforce',
      url: org.origin,
      auth: {
        clientId: '${SALESFORCE_CLIENT_ID}',
        clientSecret: '${SALESFORCE_CLIENT_SECRET}',
      },
    },
    id: 'Id',
    email: 'Email',
    deleted: 'IsDeleted',
    unsubscribed: 'HasOptedOutOfEmail',
  });
  expect(written).not.toContain('sk_secret');
});
