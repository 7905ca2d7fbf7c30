/**
 * A real MariaDB for tests. In this order: the one that TEST_MARIADB_URL names (a MySQL will do);
 * its server on PATH; Debian's package, unpacked.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createConnection } from 'mysql2/promise';
import type { TestDatabase } from './database.ts';
import { freePort } from './port.ts';
import { certify, exists, findProgram, launch, unpacked, untilAnswers } from './program.ts';

const PACKAGES = ['mariadb-server-core', 'mariadb-server', 'liburing2', 'libaio1'];
const TABLES = 'share/mysql/mysql_system_tables.sql';

/** A database of its own in it; undefined: there is none to be had. */
export async function anyMariadb(): Promise<TestDatabase | undefined> {
  const given = process.env['TEST_MARIADB_URL'];
  if (given) return databaseIn(given, { ca: undefined, close: async () => undefined });
  const program = await findServer();
  if (program === undefined) return undefined;
  const { url, ...server } = await started(program);
  return databaseIn(url, server);
}

async function databaseIn(
  url: string,
  { ca, close }: Pick<TestDatabase, 'ca' | 'close'>,
): Promise<TestDatabase> {
  const name = `crm_mirror_${process.pid}_${Math.random().toString(36).slice(2)}`;
  await asked(url, `create database ${name} character set utf8mb4`);
  const own = new URL(url);
  own.pathname = `/${name}`;
  return {
    url: own.href,
    ca,
    run: async (sql) => asked(own.href, sql),
    close: async () => {
      await asked(url, `drop database ${name}`);
      await close();
    },
  };
}

async function asked(url: string, sql: string): Promise<void> {
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

async function started({ path, root, libraries }: Server) {
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
  await untilAnswers('MariaDB', () => answers(url));
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

async function answers(url: string): Promise<boolean> {
  return asked(url, 'select 1').then(
    () => true,
    () => false,
  );
}
