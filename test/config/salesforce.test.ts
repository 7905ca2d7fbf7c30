/** A Salesforce organization in a configuration: what stands there, what is wrong with it. */
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { folder, load, mistakes, remove } = makeFolder();
afterAll(remove);

const url = 'url: https://acme.my.salesforce.com';
const secret = 'auth: { clientId: c, clientSecret: s }';
const contacts = (rest: string, id = 'Id', more = '') =>
  minimal(
    `contacts:\n  source: { type: salesforce, ${rest} }\n  id: ${id}\n  email: Email\n` +
      `  channels: [{ id: a, subscription: s }]\n${more}`,
  );

describe('a Salesforce source', () => {
  it('needs an address and a login', () => {
    expect(load(contacts(`${url}, ${secret}`)).contacts?.source).toEqual({
      type: 'salesforce',
      url: 'https://acme.my.salesforce.com',
      auth: { clientId: 'c', clientSecret: 's' },
      objects: ['Contact'],
      version: 'v62.0',
      overlap: '2m',
      bulkAbove: 50_000,
      timeoutMs: 120_000,
    });
  });

  it('has the file of its key beside the configuration', () => {
    const auth = 'auth: { clientId: c, username: u, privateKeyFile: ./key.pem }';
    const { source } = load(contacts(`${url}, ${auth}`)).contacts ?? {};
    expect(source).toMatchObject({ auth: { privateKeyFile: join(folder, 'key.pem') } });
  });

  it('can have events', () => {
    const events = '  webhook: { format: standard, secret: MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }\n';
    expect(mistakes(contacts(`${url}, ${secret}`, 'Id', events))).toBeUndefined();
  });

  it('is the example, given its secrets', () => {
    const env = { PLATFORM_API_KEY: 'k', SALESFORCE_CLIENT_ID: 'c', SALESFORCE_CLIENT_SECRET: 's' };
    const config = loadConfig('config/salesforce.yaml', env);
    expect(config.contacts?.source).toMatchObject({
      type: 'salesforce',
      auth: { clientId: 'c', clientSecret: 's' },
    });
  });
});

describe('a mistake in a Salesforce source', () => {
  const lines = (yaml: string) =>
    mistakes(yaml)?.map((line) => line.replace(/^mirror.yaml:\d+:\d+ {2}/, ''));
  const both = `${url}, ${secret}`;
  const twice = 'stands beside clientSecret  → keep one of the two ways';
  it.each([
    [`url: x, ${secret}`, 'url  is no web address  → write https://acme.my.salesforce.com'],
    [`url: http://a.b, ${secret}`, 'url  would send people and secrets unencrypted  → use https'],
    [
      `url: https://acme.lightning.force.com, ${secret}`,
      'url  is the address of its pages  → write https://acme.my.salesforce.com, as Setup shows it at My Domain',
    ],
    [
      `url: https://acme.my.salesforce.com/services, ${secret}`,
      'url  is more than the address of the organization  → write https://acme.my.salesforce.com',
    ],
    [`url: https://me:pw@a.b, ${secret}`, 'url  holds a user or password  → move it to auth'],
    [
      `${url}, auth: { clientId: c }`,
      'auth.clientSecret  is missing  → add it, or username and privateKeyFile',
    ],
    [
      `${url}, auth: { clientId: c, username: u }`,
      'auth.privateKeyFile  is missing  → add it, or privateKey, whose certificate the app has',
    ],
    [
      `${url}, auth: { clientId: c, username: u, privateKey: k, privateKeyFile: f }`,
      'auth.privateKeyFile  stands beside privateKey  → keep one of the two',
    ],
    [`${url}, auth: { clientId: c, clientSecret: s, username: u }`, `auth.username  ${twice}`],
    [`${url}, auth: { clientId: c, clientSecret: s, audience: u }`, `auth.audience  ${twice}`],
    [`${both}, objects: [Contact, Contact]`, 'objects  names one twice  → remove it'],
    [`${both}, objects: [Account]`, 'objects[0]  is not known here  → use Contact or Lead'],
    [`${both}, version: 62`, 'version  is not a text  → put it in quotes'],
    [`${both}, version: v62`, 'version  is no version of the API  → write one such as v62.0'],
    [`${both}, overlap: 2d`, 'overlap  is not a duration  → write a number and s, m or h: 2m'],
    [`${both}, bulkAbove: 0`, 'bulkAbove  is below 1  → write 1 or more'],
  ])('%s', (rest, words) => {
    expect(lines(contacts(rest))).toEqual([`contacts.source.${words}`]);
  });

  it('the id must be Id', () => {
    expect(lines(contacts(`${url}, ${secret}`, 'External_Id__c'))).toEqual([
      'contacts.id  is not the id of its records  → write Id, and nothing else',
    ]);
  });
});
