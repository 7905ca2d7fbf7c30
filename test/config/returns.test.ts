/** Where the CRM is told who left: what stands there, and what is wrong with it. */
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { folder, load, mistakes, remove } = makeFolder();
afterAll(remove);

const csv = 'type: csv, path: ./people.csv';
const hubspot = 'type: hubspot, token: t';
const salesforce =
  'type: salesforce, url: https://acme.my.salesforce.com, auth: { clientId: c, clientSecret: s }';
const ids: Record<string, string> = { [hubspot]: 'id', [salesforce]: 'Id' };
const contacts = (returns: string, source = csv) =>
  minimal(
    `contacts:\n  source: { ${source} }\n  id: ${ids[source] ?? 'i'}\n  email: e\n` +
      `  channels: [{ id: ch_news, subscription: s }]\n  returns: ${returns}`,
  );
const back = (yaml: string, source?: string) => load(contacts(yaml, source)).contacts?.returns;

describe('write-back in the configuration', () => {
  it('is a file beside the configuration', () => {
    const path = join(folder, 'back');
    expect(back('{ type: csv, path: back }')).toEqual({ type: 'csv', path });
    expect(back('{ type: ndjson, path: ./back }')).toEqual({ type: 'ndjson', path });
  });

  it('is a request', () => {
    const url = 'https://crm.example.com/people/{id}';
    expect(back(`{ type: http, url: '${url}', body: { of: '{channel}', n: [1, null] } }`)).toEqual({
      type: 'http',
      url,
      method: 'POST',
      body: { of: '{channel}', n: [1, null] },
      timeoutMs: 30_000,
      allowHttp: false,
    });
  });

  it('is the subscriptions or fields of the source', () => {
    expect(back('{ type: hubspot, subscriptions: { ch_news: 4711 } }', hubspot)).toEqual({
      type: 'hubspot',
      subscriptions: { ch_news: '4711' },
    });
    expect(back('{ type: salesforce, fields: { ch_news: News__c } }', salesforce)).toEqual({
      type: 'salesforce',
      fields: { ch_news: 'News__c' },
    });
  });

  it('is off unless it is configured', () => {
    const without = contacts('X').replace(/\n {2}returns: X/, '');
    expect(load(without).contacts?.returns).toBeUndefined();
  });
});

describe('a mistake in write-back', () => {
  const lines = (yaml: string, source?: string) =>
    mistakes(contacts(yaml, source))?.map((line) => line.replace(/^mirror.yaml:\d+:\d+ {2}/, ''));
  const url = 'https://crm.example.com';
  const placeholders =
    'which stands for nothing  → use {return}, {id}, {email}, {channel}, {cause}, {at}';
  it.each([
    [
      '{ type: csv, path: people.csv }',
      'path  is a file of contacts.source, too  → name another one',
    ],
    ['{ type: csv, path: https://x/y }', 'path  is no file that can be added to  → name one'],
    ['{ type: http, url: ftp://x }', 'url  is no web address  → write https://HOST/…'],
    [
      '{ type: http, url: http://crm.example.com }',
      'url  would send people and secrets unencrypted  → use https, or add allowHttp: true',
    ],
    [`{ type: http, url: '${url}/{mail}' }`, `url  holds {mail}, ${placeholders}`],
    [
      "{ type: http, url: 'https://{id}.example.com' }",
      'url  fills in its host  → write that as it is',
    ],
    [`{ type: http, url: '${url}', body: { a: ['{x}'] } }`, `body  holds {x}, ${placeholders}`],
    [
      `{ type: http, url: '${url}', method: GET }`,
      'method  is not known here  → use PUT or PATCH or POST',
    ],
    ...['hubspot', 'salesforce'].map((type): [string, string] => [
      `{ type: ${type} }`,
      `type  reports with the credentials of its source, and the source is not ${type}  → use the source ${type}, or another type of write-back`,
    ]),
  ])('%s', (yaml, words) => {
    expect(lines(yaml)).toEqual([`contacts.returns.${words}`]);
  });

  it.each([
    [
      '{ type: hubspot, subscriptions: { ch_new: 1 } }',
      hubspot,
      'subscriptions.ch_new  is no channel of this mirror  → write the id of one of channels',
    ],
    [
      '{ type: hubspot, subscriptions: { ch_news: news } }',
      hubspot,
      'subscriptions.ch_news  is no id of a subscription  → write its number',
    ],
    [
      "{ type: salesforce, fields: { ch_news: 'a b' } }",
      salesforce,
      'fields.ch_news  is no name of a field  → write one: Newsletter__c',
    ],
  ])('%s', (yaml, source, words) => {
    expect(lines(yaml, source)).toEqual([`contacts.returns.${words}`]);
  });
});

describe('write-back that cannot tell channels apart', () => {
  const lines = (returns: string, channels: string) =>
    mistakes(contacts(returns).replace('[{ id: ch_news, subscription: s }]', channels))?.map(
      (line) => line.replace(/^mirror.yaml:(\d+):\d+ {2}/, '$1 '),
    );
  const two = '[{ id: ch_news, subscription: s }, { id: ch_offers, subscription: o }]';
  const sql = (statement: string, rest = '') =>
    `{ type: sql, url: 'sqlite:x', statement: ${JSON.stringify(statement)}${rest} }`;
  const http = (rest: string) => `{ type: http, url: 'https://c.r/{id}'${rest} }`;
  const plain = "update p set n = 'no' where id = :id";

  it.each([
    [sql(plain)],
    [sql(`${plain} -- and channel = :channel`)],
    [sql(`/* :channel */ ${plain}`)],
    [sql("update p set n = ':channel' where id = :id")],
    [sql(plain, ', allChannels: false')],
  ])('is refused in a mirror of several channels: %s', (returns) => {
    expect(lines(returns, two)).toEqual([
      '11 contacts.returns.statement  ignores the channel: leaving one of the 2 channels would opt the person out of all' +
        '  → use :channel, or add allChannels: true if that is intended',
    ]);
  });

  it.each([[http('')], [http(', body: { news: false, why: "{cause}" }')]])(
    'is refused over HTTP: %s',
    (returns) => {
      expect(lines(returns, two)).toEqual([
        '11 contacts.returns.url  ignores the channel: leaving one of the 2 channels would opt the person out of all' +
          '  → use {channel} here or in body, or add allChannels: true if that is intended',
      ]);
    },
  );

  it.each([
    ["{ type: sql, url: 'sqlite:x' }"],
    ["{ type: sql, url: 'sqlite:x', statement: 1 }"],
    ['{ type: http, body: 5 }'],
    ['{ type: http, url: [1], body: [null] }'],
    ['{ type: nothing }'],
    ['7'],
  ])('is not judged while it has another mistake: %s', (returns) => {
    expect(lines(returns, two)?.join()).not.toContain('ignores');
  });

  it.each([
    [sql(`${plain} and channel = :channel`), two],
    [sql(plain, ', allChannels: true'), two],
    [sql(plain), '[{ id: ch_news, subscription: s }]'],
    [http(', body: { of: ["{channel}"] }'), two],
    [http('').replace('{id}', '{id}/{channel}'), two],
    [http(', allChannels: true'), two],
    ['{ type: csv, path: ./left.csv }', two],
  ])('is accepted: %s with %s', (returns, channels) => {
    expect(lines(returns, channels)).toBeUndefined();
  });
});
