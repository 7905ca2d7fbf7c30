/**
 * A real PostgreSQL for tests. In this order: the one that TEST_POSTGRES_URL names; its programs on
 * PATH or where Debian has them; Debian's package, unpacked. It refuses to run as root, so it runs
 * as nobody then.
 */
import { chown, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { freePort } from './port.ts';
import { certify, findProgram, launch, run, unpacked, untilAnswers } from './program.ts';
import type { TestDatabase } from './database.ts';

const NOBODY = 65_534;
const PASSWORD = 'secret';
const DEBIAN = '/usr/lib/postgresql';

/** A database of its own in it; undefined: there is none to be had. */
export async function anyPostgres(): Promise<TestDatabase | undefined> {
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
