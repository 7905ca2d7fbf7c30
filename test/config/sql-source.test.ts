/** A source of type sql in a configuration: what stands there, what is wrong with it, and where. */
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { folder, load, mistakes, remove } = makeFolder();
afterAll(remove);

const sql = (rest: string, extra = '') =>
  minimal(
    `contacts:\n  source: { type: sql, ${rest} }\n  id: i\n  email: e\n` +
      `  channels: [{ id: a, subscription: s }]\n${extra}`,
  );
const url = 'url: postgres://crm@db.example/crm';
const table = 'table: crm.people';

describe('a source of type sql', () => {
  it('has defaults, and takes its secret from the environment', () => {
    const rest = `${url}, ${table}, password: "\${PASSWORD}", pageSize: "\${SIZE}"`;
    const env = { PASSWORD: 'pa:ss@w/rd', SIZE: '50' };
    expect(load(sql(rest), env).contacts?.source).toEqual({
      type: 'sql',
      url: 'postgres://crm@db.example/crm',
      password: 'pa:ss@w/rd',
      table: 'crm.people',
      overlap: '2m',
      allowPlain: false,
      timeoutMs: 30_000,
      pageSize: 50,
    });
  });

  it('names files relative to the configuration', () => {
    const found = ['sqlite:crm.db', 'sqlite:./crm.db', 'sqlite:///srv/crm.db'].map((file) => {
      return load(sql(`url: "${file}", ${table}`)).contacts?.source;
    });
    const path = `sqlite:${join(folder, 'crm.db')}`;
    expect(found).toMatchObject([{ url: path }, { url: path }, { url: 'sqlite:/srv/crm.db' }]);
    const withCa = load(sql(`${url}, ${table}, ca: ca.pem`)).contacts?.source;
    expect(withCa).toMatchObject({ ca: join(folder, 'ca.pem') });
  });

  it.each([
    'url: postgresql://crm:pw@db.example:5433/crm?sslmode=verify-full',
    'url: mysql://crm@127.0.0.1/crm',
    'url: "mariadb://crm@[::1]:3307/crm"',
    'url: "postgres://crm@localhost/crm?host=/run/postgresql"',
  ])('takes %s', (rest) => {
    expect(mistakes(sql(`${rest}, ${table}`))).toBeUndefined();
  });

  it('can have events', () => {
    const events = '  webhook: { format: hubspot, secret: s }';
    expect(mistakes(sql(`${url}, ${table}`, events))).toBeUndefined();
  });

  it('is the example, given a password', () => {
    const config = loadConfig('config/sql.yaml', { PLATFORM_API_KEY: 'k', CRM_DB_PASSWORD: 'p' });
    expect(config.contacts?.source).toMatchObject({ type: 'sql', password: 'p' });
  });
});

const both = `${url}, ${table}`;
const none =
  'is no address of a database  → write postgres://USER@HOST/DATABASE, mysql://… or sqlite:FILE; ' +
  'a password with other than letters and digits as password';

describe('a mistake in a source of type sql', () => {
  it.each([
    ['https://db.example/crm', `url  ${none}`],
    ['postgres://crm:p/w@db.example/crm', `url  ${none}`],
    ['sqlite:', `url  ${none}`],
    [
      'postgres://db.example/crm',
      'url  names no user  → write it before the host: postgres://USER@HOST/DATABASE',
    ],
    [
      'mysql://crm@db.example',
      'url  names no database  → write it after the host: postgres://USER@HOST/DATABASE',
    ],
    [
      'postgres://crm:50%@db.example/crm',
      'url  holds a % that stands for itself  → write it as %25',
    ],
    [
      'postgres://crm:a@db.example/crm#b',
      'url  holds a #  → write a password with one as password',
    ],
    [
      'postgres://crm@db.example/crm?sslmode=disable',
      'url  does without encryption  → remove sslmode, or add allowPlain: true instead of it',
    ],
    [
      'postgres://crm@db.example/crm?options=x',
      'url  holds a parameter that is not known here  → remove what follows the ?',
    ],
    [
      `url: "postgres://crm:a@db.example/crm", password: b, ${table}`,
      'password  stands beside one in url  → keep one of the two',
    ],
    [
      `url: "sqlite:a.db", ca: c, ${table}`,
      'ca  belongs to a database that is asked over the network  → remove it',
    ],
    [url, 'table  is missing  → add it, or query'],
    [`${both}, query: select 1`, 'query  stands beside table  → keep one of the two'],
    [
      `${url}, table: a.b.c`,
      'table  is no name of a table  → write TABLE or SCHEMA.TABLE, or use query',
    ],
    [`${url}, query: delete from people`, 'query  is no select  → write one, and nothing else'],
    [`${both}, ca: c, allowPlain: true`, 'ca  stands beside allowPlain  → remove one'],
    [
      `${both}, overlap: 0s`,
      'overlap  is not a duration  → write a number from 1 and s, m, h or d: 2m',
    ],
    [
      `${both}, zone: Europe/Berlin`,
      'zone  is no such zone  → write UTC, or an offset such as +01:00',
    ],
  ])('%s', (rest, words) => {
    const all = rest.startsWith('url: ') ? rest : `url: "${rest}", ${table}`;
    const lines = mistakes(sql(all))?.map((line) => line.replace(/^mirror.yaml:7:\d+ {2}/, ''));
    expect(lines).toEqual([`contacts.source.${words}`]);
  });

  it('is reported without a value', () => {
    const rest = `url: "\${DB}", ${table}`;
    expect(mistakes(sql(rest), { DB: 'postgres://crm:pa/ss@db' })?.join()).not.toContain('pa/ss');
  });
});
