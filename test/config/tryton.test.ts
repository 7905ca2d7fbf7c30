/** A Tryton in a configuration: what stands there, what is wrong with it. */
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { folder, load, mistakes, remove } = makeFolder();
afterAll(remove);

const rest = 'url: https://tryton.example.com:8000, database: acme, username: me';
const contacts = (source: string, id = 'id', more = '') =>
  minimal(
    `contacts:\n  source: { type: tryton, ${source} }\n  id: ${id}\n  email: email\n` +
      `  channels: [{ id: a, subscription: s }]\n${more}`,
  );

describe('a Tryton source', () => {
  it('needs an address, a database and a login', () => {
    expect(load(contacts(`${rest}, password: p`)).contacts?.source).toEqual({
      type: 'tryton',
      url: 'https://tryton.example.com:8000',
      database: 'acme',
      username: 'me',
      password: 'p',
      overlap: '2m',
      timeoutMs: 60_000,
      allowHttp: false,
    });
  });

  it('has the file of its password beside the configuration', () => {
    const { source } = load(contacts(`${rest}, passwordFile: ./secret`)).contacts ?? {};
    expect(source).toMatchObject({ passwordFile: join(folder, 'secret') });
  });

  it('can be without encryption where the file allows it, or on this machine', () => {
    const more = 'database: acme, username: me, password: p';
    expect(mistakes(contacts(`url: http://127.0.0.1:8000, ${more}`))).toBeUndefined();
    expect(mistakes(contacts(`url: http://lan:8000, ${more}, allowHttp: true`))).toBeUndefined();
  });

  it('can have events', () => {
    const events = '  webhook: { format: standard, secret: MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }\n';
    expect(mistakes(contacts(`${rest}, password: p`, 'id', events))).toBeUndefined();
  });

  it('is the example, given its secrets', () => {
    const env = { PLATFORM_API_KEY: 'k', TRYTON_PASSWORD: 'p' };
    const { contacts: people } = loadConfig('config/tryton.yaml', env);
    expect(people?.source).toMatchObject({ type: 'tryton', password: 'p' });
    const [{ subscription } = { subscription: '' }] = people?.channels ?? [];
    const judge = (categories: string) =>
      typeof subscription === 'object' &&
      'when' in subscription &&
      subscription.when.judge({ categories });
    expect(judge('Customer,Newsletter')).toEqual({ gives: true });
    expect(judge('No Newsletter')).toEqual({ gives: false });
  });
});

describe('a mistake in a Tryton source', () => {
  const lines = (yaml: string) =>
    mistakes(yaml)?.map((line) => line.replace(/^mirror.yaml:\d+:\d+ {2}/, ''));
  const more = 'database: acme, username: me, password: p';
  it.each([
    [`url: x, ${more}`, 'url  is no web address  → write https://HOST:PORT'],
    [
      `url: http://lan:8000, ${more}`,
      'url  would send people and the password unencrypted  → use https, or add allowHttp: true',
    ],
    [
      `url: https://a.b/acme, ${more}`,
      'url  holds more than a host  → end it before the path; the database has a field of its own',
    ],
    [
      `url: https://me:pw@a.b, ${more}`,
      'url  holds a user or password  → move them to username and password',
    ],
    [rest, 'password  is missing  → add it, or passwordFile'],
    [
      `${rest}, password: p, passwordFile: f`,
      'passwordFile  stands beside password  → keep one of the two',
    ],
    [`${rest}, password: p, overlap: 2`, 'overlap  is not a text  → put it in quotes'],
    [
      `${rest}, password: p, overlap: 0m`,
      'overlap  is not a duration  → write a number from 1 and s, m, h or d: 2m',
    ],
  ])('%s', (source, words) => {
    expect(lines(contacts(source))).toEqual([`contacts.source.${words}`]);
  });

  it('the id must be id', () => {
    expect(lines(contacts(`${rest}, password: p`, 'code'))).toEqual([
      'contacts.id  is not the id of its records  → write id, and nothing else',
    ]);
  });
});
