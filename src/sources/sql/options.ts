import { z } from 'zod';
import type { Fault } from '../../domain/record.ts';
import {
  fault,
  flag,
  reporter,
  requireOne,
  says,
  text,
  whole,
} from '../../domain/schema-fields.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { overlap } from '../shared/option-fields.ts';
import type { ServerPlace } from './drivers/database-session.ts';

export const sqlOptions = z
  .strictObject({
    type: z.literal('sql').describe('A table or query of PostgreSQL, MySQL, MariaDB or SQLite'),
    url: text('Address: postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or sqlite:FILE'),
    password: text('Password of the user; take it from the environment with ${NAME}').optional(),
    table: text('Table or view to read, with its schema if necessary: crm.contacts').optional(),
    query: text('Select statement to read, instead of table').optional(),
    key: text('Column with unique values and an index; by default contacts.id').optional(),
    updatedAt: text('Column with the time of the last change to a row, for fast runs').optional(),
    overlap: overlap('Maximum delay between the time stamp of a changed row and its visibility'),
    zone: z
      .string()
      .regex(
        /^(UTC|[+-]\d\d:\d\d)$/,
        says('is no such zone', 'write UTC, or an offset such as +01:00'),
      )
      .describe('Time zone of times that are stored without one: UTC, or an offset such as +01:00')
      .optional(),
    ca: text('File with the CA certificate that signed the certificate of the database').optional(),
    allowPlain: flag('Allows unencrypted connections to another machine').prefault(false),
    timeoutMs: whole(1, 3_600_000, 'Time-out of a query, in milliseconds').prefault(30_000),
    pageSize: whole(1, 50_000, 'Number of rows to read at a time').prefault(2_000),
  })
  .superRefine((given, context) => {
    const { url, password, table, query, ca, allowPlain } = given;
    const wrong = reporter(context);
    const place = placeOf(url);
    if ('reason' in place) wrong('url', place);
    else if (place.system === 'sqlite') {
      const remove = fault('belongs to a database that is asked over the network', 'remove it');
      if (password !== undefined) wrong('password', remove);
      if (ca !== undefined) wrong('ca', remove);
    } else if (password !== undefined && place.password !== undefined) {
      wrong('password', 'stands beside one in url', 'keep one of the two');
    }
    requireOne(context, given, 'table', 'query');
    if (table !== undefined && !/^[^.\0]+(\.[^.\0]+)?$/.test(table))
      wrong('table', 'is no name of a table', 'write TABLE or SCHEMA.TABLE, or use query');
    if (query !== undefined && !/^\s*(select|with|table|values)\b/i.test(query))
      wrong('query', 'is no select', 'write one, and nothing else');
    if (ca !== undefined && allowPlain) wrong('ca', 'stands beside allowPlain', 'remove one');
  });
export type SqlOptions = z.infer<typeof sqlOptions>;

/** The options for reporting opt-outs. Without `url`, the database of the source is used. */
export const sqlReturnsOptions = z
  .strictObject({
    type: z.literal('sql').describe('Executes a statement for each opt-out'),
    url: text('Address of the database; by default the database of the source').optional(),
    password: text('Password of the user; take it from the environment with ${NAME}').optional(),
    statement: text(
      "Statement to execute: update consents set wanted = 'no' where person = :id and :channel in (channel, '*')",
    ),
    allChannels: flag(
      'The statement opts the person out of every channel, whichever of them the person left',
    ).optional(),
    ca: text('File with the CA certificate that signed the certificate of the database').optional(),
    allowPlain: flag('Allows unencrypted connections to another machine').optional(),
    timeoutMs: whole(1, 3_600_000, 'Time-out of a statement, in milliseconds').prefault(30_000),
  })
  .superRefine(({ url, password, ca, allowPlain, statement }, context) => {
    const wrong = reporter(context);
    const place = url === undefined ? undefined : placeOf(url);
    if (place && 'reason' in place) wrong('url', place);
    for (const [path, given] of Object.entries({ password, ca, allowPlain })) {
      if (given !== undefined && url === undefined) wrong(path, 'belongs to url', 'add that');
    }
    const names = [...statement.matchAll(tokens)].flatMap((found) => found[2] ?? []);
    const unknown = names.find((name) => !parameters.some((known) => known === name));
    if (unknown !== undefined) {
      const fix = `use :${parameters.join(', :')}`;
      wrong('statement', `holds :${unknown}, which stands for nothing`, fix);
    } else if (!binds(statement, 'id') && !binds(statement, 'email')) {
      const fix = 'name the person with :id or :email';
      wrong('statement', 'names nobody, and would concern everybody', fix);
    }
  });

/** The names that a statement may contain with a colon before them: `where id = :id`. */
const parameters = ['id', 'email', 'channel', 'cause', 'at', 'return'] as const;

type Parameter = (typeof parameters)[number];

/** Matches parts that contain no parameter: texts, quoted names, comments, and `::`. */
const opaque = [
  String.raw`'(?:[^']|'')*'`,
  String.raw`"(?:[^"]|"")*"`,
  '`[^`]*`',
  String.raw`--[^\n]*`,
  String.raw`/\*[\s\S]*?\*/`,
  String.raw`\$(\w*)\$[\s\S]*?\$\1\$`,
  '::',
].join('|');

const tokens = new RegExp(String.raw`${opaque}|(?<![\w:]):([A-Za-z]\w*)`, 'g');

/** Splits a statement at its named parameters. Unknown names remain text. */
export function namedIn(statement: string): (string | { name: Parameter })[] {
  const pieces: (string | { name: Parameter })[] = [];
  let from = 0;
  for (const found of statement.matchAll(tokens)) {
    const name = parameters.find((known) => known === found[2]);
    if (name === undefined) continue;
    pieces.push(statement.slice(from, found.index), { name });
    from = found.index + found[0].length;
  }
  return [...pieces, statement.slice(from)];
}

/** Returns whether a statement binds a parameter outside of its texts and comments. */
export function binds(statement: string, name: Parameter): boolean {
  return namedIn(statement).some((piece) => typeof piece === 'object' && piece.name === name);
}

const systems: Record<string, { system: ServerPlace['system']; port: number }> = {
  'postgres:': { system: 'postgres', port: 5432 },
  'postgresql:': { system: 'postgres', port: 5432 },
  'mysql:': { system: 'mysql', port: 3306 },
  'mariadb:': { system: 'mysql', port: 3306 },
};

const none = fault(
  'is no address of a database',
  'write postgres://USER@HOST/DATABASE, mysql://… or sqlite:FILE; ' +
    'a password with other than letters and digits as password',
);

/** Returns the location, or the fault in the address, which quotes no part of it. */
export function placeOf(address: string): { system: 'sqlite'; path: string } | ServerPlace | Fault {
  const file = fileOf(address);
  if (file !== undefined) return file === '' ? none : { system: 'sqlite', path: file };
  const url = URL.parse(address);
  const known = systems[url?.protocol ?? ''];
  if (!url || !known) return none;
  const params = readParameters(url);
  if ('reason' in params) return params;
  let parts = [url.hostname, url.username, url.password, url.pathname.slice(1)];
  try {
    parts = parts.map(decodeURIComponent);
  } catch {
    return fault('holds a % that stands for itself', 'write it as %25');
  }
  const [name = '', user = '', password = '', database = ''] = parts;
  const host = params.host ?? name.replace(/^\[(.*)\]$/, '$1');
  if (host === '') return fault('names no host', 'write it after the user and an @');
  if (user === '')
    return fault('names no user', 'write it before the host: postgres://USER@HOST/DATABASE');
  if (database === '' || database.includes('/'))
    return fault('names no database', 'write it after the host: postgres://USER@HOST/DATABASE');
  return {
    system: known.system,
    host,
    port: url.port === '' ? known.port : Number(url.port),
    user,
    password: password === '' ? undefined : password,
    database,
    local: host.startsWith('/') || isLoopback(address),
    encrypted: params.encrypted,
  };
}

function fileOf(address: string): string | undefined {
  return /^sqlite:(?:\/\/)?(.*)$/is.exec(address)?.[1];
}

/** Returns an address in which the path of an SQLite file is absolute. */
export function absoluteAddress(address: string, absolute: (path: string) => string): string {
  const file = fileOf(address);
  return file === undefined ? address : `sqlite:${absolute(file)}`;
}

function readParameters(url: URL): { host?: string; encrypted: boolean } | Fault {
  const found: { host?: string; encrypted: boolean } = { encrypted: false };
  if (url.hash) return fault('holds a #', 'write a password with one as password');
  for (const [name, value] of url.searchParams) {
    if (name === 'host' && value.startsWith('/')) found.host = value;
    else if (/^ssl-?mode$/.test(name) && /^(require|verify)/i.test(value)) found.encrypted = true;
    else if (/^ssl-?mode$/.test(name)) {
      const fix = 'remove sslmode, or add allowPlain: true instead of it';
      return fault('does without encryption', fix);
    } else return fault('holds a parameter that is not known here', 'remove what follows the ?');
  }
  return found;
}
