/** The sources in a configuration: what stands there, what is wrong with one, and where. */
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { folder, load, mistakes, remove } = makeFolder();
afterAll(remove);

const contacts = (source: string) =>
  minimal(
    `contacts:\n  source: ${source}\n  id: i\n  email: e\n` +
      '  channels: [{ id: a, subscription: s }]',
  );
const http = (rest: string) => contacts(`{ type: http, ${rest} }`);
const url = 'url: https://crm.example/people';
const one = 'one: "https://crm.example/people/{id}"';
const changes = 'changes: { url: "https://crm.example/people?t={since}" }';
const hubspot = (rest: string) => contacts(`{ type: hubspot, ${rest} }`).replace('id: i', 'id: id');

describe('a source', () => {
  it('can be an NDJSON file, for contacts and templates', () => {
    const found = load(contacts('{ type: ndjson, path: people.ndjson }')).contacts?.source;
    expect(found).toEqual({ type: 'ndjson', path: join(folder, 'people.ndjson') });
    const templates = load(minimal().replace('directory, path: t', 'ndjson, path: t')).templates;
    expect(templates?.source).toEqual({ type: 'ndjson', path: join(folder, 't') });
  });

  it('can be a file behind a URL or on stdin: neither is a path', () => {
    const path = 'https://crm.example/people.csv';
    const file = `{ type: csv, path: "${path}", headers: { A: "\${T}" }, timeoutMs: 5 }`;
    expect(load(contacts(file), { T: 't' }).contacts?.source).toEqual({
      type: 'csv',
      path,
      headers: { A: 't' },
      timeoutMs: 5,
    });
    expect(load(contacts('{ type: csv, path: "-" }')).contacts?.source).toMatchObject({
      path: '-',
    });
  });

  it('can be an API, with secrets and numbers from the environment', () => {
    const paging = 'page: { number: p, size: n, sizeValue: "${SIZE}" }, timeoutMs: ${T:-500}';
    const headers = 'headers: { Authorization: "Bearer ${TOKEN}" }';
    const env = { TOKEN: 'sk_secret', SIZE: '50' };
    expect(load(http(`${url}, ${headers}, ${paging}`), env).contacts?.source).toEqual({
      type: 'http',
      url: 'https://crm.example/people',
      headers: { Authorization: 'Bearer sk_secret' },
      page: { number: 'p', size: 'n', sizeValue: 50 },
      timeoutMs: 500,
      allowHttp: false,
    });
    const templates = minimal().replace('directory, path: t', `http, ${url}`);
    expect(load(templates).templates?.source).toMatchObject({ type: 'http' });
  });

  it('can list what changed since a time', () => {
    expect(load(http(`${url}, ${one}, ${changes}`)).contacts?.source).toMatchObject({
      changes: { url: 'https://crm.example/people?t={since}', format: 'iso', overlap: '2m' },
    });
  });

  it('can use plain http on this machine, or when the file allows it', () => {
    for (const rest of ['url: "http://localhost:1/x"', 'url: http://a.b/x, allowHttp: true'])
      expect(mistakes(http(rest))).toBeUndefined();
  });

  it('is the example, given a token', () => {
    const config = loadConfig('config/http.yaml', { PLATFORM_API_KEY: 'k', CRM_TOKEN: 't' });
    expect(config.contacts?.source).toMatchObject({
      type: 'http',
      headers: { Authorization: 'Bearer t' },
      total: 'total',
    });
  });
});

const plain = 'would send people and secrets unencrypted  → use https, or add allowHttp: true';
const odd =
  'is empty or holds what a header cannot carry  → write it in plain letters, on one line';

describe('a mistake in an API source', () => {
  it.each([
    ['url: x', 'url  is no web address  → write https://HOST/…'],
    ['url: ftp://a.b', 'url  is no web address  → write https://HOST/…'],
    ['url: http://a.b', `url  ${plain}`],
    ['url: https://me:pw@a.b', 'url  holds a user or password  → move it to headers'],
    ['url: "https://a.b/#x"', 'url  holds a fragment  → end it before the #'],
    [
      'url: https://a.b/?x=1&p=2, page: { number: p }',
      'url  holds a parameter that page sets  → remove it here',
    ],
    ['headers: { A: " x" }', `headers.A  ${odd}`],
    ['headers: { A: "x\\ny" }', `headers.A  ${odd}`],
    ['headers: { A: "é" }', `headers.A  ${odd}`],
    ['headers: { "A B": x }', 'headers."A B"  is no name of a header  → correct it'],
    ['headers: { Host: x }', 'headers.Host  is written by crm-mirror itself  → remove it'],
    ['page: {}', 'page.cursor  is missing  → add it, or number, as the API counts its pages'],
    [
      'page: { cursor: c, param: p, number: n }',
      'page.cursor  stands beside number  → keep one of the two',
    ],
    ['page: { cursor: c }', 'page.param  is missing  → name the parameter that takes the cursor'],
    ['page: { number: n, param: p }', 'page.param  belongs to cursor  → remove it'],
    ['page: { cursor: c, param: p, first: 0 }', 'page.first  belongs to number  → remove it'],
    ['page: { number: n, size: s }', 'page.sizeValue  is missing  → add it, or remove size'],
    ['page: { number: n, first: 2 }', 'page.first  is above 1  → write 1 or less'],
    ['one: "https://crm.example/x"', 'one  does not say where the id belongs  → write {id} there'],
    [
      'one: "https://other.example/{id}"',
      'one  is not where url is  → the headers are for one host, use that',
    ],
    [
      changes,
      'changes  needs the address of a single record, for the others of a person who changed  → add one',
    ],
    [
      `${one}, changes: { url: "https://crm.example/new" }`,
      'changes.url  does not say where the time belongs  → write {since} there',
    ],
    [
      `${one}, changes: { url: "https://other.example/?t={since}" }`,
      'changes.url  is not where url is  → the headers are for one host, use that',
    ],
    [
      `${one}, page: { number: t }, ${changes}`,
      'changes.url  holds a parameter that page sets  → remove it here',
    ],
    [
      `${one}, changes: { url: "https://crm.example/?t={since}", overlap: 0m }`,
      'changes.overlap  is not a duration  → write a number from 1 and s, m, h or d: 2m',
    ],
    [
      'verify: x',
      'verify  is not known here  → known here: type, url, headers, records, total, page, one, changes, timeoutMs, allowHttp',
    ],
    [
      "total: ''",
      'total  is empty  → fill it (Dotted path of the total number of records in a response)',
    ],
  ])('%s', (rest, words) => {
    const all = rest.startsWith('url: ') ? rest : `${url}, ${rest}`;
    const lines = mistakes(http(all))?.map((line) => line.replace(/^mirror.yaml:7:\d+ {2}/, ''));
    expect(lines).toEqual([`contacts.source.${words}`]);
  });

  it('is reported without a value', () => {
    const rest = `${url}, headers: { A: "\${TOKEN}" }`;
    expect(mistakes(http(rest), { TOKEN: 'sk\nsecret' })?.join()).not.toContain('secret');
  });
});

describe('a mistake in a file source', () => {
  it.each([
    ['path: http://a.b/x', 'path', plain],
    ['path: s3://a/b', 'path', 'is no web address  → write https://HOST/…'],
    ['path: people.csv, headers: { A: b }', 'headers', 'belongs to an address  → remove it'],
    ['path: "-", timeoutMs: 5', 'timeoutMs', 'belongs to an address  → remove it'],
  ])('%s', (rest, path, words) => {
    const lines = mistakes(contacts(`{ type: csv, ${rest} }`));
    expect(lines?.map((line) => line.replace(/^mirror.yaml:7:\d+ {2}/, ''))).toEqual([
      `contacts.source.${path}  ${words}`,
    ]);
  });

  it('two sources on stdin are refused', () => {
    const both = contacts('{ type: csv, path: "-" }').replace(
      'directory, path: t',
      'ndjson, path: "-"',
    );
    expect(mistakes(both)?.join()).toContain(
      'templates.source.path  is standard input, which the people come from  → name a file',
    );
  });
});

describe('a workbook', () => {
  const source = (rest: string) => contacts(`{ type: xlsx, ${rest} }`);

  it('has a path and perhaps a sheet', () => {
    const path = join(folder, 'people.xlsx');
    expect(load(source('path: people.xlsx')).contacts?.source).toEqual({ type: 'xlsx', path });
    expect(load(source('path: people.xlsx, sheet: Old')).contacts?.source).toEqual({
      type: 'xlsx',
      path,
      sheet: 'Old',
    });
  });

  it.each(['https://crm.example/people.xlsx', '"-"'])('cannot be read from %s', (path) => {
    const lines = mistakes(source(`path: ${path}`))?.join() ?? '';
    expect(lines).toContain(
      'contacts.source.path  is not a file on this machine  → save the workbook there first',
    );
  });
});

describe('a HubSpot source', () => {
  it('needs a token, and nothing else', () => {
    expect(load(hubspot('token: "${T}"'), { T: 'pat-1' }).contacts?.source).toEqual({
      type: 'hubspot',
      token: 'pat-1',
      url: 'https://api.hubapi.com',
      timeoutMs: 30_000,
      overlap: '2m',
    });
    const more = 'tokenFile: secrets/hubspot, url: "http://127.0.0.1:1", overlap: 10m';
    expect(load(hubspot(more)).contacts?.source).toMatchObject({
      tokenFile: join(folder, 'secrets/hubspot'),
      url: 'http://127.0.0.1:1',
      overlap: '10m',
    });
  });

  it('can have events', () => {
    const content = `${hubspot('token: t')}\n  webhook: { format: hubspot, secret: s }`;
    expect(load(content).contacts?.webhook).toMatchObject({ format: 'hubspot', id: 'objectId' });
  });

  it('is the example, given a token', () => {
    const config = loadConfig('config/hubspot.yaml', { PLATFORM_API_KEY: 'k', HUBSPOT_TOKEN: 't' });
    expect(config.contacts).toMatchObject({
      source: { type: 'hubspot', token: 't' },
      deleted: 'archived',
    });
  });

  it.each([
    ['timeoutMs: 5', 'token  is missing  → add it, or tokenFile'],
    ['token: t, tokenFile: f', 'tokenFile  stands beside token  → keep one of the two'],
    ['token: a b', 'token  is empty or holds what a header cannot carry  → write the token alone'],
    ['token: t, url: x', 'url  is no web address  → write https://HOST'],
    ['token: t, url: https://a.b/crm', 'url  holds more than a host  → end it before the path'],
    ['token: t, url: https://me@a.b', 'url  holds a user or password  → move it to token'],
    ['token: t, url: http://a.b', 'url  would send people and the token unencrypted  → use https'],
    [
      'token: t, overlap: 2min',
      'overlap  is not a duration  → write a number from 1 and s, m, h or d: 2m',
    ],
  ])('%s', (rest, words) => {
    const lines = mistakes(hubspot(rest))?.map((line) =>
      line.replace(/^mirror.yaml:7:\d+ {2}/, ''),
    );
    expect(lines).toEqual([`contacts.source.${words}`]);
  });

  it('has a fixed id', () => {
    const wrong = hubspot('token: t').replace('id: id', 'id: properties.hs_object_id');
    expect(mistakes(wrong)).toEqual([
      'mirror.yaml:8:7  contacts.id  is not the id of its records  → write id, and nothing else',
    ]);
  });
});
