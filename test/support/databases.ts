import Database from 'better-sqlite3';
import { chmod, chown, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { freePort } from './waiting.ts';
import { certify, exists, findProgram, launch, run, unpacked, untilAnswers } from './program.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { createConnection } from 'mysql2/promise';
import { afterAll } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import type { Source } from '../../src/sources/source.ts';
import { sqlOptions, type SqlOptions } from '../../src/sources/sql/options.ts';
import { sqlSource } from '../../src/sources/sql/sql-source.ts';
import { scratch, virtualClock } from './sources/source-reading.ts';
import { drawn, playsAll, playsDraw } from './extent.ts';

// A database server that tests may do anything in.

export interface TestDatabase {
  /** As somebody who may do everything, in a database of its own. */
  url: string;
  /** File of the authority that signed its certificate; undefined: it is not encrypted. */
  ca: string | undefined;
  /** Statements, one after the other. */
  run(sql: string): Promise<void>;
  close(): Promise<void>;
}

// A real PostgreSQL for tests. In this order: the one that TEST_POSTGRES_URL names; its programs on
// PATH or where Debian has them; Debian's package, unpacked. It refuses to run as root, so it runs
// as nobody then.

const NOBODY = 65_534;
const PASSWORD = 'secret';
const DEBIAN = '/usr/lib/postgresql';

/** A database of its own in it; undefined: there is none to be had. */
async function anyPostgres(): Promise<TestDatabase | undefined> {
  const given = process.env['TEST_POSTGRES_URL'];
  if (given) return databaseIn(given, { ca: undefined, close: async () => undefined });
  const folder = await programs();
  if (folder === undefined) return undefined;
  const { url, ...server } = await started(folder);
  return databaseIn(url, server);
}

async function databaseIn(
  url: string,
  { ca, close }: Pick<TestDatabase, 'ca' | 'close'>,
): Promise<TestDatabase> {
  const name = `crm_mirror_${process.pid}_${Math.random().toString(36).slice(2)}`;
  await asked(url, `create database ${name}`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return {
    url: own.href,
    ca,
    run: async (sql) => void (await asked(own.href, sql)),
    close: async () => {
      await asked(url, `drop database ${name} with (force)`);
      await close();
    },
  };
}

async function asked(url: string, sql: string) {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

/** The folder of initdb and postgres. */
async function programs(): Promise<string | undefined> {
  const found = await findProgram(['initdb'], await versionsIn(DEBIAN));
  if (found !== undefined) return dirname(found);
  const depends = await run('apt-cache', ['depends', 'postgresql']).catch(() => ({ stdout: '' }));
  const version = /Depends: postgresql-(\d+)/.exec(depends.stdout)?.[1];
  if (version === undefined) return undefined;
  const has = join(DEBIAN, version, 'bin/initdb').slice(1);
  const packages = [`postgresql-${version}`, 'libpq5', 'libllvm14', 'libicu72', 'libxslt1.1'];
  const root = await unpacked(`postgres-${version}`, { packages, has });
  return root === undefined ? undefined : dirname(join(root, has));
}

async function versionsIn(folder: string): Promise<string[]> {
  const versions = await readdir(folder).catch(() => []);
  return versions
    .toSorted((a, b) => Number(b) - Number(a))
    .map((name) => join(folder, name, 'bin'));
}

async function started(programFolder: string) {
  const folder = await mkdtemp(join(tmpdir(), 'crm-mirror-postgres-'));
  const data = join(folder, 'data');
  const uid = process.getuid?.() === 0 ? NOBODY : undefined;
  const secret = join(folder, 'password');
  await writeFile(secret, PASSWORD);
  const tls = await certify(folder);
  for (const path of [folder, secret, ...Object.values(tls ?? {})]) {
    if (uid !== undefined) await chown(path, uid, uid);
  }
  const env = { ...process.env, LD_LIBRARY_PATH: librariesBeside(programFolder), HOME: folder };
  const options = uid === undefined ? { env } : { env, uid };
  await run(
    join(programFolder, 'initdb'),
    [
      '-D',
      data,
      '-U',
      'postgres',
      '-A',
      'scram-sha-256',
      `--pwfile=${secret}`,
      '--no-sync',
      '-E',
      'UTF8',
      '--locale=C',
    ],
    { ...options, ...(uid !== undefined && { gid: uid }), cwd: folder },
  );
  const port = await freePort();
  const settings = ['fsync=off', 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`];
  if (tls) settings.push('ssl=on', `ssl_cert_file=${tls.certificate}`, `ssl_key_file=${tls.key}`);
  const set = settings.flatMap((setting) => ['-c', setting]);
  const server = await launch(
    [join(programFolder, 'postgres'), '-D', data, '-p', `${port}`, ...set],
    options,
  );
  const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
  await untilAnswers('PostgreSQL', () => answers(url));
  const close = async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { url, ca: tls?.certificate, close };
}

/** Where the package was unpacked, what it needs lies beside it. */
function librariesBeside(programFolder: string): string {
  const triplet = { x64: 'x86_64', arm64: 'aarch64' }[process.arch as string] ?? process.arch;
  return join(programFolder, '../../..', `${triplet}-linux-gnu`);
}

async function answers(url: string): Promise<boolean> {
  return asked(url, 'select 1').then(
    () => true,
    () => false,
  );
}

// A real MariaDB for tests. In this order: the one that TEST_MARIADB_URL names (a MySQL will do);
// its server on PATH; Debian's package, unpacked.

const PACKAGES = ['mariadb-server-core', 'mariadb-server', 'liburing2', 'libaio1'];
const TABLES = 'share/mysql/mysql_system_tables.sql';

/** A database of its own in it; undefined: there is none to be had. */
async function anyMariadb(): Promise<TestDatabase | undefined> {
  const given = process.env['TEST_MARIADB_URL'];
  if (given) return mariadbAt(given, { ca: undefined, close: async () => undefined });
  const program = await findServer();
  if (program === undefined) return undefined;
  const { url, ...server } = await mariadbStarted(program);
  return mariadbAt(url, server);
}

async function mariadbAt(
  url: string,
  { ca, close }: Pick<TestDatabase, 'ca' | 'close'>,
): Promise<TestDatabase> {
  const name = `crm_mirror_${process.pid}_${Math.random().toString(36).slice(2)}`;
  await mariadbAsked(url, `create database ${name} character set utf8mb4`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return {
    url: own.href,
    ca,
    run: async (sql) => mariadbAsked(own.href, sql),
    close: async () => {
      await mariadbAsked(url, `drop database ${name}`);
      await close();
    },
  };
}

async function mariadbAsked(url: string, sql: string): Promise<void> {
  const connection = await createConnection({ uri: url, multipleStatements: true });
  try {
    await connection.query(sql);
  } finally {
    await connection.end();
  }
}

interface Server {
  path: string;
  /** The folder that holds its `share`. */
  root: string;
  libraries?: string;
}

async function findServer(): Promise<Server | undefined> {
  const path = await findProgram(['mariadbd', 'mysqld'], ['/usr/sbin']);
  if (path !== undefined && (await exists(join('/usr', TABLES)))) return { path, root: '/usr' };
  const root = await unpacked('mariadb', { packages: PACKAGES, has: `usr/${TABLES}` });
  if (root === undefined) return undefined;
  const triplet = { x64: 'x86_64', arm64: 'aarch64' }[process.arch as string] ?? process.arch;
  return {
    path: join(root, 'usr/sbin/mariadbd'),
    root: join(root, 'usr'),
    libraries: join(root, 'usr/lib', `${triplet}-linux-gnu`),
  };
}

async function mariadbStarted({ path, root, libraries }: Server) {
  const folder = await mkdtemp(join(tmpdir(), 'crm-mirror-mariadb-'));
  await chmod(folder, 0o755);
  const data = join(folder, 'data');
  await mkdir(data);
  const tls = await certify(folder);
  const options = [
    '--no-defaults',
    `--datadir=${data}`,
    // Two servers that begin at once would take each other's files in a common one.
    `--tmpdir=${folder}`,
    `--lc-messages-dir=${join(root, 'share/mysql')}`,
    '--innodb-buffer-pool-size=32M',
    '--innodb-flush-log-at-trx-commit=0',
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
  ];
  const env =
    libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  await bootstrap(path, { options, env, tables: join(root, TABLES) });
  const port = await freePort();
  const server = await launch(
    [
      path,
      ...options,
      '--bind-address=127.0.0.1',
      `--port=${port}`,
      `--socket=${join(folder, 'socket')}`,
      `--pid-file=${join(folder, 'pid')}`,
      ...(tls ? [`--ssl-cert=${tls.certificate}`, `--ssl-key=${tls.key}`] : []),
    ],
    { env },
  );
  const url = `mysql://root:secret@127.0.0.1:${port}/mysql`;
  await untilAnswers('MariaDB', () => mariadbAnswers(url));
  const close = async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { url, ca: tls?.certificate, close };
}

interface Bootstrap {
  options: readonly string[];
  env: NodeJS.ProcessEnv;
  tables: string;
}

/** What `mariadb-install-db` does, without the programs that it needs. */
async function bootstrap(path: string, { options, env, tables }: Bootstrap): Promise<void> {
  const statements = [
    'create database mysql;',
    'use mysql;',
    await readFile(tables, 'utf8'),
    "insert into global_priv values ('%', 'root', json_object('access', 18446744073709551615," +
      " 'plugin', 'mysql_native_password', 'authentication_string', password('secret')));",
    '',
  ];
  const child = spawn(path, [...options, '--bootstrap', '--skip-networking'], {
    env,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const said = text(child.stderr);
  child.stdin.end(statements.join('\n'));
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`MariaDB could not make its tables (${code}): ${await said}`);
}

async function mariadbAnswers(url: string): Promise<boolean> {
  return mariadbAsked(url, 'select 1').then(
    () => true,
    () => false,
  );
}

// Databases that a source of type sql is tried on: SQLite always, others where they are had.

/** A connection of somebody else, who may write. */
export interface Writer {
  run(sql: string): Promise<void>;
  close(): Promise<void>;
}

export interface Stand {
  name: 'PostgreSQL' | 'MariaDB' | 'SQLite';
  url: string;
  ca: string | undefined;
  run(sql: string): Promise<void>;
  connect(): Promise<Writer>;
  /** Types of columns. */
  moment: string;
  text: string;
  /** A text that is compared without regard to case. */
  anyCase: string;
  /** The time in SQL: now, and so many seconds before. */
  ago(seconds: number): string;
}

async function sqliteStand(): Promise<Stand> {
  const path = join(await scratch(), 'crm.sqlite');
  const connect = async (): Promise<Writer> => {
    const db = new Database(path);
    db.pragma('journal_mode = wal');
    return { run: async (sql) => void db.exec(sql), close: async () => void db.close() };
  };
  return {
    name: 'SQLite',
    url: `sqlite:${path}`,
    ca: undefined,
    run: perCall(connect),
    connect,
    moment: 'text',
    text: 'text',
    anyCase: 'text collate nocase',
    ago: (seconds) => `strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-${seconds} seconds')`,
  };
}

async function postgresStand(): Promise<Stand | undefined> {
  const found = await anyPostgres();
  if (!found) return told('PostgreSQL', 'postgresql', 'TEST_POSTGRES_URL');
  afterAll(found.close);
  await found.run(
    "create collation any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
  );
  const connect = async (): Promise<Writer> => {
    const client = new Client({ connectionString: found.url });
    client.on('error', () => undefined);
    await client.connect();
    return { run: async (sql) => void (await client.query(sql)), close: async () => client.end() };
  };
  return {
    ...found,
    name: 'PostgreSQL',
    connect,
    moment: 'timestamptz',
    text: 'text',
    anyCase: 'text collate any_case',
    ago: (seconds) => `now() - interval '${seconds} seconds'`,
  };
}

async function mariadbStand(): Promise<Stand | undefined> {
  const found = await anyMariadb();
  if (!found) return told('MariaDB', 'mariadb-server', 'TEST_MARIADB_URL');
  afterAll(found.close);
  const connect = async (): Promise<Writer> => {
    const connection = await createConnection({ uri: found.url, multipleStatements: true });
    connection.on('error', () => undefined);
    const close = async () => connection.end().catch(() => undefined);
    return { run: async (sql) => void (await connection.query(sql)), close };
  };
  return {
    ...found,
    name: 'MariaDB',
    connect,
    moment: 'timestamp(6) null',
    text: 'varchar(100)',
    anyCase: 'varchar(100) collate utf8mb4_general_ci',
    ago: (seconds) => `now(6) - interval ${seconds} second`,
  };
}

/** All that are had; in `npm test` SQLite, which needs no server, and in `npm run test:ci` one. */
export async function stands(): Promise<[string, Stand][]> {
  const servers = [postgresStand, mariadbStand];
  const few = playsDraw ? drawn(servers, 1) : [sqliteStand];
  const makers = playsAll ? [sqliteStand, ...servers] : few;
  const all = await Promise.all(makers.map(async (make) => make()));
  return all.flatMap((stand): [string, Stand][] => (stand ? [[stand.name, stand]] : []));
}

function told(name: string, packaged: string, variable: string): undefined {
  // oxlint-disable-next-line no-console -- nobody would notice what is missing
  console.warn(
    `no ${name} for the tests, they are skipped: install ${packaged}, or set ${variable}`,
  );
  return undefined;
}

function perCall(connect: () => Promise<Writer>) {
  return async (sql: string): Promise<void> => {
    const writer = await connect();
    try {
      await writer.run(sql);
    } finally {
      await writer.close();
    }
  };
}

/** The options of a configuration, and what stands there instead of being there. */
export type Given = Partial<Record<keyof SqlOptions, unknown>>;

/** The source of options as they stand in a configuration; its clock is not the database's. */
export function sourceOn({ url }: Pick<Stand, 'url'>, given: Given, id = 'id'): Required<Source> {
  const source = sqlSource(sqlOptions.parse({ type: 'sql', url, ...given }), {
    clock: { ...virtualClock(), sleep: systemClock.sleep },
    id,
  });
  const none = async function* () {
    yield await Promise.reject(new Error('there are no changes without updatedAt'));
    return 'lost' as const;
  };
  const lacks = { changes: none, one: async () => undefined, still: () => false };
  return { ...lacks, ...source };
}

/** As long as a test file runs. */
let tables = 0;

/** A table of its own, with these columns and rows. */
export async function tableOn(
  stand: Stand,
  columns: string,
  rows: readonly string[] = [],
): Promise<string> {
  tables += 1;
  const name = `people_${tables}`;
  const insert =
    rows.length > 0
      ? `; insert into ${name} values ${rows.map((row) => `(${row})`).join(', ')}`
      : '';
  await stand.run(`create table ${name} (${columns})${insert}`);
  return name;
}
